"""``evotui leaderboard``: the entries of suites, and the paper's, gathered from their records into one ranking."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from evotui.analysis.leaderboard import Entry, Environment, Row, ranking
from evotui.analysis.paper import core16, paper_entries
from evotui.cli.errors import NOT_FOUND, Told
from evotui.record.suitedir import SUITE, CellState, SuiteDir, suites
from evotui.suite.catalog import find_task
from evotui.suite.errors import SuiteError


def gather(roots: Sequence[Path], paper: bool) -> tuple[list[Row], list[Environment]]:
    """The ranking of the suites in ``roots``, and of the paper's entries where asked for.

    Raises SuiteFileError or RunDirError.
    """
    entries: list[Entry] = list(paper_entries()) if paper else []
    names = [env.key for env in core16()] if paper else []
    for place, root in enumerate(roots):
        suite = SuiteDir.open(root)
        plan = suite.plan()
        names += plan.envs
        twin = any(other.name == root.name for other in roots[:place])
        entries += _entries(f"{root.name} ({root.parent})" if twin else root.name, suite.states(plan))
    environments = [environment(name) for name in dict.fromkeys(names)]
    order = {env.key: place for place, env in enumerate(core16())}
    environments.sort(key=lambda env: order.get(env.key, len(order)))
    return ranking(entries, environments), environments


def find_suites(selectors: Iterable[str], runs: Path) -> list[Path]:
    """Folders of suites by name or path; all below ``runs`` where none is named. Raises Told."""
    wanted = list(dict.fromkeys(selectors))
    if not wanted:
        return suites(runs)
    found = []
    for selector in wanted:
        places = [runs / selector, Path(selector)]
        root = next((p for p in places if (p / SUITE).is_file()), None)
        if root is None:
            there = ", ".join(path.name for path in suites(runs)) or "none"
            raise Told(f"no suite {selector!r} below {runs}; there are: {there}", NOT_FOUND)
        found.append(root.resolve())
    return list(dict.fromkeys(found))


def environment(name: str) -> Environment:
    """What the ranking needs of an environment: of Core16 from the paper's table, of another from its task file."""
    try:
        task = find_task(name)
    except SuiteError:  # it may have been moved since: its scores stay
        return next((env for env in core16() if env.key == name), Environment(name, family="custom"))
    anchor = task.anchors.get("random")
    low = anchor.mean if anchor is not None else None
    for env in core16():
        if env.key == task.name:
            return Environment(env.key, env.slug, env.gym_id, env.family, env.group, True, low)
    return Environment(name, task.slug, task.gym_id, task.family, random=low)


def _entries(suite: str, states: Sequence[CellState]) -> list[Entry]:
    found = []
    for agent in dict.fromkeys(state.cell.agent.name for state in states):
        mine = [state for state in states if state.cell.agent.name == agent]
        returns: dict[str, list[float]] = {}
        for state in mine:
            if state.heldout is not None:
                returns.setdefault(state.cell.env, []).append(state.heldout)
        if not returns:
            continue
        row = mine[0].cell.agent
        model = next((s.run.model for s in mine if s.run is not None and s.run.model), row.model or row.name)
        found.append(Entry(f"{suite}/{agent}", model, row.agent, returns, suite, facts=_facts(mine)))
    return found


def _facts(states: Sequence[CellState]) -> dict[str, object]:
    """What is to be known beside the figures: cells by state, and by which cases and rules they were measured."""
    dimensions: dict[str, set[str]] = {"pools": set(), "profile": set(), "policy_lifetime": set()}
    assisted = 0
    for state in states:
        if state.heldout is None or state.run is None:
            continue
        record = json.loads((state.run.path / "run.json").read_text("utf-8"))
        asked = record["experiment_dimensions"]
        for key, name in (("pools", "seed_pool_id"), ("profile", "profile"), ("policy_lifetime", "policy_lifetime")):
            dimensions[key].add(str(asked.get(name)))
        assisted += bool(record["outcome"]["auxiliary"].get("assisted"))
    return {
        "cells": len(states),
        "finished": sum(state.state == "finished" for state in states),
        "failed": sum(state.state == "failed" for state in states),
        "assisted": assisted,
        **{key: ", ".join(sorted(values)) or None for key, values in dimensions.items()},
    }
