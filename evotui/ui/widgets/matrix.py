"""A suite as a matrix: environments down, agents across, one box each; the paper's entries beside them.

A box has a glyph for the state, the mean train returns as bars, the held-out mean (or the best train mean so far, in a
fainter ink) and the rank among everybody on the row. Drawn on the line API; a box is as wide as what fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evotui.ui.runlist import spark
from evotui.ui.widgets.paint import InkedWidget, cut, one_line, pad
from evotui.ui.words import number

_OWN = 25
"""Cells of an own box with all that it has to say, repeats apart."""
_FOREIGN = 13
"""Cells of a box of an entry of the paper: figure and rank; wider where its name is and there is room."""
_ANCHORS_FROM = 120
"""Columns of a terminal from which anchors may be shown."""

GLYPHS = {"finished": "✓", "failed": "✗", "running": "●", "unfinished": "◌", "waiting": "·"}


@dataclass(frozen=True, slots=True)
class Box:
    """One place of the matrix. ``count`` is "2/3" where there are repeats; ``faint`` marks a figure that may change."""

    state: str = ""
    means: tuple[float | None, ...] = ()
    value: float | None = None
    faint: bool = False
    rank: int | None = None
    count: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """An agent. ``foreign`` entries are of the paper: they have figures only. ``score`` is the mean rank score.

    An ``anchor`` is foreign too and nobody's entry: figures for scale, faint, unranked, and only where all others fit.
    """

    name: str
    boxes: tuple[Box, ...]
    score: float | None = None
    foreign: bool = False
    anchor: bool = False


class Matrix(ScrollView, InkedWidget, can_focus=True):
    """Rows of environments and columns of agents; one own box is selected. Says :class:`Opened` on a second click."""

    DEFAULT_CSS = """
    Matrix {
        width: 1fr; height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .matrix--text { color: $foreground; }
        & > .matrix--head { color: $text-muted; }
        & > .matrix--env { color: $foreground; text-style: bold; }
        & > .matrix--value { color: $text-accent; }
        & > .matrix--faint { color: $text-muted; }
        & > .matrix--spark { color: $text-primary; }
        & > .matrix--rank { color: $text-secondary; }
        & > .matrix--first { color: $text-success; text-style: bold; }
        & > .matrix--finished { color: $text-success; }
        & > .matrix--failed { color: $text-error; }
        & > .matrix--running { color: $text-success; text-style: bold; }
        & > .matrix--unfinished { color: $text-warning; }
        & > .matrix--waiting { color: $text-muted; }
        & > .matrix--cursor { color: $block-cursor-foreground; background: $block-cursor-background; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"matrix--{n}"
        for n in (
            *("text", "head", "env", "value", "faint", "spark", "rank", "first", "cursor"),
            *GLYPHS,
        )
    }

    class Moved(Message):
        """Another box is selected."""

        def __init__(self, matrix: Matrix) -> None:
            super().__init__()
            self.matrix = matrix

        @property
        def control(self) -> Matrix:
            return self.matrix

    class Opened(Moved):
        """The selected box shall be opened."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names: tuple[str, ...] = ()
        self._columns: tuple[Column, ...] = ()
        self._row = 0
        self._column = 0
        self._first = 0
        """The first column on the screen."""

    def show(self, names: Sequence[str], columns: Sequence[Column]) -> None:
        """Draw a matrix; own columns come first. The selected box stays where it is."""
        self._names, self._columns = tuple(names), tuple(columns)
        self.virtual_size = Size(self.size.width, len(self._names))
        self.move_to(self._row, self._column)

    @property
    def selected(self) -> tuple[int, int]:
        """(row, column) of the selected box."""
        return self._row, self._column

    @property
    def rows(self) -> int:
        return len(self._names)

    @property
    def _own(self) -> int:
        return sum(not column.foreign for column in self._columns)

    def move(self, down: int = 0, right: int = 0) -> None:
        self.move_to(self._row + down, self._column + right)

    def move_to(self, row: int, column: int) -> None:
        """Select a box, as near as there is one, and bring it into view."""
        before = self.selected
        self._row = min(max(row, 0), max(0, len(self._names) - 1))
        self._column = min(max(column, 0), max(0, self._own - 1))
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self._row < top:
            self.scroll_to(y=self._row, animate=False)
        elif self._row >= top + height:
            self.scroll_to(y=self._row - height + 1, animate=False)
        self._first = min(self._first, self._column)
        while self._first < self._column and self._column not in [at for at, _ in self._shown()]:
            self._first += 1
        self.refresh()
        if before != self.selected:
            self.post_message(self.Moved(self))

    # ── what fits ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _env_width(self) -> int:
        longest = max((cell_len(name) for name in self._names), default=11)
        return min(max(longest, 11), 24 if self.size.width >= 70 else 14)

    def _anchors(self) -> list[int]:
        """Places of the anchors that fit once every other column has its room."""
        left = self.size.width - 2 - self._env_width
        if self.size.width < _ANCHORS_FROM:
            return []
        count = 4 if any(box.count for column in self._columns for box in column.boxes) else 0
        left -= sum(15 if column.foreign else _OWN + count + 2 for column in self._columns if not column.anchor)
        found = []
        for at, column in enumerate(self._columns):
            if column.anchor and (left := left - self._anchor_width(column) - 2) >= 0:
                found.append(at)
        return found

    @staticmethod
    def _anchor_width(column: Column) -> int:
        return max(9, cell_len(column.name))

    def _widths(self) -> tuple[int, int]:
        """Cells of an own box and of a foreign one; bars are left out where nothing else would fit."""
        room = self.size.width - 2 - self._env_width
        own = max(1, self._own)
        count = 4 if any(box.count for column in self._columns for box in column.boxes) else 0
        full = _OWN + count
        if room < 2 + full * min(own, 2):
            return 16 + count, _FOREIGN
        foreign = 15 * sum(column.foreign and not column.anchor for column in self._columns)
        foreign += sum(self._anchor_width(self._columns[at]) + 2 for at in self._anchors())
        foreign += sum(self._missing(column) for column in self._columns)  # a name says more than longer bars do
        spare = (room - foreign - (full + 2) * own) // own  # room for more bars, once everybody has a column
        return full + min(max(0, spare), 24), _FOREIGN

    @staticmethod
    def _missing(column: Column) -> int:
        """Cells that an entry's name goes beyond a foreign box."""
        return max(0, cell_len(one_line(column.name)) - _FOREIGN) if column.foreign and not column.anchor else 0

    def _shown(self) -> list[tuple[int, int]]:
        """(place, width) of the columns on the screen."""
        mine, foreign = self._widths()
        left = self.size.width - 2 - self._env_width
        found = []
        anchors = self._anchors()
        for at in range(self._first, len(self._columns)):
            column = self._columns[at]
            if column.anchor and at not in anchors:
                continue
            width = self._anchor_width(column) if column.anchor else foreign if column.foreign else mine
            if left < width + 2:
                break
            found.append((at, width))
            left -= width + 2
        for place, (at, width) in enumerate(found):  # what is left goes to names that would be cut
            more = min(left, self._missing(self._columns[at]))
            found[place] = (at, width + more)
            left -= more
        return found

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def heading(self) -> Strip:
        """The columns' names."""
        ink = self.ink("matrix--head")
        parts = [(pad("environment", self._env_width), ink)]
        for at, width in self._shown():
            name = self._columns[at].name
            parts.append(("  " + (name.rjust(width) if self._columns[at].anchor else self._named(name, width)), ink))
        return self._line(parts, self.ink("matrix--text"))

    def footing(self) -> Strip:
        """The columns' mean rank scores."""
        parts = [(pad("rank score", self._env_width), self.ink("matrix--head"))]
        for at, width in self._shown():
            score = self._columns[at].score
            text = f"{score:.3f}" if score is not None else "" if self._columns[at].anchor else "–"
            parts.append(("  " + self._named(text, width), self.ink("matrix--value")))
        return self._line(parts, self.ink("matrix--text"))

    @staticmethod
    def _named(text: str, width: int) -> str:
        """Above the figures: where they end, there the name ends, if it has room there."""
        text = cut(one_line(text), width)
        end = width - 4 if cell_len(text) <= width - 4 else width
        return " " * (end - cell_len(text)) + text + " " * (width - end)

    def _line(self, parts: Sequence[tuple[str, Style]], fill: Style, edge: str = " ") -> Strip:
        segments = [Segment(edge, fill + Style(color=self.ink("matrix--value").color))]
        segments += [Segment(text, style) for text, style in parts]
        return Strip(segments).adjust_cell_length(self.size.width, fill)

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        fill = self.ink("matrix--text")
        if row >= len(self._names):
            return Strip.blank(self.size.width, fill)
        here = row == self._row
        parts = [(pad(one_line(self._names[row]), self._env_width), self.ink("matrix--env"))]
        for at, width in self._shown():
            column = self._columns[at]
            chosen = here and at == self._column and not column.foreign
            ground = Style(bgcolor=self.ink("matrix--cursor").bgcolor) if chosen else Style()
            parts.append((" ", fill))
            parts.append((" ", fill + ground))
            parts += [(text, ink + ground) for text, ink in self._box(column, column.boxes[row], width)]
        return self._line(parts, fill, "▌" if here else " ")

    def _box(self, column: Column, box: Box, width: int) -> list[tuple[str, Style]]:
        """Texts of exactly ``width`` cells: glyph, count, bars, figure, rank."""
        if column.anchor:
            text = "–" if box.value is None else cut(number(box.value), width)
            return [(text.rjust(width), self.ink("matrix--faint"))]
        parts: list[tuple[str, Style]] = []
        if not column.foreign:
            glyph = GLYPHS.get(box.state, " ")
            parts.append((glyph, self.ink(f"matrix--{box.state}" if box.state in GLYPHS else "matrix--text")))
        if box.count:
            parts.append((" " + pad(box.count, 3), self.ink("matrix--faint")))
        rank = f"#{box.rank}" if box.rank is not None else ""
        figure = "–" * column.foreign if box.value is None else cut(number(box.value), 9)
        tail = [
            (figure, "faint" if box.faint or box.value is None else "value"),
            (f" {rank}".ljust(4), "first" if box.rank == 1 else "rank"),
        ]
        used = sum(cell_len(text) for text, _ in parts)
        room = width - used - 9 - 4
        bars = spark(box.means, room - 2) if room >= 6 and box.means else ""
        parts.append(((" " + bars).ljust(room) if room > 0 else "", self.ink("matrix--spark")))
        parts += [(text.rjust(9) if i == 0 else text, self.ink(f"matrix--{ink}")) for i, (text, ink) in enumerate(tail)]
        return parts

    # ── the mouse and the size ───────────────────────────────────────────────────────────────────────────────────

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.size.width, len(self._names))
        self.move_to(self._row, self._column)

    def on_click(self, event: events.Click) -> None:
        row, x = event.y + self.scroll_offset.y, event.x - 1 - self._env_width
        for at, width in self._shown():
            if row < len(self._names) and 0 <= x < width + 2 and not self._columns[at].foreign:
                again = (row, at) == self.selected
                self.move_to(row, at)
                if again:
                    self.post_message(self.Opened(self))
                return
            x -= width + 2
