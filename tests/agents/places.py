"""A workspace like a run's, with neighbours that an agent must not see, and a teller that keeps what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evotui.agents import sweep
from evotui.agents.base import DoorUrls, Place, Workspace
from evotui.record.events import Event

POLICY = "class Policy:\n    pass\n"


class Ear:
    """``facts`` in the order in which they were told."""

    def __init__(self) -> None:
        self.facts: list[Any] = []
        self.on: Callable[[Event], None] = lambda fact: None

    async def __call__(self, fact: Event) -> None:
        self.facts.append(fact)
        self.on(fact)

    def of(self, kind: type[Any]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


class Site:
    """``runs/model/env/exp`` with a workspace, host-only files, and another run beside it."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self.run = self.runs / "model" / "env" / "exp"
        self.ear = Ear()
        for path, text in {
            "workspace/AGENTS.md": "# Rules\n",
            "workspace/system/policy.py": POLICY,
            "workspace/feedback/submit_000/summary.json": '{"mean_return": 1}\n',
            ".host/pools/heldout.json": "[1, 2, 3]\n",
            "events.jsonl": "{}\n",
            "checkpoints/submit_000/policy.py": POLICY,
            "../other/workspace/system/policy.py": "# somebody else's\n",
        }.items():
            file = self.run / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (self.run / "blobs").mkdir()
        (self.run / "logs").mkdir()
        self.workspace = Workspace(self.run / "workspace", self.run / "blobs", self.ear)

    def place(self, recorded: Callable[[], Mapping[str, str]] | None = None) -> Place:
        return Place(self.stream, (self.runs,), _unserved, recorded=recorded)

    @property
    def stream(self) -> Path:
        return self.run / "logs" / "agent_stream.jsonl"

    def processes(self) -> list[int]:
        """Processes of this site's agent that are alive."""
        return sweep.survivors(sweep.tag_of(self.workspace.root))


@asynccontextmanager
async def _unserved(door: Any = None) -> AsyncIterator[DoorUrls]:
    yield DoorUrls("http://127.0.0.1:9/t/info", "http://127.0.0.1:9/t/task", "http://127.0.0.1:9/t/submit")
