"""Reading what a submission left behind: ``summary.json`` and each episode's ``trajectory.jsonl``.

Blocking; the agent calls it in a thread. Missing or torn files are no error: there is then less evidence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evotui.agents.search.spaces import Situation, View

_WORDS = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}
MOST_STEPS = 4000
"""Rows of one trajectory that are read; more teach nothing new."""


@dataclass(frozen=True)
class Episode:
    """One rollout as arrays of T rows. ``obs`` [T, fields] float64 (zero columns if not flat), ``cells`` [T] int64
    (table index or −1), ``actions`` [T, k] float64, ``rewards`` [T] float64. ``holes``: NaN was observed. ``folder``:
    where its files are; pictures stay there until they are needed."""

    case: int
    obs: np.ndarray
    cells: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool
    truncated: bool
    holes: bool = False
    folder: Path | None = None

    @property
    def total(self) -> float:
        return float(self.rewards.sum())

    def __len__(self) -> int:
        return int(self.rewards.size)


def dig(value: Any, path: tuple[str | int, ...]) -> Any:
    """``value[path[0]][path[1]]…``."""
    for key in path:
        value = value[key]
    return value


def numbers(value: Any) -> list[float]:
    """A nested JSON value as a flat list of floats; what is no number becomes NaN."""
    if isinstance(value, (list, tuple)):
        flat: list[float] = []
        for item in value:
            flat += numbers(item)
        return flat
    if isinstance(value, (bool, int, float)):
        return [float(value)]
    if isinstance(value, Mapping):
        return [x for item in value.values() for x in numbers(item)]
    return [_WORDS.get(value, math.nan) if isinstance(value, str) else math.nan]


def cell_of(value: Any, view: View) -> int:
    """The table index of a discrete observation, −1 if it cannot be read."""
    digits = numbers(value)
    if len(digits) != len(view.sizes) or not all(map(math.isfinite, digits)):
        return -1
    index = 0
    for digit, size, start in zip(digits, view.sizes, view.starts, strict=True):
        k = int(digit) - start
        if not 0 <= k < size:
            return -1
        index = index * size + k
    return index


def read_episode(path: Path, case: int, situation: Situation) -> Episode | None:
    """One ``trajectory.jsonl``, or None where there is no readable row."""
    view = situation.view
    width = len(view.names)
    obs: list[list[float]] = []
    cells: list[int] = []
    actions: list[list[float]] = []
    rewards: list[float] = []
    ended = (False, False)
    try:
        with path.open(encoding="utf-8") as lines:
            for count, line in enumerate(lines):
                if count >= MOST_STEPS:
                    break
                try:
                    row = json.loads(line)
                    seen = row["obs"]
                    flat: list[float] = []
                    if view.kind == "flat" and seen is not None:
                        for leaf in view.leaves:
                            flat += numbers(dig(seen, leaf.path))
                    cell = cell_of(seen, view) if view.kind == "table" else -1
                    reward = numbers(row["reward"])[0]
                except (ValueError, KeyError, TypeError, IndexError):
                    break  # a torn last line: what came before it counts
                obs.append([*flat, *([math.nan] * width)][:width])
                cells.append(cell)
                actions.append(numbers(row.get("action")))
                rewards.append(reward)
                ended = (bool(row.get("terminated")), bool(row.get("truncated")))
    except OSError:
        return None
    if not rewards:
        return None
    k = max(len(a) for a in actions)
    padded = [[*a, *([math.nan] * k)][:k] for a in actions]
    return Episode(
        case,
        np.nan_to_num(np.array(obs, dtype=float).reshape(len(rewards), width), posinf=1e6, neginf=-1e6),
        np.array(cells, dtype=np.int64),
        np.nan_to_num(np.array(padded, dtype=float).reshape(len(rewards), k), posinf=1e6, neginf=-1e6),
        np.nan_to_num(np.array(rewards, dtype=float), posinf=1e9, neginf=-1e9),
        *ended,
        holes=any(math.isnan(x) for row in obs for x in row),
        folder=path.parent,
    )


def read_submission(feedback: Path, submit_id: str, summary: Mapping[str, Any], situation: Situation) -> list[Episode]:
    """The episodes of a submission in their order, as far as they can be read."""
    folder = feedback / submit_id / "episodes"
    try:
        names = sorted(p.name for p in folder.iterdir() if p.is_dir())
    except OSError:
        return []
    cases = list(summary.get("env_instances") or [])
    found = []
    for position, name in enumerate(names):
        case = int(cases[position]) if position < len(cases) else -1
        episode = read_episode(folder / name / "trajectory.jsonl", case, situation)
        if episode is not None:
            found.append(episode)
    return found
