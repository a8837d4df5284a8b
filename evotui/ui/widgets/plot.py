"""`ScorePlot`: the score history over consumed episodes, in braille.

Owns what is drawn where and how it is explained: axes with units, a one-line legend, a readout of the selected
submission. What was known during the run and what was measured after it never share a shape or a colour.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from evotui.ui.widgets import plotwords as words
from evotui.ui.widgets.paint import InkedWidget, centre, one_line, text_strip
from evotui.ui.widgets.raster import Raster, short, value_ticks
from evotui.ui.widgets.scores import Mark, PostHocPoint, ReferenceLine, ScoreSeries, SubmissionPoint, clean, drawable

__all__ = ["Mark", "PostHocPoint", "ReferenceLine", "ScorePlot", "ScoreSeries", "SubmissionPoint"]

_INKS = (
    "", "axis", "grid", "reference", "episode", "episode-selected", "mean", "best", "post-hoc", "post-hoc-line",
    "cursor", "new-best", "flat", "rollback", "retest", "failed", "running",
)  # fmt: skip
_INK = {name: index for index, name in enumerate(_INKS)}
_MARK_INKS = frozenset(_INK[name] for name in words.MARK_INKS.values())
_BAND, _BAND_SELECTED, _SPAN_SELECTED = 1, 2, 3
_TINTS = {_BAND: ("mean", 0.16), _BAND_SELECTED: ("mean", 0.3), _SPAN_SELECTED: ("cursor", 0.10)}


class _Frame(NamedTuple):
    """Where things are: margins in cells and ranges of the axes."""

    left: int
    top: int
    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    tick_row: bool
    legend_row: bool


class ScorePlot(InkedWidget):
    """Dots per episode, mean and interval per submission, best so far, marks, post-hoc figures, a cursor."""

    DEFAULT_CSS = """
    ScorePlot {
        width: 1fr; height: 1fr;
        & > .plot--axis { color: $text-muted; }
        & > .plot--label { color: $text-muted; }
        & > .plot--readout { color: $foreground; text-style: bold; }
        & > .plot--grid { color: $foreground 14%; }
        & > .plot--reference { color: $text-disabled; }
        & > .plot--episode { color: $text-primary 70%; }
        & > .plot--episode-selected { color: $foreground; }
        & > .plot--mean { color: $text-primary; }
        & > .plot--best { color: $text-success; }
        & > .plot--new-best { color: $text-success; text-style: bold; }
        & > .plot--flat { color: $text-primary; }
        & > .plot--rollback { color: $text-warning; text-style: bold; }
        & > .plot--retest { color: $text-secondary; text-style: bold; }
        & > .plot--failed { color: $text-error; text-style: bold; }
        & > .plot--running { color: $text-primary; }
        & > .plot--post-hoc { color: $text-accent; text-style: bold; }
        & > .plot--post-hoc-line { color: $text-accent 70%; }
        & > .plot--cursor { color: $foreground 60%; }
        & > .plot--empty { color: $text-muted; }
        &:ansi > .plot--grid, &:ansi > .plot--axis, &:ansi > .plot--cursor { text-style: dim; }
    }
    """
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"plot--{n}" for n in (*_INKS[1:], "label", "readout", "empty")}

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
        self._series = ScoreSeries()
        self._points = np.zeros((0, 3))
        self._frame: _Frame | None = None
        self._strips: list[Strip] | None = None
        if series is not None:
            self._take(series)

    def show(self, series: ScoreSeries, cursor: int | None = None) -> None:
        """Draw a series; `cursor` is the selected submission's index."""
        self._take(series)
        self.cursor = cursor
        self.redraw()

    def redraw(self) -> None:
        """Draw anew at the next paint."""
        self._strips = None
        self.refresh()

    def watch_cursor(self) -> None:
        self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    def restyle(self) -> None:
        self._strips = None
        super().restyle()

    def on_click(self, event: events.Click) -> None:
        frame, at = self._frame, event.x
        if frame is None or not self._series.submissions or not frame.left <= at < frame.left + frame.width:
            return
        low, high = frame.x
        x = low + (at - frame.left + 0.5) / frame.width * (high - low)
        spans = self._spans()
        # The submission whose episodes lie under the pointer, else the nearest.
        index = min(spans, key=lambda i: max(spans[i][0] - x, x - spans[i][1], 0.0))
        self.post_message(self.PointPicked(self, index))

    def render_line(self, y: int) -> Strip:
        if self._strips is None:
            self._strips = self._draw()
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.ink("plot--label"))

    def _take(self, series: ScoreSeries) -> None:
        self._series = clean(series)
        self._points = np.asarray(self._series.episodes)

    def _spans(self) -> dict[int, tuple[float, float]]:
        """Consumed episodes from the beginning to the end of each submission."""
        spans: dict[int, tuple[float, float]] = {}
        start = 0.0
        for point in self._series.submissions:
            spans[point.index] = (start, point.x_end)
            start = max(start, point.x_end)
        return spans

    def _draw(self) -> list[Strip]:
        width, height = self.size
        label = self.ink("plot--label")
        s = self._series
        if not len(self._points) and not s.submissions and not s.post_hoc:
            self._frame = None
            return self._draw_empty()
        frame = self._frame = self._lay_out()
        if frame.width < 4 or frame.height < 1:
            return [Strip.blank(width, label)] * height
        raster = self._raster(frame)
        strips = [self._head(width)] if frame.top else []
        y_ticks = {raster.row(t): short(t) for t in value_ticks(*frame.y, frame.height)}
        axis = self.ink("plot--axis")
        for row, cells in enumerate(raster.rows()):
            parts = [Segment(text, self._style(ink, tint)) for text, ink, tint in cells]
            if frame.left:
                tick = y_ticks.get(row, "")
                parts.insert(0, Segment(f"{tick:>{frame.left - 1}}{'┤' if tick else '│'}", axis))
            strips.append(Strip(parts, width))
        if frame.tick_row:
            strips.append(self._x_axis(frame, raster, width))
        if frame.legend_row:
            strips.append(self._legend(width))
        return strips

    def _draw_empty(self) -> list[Strip]:
        width, height = self.size
        ink = self.ink("plot--empty")
        strips = [Strip.blank(width, ink)] * height
        if height:
            strips[height // 2] = text_strip([(centre(one_line(self._series.empty), width), ink)], width, ink)
        if height >= 5 and width > 12:
            sketch, grid = "⣀⣀⠤⠤⠒⠒⠉⠉", self.ink("plot--grid")
            strips[height // 2 - 2] = text_strip([(f"{sketch:^{width}}", grid)], width, ink)
        return strips

    def _lay_out(self) -> _Frame:
        width, height = self.size
        s = self._series
        top = int(height >= 6)
        tick_row, legend_row = height >= 4, height >= 8
        rows = max(1, height - top - tick_row - legend_row)
        figures = [v for p in s.submissions for v in (p.mean, p.low, p.high) if v is not None and drawable(v)]
        figures += [v for p in s.post_hoc for v in (p.mean, p.low, p.high) if v is not None and drawable(v)]
        figures += [y for _, y in (*s.best, *s.post_hoc_best)] + [r.y for r in s.references]
        values = np.concatenate([self._points[:, 1], np.array(figures, float)])
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        pad = (high - low) * 0.04 or max(1.0, abs(high) * 0.1)
        y = (low - pad, high + pad)
        xs = [*(p.x_end for p in s.submissions), *(p.x for p in s.post_hoc), 1.0]
        last = float(self._points[:, 0].max()) if len(self._points) else 1.0
        x_high = max(float(s.budget), last, *xs)
        labels = [short(t) for t in value_ticks(*y, rows)]
        left = max(map(len, labels), default=0) + 2 if width >= 16 else 0
        return _Frame(left, top, max(0, width - left), rows, (0.0, x_high), y, tick_row, legend_row)

    def _raster(self, frame: _Frame) -> Raster:
        s = self._series
        raster = Raster(frame.width, frame.height, frame.x, frame.y)
        self._draw_submissions(raster)
        chosen = self._points[:, 2] == (self.cursor if self.cursor is not None else -1)
        raster.dots(self._points[~chosen, 0], self._points[~chosen, 1], _INK["episode"])
        raster.dots(self._points[chosen, 0], self._points[chosen, 1], _INK["episode-selected"])
        until = max([0.0, *(p.x_end for p in s.submissions)])
        if s.post_hoc_best:
            raster.steps(s.post_hoc_best, until, _INK["post-hoc-line"], 4)
        if s.best:
            raster.stairs(s.best, until, _INK["best"])
        self._draw_marks(raster)
        self._draw_post_hoc(raster)
        self._draw_behind(raster, frame)
        return raster

    def _draw_submissions(self, raster: Raster) -> None:
        spans, cursor, whiskers = self._spans(), self.cursor, self.app.native_ansi_color
        means: list[tuple[int, int, float]] = []
        for p in self._series.submissions:
            columns = (raster.column(spans[p.index][0]), raster.column(spans[p.index][1]))
            columns = (min(columns[0] + (columns[0] > 0), columns[1]), columns[1])
            if p.index == cursor:
                raster.tint(columns, (0, raster.height), _SPAN_SELECTED)
            if p.mean is None:
                continue
            if drawable(p.low) and drawable(p.high):
                rows = (raster.row(p.high or 0.0), raster.row(p.low or 0.0))
                raster.tint(columns, rows, _BAND_SELECTED if p.index == cursor else _BAND)
                if whiskers:  # no tints there: whiskers instead
                    raster.upright(spans[p.index][1], p.low or 0.0, p.high or 0.0, _INK["mean"])
            means.append((2 * columns[0], 2 * columns[1] + 1, p.mean))
        raster.levels(means, _INK["mean"])

    def _draw_marks(self, raster: Raster) -> None:
        spans, cursor = self._spans(), self.cursor
        crowded = len(spans) > raster.width / 3
        for p in self._series.submissions:
            if crowded and p.mark in (Mark.FLAT, Mark.NONE) and p.index != cursor:
                continue
            row = raster.height - 1 if p.mean is None else raster.row(p.mean)
            raster.glyph(raster.column(spans[p.index][1]), row, words.GLYPHS[p.mark], _INK[words.MARK_INKS[p.mark]])

    def _draw_post_hoc(self, raster: Raster) -> None:
        for point in self._series.post_hoc:
            if drawable(point.low) and drawable(point.high):
                raster.upright(point.x, point.low or 0.0, point.high or 0.0, _INK["post-hoc-line"])
            column, row = raster.column(point.x), raster.row(point.mean)
            if column and raster.inks[row, column] in _MARK_INKS:
                column -= 1  # beside the mark of the submission, not over it
            raster.glyph(column, row, words.post_hoc_glyph(point.kind), _INK["post-hoc"])

    def _draw_behind(self, raster: Raster, frame: _Frame) -> None:
        """What fills free cells only: cursor, references, grid."""
        span = self._spans().get(self.cursor) if self.cursor is not None else None
        line = raster.column(span[1]) if span is not None else -1
        for ref in self._series.references:
            text, row = f" {one_line(ref.label)} {short(ref.y)} ", raster.row(ref.y)
            text = text.replace(" ", "\N{NO-BREAK SPACE}")  # a plain space would count as free and be drawn over
            # Whole, as far on the right as it fits between what is drawn and the cursor's line, or not at all.
            for at in range(raster.width - len(text) - 1, raster.width // 3, -1):
                if raster.is_free(row, at, at + len(text)) and not at <= line < at + len(text):
                    for offset, char in enumerate(text):
                        raster.behind(at + offset, row, char, _INK["reference"])
                    break
        if span is not None:
            raster.behind(line, slice(None), "│", _INK["cursor"])
        for ref in self._series.references:
            raster.behind(slice(None), raster.row(ref.y), "╌", _INK["reference"])
        for tick in value_ticks(*frame.y, frame.height):
            raster.behind(slice(None), raster.row(tick), "┈", _INK["grid"])

    def _style(self, ink: int, tint: int) -> Style:
        name = f"plot--{_INKS[ink]}" if ink else "plot--label"
        if not tint:
            return self.ink(name)
        by, strength = _TINTS[tint]
        return self.ink(name, f"plot--{by}", strength)

    def _head(self, width: int) -> Strip:
        """Unit of the y axis on the left, readout of the selected submission on the right."""
        label = self.ink("plot--label")
        unit = one_line(self._series.y_label)
        readout = self._inked(words.readout(self._series, self.cursor, width - cell_len(unit) - 3))
        used = sum(cell_len(text) for text, _ in readout)
        gap = max(1, width - used - cell_len(unit) - 1)
        return text_strip([(unit, label), (" " * gap, label), *readout], width, label)

    def _x_axis(self, frame: _Frame, raster: Raster, width: int) -> Strip:
        line = [" "] * width
        title = words.x_title(self._series, frame.width > 50) if frame.width > 26 else ""
        free = width - len(title) - 2 if title and not frame.legend_row else width
        end = -1
        for tick in words.episode_ticks(self._series.budget, frame.x[1], frame.width // 8):
            text = short(tick)
            at = min(max(frame.left + raster.column(tick) - len(text) // 2, 0), width - len(text))
            if at > end + (end > 0) and at + len(text) <= free:
                line[at : at + len(text)] = text
                end = at + len(text)
        if free < width:
            line[width - len(title) :] = title
        return text_strip([("".join(line), self.ink("plot--axis"))], width, self.ink("plot--axis"))

    def _legend(self, width: int) -> Strip:
        return text_strip(self._inked(words.legend(self._series, width)), width, self.ink("plot--label"))

    def _inked(self, parts: words.Words) -> list[tuple[str, Style]]:
        return [(text, self.ink(f"plot--{ink}")) for text, ink in parts]
