"""The paper's own table (``core16.toml``): its entries, the sixteen environments, their families and groups."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from evotui.analysis.leaderboard import Entry, Environment

PAPER = "arXiv 2607.02440"


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("core16.toml").read_text("utf-8"))


@functools.cache
def core16() -> tuple[Environment, ...]:
    """The sixteen environments in the paper's order."""
    return tuple(
        Environment(key, row["slug"], row["gym_id"], row["family"], row["group"], core16=True)
        for key, row in _table()["environments"].items()
    )


@functools.cache
def paper_entries() -> tuple[Entry, ...]:
    """Four agents and the uniform random policy, one run each."""
    rows = _table()["environments"]
    return tuple(
        Entry(
            key=key,
            model=entry["model"],
            harness=entry["harness"],
            returns={env: (row["scores"][key],) for env, row in rows.items()},
            source="paper",
            random=entry.get("random", False),
        )
        for key, entry in _table()["entries"].items()
    )
