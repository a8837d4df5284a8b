"""Scores and how sure they are: best-so-far, hits with Wilson intervals, gaps (PROTOCOL: scores, diagnostics).

While a run lives, only train returns are known, and what is computed from them is a *proxy*, marked so. Validation and
held-out figures exist after the run only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evotui.analysis.edits import Edit, EditKind
from evotui.protocol.results import stats
from evotui.protocol.scores import auc_in_loop, episodes_to, normalized
from evotui.record.scores import auxiliary_scores, held_out_gap, val_heldout_gap
from evotui.record.state import RunState, Submission

__all__ = [
    "HitRate",
    "Point",
    "auc_in_loop",
    "auxiliary_scores",
    "best_so_far",
    "episodes_to",
    "held_out_gap",
    "hit_rates",
    "mean_interval",
    "normalized",
    "since_improvement",
    "train_points",
    "val_heldout_gap",
    "validation_points",
    "wilson",
]

Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Point:
    """A scored submission on the axis of consumed episodes.

    ``consumed`` are the run's episodes once it was charged, ``score`` its mean return, ``best`` the greatest score up
    to and including it, ``is_best`` whether it raised that (the first one does).
    """

    submission: int
    consumed: int
    score: float
    best: float
    is_best: bool


@dataclass(frozen=True, slots=True)
class HitRate:
    """How often edits of one kind raised the best-so-far: ``hits`` of ``n``, with the Wilson 95 % interval.

    ``proxy`` says that train means were compared, because validation scores are not known.
    """

    kind: EditKind
    hits: int
    n: int
    proxy: bool

    @property
    def rate(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.hits, self.n)


def best_so_far(scores: Iterable[float | None]) -> list[float | None]:
    """The greatest score up to each place; None before the first."""
    best: float | None = None
    found = []
    for score in scores:
        if score is not None and (best is None or score > best):
            best = score
        found.append(best)
    return found


def train_points(state: RunState) -> tuple[Point, ...]:
    """The course of mean train returns over the ok submissions. Cases may differ between them: a proxy."""
    return _points((s, s.mean) for s in state.submissions if s.ok)


def validation_points(state: RunState) -> tuple[Point, ...]:
    """The course of validation scores over the validated checkpoints, in the order they were submitted. Post-hoc."""
    return _points((s, s.val_score) for s in state.submissions)


def _points(scored: Iterable[tuple[Submission, float | None]]) -> tuple[Point, ...]:
    best = -math.inf
    found: list[Point] = []
    for submission, score in scored:
        if score is not None:
            is_best = score > best or not found
            best = max(best, score)
            found.append(Point(submission.index, submission.consumed_after, score, best, is_best))
    return tuple(found)


def since_improvement(state: RunState) -> int:
    """Episodes charged since the last submission that raised the best mean train return; all of them if none did.

    A submission on its way counts as spent.
    """
    last = max((p.consumed for p in train_points(state) if p.is_best), default=0)
    return state.budget.used - last


def hit_rates(state: RunState, edits: Sequence[Edit]) -> tuple[HitRate, ...]:
    """Hit rates of synthesis and parametric edits, by validation if every scored edit has it, else by train means."""
    counted = [edit for edit in edits if edit.kind.is_edit and not edit.provisional]
    validated = {p.submission: p.is_best for p in validation_points(state)}
    proxy = not counted or any(edit.submission not in validated for edit in counted)
    raised = {p.submission: p.is_best for p in train_points(state)} if proxy else validated
    rates = []
    for kind in (EditKind.SYNTHESIS, EditKind.PARAMETRIC):
        mine = [edit for edit in counted if edit.kind is kind and edit.submission in raised]
        rates.append(HitRate(kind, sum(raised[edit.submission] for edit in mine), len(mine), proxy))
    return tuple(rates)


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a proportion; (0, 1) where nothing was counted. ValueError unless 0 ≤ hits ≤ n."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits of {n}")
    if n == 0:
        return 0.0, 1.0
    p = hits / n
    center = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if hits == 0 else (center - spread) / scale
    high = 1.0 if hits == n else (center + spread) / scale
    return low, high


_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of the mean; None for fewer than two values.

    Beyond 30 degrees of freedom the quantile is 1.96 + 2.4 / df (off by less than 0.003).
    """
    described = stats(values)
    if described is None or described.n < 2:
        return None
    df = described.n - 1
    quantile = _T95[df - 1] if df <= len(_T95) else Z95 + 2.4 / df
    half = quantile * described.std / math.sqrt(df)  # population std / sqrt(n − 1) = sample std / sqrt(n)
    return described.mean - half, described.mean + half
