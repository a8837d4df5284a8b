"""``evotui leaderboard``: the entries of suites, and the paper's, gathered from their records into one ranking.

An entry is an agent of a suite; two suites' agents are two entries, also where they are the same agent. ``merge`` makes
one of those that are the same agent (name, kind, model, options) under the same rules: its cells are then those of all
these suites, and a cell that several of them hold (same environment, same seed) counts once. Of such, the finished one
counts, and of several the one whose run ended last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evotui.analysis.leaderboard import Entry, Environment, Row, ranking
from evotui.analysis.paper import core16, paper_entries
from evotui.cli.errors import NOT_FOUND, Told
from evotui.kernel.config import PROFILES
from evotui.record.rundir import RunDirError, read_json
from evotui.record.suitedir import SUITE, CellState, SuiteDir, suites
from evotui.record.suitefile import AgentRow, Plan
from evotui.record.summary import heldout_faults
from evotui.suite.catalog import find_task
from evotui.suite.errors import SuiteError

_Cells = list[tuple[int, CellState]]
"""Cells of one agent, each with the seed it was run with."""
_Traits = dict[str, object]
_UNSAID = {"submit_min": 1, "submit_max": 0, "start": "starter"}
"""Rules that no profile names, as a run has them where nobody else does."""
_NO_RULES = ("workers", "allow_weak_isolation")
"""What says how a suite is run on a machine, not what it measures."""
_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Gathered:
    """A ranking and its environments; ``notes`` say why entries that look alike were not merged."""

    rows: list[Row]
    environments: list[Environment]
    notes: tuple[str, ...] = ()


def gather(roots: Sequence[Path], paper: bool, merge: bool = False) -> Gathered:
    """The ranking of the suites in ``roots``, and of the paper's entries where asked for.

    Raises SuiteFileError or RunDirError.
    """
    entries: list[Entry] = list(paper_entries()) if paper else []
    names = [env.key for env in core16()] if paper else []
    found: dict[object, tuple[list[str], _Cells]] = {}
    traits: dict[object, _Traits] = {}
    for place, root in enumerate(roots):
        suite = SuiteDir.open(root)
        plan = suite.plan()
        names += plan.envs
        twin = any(other.name == root.name for other in roots[:place])
        source = f"{root.name} ({root.parent})" if twin else root.name
        for state in suite.states(plan):
            row = state.cell.agent
            mine = _traits(plan, row)
            identity: object = json.dumps(mine, sort_keys=True, default=str) if merge else (source, row.name)
            traits[identity] = mine
            sources, cells = found.setdefault(identity, ([], []))
            if source not in sources:
                sources.append(source)
            cells.append((plan.seed + state.cell.repeat - 1, state))
    apart: list[tuple[str, _Traits]] = []
    for which, (sources, cells) in found.items():
        source = " + ".join(sources)
        if (entry := _entry(source, _counting(cells))) is not None:
            entries.append(entry)
            apart.append((source, traits[which]))
    environments = [environment(name) for name in dict.fromkeys(names)]
    order = {env.key: place for place, env in enumerate(core16())}
    environments.sort(key=lambda env: order.get(env.key, len(order)))
    notes = _why_apart(apart, len(roots)) if merge else []
    return Gathered(ranking(entries, environments), environments, tuple(notes))


def _traits(plan: Plan, row: AgentRow) -> _Traits:
    """What two suites' agents have in common where they are one: what runs, and by which rules, the profile's too."""
    rules = {**_UNSAID, **PROFILES.get(plan.profile, {}), **plan.rules}
    options = {f"option {key}": value for key, value in row.options.items() if key != "model"}
    ruled = {key: value for key, value in rules.items() if key not in _NO_RULES}
    return {"name": row.name, "agent": row.agent, "model": row.model, **options, "profile": plan.profile, **ruled}


def _why_apart(entries: Sequence[tuple[str, _Traits]], suites: int) -> list[str]:
    """A sentence for each two entries of one agent that are not one entry: which of their traits differ."""
    if suites < 2:
        return [f"--merge has nothing to merge: there is {'one suite' if suites else 'no suite'}"]
    notes = []
    for place, (source, mine) in enumerate(entries):
        for other, theirs in entries[place + 1 :]:
            differ = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
            # Of one name and model; or all but the name is the same. Two rows of one suite are meant to be two.
            alike = not {"name", "agent", "model"} & set(differ) or differ == ["name"]
            if alike and not set(source.split(" + ")) & set(other.split(" + ")):
                told = ", ".join(f"{key} ({_shown(mine.get(key))} and {_shown(theirs.get(key))})" for key in differ)
                notes.append(f"{mine['name']}: {source} and {other} are not merged: they differ in {told}")
    return notes


def _shown(value: object) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _counting(cells: _Cells) -> list[CellState]:
    """One cell for each environment and seed: the finished one, and of several the one whose run ended last."""

    def worth(state: CellState) -> tuple[bool, bool, float]:
        return state.heldout is not None, state.state == "failed", state.run.last_at if state.run is not None else 0.0

    best: dict[tuple[str, int], CellState] = {}
    for seed, state in cells:
        key = (state.cell.env, seed)
        if key not in best or worth(state) > worth(best[key]):
            best[key] = state
    return [best[key] for key in sorted(best, key=lambda key: key[1])]


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


def _entry(source: str, states: Sequence[CellState]) -> Entry | None:
    """An agent's entry; None for one of which nothing has finished or failed yet."""
    returns: dict[str, list[float]] = {}
    failed: dict[str, list[str]] = {}
    faults: dict[str, tuple[int, int]] = {}
    for state in states:
        if state.heldout is not None and state.run is not None:
            hurt, of = faults.get(state.cell.env, (0, 0))
            more, episodes = heldout_faults(state.run.path)
            faults[state.cell.env] = hurt + more, of + episodes
            returns.setdefault(state.cell.env, []).append(state.heldout)
        elif state.state == "failed":
            failed.setdefault(state.cell.env, []).append(state.reason)
    if not returns and not failed:
        return None
    row = states[0].cell.agent
    model = next((s.run.model for s in states if s.run is not None and s.run.model), row.model or row.name)
    key = f"{source}/{row.name}"
    return Entry(key, model, row.agent, returns, source, facts=_facts(states), failed=failed, faults=faults)


def _facts(states: Sequence[CellState]) -> dict[str, object]:
    """What is to be known beside the figures: cells by state, and by which cases and rules they were measured."""
    dimensions: dict[str, set[str]] = {"pools": set(), "profile": set(), "policy_lifetime": set()}
    assisted = 0
    for state in states:
        if state.heldout is None or state.run is None:
            continue
        try:
            record = read_json(state.run.path / "run.json")
            asked, auxiliary = record["experiment_dimensions"], record["outcome"]["auxiliary"]
        except (RunDirError, KeyError, TypeError):  # its figures came from the log; `evotui check` tells what is wrong
            continue
        for key, name in (("pools", "seed_pool_id"), ("profile", "profile"), ("policy_lifetime", "policy_lifetime")):
            dimensions[key].add(str(asked.get(name)))
        assisted += bool(auxiliary.get("assisted"))
    return {
        "cells": len(states),
        "finished": sum(state.state == "finished" for state in states),
        "failed": sum(state.state == "failed" for state in states),
        "assisted": assisted,
        **{key: ", ".join(sorted(values)) or None for key, values in dimensions.items()},
    }
