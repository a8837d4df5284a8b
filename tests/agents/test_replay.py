"""A recorded run re-enacted on the same cases gives the same returns; what cannot be replayed is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from evotui.agents.base import AgentFailed
from evotui.agents.replay import ready
from evotui.cli.live import drive
from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.state import RunState

SIZES = {"env": "cartpole", "validation": 2, "heldout": 2, "workers": 1, "pools": "paper"}


async def ran(runs: Path, budget: int, agent: str, **options: object) -> tuple[Path, RunState]:
    session = await open_run(resolve(budget=budget, agent=agent, options=options, **SIZES), runs)
    try:
        await drive(session, agent, 3, options)
    finally:
        await session.close()
    assert check(session.run_dir.root) == []
    assert fold_all(read(session.run_dir.events)) == session.state
    return session.run_dir.root, session.state


def returns(state: RunState) -> list[list[float]]:
    return [[episode.return_ for episode in submission.in_order] for submission in state.submissions]


async def test_the_same_edits_on_the_same_cases_give_the_same_run(tmp_path: Path) -> None:
    source, was = await ran(tmp_path, 8, "search")
    root, now = await ran(tmp_path, 8, "replay", source=str(source))
    assert returns(now) == returns(was) and len(was.submissions) > 1
    assert now.files == was.files and now.selected == was.selected
    said = [r.event for r in read(root / "events.jsonl") if isinstance(r.event, e.AgentThought)]
    assert said == [r.event for r in read(source / "events.jsonl") if isinstance(r.event, e.AgentThought)]


async def test_a_smaller_budget_ends_it_with_a_word(tmp_path: Path) -> None:
    source, was = await ran(tmp_path, 8, "search")
    _, now = await ran(tmp_path, 7, "replay", source=str(source))
    assert returns(now) == returns(was)[: len(now.submissions)] and now.ended is not None
    assert 0 < now.budget.used <= 7


def test_what_is_no_record_is_said(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed, match="holds no events"):
        ready({"source": str(tmp_path)})
