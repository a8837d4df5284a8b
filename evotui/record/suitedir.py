"""A suite's folder: ``suite.toml`` says the matrix, and every cell of it is an ordinary run's folder below.

``failures.json`` tells why a cell could not go on, for cells that have no record of it themselves. A cell's run is
named ``<suite>.<agent>.<environment>.<repeat>``; whatever else is known of it is in its own records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from evotui.record.regular import text_of_regular
from evotui.record.rundir import SUITE, RunDirError, scan, to_json, write_atomic
from evotui.record.suitefile import AgentRow, Plan, read_plan, table_of
from evotui.record.summary import RunSummary, summary

__all__ = ["FAILURES", "SUITE", "Cell", "CellState", "SuiteDir", "cells", "suites"]

FAILURES = "failures.json"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the matrix. ``repeat`` counts from 1."""

    suite: str
    env: str
    agent: AgentRow
    repeat: int

    @property
    def name(self) -> str:
        return ".".join(re.sub(r"[^A-Za-z0-9_-]+", "-", part) for part in (self.suite, self.agent.name, self.env)) + (
            f".{self.repeat}"
        )


@dataclass(frozen=True, slots=True)
class CellState:
    """How a cell stands: waiting, unfinished, running, finished or failed; ``reason`` says why it failed."""

    cell: Cell
    state: str
    reason: str = ""
    run: RunSummary | None = None

    @property
    def heldout(self) -> float | None:
        return self.run.heldout[0] if self.state == "finished" and self.run is not None and self.run.heldout else None


def cells(plan: Plan) -> Iterator[Cell]:
    """The matrix in the order in which it is run: repeat by repeat, environment by environment, agent by agent."""
    for repeat in range(1, plan.repeats + 1):
        for env in plan.envs:
            for agent in plan.agents:
                yield Cell(plan.name, env, agent, repeat)


@dataclass(slots=True)
class SuiteDir:
    """The folder of a suite. Blocking."""

    root: Path
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path) -> SuiteDir:
        """Raises RunDirError where ``failures.json`` cannot be read."""
        found = cls(root)
        try:
            data = json.loads(text_of_regular(root / FAILURES))
            found.failures = {str(name): str(reason) for name, reason in data.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError) as error:
            raise RunDirError(f"{root / FAILURES}: cannot be read ({error})") from None
        return found

    def plan(self) -> Plan:
        """Raises SuiteFileError."""
        return read_plan(self.root / SUITE)

    def lay_out(self, plan: Plan) -> None:
        """Make the folder and write its ``suite.toml``. Raises RunDirError where that cannot be."""
        try:
            (self.root / ".host").mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self.root / SUITE, tomli_w.dumps(table_of(plan)).encode())
        except OSError as error:
            raise RunDirError(f"cannot write the suite into {self.root} ({error.strerror or error})") from None

    def note(self, cell: Cell, reason: str) -> None:
        """Remember why a cell failed; an empty reason forgets it."""
        before = dict(self.failures)
        self.failures.pop(cell.name, None)
        if reason:
            self.failures[cell.name] = reason
        if self.failures != before:
            write_atomic(self.root / FAILURES, to_json(self.failures))

    def states(self, plan: Plan) -> list[CellState]:
        """How every cell of the matrix stands on disk."""
        runs = {path.name: path for path in scan(self.root)}
        return [self.state(cell, runs) for cell in cells(plan)]

    def state(self, cell: Cell, runs: Mapping[str, Path] | None = None) -> CellState:
        """How one cell stands. ``runs``: folders by name, where they are known."""
        path = {p.name: p for p in scan(self.root)}.get(cell.name) if runs is None else runs.get(cell.name)
        reason = self.failures.get(cell.name, "")
        if path is None:
            return CellState(cell, "failed" if reason else "waiting", reason)
        run = summary(path)
        match run.status:
            case "completed":
                return CellState(cell, "finished", "", run)
            case "no_ok_submit":
                return CellState(cell, "failed", "no submission ended ok", run)
            case "error":
                return CellState(cell, "failed", _error(path) or "it ended with an error", run)
            case "running":
                return CellState(cell, "running", "", run)
            case "unreadable" | "damaged" if not reason:
                return CellState(cell, "failed", run.problem, run)
            case _:
                return CellState(cell, "failed" if reason else "unfinished", reason, run)


def suites(runs: Path) -> list[Path]:
    """The folders of suites right below ``runs``, by name."""
    try:
        return sorted(path.parent for path in runs.glob(f"*/{SUITE}"))
    except OSError:
        return []


def _error(path: Path) -> str:
    try:
        found: Any = json.loads(text_of_regular(path / "run.json"))["outcome"]["error"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return str(found or "")
