"""A new run that begins where an earlier one stood: its checkpoint, its cases, the budget that was left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evotui.kernel.config import ConfigError, RunConfig
from evotui.kernel.reopening import read_config
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import RunDir, find, width_of
from evotui.record.state import RunState
from evotui.suite.catalog import find_task


def agent_of(selector: str, runs: Path) -> str:
    """The agent that a run began with. Raises as :func:`branched`."""
    return read_config(find(selector, runs) / "run.toml").agent


def branched(
    selector: str, at: int | None, runs: Path, env: str | None = None, wishes: Mapping[str, Any] | None = None
) -> RunConfig:
    """The configuration of a branch from submission ``at`` (None: the last with a checkpoint) of a run.

    Everything is as in that run, but for ``wishes``. Raises ConfigError, NotFound, RunDirError or LogError.
    """
    root = find(selector, runs)
    state = fold_all(read(root / "events.jsonl"))
    run = RunDir(root, width_of(state.header.budget))
    if env is not None and find_task(env).slug != state.header.env:
        raise ConfigError(f"{root.name} is a run on {state.header.env}: a branch of it cannot be on {env}")
    at = _submission(state, root.name, at)
    left = state.budget.total - sum(s.cost for s in state.submissions[: at + 1])
    chosen = dict(wishes or {})
    if left < 1 and "budget" not in chosen:
        raise ConfigError(f"{root.name} had no episode left after submission {at}; give the branch a --budget")
    was = read_config(root / "run.toml")
    config = replace(
        was,
        budget=max(left, 1),
        submit_max=0,
        submit_min=1,
        start=str(run.checkpoint(at)),
        branch_from=str(root.resolve()),
        branch_at=at,
    )
    if chosen.get("agent", was.agent) != was.agent:
        config = replace(config, model="", options={})
    return replace(config, **{key: value for key, value in chosen.items() if value is not None})


def _submission(state: RunState, name: str, at: int | None) -> int:
    have = [s.index for s in state.submissions if s.tree_hash]
    if not have:
        raise ConfigError(f"{name} has no checkpoint to branch from")
    if at is None:
        return have[-1]
    if at not in have:
        raise ConfigError(f"{name} has no checkpoint of submission {at}; it has {have[0]} to {have[-1]}")
    return at
