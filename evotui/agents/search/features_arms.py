"""What trajectories say about arms: error vectors that the reward pays for, the joints' law, the law of the error.

Pure functions, plain least squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evotui.agents.search.features import TINY, Coordinate
from evotui.agents.search.feedback import Episode

LETTERS = "abc"
"""What a law calls the joints."""


@dataclass(frozen=True, slots=True)
class Miss:
    """An error vector in the observation: the fields ``a``, minus the fields ``b`` where there are such.

    Its length costs ``weight`` a step.
    """

    a: tuple[int, ...]
    b: tuple[int, ...] = ()
    weight: float = 1.0

    def of(self, x: np.ndarray) -> np.ndarray:
        """The error vectors [T, 2 or 3] in observations ``x`` [T, fields]."""
        found = x[:, list(self.a)]
        return found - x[:, list(self.b)] if self.b else found


@dataclass(frozen=True)
class Payment:
    """A law of the reward: −Σ weight·length of each miss − ``cost``·(sum of squared actions), seen after the step."""

    misses: tuple[Miss, ...]
    cost: float
    explained: float


def _residual(target: np.ndarray, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(coefficients, what remains) of the least-squares fit of ``target`` to the columns and a constant."""
    design = np.column_stack([*columns, np.ones(len(target))])
    solution = np.linalg.lstsq(design, target, rcond=None)[0]
    return solution, target - design @ solution


def find_payment(episodes: Sequence[Episode], most: int = 2) -> Payment | None:
    """The error vectors whose lengths explain the reward, the best first; None where no law is found.

    Candidates are two or three neighbouring fields, and differences of two such groups.
    """
    used = [e for e in episodes if len(e) > 4]
    if not used or used[0].obs.shape[1] > 64:
        return None
    after = np.vstack([e.obs[1:] for e in used])
    rewards = np.concatenate([e.rewards[:-1] for e in used])
    effort = np.concatenate([(e.actions[:-1] ** 2).sum(axis=1) for e in used])
    if len(rewards) < 30 or float(rewards.std()) < TINY:
        return None
    width = after.shape[1]
    groups = [tuple(range(i, i + size)) for size in (3, 2) for i in range(width - size + 1)]
    candidates = [Miss(g) for g in groups]
    candidates += [
        Miss(a, b)
        for a, b in itertools.combinations(groups, 2)
        if len(a) == len(b) and (b[0] - a[0]) % len(a) == 0 and b[0] > a[-1]
    ]
    lengths = np.array([np.linalg.norm(c.of(after), axis=1) for c in candidates])
    chosen: list[int] = []
    for _ in range(most):
        _, rest = _residual(rewards, [effort, *(lengths[i] for i in chosen)])
        if float(rest.var()) < 1e-4 * float(rewards.var()):
            break
        centred = lengths - lengths.mean(axis=1, keepdims=True)
        fits = (centred @ (rest - rest.mean())) / np.maximum(np.sqrt((centred**2).sum(axis=1)), 1e-6)
        for i in np.argsort(fits)[:8]:
            columns = [effort, *(lengths[j] for j in chosen), lengths[int(i)]]
            solution, left = _residual(rewards, columns)
            if (solution[1:-1] < 0).all() and float(left.var()) < 0.7 * float(rest.var()):
                chosen.append(int(i))
                break
        else:
            break
    solution, rest = _residual(rewards, [effort, *(lengths[i] for i in chosen)])
    explained = 1.0 - float(rest.var() / rewards.var())
    if not chosen or explained < 0.9:
        return None
    misses = [Miss(candidates[i].a, candidates[i].b, -float(s)) for i, s in zip(chosen, solution[1:-1], strict=True)]
    return Payment(tuple(misses), max(0.0, -float(solution[0])), explained)


def angles_of(x: np.ndarray, joints: Sequence[Coordinate]) -> np.ndarray:
    """[T, joints] the joints' positions: radians for circles, the field itself otherwise."""
    return np.column_stack([np.arctan2(x[:, j.sin], x[:, j.cos]) if j.is_angle else x[:, j.index] for j in joints])


def products(joints: Sequence[Coordinate]) -> list[tuple[str, tuple[tuple[int, str], ...]]]:
    """Products of one factor per joint: (text, factors as (joint, kind)); kind is sin, cos or plain."""
    kinds = [("", "cos", "sin") if j.is_angle else ("", "cos", "sin", "plain") for j in joints]
    made = []
    for choice in itertools.product(*kinds):
        factors = tuple((i, kind) for i, kind in enumerate(choice) if kind)
        parts = [LETTERS[i] if kind == "plain" else f"np.{kind}({LETTERS[i]})" for i, kind in factors]
        made.append((" * ".join(parts), factors))
    return made


def column(q: np.ndarray, factors: Sequence[tuple[int, str]]) -> np.ndarray:
    value = np.ones(len(q))
    for i, kind in factors:
        value = value * (q[:, i] if kind == "plain" else np.cos(q[:, i]) if kind == "cos" else np.sin(q[:, i]))
    return value


def fit_law(target: np.ndarray, columns: np.ndarray, loss: float = 1e-5) -> tuple[np.ndarray, float]:
    """Coefficients of a short law ``target`` ≈ ``columns`` @ coefficients, and the share it explains.

    Least squares; then the smallest term is left out again and again while hardly anything (``loss``) is lost.
    """
    size = np.sqrt((columns**2).mean(axis=0))
    keep = [i for i in range(columns.shape[1]) if size[i] > 1e-9]
    variance = max(float(target.var()), TINY)

    def fit(chosen: list[int]) -> tuple[np.ndarray, float]:
        solution = np.linalg.lstsq(columns[:, chosen], target, rcond=None)[0]
        return solution, float(((target - columns[:, chosen] @ solution) ** 2).mean()) / variance

    solution, miss = fit(keep)
    allowed = miss + loss
    while len(keep) > 1:
        order = np.argsort(np.abs(solution) * size[keep])
        fewer = [k for i, k in enumerate(keep) if i != order[0]]
        shorter, more = fit(fewer)
        if more > allowed:
            break
        keep, solution, miss = fewer, shorter, more
    whole = np.zeros(columns.shape[1])
    whole[keep] = solution
    return whole, 1.0 - miss


def fit_motion(x: np.ndarray, y: np.ndarray, u: np.ndarray, joints: Sequence[Coordinate]) -> tuple[np.ndarray, float]:
    """(law [2·joints, joints + actions], least share explained): change of positions, then of velocities, per unit of
    velocity and of action. Steps that do not obey (a joint at its stop) are trimmed."""
    v = x[:, [j.velocity for j in joints]]
    turn = angles_of(y, joints) - angles_of(x, joints)
    for i, joint in enumerate(joints):
        if joint.is_angle:
            turn[:, i] = (turn[:, i] + np.pi) % (2 * np.pi) - np.pi
    change = np.hstack([turn, y[:, [j.velocity for j in joints]] - v])
    design = np.hstack([v, u])
    law, worst = np.zeros((change.shape[1], design.shape[1])), 1.0
    for i, target in enumerate(change.T):
        rows = np.arange(len(target))
        for _ in range(5):
            solution, explained = fit_law(target[rows], design[rows], loss=1e-4)
            miss = np.abs(target - design @ solution)
            rows = np.flatnonzero(miss <= np.quantile(miss, 0.75) + TINY)
        law[i], worst = solution, min(worst, explained)
    return law, worst
