"""`EvidenceRows`: what stood behind one submission, a few lines beside its diff."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from evotui.ui.widgets.entries import wrap
from evotui.ui.widgets.paint import InkedWidget, cut, harmless, one_line

Row = tuple[str, str]
"""(label, text)."""
_LABEL = 8


class EvidenceRows(InkedWidget):
    """Each row one line, but for the ones that are said: those wrap into the room that is left."""

    DEFAULT_CSS = """
    EvidenceRows {
        width: 1fr; height: 7; border-top: dashed $rule;
        & > .evidence--label { color: $text-muted; }
        & > .evidence--text { color: $foreground; }
        & > .evidence--said { color: $text-primary; text-style: italic; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"evidence--label", "evidence--text", "evidence--said"}
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[Row, ...] = ()

    def show(self, rows: tuple[Row, ...]) -> None:
        """Draw new rows; the same ones cost nothing."""
        if rows != self._rows:
            self._rows = rows
            self.refresh()

    @property
    def text(self) -> str:
        """The rows as text, to be copied."""
        return "\n".join(f"{label:<{_LABEL}}{text}" for label, text in self._rows)

    def render_lines_of(self, width: int, height: int) -> list[Strip]:
        spare = max(0, height - len(self._rows))
        label, plain, said = (self.ink(f"evidence--{name}") for name in ("label", "text", "said"))
        strips: list[Strip] = []
        for name, text in self._rows:
            ink = said if name == "said" else plain
            room = max(4, width - _LABEL)
            lines, _ = wrap(one_line(harmless(text)), room, 1 + (spare if name == "said" else 0))
            if name == "said":
                spare -= len(lines) - 1
            elif cell_len(one_line(text)) > room:
                lines = [cut(one_line(text), room)]
            for at, line in enumerate(lines or [""]):
                head = Segment(f"{name if at == 0 else '':<{_LABEL}}", label)
                strips.append(Strip([head, Segment(cut(line, room), ink)]).adjust_cell_length(width, plain))
        return strips

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        strips = self.render_lines_of(width, height)
        return strips[y] if y < len(strips) else Strip.blank(width, self.ink("evidence--text"))
