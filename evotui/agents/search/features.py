"""What trajectories say about the task: scales, angles, velocities, what an action moves, where reward lies.

Pure functions of the episodes seen so far; every fit is plain least squares, so that it can be said in a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evotui.agents.search.feedback import Episode
from evotui.agents.search.spaces import Situation

TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Something with a position and (perhaps) a velocity field.

    A plain one is the field ``index``; an angle is given by its cosine and sine fields (``cos`` ≥ 0). ``dt`` is the
    change of position per step and unit of velocity.
    """

    index: int = -1
    cos: int = -1
    sin: int = -1
    velocity: int = -1
    dt: float = 0.0

    @property
    def is_angle(self) -> bool:
        return self.cos >= 0


@dataclass(frozen=True)
class Facts:
    """What is believed about the task. All arrays have one entry per observation field, unless said otherwise.

    ``effect`` [fields, inputs]: change of a field per step and unit of an input, in standard deviations of the field's
    own change (inputs: one per action for Discrete, relative to the mean action; one per dimension for Box).
    ``low_action``/``high_action``: the two Discrete actions that push the ``axis`` velocity furthest down and up.
    ``survival``: every step pays the same positive reward. ``costly``: every step pays the same negative one.
    """

    rows: int = 0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))
    start: np.ndarray = field(default_factory=lambda: np.zeros(0))
    coordinates: tuple[Coordinate, ...] = ()
    effect: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    axis: int = -1
    low_action: int = 0
    high_action: int = 0
    idle_action: int = 0
    survival: bool = False
    costly: bool = False
    sparse: bool = False
    reward_fit: float = 0.0
    gains: tuple[float, ...] = ()
    model_fit: float = 0.0


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(correlation, slope of y on x) without a warning for constants."""
    x, y = x - x.mean(), y - y.mean()
    sx, sy = float(np.sqrt((x * x).mean())), float(np.sqrt((y * y).mean()))
    if sx < TINY or sy < TINY:
        return 0.0, 0.0
    cov = float((x * y).mean())
    return cov / (sx * sy), cov / (sx * sx)


def _solve(design: np.ndarray, target: np.ndarray, ridge: float = 1e-6) -> np.ndarray:
    """Least squares with a little ridge, columns scaled to unit size first."""
    size = np.sqrt((design * design).mean(axis=0)) + TINY
    scaled = design / size
    gram = scaled.T @ scaled / len(scaled) + ridge * np.eye(scaled.shape[1])
    solution = np.linalg.solve(gram, scaled.T @ target / len(scaled))
    return solution / (size[:, None] if solution.ndim == 2 else size)


def _angles(x: np.ndarray, names: Sequence[str]) -> list[tuple[int, int]]:
    """(cos, sin) pairs of fields that lie on the unit circle, neighbours before those that stand apart."""
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    width = x.shape[1] if x.shape[1] <= 64 else 0
    varies = x.std(axis=0) > 1e-4
    apart = [(i, i + gap) for gap in range(1, width) for i in range(width - gap) if varies[i] and varies[i + gap]]
    for i, j in apart:
        if i not in taken and j not in taken and np.abs(x[:, i] ** 2 + x[:, j] ** 2 - 1.0).max() < 1e-3:
            first_is_sine = "sin" in names[i].lower() and "cos" not in names[i].lower()
            pairs.append((j, i) if first_is_sine else (i, j))
            taken |= {i, j}
    return sorted(pairs, key=min)


def _steps(episodes: Sequence[Episode], width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(observation, next observation, action) of all steps that have a successor."""
    before = [e.obs[:-1] for e in episodes if len(e) > 1]
    after = [e.obs[1:] for e in episodes if len(e) > 1]
    k = max((e.actions.shape[1] for e in episodes), default=1)
    acts = [e.actions[:-1] for e in episodes if len(e) > 1 and e.actions.shape[1] == k]
    if not before or len(acts) != len(before):
        return np.zeros((0, width)), np.zeros((0, width)), np.zeros((0, k))
    return np.vstack(before), np.vstack(after), np.vstack(acts)


def find_coordinates(x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> tuple[Coordinate, ...]:
    """Angles and plain positions whose change per step is proportional to some other field, the velocity.

    ``x`` and ``y`` [T, fields]: observations and their successors. The best-fitting pairs are taken first and a field
    is the velocity of one coordinate only.
    """
    width = x.shape[1]
    if len(x) < 8:
        return ()
    pairs = _angles(x, names)
    in_circle = {i for pair in pairs for i in pair}
    moves: list[tuple[Coordinate, np.ndarray]] = []
    for c, s in pairs:
        turn = np.arctan2(y[:, s], y[:, c]) - np.arctan2(x[:, s], x[:, c])
        moves.append((Coordinate(cos=c, sin=s), (turn + math.pi) % (2 * math.pi) - math.pi))
    moves += [(Coordinate(index=i), y[:, i] - x[:, i]) for i in range(width) if i not in in_circle]
    middle = 0.5 * (x + y)
    fits: list[tuple[float, int, int, float]] = []
    for m, (coordinate, change) in enumerate(moves):
        for j in range(width):
            if j in in_circle or j == coordinate.index:
                continue
            for source in (middle[:, j], x[:, j], y[:, j]):
                r, slope = _slope(source, change)
                if r > 0.9 and 1e-4 < slope < 1.5:
                    fits.append((-round(r, 6), m, j, slope))
    taken_positions: set[int] = set()
    taken_fields: set[int] = set()
    best: dict[int, Coordinate] = {}
    for _, m, j, slope in sorted(fits):
        base = moves[m][0]
        if m in taken_positions or j in taken_fields or base.index in taken_fields:
            continue
        taken_positions.add(m)
        taken_fields.add(j)
        best[m] = Coordinate(base.index, base.cos, base.sin, j, slope)
    found = [best.get(m, coordinate) for m, (coordinate, _) in enumerate(moves) if m in best or coordinate.is_angle]
    return tuple(found)


def inputs_of(actions: np.ndarray, situation: Situation) -> np.ndarray:
    """Actions as regression inputs [T, n]: one-hot minus its mean for Discrete, the clipped values for Box."""
    kind = situation.actions
    if kind.kind == "discrete":
        index = np.clip(actions[:, 0].astype(int) - kind.start, 0, kind.n - 1)
        return np.eye(kind.n)[index] - 1.0 / kind.n
    if kind.kind == "box" and actions.shape[1] == kind.n:
        return np.clip(actions, kind.low, kind.high)
    return np.zeros((len(actions), 0))


def find_effects(x: np.ndarray, y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """[fields, inputs] change of each field per unit of each input, in units of that field's usual change."""
    if len(x) < 12 or u.shape[1] == 0:
        return np.zeros((x.shape[1], u.shape[1]))
    change = y - x
    usual = change.std(axis=0) + TINY
    keep = x.std(axis=0) > TINY
    if len(x) <= 3 * (int(keep.sum()) + u.shape[1]):
        keep[:] = False
    design = np.hstack([u, x[:, keep], np.ones((len(x), 1))])
    solution = _solve(design, change, ridge=1e-5)
    return (solution[: u.shape[1]] / usual).T


def regulator(x: np.ndarray, y: np.ndarray, push: np.ndarray, scale: np.ndarray) -> tuple[tuple[float, ...], float]:
    """Gains K of the linear-quadratic regulator ``push = -K · x`` for a linear model fitted to the steps.

    ``push`` [T]: the scalar input. Returns (gains, share of the change that the model explains). Gains are () where the
    fit is useless or the Riccati iteration does not settle.
    """
    width = x.shape[1]
    if len(x) < 4 * (width + 2) or width > 16:
        return (), 0.0
    design = np.hstack([x / scale, push[:, None], np.ones((len(x), 1))])
    change = (y - x) / scale
    solution = _solve(design, change, ridge=1e-8)
    rest = change - design @ solution
    fit = 1.0 - float((rest**2).mean() / max(float(((change - change.mean(axis=0)) ** 2).mean()), TINY))
    a = np.eye(width) + solution[:width].T
    b = solution[width][:, None]
    if fit < 0.6 or float(np.abs(b).max()) < 1e-6:
        return (), fit
    cost, p = np.eye(width), np.eye(width)
    for _ in range(3000):
        gain = np.linalg.solve(0.1 * np.eye(1) + b.T @ p @ b, b.T @ p @ a)
        new = cost + a.T @ p @ (a - b @ gain)
        if not np.isfinite(new).all() or float(np.abs(new).max()) > 1e12:
            return (), fit
        done = float(np.abs(new - p).max()) < 1e-6 * float(np.abs(p).max())
        p = new
        if done:
            break
    return tuple(float(g) for g in (gain[0] / scale)), fit


def reward_peak(x: np.ndarray, rewards: np.ndarray, c: int, s: int, velocity: int) -> tuple[float, float]:
    """(angle of the largest reward, share of the reward's variance that the angle explains), by a cosine fit."""
    if len(x) < 12 or float(rewards.std()) < TINY:
        return 0.0, 0.0
    columns = [x[:, c], x[:, s], np.ones(len(x))]
    if velocity >= 0:
        columns.append(x[:, velocity] ** 2)
    design = np.stack(columns, axis=1)
    solution = _solve(design, rewards, ridge=1e-6)
    rest = rewards - design @ solution
    explained = 1.0 - float(rest.var() / max(float(rewards.var()), TINY))
    return math.atan2(solution[1], solution[0]), explained


@dataclass(frozen=True, slots=True)
class Swing:
    """A fitted swing: energy = inertia/2·ω² + cos(θ − up); ``push`` is the sign of the input's effect."""

    up: float
    inertia: float
    push: float
    explained: float


def fit_swing(
    x: np.ndarray, y: np.ndarray, push: np.ndarray, coordinate: Coordinate, rewards: np.ndarray
) -> Swing | None:
    """Fit Δω = a·sin θ + b·cos θ + d·ω + e·push for an angle with a velocity.

    The unstable upright angle is where the field of force changes sign outwards. None where the fit is poor.
    """
    if coordinate.velocity < 0 or not coordinate.is_angle or len(x) < 20:
        return None
    c, s, v = x[:, coordinate.cos], x[:, coordinate.sin], x[:, coordinate.velocity]
    change = y[:, coordinate.velocity] - v
    design = np.stack([s, c, v, push, np.ones(len(x))], axis=1)
    # a turning mass that hits a speed limit or a stop does not obey the law there
    free = np.abs(v) < 0.97 * max(float(np.abs(v).max()), TINY)
    if int(free.sum()) < 15:
        return None
    solution = _solve(design[free], change[free], ridge=1e-8)
    rest = change[free] - design[free] @ solution
    explained = 1.0 - float(rest.var() / max(float(change[free].var()), TINY))
    strength = math.hypot(float(solution[0]), float(solution[1]))
    if explained < 0.5 or strength < TINY or abs(float(solution[3])) < TINY:
        return None
    # Δω = strength · sin(θ − up): outwards around θ = up
    up = math.atan2(-float(solution[1]), float(solution[0]))
    return Swing(up, coordinate.dt / strength, math.copysign(1.0, float(solution[3])), explained)


def scalar_push(actions: np.ndarray, situation: Situation, facts: Facts) -> np.ndarray:
    """The input along the axis, one number a step in −1..1 (Discrete: low −1, high +1; one-dimensional Box: scaled)."""
    kind = situation.actions
    if kind.kind == "discrete":
        index = actions[:, 0].astype(int) - kind.start
        return np.where(index == facts.high_action, 1.0, np.where(index == facts.low_action, -1.0, 0.0))
    middle = 0.5 * (kind.low[0] + kind.high[0])
    half = max(0.5 * (kind.high[0] - kind.low[0]), TINY)
    return (np.clip(actions[:, 0], kind.low[0], kind.high[0]) - middle) / half


def study(episodes: Sequence[Episode], situation: Situation) -> Facts:
    """All facts from the episodes seen so far; an empty set of facts where there is nothing to learn from."""
    width = len(situation.view.names)
    episodes = [e for e in episodes if len(e) and e.obs.shape[1] == width]
    if not episodes:
        return Facts(scale=np.ones(width), centre=np.zeros(width), start=np.zeros(width))
    rewards = np.concatenate([e.rewards for e in episodes])
    inner = np.concatenate([e.rewards[:-1] for e in episodes]) if len(rewards) > len(episodes) else rewards
    flat = bool(inner.size) and float(inner.std()) < TINY
    early = any(e.terminated for e in episodes)
    survival = flat and float(inner.mean()) > 0 and early
    costly = flat and float(inner.mean()) < 0
    sparse = flat and abs(float(inner.mean())) < TINY
    if width == 0:
        return Facts(rows=len(rewards), survival=survival, costly=costly, sparse=sparse)
    everything = np.vstack([e.obs for e in episodes])
    x, y, actions = _steps(episodes, width)
    spread = everything.std(axis=0)
    scale = np.where(spread > 1e-8, spread, 1.0)
    start = np.mean([e.obs[0] for e in episodes], axis=0)
    coordinates = find_coordinates(x, y, situation.view.names)
    u = inputs_of(actions, situation)
    effect = find_effects(x, y, u)
    axis, low, high, idle = _axis(effect, coordinates, situation)
    facts = Facts(
        len(rewards), everything.mean(axis=0), scale, start, coordinates, effect, axis, low, high, idle,
        survival, costly, sparse,
    )  # fmt: skip
    scalar = situation.actions.kind == "discrete" or (situation.actions.kind == "box" and situation.actions.n == 1)
    if scalar and len(x) >= 20 and u.shape[1]:
        gains, fit = regulator(x - start, y - start, scalar_push(actions, situation, facts), scale)
        facts = Facts(**{**facts.__dict__, "gains": gains, "model_fit": fit})
    return facts


def _axis(effect: np.ndarray, coordinates: Sequence[Coordinate], situation: Situation) -> tuple[int, int, int, int]:
    """(velocity field that actions move most, lowest, highest, middle Discrete action)."""
    n = situation.actions.n
    fallback = (-1, 0, max(0, n - 1), n // 2 if n > 2 else 0)
    if effect.size == 0 or not np.isfinite(effect).all():
        return fallback
    fields = [c.velocity for c in coordinates if c.velocity >= 0] or list(range(effect.shape[0]))
    strength = {f: float(effect[f].max() - effect[f].min()) if n > 1 else abs(float(effect[f, 0])) for f in fields}
    axis = max(fields, key=lambda f: (round(strength[f], 6), -f))
    if situation.actions.kind != "discrete" or strength[axis] < TINY:
        return (axis, *fallback[1:])
    order = sorted(range(n), key=lambda a: (float(effect[axis, a]), a))
    middle = min(range(n), key=lambda a: (abs(float(effect[axis, a])), a)) if n > 2 else order[0]
    return axis, order[0], order[-1], middle
