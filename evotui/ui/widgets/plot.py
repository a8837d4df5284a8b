"""`ScorePlot`: the score history over consumed episodes, in braille."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message
from textual.reactive import reactive

from evotui.ui.widgets.paint import InkedWidget


class Mark(StrEnum):
    """What a submission was, drawn as a shape of its own."""

    NONE = ""
    BEST = "best"
    FLAT = "no improvement"
    ROLLBACK = "rollback"
    RETEST = "retest"
    FAILED = "failed"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class SubmissionPoint:
    """One submission: its x (consumed episodes when it was complete), mean return and interval (None: no figure)."""

    index: int
    x_end: float
    mean: float | None
    low: float | None = None
    high: float | None = None
    mark: Mark = Mark.NONE
    label: str = ""
    """What to call it, such as "s004"; "" means s + index."""


@dataclass(frozen=True, slots=True)
class PostHocPoint:
    """A figure that nobody knew during the run: a checkpoint's validation or the best one's held-out mean."""

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
    """All that the plot draws. `episodes`: (x, return, submission index), or a float array of shape (n, 3)."""

    episodes: Sequence[tuple[float, float, int]] = ()
    submissions: tuple[SubmissionPoint, ...] = ()
    best: tuple[tuple[float, float], ...] = ()
    post_hoc: tuple[PostHocPoint, ...] = ()
    budget: int = 0
    """Episodes of the run's budget: the right end of the x axis. 0: up to the last point."""
    y_label: str = "return"
    interval: str = "± se"
    """What `low` and `high` mean, for the legend."""
    references: tuple[ReferenceLine, ...] = ()
    empty: str = "scores appear here after the first submission"


class ScorePlot(InkedWidget):
    """Dots per episode, mean and interval per submission, best-so-far as steps, marks, post-hoc figures, a cursor."""

    DEFAULT_CSS = "ScorePlot { width: 1fr; height: 1fr; }"

    cursor: reactive[int | None] = reactive(None)
    """Index of the selected submission; None shows no cursor."""

    class PointPicked(Message):
        """The user clicked at a submission."""

        def __init__(self, plot: ScorePlot, index: int) -> None:
            super().__init__()
            self.plot = plot
            self.index = index

        @property
        def control(self) -> ScorePlot:
            return self.plot

    def __init__(
        self,
        series: ScoreSeries | None = None,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._series = series or ScoreSeries()

    def show(self, series: ScoreSeries, cursor: int | None = None) -> None:
        """Draw a new series; `cursor` is the selected submission's index."""
        self._series = series
        self.cursor = cursor
        self.refresh()

    def render(self) -> str:
        return self._series.empty
