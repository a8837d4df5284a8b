"""The selected run beside the list of runs: its course, its budget and where it stands, from its summary alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from evotui.protocol.words import counted
from evotui.ui.chrome import Line, Part
from evotui.ui.feed import EnvChoice
from evotui.ui.runlist import STATES, age
from evotui.ui.widgets.paint import one_line
from evotui.ui.widgets.plot import Mark, PostHocPoint, ReferenceLine, ScorePlot, ScoreSeries, SubmissionPoint
from evotui.ui.widgets.plotwords import GLYPHS
from evotui.ui.words import elapsed, mean_of, number, plain_model, short

if TYPE_CHECKING:
    from evotui.record.summary import RunSummary

LAST = 6
"""Submissions that are listed, the newest first."""
_BAR = 24


class Lines(Widget):
    """A few lines of text that never relayout."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: tuple[Content, ...] = ()

    def show(self, lines: list[Content]) -> None:
        if tuple(lines) != self._lines:
            self._lines = tuple(lines)
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        return Content("\n").join(line.truncate(width, ellipsis=True) for line in self._lines)


class Preview(Vertical):
    """Shows one :class:`RunSummary`; ``scales`` are the environments by their gym id, for the anchors."""

    DEFAULT_CSS = f"""
    Preview {{
        & > #preview-plot {{ height: 1fr; max-height: 26; margin: 1 0; }}
        & > #preview-last {{ height: {LAST + 1}; margin-bottom: 1; }}
        & > #preview-stands {{ height: 5; }}
    }}
    """

    def __init__(self) -> None:
        super().__init__(id="preview")
        self.scales: Mapping[str, EnvChoice] = {}
        self._head = Line(id="preview-name")
        self._budget = Line(id="preview-budget")
        self._plot = ScorePlot(id="preview-plot")
        self._last = Lines(id="preview-last")
        self._stands = Lines(id="preview-stands")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._budget
        yield self._plot
        yield self._last
        yield self._stands

    def show(self, run: RunSummary | None, now: float) -> None:
        """Draw a run, or nothing; ``now`` is what its age is counted from."""
        if run is None:
            self._head.show([])
            self._budget.show([])
            self._plot.show(ScoreSeries(empty="no run matches; esc clears the filter"))
            self._last.show([])
            self._stands.show([])
            return
        glyph, word = STATES.get(run.status, ("?", run.status))
        ink = {"✓": "$text-success", "●": "bold $text-success", "✗": "$text-error", "!": "$text-error"}
        self._head.show(
            [
                Part(one_line(run.env_version or run.env or run.name), "bold", 90),
                Part(one_line(run.agent), "", 60),
                Part(plain_model(one_line(run.model)) if run.model not in ("", run.agent) else "", "$text-muted", 30),
            ],
            [Part(f"{glyph} {word}", ink.get(glyph, "$text-warning"), 80)],
        )
        self._budget.show(*budget_words(run))
        known = self.scales.get(run.env_version)
        self._plot.show(series_of(run, known), best_of(run))
        self._last.show(last_lines(run))
        self._stands.show(standing(run, now))


def best_of(run: RunSummary) -> int | None:
    """The submission that was selected, else the one of the greatest mean so far; the first of equals."""
    if run.best is not None:
        return run.best[0]
    scored = [(mean, -at) for at, mean in enumerate(run.means) if mean is not None]
    return -max(scored)[1] if scored else None


def marks_of(run: RunSummary) -> list[Mark]:
    """What each submission was, as far as its mean tells."""
    found, best = [], -math.inf
    for at, mean in enumerate(run.means):
        if mean is None:
            under_way = at == len(run.means) - 1 and run.status in ("running", "interrupted")
            found.append((Mark.RUNNING if run.status == "running" else Mark.UNFINISHED) if under_way else Mark.FAILED)
        elif mean > best:
            best = mean
            found.append(Mark.BEST)
        else:
            found.append(Mark.FLAT)
    return found


def series_of(run: RunSummary, known: EnvChoice | None) -> ScoreSeries:
    """Mean returns by submission, the best so far, what was measured after the run, and the anchors where known."""
    marks = marks_of(run)
    points = tuple(
        SubmissionPoint(at, at + 1, mean, mark=mark, label=short(at))
        for at, (mean, mark) in enumerate(zip(run.means, marks, strict=True))
    )
    best = tuple((p.x_end, p.mean) for p in points if p.mark is Mark.BEST and p.mean is not None)
    after = []
    if run.best is not None:
        after.append(PostHocPoint("validation", run.best[0] + 1, run.best[1], submission=run.best[0]))
    if run.heldout is not None:
        at = None if run.best is None else run.best[0]
        after.append(PostHocPoint("held-out", max(1, len(points)), run.heldout[0], submission=at))
    anchors = [] if known is None else [("random", known.random_mean), ("reference", known.reference_mean)]
    return ScoreSeries(
        submissions=points,
        best=best,
        post_hoc=tuple(after),
        x_unit="submissions",
        y_label="mean return",
        interval="",
        references=tuple(ReferenceLine(name, mean) for name, mean in anchors if mean is not None),
        empty=one_line(run.problem) or "nothing was submitted" + (" yet" if run.status == "running" else ""),
    )


def budget_words(run: RunSummary) -> tuple[list[Part], list[Part]]:
    """The budget as a bar, and how much was submitted."""
    if not run.total:
        return [], []
    filled = min(_BAR, math.ceil(run.used * _BAR / run.total))
    left = [
        Part("█" * filled + "░" * (_BAR - filled), "$text-primary", 20),
        Part(f"{run.used}/{counted(run.total, 'episode')}", "", 60),
    ]
    return left, [Part(counted(run.submissions, "submission"), "$text-muted", 40)]


def last_lines(run: RunSummary) -> list[Content]:
    """The newest submissions, each with its mark and mean."""
    marks = marks_of(run)
    if not marks:
        return []
    lines = [Content("last submissions").stylize("$text-muted")]
    inks = {Mark.BEST: "bold $text-success", Mark.FAILED: "$text-error"}
    for at in range(len(marks) - 1, max(-1, len(marks) - 1 - LAST), -1):
        mean, mark = run.means[at], marks[at]
        figure = "–" if mean is None else number(mean)
        words = mark.value + (" · selected" if run.best is not None and run.best[0] == at else "")
        lines.append(
            Content.assemble(
                (f"{GLYPHS[mark]} ", inks.get(mark, "$text-primary")), (short(at), "$text-accent"),
                f"{figure:>10}  ", (words, "$text-muted"),
            )
        )  # fmt: skip
    return lines


def standing(run: RunSummary, now: float) -> list[Content]:
    """Where the run stands: the verdict after it, else its best so far; when, how long, and where it lies."""
    lines: list[Content] = []
    if run.problem:
        lines.append(Content(f"✗ {one_line(run.problem)}").stylize("$text-error"))
    if run.best is not None:
        words = f"◇ post-hoc: {short(run.best[0])} selected, validation {number(run.best[1])}"
        lines.append(Content(words).stylize("$text-accent"))
    elif run.best_in_loop is not None:
        best = best_of(run)
        assert best is not None, "a best mean is of a submission"
        lines.append(Content(f"best so far {number(run.best_in_loop)} of {short(best)}, in-loop proxy"))
    if run.heldout is not None:
        words = f"◆ held-out {mean_of(*run.heldout)} over {counted(run.heldout[2], 'case')}"
        words += "" if run.final_score is None else f", final score {run.final_score:.1f}"
        lines.append(Content(words).stylize("$text-accent"))
    if run.last_at:
        lines.append(Content(_when(run, now)).stylize("$text-muted"))
    return [*lines, Content(one_line(str(run.path))).stylize("$text-muted")]


def _when(run: RunSummary, now: float) -> str:
    if run.status == "running":
        return f"going on for {elapsed(now - run.started_at)}"
    ago = age(now - run.last_at)
    return f"took {elapsed(run.last_at - run.started_at)} · {'just now' if ago == 'now' else f'{ago} ago'}"
