"""A replayed step as named values: observation by field, action against its bounds, reward, return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evotui.protocol.spaces import flatten_names, flatten_values
from evotui.record.events import RunOpened
from evotui.ui.feed import Shot
from evotui.ui.widgets.strip import Reading, StepValues

NOTHING = "–"
_MOST = 64
"""Values of one observation that are named."""


def _bounds(schema: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(low, high) of each value of a Box; nothing for other spaces."""
    if schema.get("type") != "Box":
        return []
    try:
        shape = tuple(schema["shape"])
        sides = []
        for side in ("low", "high"):
            flat = [float(v) for v in np.asarray(schema[side], dtype=object).ravel()]
            sides.append(flat if len(flat) > 1 else flat * max(1, math.prod(shape)))
        return list(zip(*sides, strict=True))
    except (KeyError, TypeError, ValueError):
        return []


def _whole(schema: Mapping[str, Any]) -> list[bool]:
    """Of each value of :func:`flatten_names`: whether it is a whole number."""
    match schema.get("type"):
        case "Image":
            return []
        case "Dict":
            return [w for key in sorted(schema["spaces"]) for w in _whole(schema["spaces"][key])]
        case "Tuple":
            return [w for space in schema["spaces"] for w in _whole(space)]
        case "Box":
            whole = str(schema.get("dtype", "float")).startswith(("int", "uint", "bool"))
            return [whole] * math.prod(schema["shape"])
        case "MultiBinary":
            return [True] * math.prod(schema["shape"])
        case "MultiDiscrete":
            return [True] * int(np.asarray(schema["nvec"]).size)
        case kind:
            return [kind == "Discrete"]


def _readings(names: list[str], values: list[float | str], bounds: list[tuple[float, float]]) -> tuple[Reading, ...]:
    found = []
    for i, (name, value) in enumerate(zip(names, values, strict=False)):
        low, high = bounds[i] if i < len(bounds) else (math.nan, math.nan)
        bounded = math.isfinite(low) and math.isfinite(high) and abs(low) < 1e6 and abs(high) < 1e6
        found.append(Reading(name, value, low if bounded else None, high if bounded else None))
    return tuple(found)


class Naming:
    """Names and bounds of one run's observations and actions, looked up once."""

    def __init__(self, opened: RunOpened) -> None:
        self._opened = opened
        names = flatten_names(dict(opened.obs_space), opened.observation_fields)
        few = len(names) <= _MOST
        # Of a large observation only its plain values are named: a grid of hundreds says more as a picture.
        self._kept = [i for i, name in enumerate(names) if few or name.count("[") < 2][:_MOST]
        self._names = [names[i] for i in self._kept]
        bounds = _bounds(opened.obs_space)
        self._bounds = [bounds[i] for i in self._kept] if len(bounds) == len(names) else []
        whole = _whole(opened.obs_space)
        self._whole = [whole[i] for i in self._kept] if len(whole) == len(names) else [False] * len(self._kept)
        action = opened.action_space
        self._is_discrete = action.get("type") == "Discrete"
        self._action_bounds = _bounds(action)
        self._action_names = list(opened.action_names)
        if action.get("type") == "Box" and len(self._action_names) != len(self._action_bounds):
            self._action_names = [f"action[{i}]" for i in range(len(self._action_bounds))]

    def step(self, shot: Shot) -> StepValues:
        """The values of one moment."""
        action: tuple[Reading, ...] = ()
        name = ""
        if shot.action is not None:
            if self._is_discrete:
                name = self._discrete(shot.action)
            else:
                parts = flatten_values(shot.action)
                names = self._action_names or [f"action[{i}]" for i in range(len(parts))]
                action = _readings(names, parts, self._action_bounds)
        elif shot.done:  # after the last action: its place stays, so that nothing moves
            action = tuple(Reading(each, NOTHING) for each in self._action_names if not self._is_discrete)
            name = NOTHING if self._is_discrete else ""
        flat = flatten_values(shot.obs)
        ended = ""
        if shot.done:
            ended = "truncated" if shot.last_step >= self._opened.max_episode_steps else "terminated"
        return StepValues(
            shot.step,
            _readings(self._names, self._observed(flat), self._bounds),
            action,
            name,
            None if shot.done else shot.reward,  # after the last action there is none, and no reward
            shot.return_,
            bool(shot.info.get("action_invalid")),
            ended,
        )

    def _observed(self, flat: list[float | str]) -> list[float | str]:
        return [
            int(value) if whole and isinstance(value, float) and math.isfinite(value) else value
            for value, whole in zip((flat[i] for i in self._kept if i < len(flat)), self._whole, strict=False)
        ]

    def _discrete(self, action: Any) -> str:
        try:
            at = int(action) - int(self._opened.action_space.get("start", 0))
        except (TypeError, ValueError):
            return str(action)[:40]
        names = self._opened.action_names
        return f"{int(action)} {names[at]}" if 0 <= at < len(names) else str(int(action))
