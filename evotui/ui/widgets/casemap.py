"""`CaseMap`: which submission ran which case, and how well it did there."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from evotui.ui.widgets.paint import InkedWidget, centre, cut, one_line, pad, text_strip
from evotui.ui.widgets.raster import short

_LEVELS = "▁▂▃▄▅▆▇"  # the full block would merge with the cell above
_CELL, _WIDE = 2, 4
_FEW = 200
_DOWN, _ACROSS = "case", "submission →"


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """One submission's returns: (case, return) pairs; a return of None means that the episode failed."""

    submission: int
    returns: tuple[tuple[int, float | None], ...]
    label: str = ""

    @property
    def name(self) -> str:
        """The label, or one made from the submission's index."""
        return self.label or f"s{self.submission:03d}"


class CaseMap(InkedWidget, can_focus=True):
    """Cases down, submissions across; a cell's height and colour tell the return's rank among all returns shown."""

    DEFAULT_CSS = """
    CaseMap {
        width: 1fr; height: 1fr;
        & > .cases--label { color: $text-muted; }
        & > .cases--low { color: $text-error; }
        & > .cases--middle { color: $text-warning; }
        & > .cases--high { color: $text-success; }
        & > .cases--failed { color: $text-error; text-style: bold; }
        & > .cases--none { color: $foreground 20%; }
        & > .cases--cursor { color: $accent; }
        & > .cases--selected { color: $foreground; text-style: bold; }
        &:ansi > .cases--none { text-style: dim; }
    }
    """
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"cases--{name}" for name in ("label", "low", "middle", "high", "failed", "none", "cursor", "selected")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_cells(0,-1)", "up", show=False),
        Binding("down,j", "scroll_cells(0,1)", "down", show=False),
        Binding("left,h", "scroll_cells(-1,0)", "left", show=False),
        Binding("right,l", "scroll_cells(1,0)", "right", show=False),
    ]

    class CellPicked(Message):
        """The user clicked at an episode."""

        def __init__(self, case_map: CaseMap, submission: int, case: int) -> None:
            super().__init__()
            self.case_map = case_map
            self.submission = submission
            self.case = case

        @property
        def control(self) -> CaseMap:
            return self.case_map

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._columns: Sequence[CaseColumn] = ()
        self._returns: list[dict[int, float | None]] = []
        self._cases: list[int] = []
        self._sorted: list[float] = []
        self._longest = 4
        """Cells of the longest figure."""
        self._selected: int | None = None
        self._case: int | None = None
        self._left = 0
        self._top = 0

    def show(self, columns: Sequence[CaseColumn], selected: int | None = None, case: int | None = None) -> None:
        """Draw submissions in order; `selected` and `case` are the cursor, which is kept in view."""
        self._columns = columns
        self._returns = [dict(column.returns) for column in columns]
        self._cases = sorted({case for returns in self._returns for case in returns})
        values = (v for returns in self._returns for v in returns.values())
        self._sorted = sorted(v for v in values if v is not None and math.isfinite(v))
        # Most figures of a few hundred are as long as the longest; what is longer is cut.
        some = self._sorted[:: max(1, len(self._sorted) // _FEW)] + self._sorted[-1:]
        self._longest = max(4, *(len(short(v)) for v in some), 0)
        self._selected, self._case = selected, case
        self._keep_cursor()
        self.refresh()

    def on_resize(self) -> None:
        self._keep_cursor()
        self.refresh()

    def action_scroll_cells(self, columns: int, rows: int) -> None:
        """Scroll by submissions and cases."""
        across, down = self._room()
        self._left = max(0, min(self._left + columns, len(self._columns) - across))
        self._top = max(0, min(self._top + rows, len(self._cases) - down))
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_cells(0, -2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_cells(0, 2)

    def on_click(self, event: events.Click) -> None:
        column = self._left + (event.x - self._gutter()) // self._cell_width()
        row = self._top + event.y - 1
        if event.x < self._gutter() or event.y < 1 or column >= len(self._columns) or row >= len(self._cases):
            return
        if event.y < self._room()[1] + 1 and self._cases[row] in self._returns[column]:
            self.post_message(self.CellPicked(self, self._columns[column].submission, self._cases[row]))

    def _gutter(self) -> int:
        least = len(_DOWN) if self.size.width >= 30 else 1
        return max(least, *(len(str(case)) for case in self._cases)) + 2 if self._cases else 2

    def _cell_width(self) -> int:
        """Cells of width of an episode: with its return beside the bar, where all submissions have room for that."""
        roomy = self._longest + 2 + _CELL
        each = (self.size.width - self._gutter()) // max(1, len(self._columns))
        return roomy if each >= roomy else min(max(each, _CELL), _WIDE)

    def _room(self) -> tuple[int, int]:
        """Submissions and cases that fit beside the labels."""
        return max(1, (self.size.width - self._gutter()) // self._cell_width()), max(
            1, self.size.height - 1 - self._footer()
        )

    def _footer(self) -> int:
        return int(self.size.height >= 4)

    def _keep_cursor(self) -> None:
        across, down = self._room()
        indices = [column.submission for column in self._columns]
        at = indices.index(self._selected) if self._selected in indices else len(indices) - 1
        self._left = max(0, min(max(self._left, at - across + 1), at, len(indices) - across))
        if self._case in self._cases:
            row = self._cases.index(self._case)
            self._top = max(0, min(max(self._top, row - down + 1), row))
        self._top = max(0, min(self._top, len(self._cases) - down))

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        label = self.ink("cases--label")
        if not self._cases:
            text = "cases appear here as they are run" if y == height // 2 else ""
            return text_strip([(centre(text, width), label)], width, label)
        if y == 0:
            return self._header(width)
        if y == height - 1 and self._footer():
            return self._legend(width)
        row = self._top + y - 1
        if row >= len(self._cases):
            return Strip.blank(width, label)
        case = self._cases[row]
        parts = [(f"{case:>{self._gutter() - 1}} ", self.ink("cases--selected") if case == self._case else label)]
        shown = range(self._left, min(len(self._columns), self._left + self._room()[0]))
        parts += [self._cell(column, case) for column in shown]
        return text_strip(parts, width, label)

    def _cell(self, column: int, case: int) -> tuple[str, Style]:
        here = self._columns[column].submission == self._selected
        tint = ("cases--cursor", 0.4 if case == self._case else 0.16) if here else ("", 0.0)
        if case not in self._returns[column]:
            return self._filled("·"), self.ink("cases--none", *tint)
        value = self._returns[column][case]
        if value is None or not math.isfinite(value):
            return self._filled("✕", "failed"), self.ink("cases--failed", *tint)
        rank = self._rank(value)
        ink = "low" if rank < 1 / 3 else "middle" if rank < 2 / 3 else "high"
        level = _LEVELS[min(len(_LEVELS) - 1, int(rank * len(_LEVELS)))]
        return self._filled(level, short(value)), self.ink(f"cases--{ink}", *tint)

    def _filled(self, glyph: str, text: str = "") -> str:
        width = self._cell_width()
        if width > _WIDE:
            return pad(f"{glyph} {text}", width)
        return (glyph if glyph == "·" else glyph * (width - 1)).ljust(width)

    def _rank(self, value: float) -> float:
        """Share of the returns shown that are below, equals counted half; the middle when all are equal."""
        below, upto = bisect_left(self._sorted, value), bisect_right(self._sorted, value)
        return (below + upto) / 2 / len(self._sorted)

    def _header(self, width: int) -> Strip:
        label, strong = self.ink("cases--label"), self.ink("cases--selected")
        parts = [(f"{_DOWN if self._gutter() > len(_DOWN) + 1 else '':>{self._gutter() - 1}} ", label)]
        at, end, cell = 0, -1, self._cell_width()
        shown = range(self._left, min(len(self._columns), self._left + self._room()[0]))
        chosen = next((i for i in shown if self._columns[i].submission == self._selected), None)
        for index in shown:
            place = (index - self._left) * cell
            text = str(self._columns[index].submission)
            if cell > _WIDE:
                text = cut(one_line(self._columns[index].name), cell - 1)
            near = chosen is not None and index != chosen and abs(index - chosen) * cell < len(text) + 1
            if (
                place <= end
                or near
                or (index != chosen and cell == _CELL and self._columns[index].submission % 4 and len(shown) > 8)
            ):
                continue
            parts += [(" " * (place - at), label), (text, strong if index == chosen else label)]
            at = end = place + len(text)
        if cell <= _WIDE and self._gutter() + at + len(_ACROSS) + 2 <= width:
            parts.append((f"  {_ACROSS}", label))
        return text_strip(parts, width, label)

    def _legend(self, width: int) -> Strip:
        label = self.ink("cases--label")
        index = next((i for i, c in enumerate(self._columns) if c.submission == self._selected), None)
        if index is not None and self._case in self._returns[index]:
            value = self._returns[index][self._case or 0]
            result = "failed" if value is None else f"return {short(value)}"
            text = f"{one_line(self._columns[index].name)} · case {self._case} · "
            said = [(text, label), (result, self.ink("cases--selected"))]
            room = width - sum(cell_len(t) for t, _ in said)
            legend = self._explained()
            wide = sum(cell_len(t) for t, _ in legend)
            return text_strip(
                [*said, (" " * (room - wide), label), *legend] if wide + 3 <= room else said, width, label
            )
        return text_strip(self._explained(), width, label)

    def _explained(self) -> list[tuple[str, Style]]:
        """What the bars mean: the rank of a return among all that are shown."""
        label = self.ink("cases--label")
        return [
            ("▁", self.ink("cases--low")), (" low  ", label), ("▄", self.ink("cases--middle")), (" middle  ", label),
            ("▇", self.ink("cases--high")), (" high  ", label), ("✕", self.ink("cases--failed")), (" failed  ", label),
            ("·", self.ink("cases--none")), (" not run", label),
        ]  # fmt: skip
