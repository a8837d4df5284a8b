"""What trajectories say about a vehicle whose pose is the goal: how its actions move it, and what a distance costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evotui.agents.search.features import TINY
from evotui.agents.search.features_goal import explain, find_goals, usable
from evotui.agents.search.feedback import Episode
from evotui.agents.search.spaces import Situation


@dataclass(frozen=True, slots=True)
class Vehicle:
    """A body that moves along its heading. ``x``, ``y``, ``cos``, ``sin`` count the values of the goal.

    Per step: speed += ``push`` · throttle, heading += ``turn`` · speed · steering, position += ``pace`` · speed in the
    direction heading + ``slip`` · steering; the speed is that along the heading (from the values ``vx``, ``vy``).
    ``throttle``, ``steering``: action dimensions. ``fit``: least share of the changes that these laws explain.
    """

    x: int
    y: int
    vx: int
    vy: int
    cos: int
    sin: int
    throttle: int
    steering: int
    pace: float
    push: float
    turn: float
    slip: float
    fit: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Each step pays −(Σ weight · |achieved − desired|) ** power; ``fit``: share of the rewards that this explains."""

    weights: tuple[float, ...]
    power: float
    fit: float


def find_vehicle(episodes: Sequence[Episode], situation: Situation) -> Vehicle | None:
    """A vehicle whose pose is the goal: position, velocity, cosine and sine of the heading; two actions or more."""
    goals = find_goals(situation.view)
    episodes = [e for e in usable(episodes, situation) if len(e) > 3]
    if goals is None or len(goals.achieved) < 6 or situation.actions.n < 2 or sum(map(len, episodes)) < 60:
        return None
    low, high = np.array(situation.actions.low), np.array(situation.actions.high)
    before = np.vstack([e.obs[:-1, list(goals.achieved)] for e in episodes])
    change = np.vstack([np.diff(e.obs[:, list(goals.achieved)], axis=0) for e in episodes])
    acts = np.vstack([np.clip(e.actions[:-1], low, high) for e in episodes])
    after = before + change
    circle = _circle(before)
    rest = [i for i in range(before.shape[1]) if i not in circle]
    pairs = [(a, b) for a, b in itertools.pairwise(rest) if b == a + 1]
    best: Vehicle | None = None
    for (cos, sin), (x, y), (vx, vy) in itertools.product((circle, circle[::-1]) if circle else (), pairs, pairs):
        if len({x, y, vx, vy}) < 4:
            continue
        speed = before[:, vx] * before[:, cos] + before[:, vy] * before[:, sin]
        faster = after[:, vx] * after[:, cos] + after[:, vy] * after[:, sin]
        moved = change[:, x] * before[:, cos] + change[:, y] * before[:, sin]
        aside = change[:, y] * before[:, cos] - change[:, x] * before[:, sin]
        along = float((moved**2).sum())
        if along < TINY**2 or float((aside**2).sum()) > 0.3 * along:
            continue
        way = np.sign(moved) * np.hypot(moved, aside)
        pace, straight = explain(faster[:, None], way[:, None])
        push, driven = explain(np.hstack([acts, np.ones((len(acts), 1))]), (faster - speed)[:, None])
        turned = np.arctan2(after[:, sin], after[:, cos]) - np.arctan2(before[:, sin], before[:, cos])
        turned = (turned + math.pi) % (2 * math.pi) - math.pi
        turn, bent = explain(acts * faster[:, None], turned[:, None])
        throttle, steering = int(np.abs(push[:-1, 0]).argmax()), int(np.abs(turn[:, 0]).argmax())
        slip, _ = explain((acts[:, steering] * moved)[:, None], aside[:, None])
        fit = float(min(straight[0], driven[0], bent[0]))
        if throttle != steering and fit > 0.8 and (best is None or fit > best.fit):
            best = Vehicle(
                x, y, vx, vy, cos, sin, throttle, steering,
                float(pace[0, 0]), float(push[throttle, 0]), float(turn[steering, 0]), float(slip[0, 0]), fit,
            )  # fmt: skip
    return best


def _circle(values: np.ndarray) -> tuple[int, ...]:
    """Two neighbouring values that lie on the unit circle, or ()."""
    for i in range(values.shape[1] - 1):
        off = np.abs(values[:, i] ** 2 + values[:, i + 1] ** 2 - 1.0)
        if float(off.max()) < 1e-3 and float(values[:, i : i + 2].std()) > 1e-4:
            return i, i + 1
    return ()


def find_cost(episodes: Sequence[Episode], situation: Situation) -> Cost | None:
    """Weights and power of a distance to the goal that explains the rewards, or None where none does."""
    goals = find_goals(situation.view)
    episodes = [e for e in episodes if len(e) > 2 and e.obs.shape[1] == len(situation.view.names)]
    if goals is None or not episodes:
        return None
    gap = np.vstack([np.abs(e.obs[1:, list(goals.achieved)] - e.obs[1:, list(goals.desired)]) for e in episodes])
    paid = -np.concatenate([e.rewards[:-1] for e in episodes])
    if len(paid) < 4 * gap.shape[1] or float(paid.min()) < 0.0 or float(paid.std()) < TINY:
        return None
    best: Cost | None = None
    for power in (0.5, 1.0, 2.0):
        solution, fit = explain(gap, (paid ** (1.0 / power))[:, None])
        weights = np.where(solution[:, 0] > 1e-6 * solution[:, 0].max(), solution[:, 0], 0.0)
        if best is None or float(fit[0]) > best.fit:
            best = Cost(tuple(float(w) for w in weights), power, float(fit[0]))
    return best if best is not None and best.fit > 0.8 and max(best.weights) > 0 else None
