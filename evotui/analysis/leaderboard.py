"""Entries over environments as one ranking: rank scores, families, wins, normalized means (PROTOCOL: scores).

An entry is an agent with its raw held-out means, one a repeat, by environment. Where an entry has no score it is not
ranked and does not count among the K of that environment; its own figures are then means over what it has, and
``complete`` is false where it lacks one that counts: one of Core16, or, in a table without any of these, any.

Repeats are summed up by their mean. A 95 % interval goes with it from three repeats on: of two it would be some six
times as wide as they lie apart, so for these the two themselves are told (:attr:`Row.ranges`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evotui.analysis.scores import mean_interval, normalized

GROUPS = ("synthesis", "tuning")
MIN_REPEATS = 3
"""Fewest repeats that an interval is made of."""
FAMILIES = ("Gym/Box2D", "MuJoCo", "MiniGrid", "Robotics/Driving")
"""The paper's order; other families follow as they come."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A column of the ranking. ``random`` is the mean of the random policy, for where no entry is that policy."""

    key: str
    slug: str = ""
    gym_id: str = ""
    family: str = ""
    group: str = ""
    core16: bool = False
    random: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """``returns``: raw held-out means by environment, one a repeat. ``source``: the suite's name, or ``paper``.

    ``random`` says that this is the random policy, the zero of the normalized means. ``failed``: why runs failed, one
    reason a run, by environment; an entry may consist of nothing else. ``faults``: by environment how many of its
    held-out episodes, over all repeats, a fault ended, and of how many; without one where that is not known.
    """

    key: str
    model: str
    harness: str
    returns: Mapping[str, Sequence[float]]
    source: str = ""
    random: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    faults: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """An entry's place in one ranking; None where nothing could be ranked or normalized.

    ``core16`` is the mean rank score over Core16 environments, ``overall`` over all; ``families`` likewise. ``wins``
    counts environments where nobody was better, ``top2`` those where at most one was. ``normalized`` is the mean of
    ``clip((R − random) / (best − random), 0, 1)`` by group. ``environments`` counts those with a score.
    """

    core16: float | None
    overall: float | None
    families: Mapping[str, float | None]
    wins: int
    top2: int
    normalized: Mapping[str, float | None]
    environments: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Row:
    """An entry ranked: by environment its mean return, rank, rank score; of repeats the 95 % interval, and the range.

    ``intervals`` are there from :data:`MIN_REPEATS` repeats on, ``ranges`` (least, greatest) from two on.
    ``spread`` is the 95 % interval of its mean rank score over repeats: each repeat is ranked among the others' means.
    None where there are fewer than :data:`MIN_REPEATS`, or not the same number everywhere.
    """

    entry: Entry
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    ranks: Mapping[str, int]
    rank_scores: Mapping[str, float]
    normalized: Mapping[str, float]
    figures: Figures
    spread: tuple[float, float] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def rank(value: float, others: Iterable[float]) -> int:
    """1 + the number of strictly better values, so equals share a rank."""
    return 1 + sum(other > value for other in others)


def rank_scores(entries: Mapping[str, float]) -> dict[str, float]:
    """Rank scores of K ≥ 2 entries on one environment: ``(K − rank) / (K − 1)``.

    Raises ValueError for fewer than two entries or a NaN.
    """
    k = len(entries)
    if k < 2:
        raise ValueError("ranks need at least two entries")
    if any(math.isnan(value) for value in entries.values()):
        raise ValueError("NaN has no rank")
    return {name: (k - rank(value, entries.values())) / (k - 1) for name, value in entries.items()}


def families_of(environments: Sequence[Environment]) -> tuple[str, ...]:
    """The families that occur, the paper's first and in its order."""
    seen = dict.fromkeys(env.family for env in environments)
    return tuple([f for f in FAMILIES if f in seen] + [f for f in seen if f not in FAMILIES])


def ranking(entries: Sequence[Entry], environments: Sequence[Environment]) -> list[Row]:
    """Every entry ranked among all, the best first; those without a score everywhere come after those with.

    Raises ValueError where two entries share a key or a score is NaN.
    """
    if len({entry.key for entry in entries}) != len(entries):
        raise ValueError("two entries share a key")
    means = {e.key: {k: math.fsum(v) / len(v) for k, v in e.returns.items() if v} for e in entries}
    places: dict[str, dict[str, int]] = {e.key: {} for e in entries}
    ranked: dict[str, dict[str, float]] = {e.key: {} for e in entries}
    scaled: dict[str, dict[str, float]] = {e.key: {} for e in entries}
    for env in environments:
        column = {key: row[env.key] for key, row in means.items() if env.key in row}
        for key, value in column.items():
            places[key][env.key] = rank(value, column.values())
        if len(column) >= 2:
            for key, score in rank_scores(column).items():
                ranked[key][env.key] = score
        for key, share in _shares(entries, env, column).items():
            scaled[key][env.key] = share
    rows = [
        Row(
            entry,
            {env.key: means[entry.key][env.key] for env in environments if env.key in means[entry.key]},
            {env.key: found for env in environments if (found := _interval(entry.returns.get(env.key, ())))},
            places[entry.key],
            ranked[entry.key],
            scaled[entry.key],
            _figures(environments, places[entry.key], ranked[entry.key], scaled[entry.key]),
            _spread(entry, means, environments),
            {key: (min(values), max(values)) for key, values in entry.returns.items() if len(values) > 1},
        )
        for entry in entries
    ]
    return sorted(rows, key=_order)


def _spread(
    entry: Entry, means: Mapping[str, Mapping[str, float]], environments: Sequence[Environment]
) -> tuple[float, float] | None:
    """The interval of the entry's mean rank score over its repeats, on the environments that it is ordered by."""
    own = [env.key for env in counting(environments) if entry.returns.get(env.key)]
    repeats = {len(entry.returns[key]) for key in own}
    if len(repeats) != 1:
        return None
    found = []
    for i in range(repeats.pop()):
        scores = []
        for key in own:
            column = {name: row[key] for name, row in means.items() if key in row}
            if len(column) >= 2:
                scores.append(rank_scores(column | {entry.key: entry.returns[key][i]})[entry.key])
        if scores:
            found.append(math.fsum(scores) / len(scores))
    return _interval(found)


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    return mean_interval(values) if len(values) >= MIN_REPEATS else None


def _shares(entries: Sequence[Entry], env: Environment, column: Mapping[str, float]) -> dict[str, float]:
    """Each entry's way from the random policy to the best entry of the environment, clipped to [0, 1]."""
    uniform = [column[e.key] for e in entries if e.random and e.key in column]
    low = math.fsum(uniform) / len(uniform) if uniform else env.random
    high = max(column.values(), default=None)
    if low is None or high is None or high <= low:
        return {}
    return {key: min(max(normalized(value, low, high), 0.0), 1.0) for key, value in column.items()}


def _figures(
    environments: Sequence[Environment],
    places: Mapping[str, int],
    ranked: Mapping[str, float],
    scaled: Mapping[str, float],
) -> Figures:
    def mean(values: Mapping[str, float], which: Iterable[Environment]) -> float | None:
        found = [values[env.key] for env in which if env.key in values]
        return math.fsum(found) / len(found) if found else None

    return Figures(
        core16=mean(ranked, (env for env in environments if env.core16)),
        overall=mean(ranked, environments),
        families={f: mean(ranked, (e for e in environments if e.family == f)) for f in families_of(environments)},
        wins=sum(places[key] == 1 for key in ranked),
        top2=sum(places[key] <= 2 for key in ranked),
        normalized={g: mean(scaled, (env for env in environments if env.group == g)) for g in GROUPS},
        environments=len(places),
        complete=all(env.key in places for env in counting(environments)),
    )


def counting(environments: Sequence[Environment]) -> list[Environment]:
    """Those that entries are ordered by: Core16 where the table has some of it, else all."""
    return [env for env in environments if env.core16] or list(environments)


def _order(row: Row) -> tuple[object, ...]:
    score = row.figures.core16 if row.figures.core16 is not None else row.figures.overall
    return (not row.means, not row.figures.complete, -(score if score is not None else -1.0), row.entry.key)
