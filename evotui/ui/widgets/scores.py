"""What `ScorePlot` draws: the score history of a run as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np


class Mark(StrEnum):
    """What a submission was, drawn as a shape of its own."""

    NONE = ""
    BEST = "new best"
    FLAT = "no improvement"
    ROLLBACK = "rollback"
    RETEST = "retest"
    FAILED = "failed"
    RUNNING = "running"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class SubmissionPoint:
    """One submission: consumed episodes when it was complete, mean return and interval (None: no figure)."""

    index: int
    x_end: float
    mean: float | None
    low: float | None = None
    high: float | None = None
    mark: Mark = Mark.NONE
    label: str = ""
    """What to call it, such as "s004"; "" makes one from the index."""

    @property
    def name(self) -> str:
        """The label, or one made from the index."""
        return self.label or f"s{self.index:03d}"


@dataclass(frozen=True, slots=True)
class PostHocPoint:
    """A figure that nobody knew during the run: a checkpoint's validation mean or the best one's held-out mean."""

    kind: str
    """"validation" or "held-out"."""
    x: float
    mean: float
    low: float | None = None
    high: float | None = None
    submission: int | None = None


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A horizontal line with a name, such as the random policy's anchor."""

    label: str
    y: float


@dataclass(frozen=True, eq=False)
class ScoreSeries:
    """All that the plot draws."""

    episodes: Sequence[tuple[float, float, int]] | np.ndarray = ()
    """(consumed episodes, return, submission index) of each episode, or a float array of shape (n, 3)."""
    submissions: tuple[SubmissionPoint, ...] = ()
    best: tuple[tuple[float, float], ...] = ()
    """Best mean so far: (x, y) of each improvement."""
    post_hoc: tuple[PostHocPoint, ...] = ()
    post_hoc_best: tuple[tuple[float, float], ...] = ()
    """Best validation mean so far, known after the run only."""
    budget: int = 0
    """Episodes of the run's budget: the right end of the x axis. 0: up to the last point."""
    x_unit: str = "episodes"
    """What the x axis counts: consumed episodes, or "submissions" where no more is known."""
    y_label: str = "return"
    interval: str = "± se"
    """What `low` and `high` mean, for legend and readout."""
    references: tuple[ReferenceLine, ...] = ()
    empty: str = "scores appear here with the first submission"


def drawable(value: float | None) -> bool:
    """Whether a number has a place on an axis: finite, and small enough that differences of two still count."""
    return value is not None and math.isfinite(value) and abs(value) < 1e15


def clean(series: ScoreSeries) -> ScoreSeries:
    """The series without what has no place on an axis; `episodes` becomes a float array of shape (n, 3)."""
    points = np.asarray(series.episodes, float)
    points = points.reshape(-1, 3) if points.size else np.zeros((0, 3))
    return replace(
        series,
        episodes=points[(np.abs(points[:, :2]) < 1e15).all(axis=1)],
        submissions=tuple(_clean_submission(p) for p in series.submissions if drawable(p.x_end)),
        best=tuple(p for p in series.best if drawable(p[0]) and drawable(p[1])),
        post_hoc=tuple(p for p in series.post_hoc if drawable(p.x) and drawable(p.mean)),
        post_hoc_best=tuple(p for p in series.post_hoc_best if drawable(p[0]) and drawable(p[1])),
        references=tuple(r for r in series.references if drawable(r.y)),
    )


def _clean_submission(p: SubmissionPoint) -> SubmissionPoint:
    if p.mean is None or drawable(p.mean):
        return p
    return replace(p, mean=None, low=None, high=None)
