"""The form for tables of moving things: be quick, unless the way and somebody else's will come too close.

Fits observations with rows of the same fields, one row per thing, and a few Discrete actions of which some raise and
some lower the own speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.feedback import Episode
from evotui.agents.search.spaces import Leaf, Situation

LEAST_FIT = 0.9
"""Least correlation of the change of a position with its velocity."""
_SMALL = 1e-9


@dataclass(frozen=True, slots=True)
class Traffic:
    """A table of moving things. ``own``: the row of the controlled one. ``presence``: the column that says whether a
    row stands for anybody, −1 without. ``place`` and ``speed``: columns of positions and of their velocities; a unit of
    velocity moves a position by ``dt`` in a step. ``absolute``: others' rows hold positions like the own, not
    differences. ``order``: Discrete actions from the one after which the own speed rises most to that where it falls.
    ``stride``: the way that the own thing makes in a step at the highest speed seen.
    """

    leaf: Leaf
    own: int
    presence: int
    place: tuple[int, ...]
    speed: tuple[int, ...]
    dt: float
    absolute: bool
    order: tuple[int, ...]
    stride: float


def _tables(episodes: Sequence[Episode], situation: Situation) -> list[tuple[Leaf, list[np.ndarray]]]:
    """Each leaf of two dimensions with its episodes' values [T, rows, columns]."""
    found, first = [], 0
    for leaf in situation.view.leaves:
        if len(leaf.shape) == 2 and leaf.shape[0] >= 2 and 4 <= leaf.shape[1] <= 12:
            part = [e.obs[:, first : first + leaf.size].reshape(-1, *leaf.shape) for e in episodes if len(e) > 1]
            found.append((leaf, part))
        first += leaf.size
    return found


def _pairs(rows: Sequence[np.ndarray]) -> list[tuple[float, int, int, float]]:
    """(fit, position, velocity, dt) of the columns of one row's series [T, columns], the best fit first."""
    before, after = np.vstack([r[:-1] for r in rows]), np.vstack([r[1:] for r in rows])
    fits: list[tuple[float, int, int, float]] = []
    for i in range(before.shape[1]):
        change = after[:, i] - before[:, i]
        for j in range(before.shape[1]):
            middle = 0.5 * (before[:, j] + after[:, j])
            size = float((middle * middle).sum() * (change * change).sum())
            if i == j or size < _SMALL:
                continue
            # through the origin: no velocity is no change
            fit = float((middle * change).sum()) / size**0.5
            fits.append((fit, i, j, float((middle * change).sum() / (middle * middle).sum())))
    fits.sort(reverse=True)
    taken: set[int] = set()
    best = []
    for fit, i, j, dt in fits:
        if fit >= LEAST_FIT and i not in taken and j not in taken and 1e-3 < dt < 2.0:
            taken |= {i, j}
            best.append((fit, i, j, dt))
    return best


def study_traffic(episodes: Sequence[Episode], situation: Situation) -> Traffic | None:
    """Find the table, the own row and what actions do to the own speed; None where there is no such table."""
    kind = situation.actions
    if situation.view.kind != "flat" or kind.kind != "discrete" or not 2 <= kind.n <= 12:
        return None
    episodes = [e for e in episodes if len(e) > 1 and e.obs.shape[1] == len(situation.view.names)]
    for leaf, tables in _tables(episodes, situation):
        if sum(len(t) for t in tables) < 12:
            continue
        everything = np.vstack(tables)
        flags = [c for c in range(leaf.shape[1]) if set(np.unique(everything[:, :, c])) <= {0.0, 1.0}]
        presence = next((c for c in flags if everything[:, :, c].any()), -1)
        always = [r for r in range(leaf.shape[0]) if presence < 0 or everything[:, r, presence].all()]
        for own in always:
            pairs = [p for p in _pairs([t[:, own] for t in tables]) if p[1] != presence and p[2] != presence]
            pairs = sorted(pairs[:2], key=lambda p: p[1])
            if len(pairs) != 2 or not 0.5 < pairs[0][3] / pairs[1][3] < 2.0:
                continue
            place, speed = tuple(p[1] for p in pairs), tuple(p[2] for p in pairs)
            absolute = _moves_alone(tables, own, presence, place)
            order = _order(episodes, tables, own, speed, kind.n, kind.start)
            dt = float(np.mean([p[3] for p in pairs]))
            stride = dt * float(np.quantile(np.linalg.norm(everything[:, own][:, list(speed)], axis=1), 0.98))
            if stride > _SMALL:
                return Traffic(leaf, own, presence, place, speed, dt, absolute, order, stride)
    return None


def _moves_alone(tables: Sequence[np.ndarray], own: int, presence: int, place: Sequence[int]) -> bool:
    """Whether others' positions change less when the own movement is not added: they are then no differences."""
    alone = added = 0.0
    for table in tables:
        for r in range(table.shape[1]):
            if r == own:
                continue
            change = np.diff(table[:, r][:, list(place)], axis=0)
            mine = np.diff(table[:, own][:, list(place)], axis=0)
            both = np.ones(len(change), dtype=bool)
            if presence >= 0:
                both = (table[1:, r, presence] > 0.5) & (table[:-1, r, presence] > 0.5)
            alone += float(np.abs(change[both]).sum())
            added += float(np.abs(change[both] + mine[both]).sum())
    return alone <= added


def _order(
    episodes: Sequence[Episode], tables: Sequence[np.ndarray], own: int, speed: Sequence[int], n: int, start: int
) -> tuple[int, ...]:
    """Actions by how much the own speed rises in the step after them; untried ones in the middle."""
    rise = np.zeros(n)
    count = np.zeros(n)
    for episode, table in zip(episodes, tables, strict=True):
        fast = np.linalg.norm(table[:, own][:, list(speed)], axis=1)
        # the last step may be a crash, whose effect is no action's
        for t in range(len(fast) - (2 if episode.terminated else 1)):
            action = int(episode.actions[t, 0]) - start
            if 0 <= action < n:
                rise[action] += fast[t + 1] - fast[t]
                count[action] += 1
    mean = rise / np.maximum(count, 1)
    return tuple(sorted(range(n), key=lambda a: (-float(mean[a]), a)))


def clear_form(situation: Situation, episodes: list[Episode]) -> Form | None:
    """Be quick unless somebody will come too close; None where the observation is no table of moving things."""
    traffic = study_traffic(episodes, situation)
    return None if traffic is None else _form(situation, traffic)


def _form(situation: Situation, traffic: Traffic) -> Form:
    kind, (rows, columns) = situation.actions, traffic.leaf.shape
    quick, slow = traffic.order[0], traffic.order[-1]
    path = "obs" + "".join(f"[{key!r}]" for key in traffic.leaf.path)

    def start(why: str, first: int, second: int, safe: float, ahead: float = 0.0) -> Start:
        return Start((first + kind.start, second + kind.start, safe * traffic.stride, 3.0, ahead), why)

    def pair(first: int, second: int) -> str:
        return f"'{kind.names[first]}' where it is clear, else '{kind.names[second]}'"

    starts = [start(f"{pair(quick, slow)}; safe is what it moves in a step at most", quick, slow, 1.0)]
    # a probe of short episodes is too short to tell for sure what slows most
    starts += [start(pair(quick, other), quick, other, 1.0) for other in traffic.order[-2:0:-1][:3]]
    starts += [
        start("as at first, closer", quick, slow, 0.7),
        start("as at first, heeding those behind too", quick, slow, 1.0, -1.0),
    ]
    if kind.n > 2:
        starts.append(start(pair(traffic.order[1], slow), traffic.order[1], slow, 1.0))
    act = [
        f"table = np.asarray({path}, dtype=float).reshape({rows}, {columns})",
        f"own = table[{traffic.own}]",
        f"others = np.delete(table, {traffic.own}, axis=0)",
    ]
    if traffic.presence >= 0:
        act += [f"others = others[others[:, {traffic.presence}] > 0.5]"]
    minus = (" - own[PLACE]", " - own[SPEED]") if traffic.absolute else ("", "")
    act += [
        f"away = others[:, PLACE]{minus[0]}",
        f"drift = STEP * (others[:, SPEED]{minus[1]})  # how they move in a step, seen from here",
        "heading = own[SPEED] / (np.linalg.norm(own[SPEED]) + 1e-6)",
        "when = -(away * drift).sum(axis=1) / ((drift * drift).sum(axis=1) + 1e-9)  # steps until they are nearest",
        "nearest = np.linalg.norm(away + np.clip(when, 0.0, HORIZON)[:, None] * drift, axis=1)",
        "ahead = away @ heading >= AHEAD * np.linalg.norm(away, axis=1)",
        "danger = np.any(ahead & (nearest < SAFE))",
        "return int(SLOW if danger else QUICK)",
    ]
    return Form(
        key="clear",
        title="quick while the way is clear",
        idea=(
            f"{rows} rows of moving things, the own one is row {traffic.own}; '{kind.names[quick]}' made it faster and "
            f"'{kind.names[slow]}' slower. Move everybody on in a straight line: slower if one comes too close"
        ),
        how=(
            "Moves everybody on in a straight line for some steps. Slower if one of those ahead comes closer than is "
            "safe, else quick."
        ),
        fixed=(
            f"PLACE = {list(traffic.place)!r}  # columns of a row's position",
            f"SPEED = {list(traffic.speed)!r}  # and of its velocity",
            f"STEP = {traffic.dt:.4g}  # change of a position in a step, per unit of velocity",
        ),
        constants=(
            Constant("QUICK", (float(quick + kind.start),), (0.0,), "the action where it is clear"),
            Constant("SLOW", (float(slow + kind.start),), (0.0,), "the action where it is not"),
            Constant("SAFE", (traffic.stride,), (0.2 * traffic.stride,), "distance that is close enough to slow", 0.0),
            Constant("HORIZON", (3.0,), (1.0,), "steps to look ahead", 0.0),
            Constant("AHEAD", (0.0,), (0.3,), "cosine from which on another is ahead", -1.0, 1.0),
        ),
        act=tuple(act),
        starts=tuple(starts),
        prior=12.0,
        least_cases=3,
    )
