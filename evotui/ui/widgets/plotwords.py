"""The words of the score plot: readout of the selected submission, legend, ticks of the episode axis.

Owns what is said and what goes first when room is short. Texts come with the name of an ink, not with a style.
"""

from __future__ import annotations

import numpy as np
from rich.cells import cell_len

from evotui.ui.widgets.paint import one_line
from evotui.ui.widgets.raster import short, ticks
from evotui.ui.widgets.scores import Mark, ScoreSeries, SubmissionPoint, drawable
from evotui.ui.words import measured

Words = list[tuple[str, str]]
"""(text, ink) pairs."""

GLYPHS: dict[Mark, str] = {
    Mark.BEST: "★",
    Mark.FLAT: "○",
    Mark.ROLLBACK: "◀",
    Mark.RETEST: "◎",
    Mark.FAILED: "✕",
    Mark.RUNNING: "◌",
    Mark.UNFINISHED: "◌",
    Mark.NONE: "•",
}
MARK_INKS: dict[Mark, str] = {
    Mark.BEST: "new-best",
    Mark.FLAT: "flat",
    Mark.ROLLBACK: "rollback",
    Mark.RETEST: "retest",
    Mark.FAILED: "failed",
    Mark.RUNNING: "running",
    Mark.UNFINISHED: "running",
    Mark.NONE: "mean",
}
_LEGEND_WORDS = {Mark.FLAT: "no gain"}
_LEGEND_RANKS = {Mark.FAILED: 3, Mark.ROLLBACK: 5, Mark.RETEST: 6}


def post_hoc_glyph(kind: str) -> str:
    """The shape of a figure that was measured after the run."""
    return "◆" if kind == "held-out" else "◇"


def readout(series: ScoreSeries, cursor: int | None, room: int) -> Words:
    """Figures of the selected submission, else the best so far, in at most `room` cells."""
    point = next((p for p in series.submissions if p.index == cursor), None)
    if point is None:
        groups = [(0, [("best ", "label"), (short(series.best[-1][1]), "new-best")])] if series.best else []
    else:
        groups = _figures(series, point, room)
    # Figures before the words for the mark, whose glyph stands there; an error never without its mean.
    chosen: set[int] = set()
    for index, (rank, _) in sorted(enumerate(groups), key=lambda item: item[1][0]):
        if _width([part for i in (*chosen, index) for part in groups[i][1]]) <= room:
            chosen.add(index)
        elif rank < 2:
            break
    return [part for index in sorted(chosen) for part in groups[index][1]]


def _figures(series: ScoreSeries, point: SubmissionPoint, room: int) -> list[tuple[int, Words]]:
    """What there is to say, from left to right, each with its rank where room is short."""
    ink = MARK_INKS[point.mark]
    groups: list[tuple[int, Words]] = [(0, [(f"{GLYPHS[point.mark]} ", ink), (one_line(point.name), "readout")])]
    if point.mark:
        groups.append((2, [(f" {point.mark.value}", ink)]))
    if point.mean is not None:
        half = None
        if drawable(point.low) and drawable(point.high):
            half = ((point.high or 0.0) - (point.low or 0.0)) / 2
        mean, _, error = measured(point.mean, half).partition(" ± ")
        groups.append((1, [("  mean ", "label"), (mean, "readout")]))
        if error:
            unit = one_line(series.interval).removeprefix("±").strip()
            groups.append((1, [(f" ± {error}{f' {unit}' if room > 60 else ''}", "label")]))
    count = int((np.asarray(series.episodes, float).reshape(-1, 3)[:, 2] == point.index).sum())
    if count:
        groups.append((3, [(f"  n {count}", "label")]))
    for after in (p for p in series.post_hoc if p.submission == point.index):
        kind = f" {one_line(after.kind)}" if room > 56 else ""
        figure = f"  {post_hoc_glyph(after.kind)} {short(after.mean)}"
        groups.append((3, [(figure, "post-hoc"), (f"{kind} post-hoc", "label")]))
    return groups


def x_title(series: ScoreSeries, long: bool) -> str:
    """What the x axis counts."""
    return f"{series.x_unit} consumed" if long and series.x_unit == "episodes" else series.x_unit


def legend(series: ScoreSeries, width: int) -> Words:
    """One line that explains what is drawn, with the title of the x axis on the right."""
    title = x_title(series, width > 56) if width > 30 else ""
    room = width - (len(title) + 3 if title else 0)
    items = _legend_items(series, wide=width > 84)
    chosen: set[int] = set()
    for index, (_, glyph, _, text) in sorted(enumerate(items), key=lambda item: item[1][0]):
        needed = len(glyph) + cell_len(text) + 3
        if needed <= room:
            chosen.add(index)
            room -= needed
    parts: Words = []
    for index in sorted(chosen):
        _, glyph, ink, text = items[index]
        parts += [(f"{glyph} ", ink), (f"{text}  ", "label")]
    if title:
        parts.append((" " * max(1, width - _width(parts) - len(title) - 1) + title, "label"))
    return parts


def _legend_items(series: ScoreSeries, wide: bool) -> list[tuple[int, str, str, str]]:
    """What to explain, from left to right: (rank when room is short, glyph, ink, words)."""
    items: list[tuple[int, str, str, str]] = []
    if len(series.episodes):
        items.append((4, "⠂", "episode", "episode"))
    if series.submissions:
        items.append((1, "⠒", "mean", f"mean {one_line(series.interval)}".rstrip()))
    if series.best:
        items.append((2, "─", "best", "best so far"))
    kinds = {p.kind for p in series.post_hoc}
    if wide and kinds == {"validation", "held-out"}:
        items.append((0, "◇", "post-hoc", "validation"))
        items.append((0, "◆", "post-hoc", "held-out, both post-hoc"))
    elif kinds or series.post_hoc_best:
        shapes = "◇" * ("validation" in kinds) + "◆" * ("held-out" in kinds)
        items.append((0, shapes or "⠂", "post-hoc", "post-hoc"))
    drawn = {p.mark for p in series.submissions}
    items += [
        (_LEGEND_RANKS.get(mark, 7), GLYPHS[mark], MARK_INKS[mark], _LEGEND_WORDS.get(mark, mark.value))
        for mark in Mark
        if mark and mark in drawn
    ]
    return items


def episode_ticks(budget: int, high: float, about: int) -> list[float]:
    """Shares of the budget where they are whole, else round numbers; the end of the axis is always one."""
    for parts in (16, 8, 4, 2):
        if budget == high and parts <= about and budget % parts == 0:
            return [budget * i / parts for i in range(parts + 1)]
    inner = ticks(0.0, high, max(1, about // 2))
    step = inner[1] - inner[0] if len(inner) > 1 else high
    return [*(t for t in inner if t <= high - step / 2), high]


def _width(parts: Words) -> int:
    return sum(cell_len(text) for text, _ in parts)
