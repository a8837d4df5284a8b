"""Runs whose agent is a fake of ours: a program behind a real wall, at a real door."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.agents.sweep import survivors, tag_of
from evotui.cli.live import turn_of
from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.kernel.session import Session
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.log import read

FAKE = Path(__file__).parents[2] / "servers" / "fake_agents.py"

OWN_ROWS = """
[mine]
title = "My agent"
program = "{program}"
adapter = "lines"
dialect = "claude"
command = ["once", "{{prompt}}", "{{resume}}"]
resume = ["--resume", "{{value}}"]
writable = ["~/.mine"]

[half]
title = "Half an agent"
program = "{program}"
adapter = "acp"
command = ["acp"]
writable = ["~/.mine"]
fallback = {{ adapter = "lines", dialect = "claude", command = ["once", "{{prompt}}"] }}
"""


class Fakes:
    """What a fake does and hears. ``kind`` names the row: claude, opencode (over ACP), mine (lines), half."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.heard_file = self.home / ".mine" / "heard"
        self.heard_file.parent.mkdir(parents=True)
        self.plan_file = folder / "plan.json"
        self.program = folder / "program"
        self.sessions: list[Session] = []
        (self.home / ".claude").symlink_to(self.heard_file.parent)
        (self.home / ".local/share").mkdir(parents=True)
        (self.home / ".local/share/opencode").symlink_to(self.heard_file.parent)
        script = f'#!/bin/sh\ncase "$1" in acp|once|--version) ;; *) set -- claude "$@";; esac\nexec {sys.executable}'
        self.program.write_text(f'{script} -S {FAKE} "$@"\n')
        self.program.chmod(0o755)
        work = folder / "work"
        work.mkdir()
        (work / "agents.toml").write_text(OWN_ROWS.format(program=self.program))
        monkeypatch.chdir(work)
        monkeypatch.setenv("HOME", str(self.home))
        for kind, place in {
            "CONFIG": ".config",
            "DATA": ".local/share",
            "STATE": ".local/state",
            "CACHE": ".cache",
        }.items():
            monkeypatch.setenv(f"XDG_{kind}_HOME", str(self.home / place))
        monkeypatch.setenv("FAKE_AGENT_PLAN", str(self.plan_file))
        monkeypatch.setenv("FAKE_AGENT_HEARD", str(self.heard_file))

    def plan(self, *turns: list[list[Any]]) -> None:
        self.plan_file.write_text(json.dumps(turns))

    @property
    def heard(self) -> list[dict[str, Any]]:
        """Everything that was said to the program, its arguments included."""
        text = self.heard_file.read_text("utf-8") if self.heard_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    @property
    def prompts(self) -> list[str]:
        found = []
        for message in self.heard:
            if message.get("type") == "user":
                found.append(message["message"]["content"][0]["text"])
            elif message.get("method") == "session/prompt":
                found.append(message["params"]["prompt"][0]["text"])
            elif message.get("arguments", [""])[0] == "once":
                found.append(message["arguments"][1])
        return found

    async def open(self, kind: str, **wishes: Any) -> Session:
        values = {"env": "cartpole", "agent": kind, "budget": 6, "validation": 2, "heldout": 2, "workers": 1}
        session = await open_run(resolve(**(values | wishes)), self.folder / "runs")
        self.sessions.append(session)
        return session

    async def play(self, session: Session, kind: str, **options: Any) -> str:
        turn = turn_of(session, kind, 0, {"cli": str(self.program), **options})
        return await session.run(turn.kind, turn.name, turn.evolve, turn.grace)

    async def run(self, kind: str, **options: Any) -> list[Any]:
        """A whole run; returns its facts."""
        session = await self.open(kind)
        await self.play(session, kind, **options)
        return facts(session)


def facts(session: Session) -> list[Any]:
    return [record.event for record in read(session.run_dir.events)]


def of(found: list[Any], kind: type[e.Event]) -> list[Any]:
    return [fact for fact in found if isinstance(fact, kind)]


@pytest.fixture
async def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any] | Fakes]:
    """Each run is left with a clean record and without a process."""
    made = Fakes(tmp_path, monkeypatch)
    yield made
    for session in made.sessions:
        await session.close()
        assert check(session.run_dir.root) == []
        assert survivors(tag_of(session.run_dir.workspace)) == []
