"""What trajectories say about tasks with goals: the thing to be brought there, and the hand that moves it.

Goal-conditioned observations are a Dict with ``achieved_goal`` and ``desired_goal`` of one size (a common convention).
Which fields are a hand, and which action moves it along which axis by how much, is fitted from the steps: the change of
a field by the last few actions. Pure functions; a fit that does not convince gives nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evotui.agents.search.features import TINY
from evotui.agents.search.feedback import Episode
from evotui.agents.search.spaces import Situation, View

LAGS = 4
"""Actions back in time by which a change is explained: a body follows its command with some delay."""


@dataclass(frozen=True, slots=True)
class Goals:
    """Flattened field indices of the achieved and the desired goal, value by value."""

    achieved: tuple[int, ...]
    desired: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hand:
    """A body that actions move along the axes of the goal: one field and one action dimension per axis.

    ``stride`` [axes]: change of the field per step and unit of the action, signed. ``fit``: least share of the motion
    that the actions explain. ``up``: the axis on which things lie on a surface, −1 if none; ``up_sign``: which way is
    up. ``grip``: an action dimension that moves no axis, −1 if none; ``grip_sign``: the sign that raises ``fingers``,
    the field that shows it (−1: nothing shows it, only the action's name speaks for it). ``is_thing``: the hand itself
    is what has to reach the goal. ``aloft``: goals lie along ``up``. ``apart``: usual distance of the thing at first.
    """

    fields: tuple[int, ...]
    actions: tuple[int, ...]
    stride: tuple[float, ...]
    fit: float
    up: int = -1
    up_sign: float = 1.0
    grip: int = -1
    grip_sign: float = 1.0
    fingers: int = -1
    is_thing: bool = False
    aloft: bool = False
    apart: float = 0.0


def find_goals(view: View) -> Goals | None:
    """Where the achieved and the desired goal stand in the flattened observation, or None."""
    if view.kind != "flat":
        return None
    spans: dict[str, tuple[int, ...]] = {}
    first = 0
    for leaf in view.leaves:
        if leaf.path:
            spans.setdefault(str(leaf.path[-1]), tuple(range(first, first + leaf.size)))
        first += leaf.size
    achieved, desired = spans.get("achieved_goal", ()), spans.get("desired_goal", ())
    return Goals(achieved, desired) if achieved and len(achieved) == len(desired) else None


def goal_distance(obs: np.ndarray, goals: Goals) -> float:
    """How far the achieved goal is from the desired one in the last quarter of an episode. ``obs`` [T, fields]."""
    late = obs[-max(1, len(obs) // 4) :]
    gap = late[:, list(goals.achieved)] - late[:, list(goals.desired)]
    return float(np.sqrt((gap**2).sum(axis=1)).mean())


def _lagged(episodes: Sequence[Episode], low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(changes [T, fields], the last :data:`LAGS` actions and a one [T, LAGS · k + 1]) of all long enough episodes."""
    changes, past = [], []
    for e in episodes:
        if len(e) <= LAGS + 1:
            continue
        acts = np.clip(e.actions, low, high)
        steps = len(e) - 1
        changes.append(np.diff(e.obs, axis=0)[LAGS - 1 :])
        past.append(np.hstack([acts[LAGS - 1 - lag : steps - lag] for lag in range(LAGS)]))
    if not changes:
        return np.zeros((0, 0)), np.zeros((0, 0))
    rows = np.vstack(past)
    return np.vstack(changes), np.hstack([rows, np.ones((len(rows), 1))])


def explain(design: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(least-squares solution [columns, targets], share of each target's variance that it explains)."""
    solution = np.linalg.lstsq(design, target, rcond=None)[0]
    rest = ((target - design @ solution) ** 2).sum(axis=0)
    total = ((target - target.mean(axis=0)) ** 2).sum(axis=0)
    return solution, np.where(total > TINY**2 * len(target), 1.0 - rest / np.maximum(total, TINY**2), 0.0)


def _explain_free(design: np.ndarray, target: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """:func:`explain`, each target by the rows where it is free: not at an end of its range (a table, a stop), and
    without the fifth of the rows that fits least (a touch). ``after``: the values that the changes lead to."""
    solution, fit = explain(design, target)
    low, high = after.min(axis=0), after.max(axis=0)
    edge = 0.04 * (high - low)
    free = (after > low + edge) & (after < high - edge)
    for field in range(target.shape[1]):
        rows = np.flatnonzero(free[:, field])
        for _ in range(3):
            if len(rows) < 2 * design.shape[1]:
                break
            part, share = explain(design[rows], target[rows, field : field + 1])
            solution[:, field], fit[field] = part[:, 0], share[0]
            off = np.abs(target[:, field] - design @ part[:, 0])
            rows = np.flatnonzero(free[:, field] & (off <= np.quantile(off[free[:, field]], 0.8)))
    return solution, fit


def usable(episodes: Sequence[Episode], situation: Situation) -> list[Episode]:
    """The episodes whose observations and actions have the spaces' sizes; none where actions are no Box."""
    width, n = len(situation.view.names), situation.actions.n
    if situation.actions.kind != "box":
        return []
    return [e for e in episodes if len(e) and e.obs.shape[1] == width and e.actions.shape[1] == n]


def find_hand(episodes: Sequence[Episode], situation: Situation) -> Hand | None:
    """The hand of a task with a goal of up to three axes; None where actions do not clearly move one along them."""
    goals = find_goals(situation.view)
    episodes = usable(episodes, situation)
    if goals is None or not episodes or not 1 <= len(goals.achieved) <= 3:
        return None
    kind = situation.actions
    axes, n = len(goals.achieved), kind.n
    low, high = np.array(kind.low), np.array(kind.high)
    changes, past = _lagged(episodes, low, high)
    if len(changes) < 2 * past.shape[1] or n < axes:
        return None
    x = np.vstack([e.obs for e in episodes])
    after = np.vstack([e.obs[LAGS:] for e in episodes if len(e) > LAGS + 1])
    solution, fit = _explain_free(past, changes, after)
    lags = solution[:-1].reshape(LAGS, n, -1)
    gain = lags.sum(axis=0)  # [actions, fields]
    firsts = np.array([e.obs[0] for e in episodes])
    fitting: list[list[tuple[float, int, int]]] = [[] for _ in range(axes)]
    for axis, thing in enumerate(goals.achieved):
        for field in range(x.shape[1]):
            if field in goals.desired or (field in goals.achieved and field != thing) or fit[field] < 0.8:
                continue
            action = int(np.abs(gain[:, field]).argmax())
            others = np.abs(np.delete(gain[:, field], action)).max(initial=0.0)
            size = abs(float(gain[action, field]))
            # a position keeps what an action gave it; a velocity loses it again
            if size < TINY or others > 0.35 * size or size < 0.5 * float(np.abs(lags[:, action, field]).sum()):
                continue
            if field not in goals.achieved and _drives(after[:, field], changes[:, list(goals.achieved)]):
                continue  # the velocity of the thing itself
            fitting[axis].append((_apartness(x, firsts, situation.view.names, thing, field), field, action))
    choices = itertools.product(*(sorted(options)[:8] for options in fitting))
    apt = []
    for choice in choices:
        sizes = [abs(float(gain[action, field])) for _, field, action in choice]
        distinct = len({field for _, field, _ in choice}) == axes == len({action for _, _, action in choice})
        if distinct and min(sizes) > 0.1 * max(sizes):  # one body, not a thing that trembles and a hand
            apt.append(choice)
    if not apt:
        return None
    chosen = min(apt, key=lambda c: sum(far for far, _, _ in c))
    fields = tuple(field for _, field, _ in chosen)
    actions = tuple(action for _, _, action in chosen)
    stride = tuple(float(gain[a, f]) for f, a in zip(fields, actions, strict=True))
    up, aloft = _upright(episodes, goals)
    up_sign = 1.0
    if up >= 0:
        height = after[:, fields[up]] - after[:, goals.achieved[up]]
        near = np.abs(height) < 2 * abs(stride[up]) * float(np.abs(high).max())
        # the surface holds the hand up: where it is near, it moves less far down than the actions say
        held = float((changes - past @ solution)[near, fields[up]].sum())
        up_sign = 1.0 if held + 0.01 * float(height.mean()) >= 0 else -1.0
    away = firsts[:, list(goals.achieved)] - firsts[:, list(fields)]
    grip, grip_sign, fingers = _find_grip(episodes, situation, goals, fields, actions, stride)
    return Hand(
        fields, actions, stride, float(fit[list(fields)].min()), up, up_sign, grip, grip_sign, fingers,
        is_thing=float(np.abs(x[:, list(goals.achieved)] - x[:, list(fields)]).max()) < 1e-6,
        aloft=aloft, apart=float(np.sqrt((away**2).sum(axis=1)).mean()),
    )  # fmt: skip


def _drives(values: np.ndarray, changes: np.ndarray) -> bool:
    """Whether the changes of some position [T, axes] are proportional to a field's ``values`` [T]."""
    wide = changes.std(axis=0) > TINY
    if float(values.std()) < TINY or not wide.any():
        return False
    return any(abs(float(np.corrcoef(values, changes[:, axis])[0, 1])) > 0.9 for axis in np.flatnonzero(wide))


def _apartness(x: np.ndarray, firsts: np.ndarray, names: Sequence[str], thing: int, field: int) -> float:
    """How little a field looks like a position along the axis of a thing: how far apart they begin, much less where
    another field is just their difference, less where their names end alike."""
    far = float(np.abs(firsts[:, thing] - firsts[:, field]).mean())
    gap = np.abs(x[:, thing] - x[:, field])[:, None]
    size = float(gap.max())
    if size > TINY and float(np.abs(np.abs(x) - gap).max(axis=0).min()) < 1e-6 * size:
        far *= 0.01
    if names[thing].split()[-1:] == names[field].split()[-1:]:
        far *= 0.5
    return round(far, 9)


def _upright(episodes: Sequence[Episode], goals: Goals) -> tuple[int, bool]:
    """(axis along which things always begin the same, −1 if none; whether goals differ from things along it)."""
    if len(goals.achieved) != 3 or len(episodes) < 2:
        return -1, False
    starts = np.array([e.obs[0] for e in episodes])
    spread = starts[:, list(goals.achieved)].std(axis=0)
    up = int(spread.argmin())
    if spread[up] > 0.15 * float(np.median(spread)):
        return -1, False
    raised = float(np.abs(starts[:, goals.desired[up]] - starts[:, goals.achieved[up]]).max())
    return up, raised > 0.15 * float(spread.max())


_GRIP_WORDS = ("grip", "grasp", "finger", "claw", "suction")


def _find_grip(
    episodes: Sequence[Episode],
    situation: Situation,
    goals: Goals,
    fields: tuple[int, ...],
    actions: tuple[int, ...],
    stride: tuple[float, ...],
) -> tuple[int, float, int]:
    """(action dimension that moves fingers and no axis, the sign that raises the field which shows it, that field)."""
    spare = [a for a in range(situation.actions.n) if a not in actions]
    if not spare:
        return -1, 1.0, -1
    low, high = np.array(situation.actions.low), np.array(situation.actions.high)
    changes, past = _lagged(episodes, low, high)
    pace, driven = explain(past, changes)
    drives = np.abs(pace[:-1].reshape(LAGS, situation.actions.n, -1).sum(axis=0)).argmax(axis=0)
    value = np.vstack([e.obs[LAGS:] - e.obs.mean(axis=0) for e in episodes if len(e) > LAGS + 1])
    solution, fit = explain(past, value)
    pull = solution[:-1].reshape(LAGS, situation.actions.n, -1).sum(axis=0)
    best = (0.5, -1, 1.0, -1)
    for field in range(value.shape[1]):
        small = float(value[:, field].std()) < 0.1 * max(abs(s) for s in stride)
        if field in (*goals.achieved, *goals.desired, *fields) or small:
            continue
        if driven[field] > 0.9 and int(drives[field]) not in spare:
            continue  # the hand again, seen from elsewhere
        action = int(np.abs(pull[:, field]).argmax())
        if action in spare and fit[field] > best[0]:
            best = (float(fit[field]), action, -1.0 if pull[action, field] < 0 else 1.0, field)
    if best[1] >= 0:
        return best[1], best[2], best[3]
    named = [a for a in spare if any(word in situation.actions.names[a].lower() for word in _GRIP_WORDS)]
    return (named[0] if named else -1), 1.0, -1
