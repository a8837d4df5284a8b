"""`CasePicker`: the train cases that were rolled out so far, with their latest returns, to be chosen by cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from evotui.ui.widgets.paint import InkedWidget, cut
from evotui.ui.words import number

_CELL = 14


class CasePicker(InkedWidget, can_focus=True):
    """A grid of cells ``● 12 · 213``; space or a click chooses one, w the worst half, a all or none."""

    DEFAULT_CSS = """
    CasePicker {
        width: 1fr; height: 4;
        & > .picker--cell { color: $foreground; }
        & > .picker--return { color: $text-muted; }
        & > .picker--chosen { color: $text-success; text-style: bold; }
        & > .picker--cursor { color: $block-cursor-foreground; background: $block-cursor-background; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"picker--{name}" for name in ("cell", "return", "chosen", "cursor")}
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", show=False),
        Binding("right,l", "move(1)", show=False),
        Binding("up,k", "row(-1)", show=False),
        Binding("down,j", "row(1)", show=False),
        Binding("space", "pick", show=False),
        Binding("w", "worst", show=False),
        Binding("a", "all", show=False),
    ]

    class Picked(Message):
        """The chosen cases are others now."""

        def __init__(self, picker: CasePicker, cases: tuple[int, ...]) -> None:
            super().__init__()
            self.picker = picker
            self.cases = cases

        @property
        def control(self) -> CasePicker:
            return self.picker

    def __init__(self, seen: Sequence[tuple[int, float | None]], *, id: str | None = None) -> None:
        """``seen`` are cases with their latest returns (None: the episode ended in a fault)."""
        super().__init__(id=id)
        self._seen = tuple(seen)
        self._chosen: set[int] = set()
        self._at = 0

    def choose(self, cases: Collection[int]) -> None:
        """Mark these as chosen; those that were never seen have no cell."""
        chosen = set(cases) & {case for case, _ in self._seen}
        if chosen != self._chosen:
            self._chosen = chosen
            self.refresh()

    @property
    def _columns(self) -> int:
        return max(1, self.size.width // _CELL)

    def _top(self) -> int:
        """The first row in view, so that the cursor is in it."""
        rows = -(-len(self._seen) // self._columns)
        return max(0, min(self._at // self._columns - self.size.height // 2, rows - self.size.height))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row = self._top() + y
        segments: list[Segment] = []
        for at in range(row * self._columns, min((row + 1) * self._columns, len(self._seen))):
            case, value = self._seen[at]
            here = at == self._at and self.has_focus
            chosen = case in self._chosen
            head = f"{'●' if chosen else '○'} {case}"
            tail = cut(f" · {number(value) if value is not None else 'fault'}", _CELL - 1 - len(head))
            ink = self.ink("picker--cursor" if here else "picker--chosen" if chosen else "picker--cell")
            segments += [Segment(head, ink), Segment(tail, ink if here else self.ink("picker--return"))]
            segments.append(Segment(" " * (_CELL - len(head) - len(tail)), self.ink("picker--cell")))
        return Strip(segments).adjust_cell_length(width, self.ink("picker--cell"))

    def action_move(self, by: int) -> None:
        self._at = min(max(self._at + by, 0), len(self._seen) - 1)
        self.refresh()

    def action_row(self, by: int) -> None:
        self.action_move(by * self._columns)

    def action_pick(self) -> None:
        self._told(self._chosen ^ {self._seen[self._at][0]})

    def action_worst(self) -> None:
        """Choose the half with the least returns, faults first."""
        order = sorted(self._seen, key=lambda item: (item[1] is not None, item[1] or 0.0))
        self._told({case for case, _ in order[: -(-len(order) // 2)]})

    def action_all(self) -> None:
        every = {case for case, _ in self._seen}
        self._told(set() if self._chosen == every else every)

    def _told(self, chosen: set[int]) -> None:
        self._chosen = chosen
        self.refresh()
        self.post_message(self.Picked(self, tuple(sorted(chosen))))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        column = event.x // _CELL
        at = (self._top() + event.y) * self._columns + column
        if column < self._columns and at < len(self._seen):
            self._at = at
            self.action_pick()
