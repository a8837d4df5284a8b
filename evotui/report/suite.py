"""A suite's cells as lines, a table and a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evotui.protocol.words import counted
from evotui.record.suitedir import CellState
from evotui.record.suitefile import Plan
from evotui.report.jsondoc import SCHEMA_VERSION
from evotui.report.text import HURT_NOTE, duration, heldout_cell, number, plain, table


def cell_line(state: CellState) -> str:
    """How a cell stands, in a line."""
    cell, run = state.cell, state.run
    parts = [cell.env, cell.agent.name, f"repeat {cell.repeat}", state.state]
    if state.heldout is not None:
        parts.append(f"held-out {number(state.heldout)}")
        if run is not None and (hurt := _hurt(state)):
            parts[-1] += f" ({hurt} of {counted(run.heldout[2] if run.heldout else 0, 'episode')} ended by a fault)"
    if run is not None and run.total:
        parts.append(f"{run.used}/{counted(run.total, 'episode')} in {duration(run.last_at - run.started_at)}")
    line = "  ".join(parts)
    return f"{line}: {plain(state.reason)}" if state.reason else line


def _hurt(state: CellState) -> int:
    """Held-out episodes of a finished cell that a fault ended."""
    return state.run.faults if state.heldout is not None and state.run is not None else 0


def suite_text(states: Sequence[CellState], brief: bool = False) -> str:
    """The cells as a table (not if ``brief``), why each failed one did, and how many stand how."""
    rows = []
    for s in states:
        run = s.run
        rows.append([
            s.cell.env, s.cell.agent.name, str(s.cell.repeat), s.state,
            f"{run.used}/{run.total}" if run is not None else "",
            number(run.best[1]) if run is not None and run.best is not None else "",
            heldout_cell(s.heldout, _hurt(s)) if s.heldout is not None else "",
            number(run.final_score) if s.heldout is not None and run is not None else "",
        ])  # fmt: skip
    head = ["environment", "agent", "repeat", "state", "episodes", "validation", "held-out", "final score"]
    words = [f"{n} {word}" for word in WORDS if (n := sum(s.state == word for s in states))]
    why = [
        f"✗ {s.cell.env}, {s.cell.agent.name}, repeat {s.cell.repeat}: {plain(s.reason)}" for s in states if s.reason
    ]
    cells = [] if brief else [table(head, rows, right=(2, 4, 5, 6, 7))]
    notes = [HURT_NOTE] if cells and any(map(_hurt, states)) else []
    return "\n".join([*cells, *notes, *why, f"{counted(len(states), 'cell')}: {', '.join(words)}"])


WORDS = ("finished", "failed", "running", "unfinished", "waiting")


def suite_document(plan: Plan, root: Path, states: Sequence[CellState]) -> dict[str, Any]:
    """The suite and its cells."""
    return {
        "schema_version": SCHEMA_VERSION,
        "suite": plan.name,
        "path": str(root),
        "profile": plan.profile,
        "repeats": plan.repeats,
        "counts": {word: sum(s.state == word for s in states) for word in WORDS},
        "cells": [
            {
                "run": s.cell.name,
                "path": str(s.run.path) if s.run is not None else None,
                "env": s.cell.env,
                "agent": s.cell.agent.name,
                "model": s.run.model if s.run is not None else s.cell.agent.model,
                "repeat": s.cell.repeat,
                "state": s.state,
                "reason": s.reason or None,
                "episodes": {"used": s.run.used, "total": s.run.total} if s.run is not None else None,
                "heldout": s.heldout,
                "heldout_faults": _hurt(s) if s.heldout is not None else None,
                "final_score": s.run.final_score if s.heldout is not None and s.run is not None else None,
                "seconds": round(s.run.last_at - s.run.started_at, 3) if s.run is not None else None,
            }
            for s in states
        ],
    }
