"""Real sessions on CartPole; each is closed, and its log must fold to its state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.kernel.session import Session
from evotui.record.check import check
from evotui.record.fold import fold_all
from evotui.record.log import read

Opener = Callable[..., Awaitable[Session]]


@pytest.fixture
async def open_session(tmp_path: Path) -> AsyncIterator[Opener]:
    sessions: list[Session] = []

    async def opener(**wishes: Any) -> Session:
        values = {"env": "cartpole", "budget": 8, "validation": 2, "heldout": 3, "workers": 1} | wishes
        session = await open_run(resolve(**values), tmp_path / "runs")
        sessions.append(session)
        return session

    yield opener
    for session in sessions:
        await session.close()
        assert fold_all(read(session.run_dir.events)) == session.state
        assert check(session.run_dir.root) == []
