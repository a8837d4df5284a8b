"""The frame of a pane: its title in the upper edge, a note in the lower one, and what keys do in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.containers import Vertical
from textual.content import Content

from evotui.ui.chrome import Part, fit
from evotui.ui.panes.picture import Picture


class Pane(Vertical, can_focus=True, can_focus_children=False):
    """A framed part of the run screen: a title in its upper edge, a note in its lower one."""

    number: ClassVar[int] = 0
    label: ClassVar[str] = ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._named = True
        self._title: tuple[tuple[Part, ...], tuple[Part, ...]] | None = None
        self.titled("", ())

    def titled(self, note: str, parts: Sequence[Part]) -> None:
        """Set the title's parts after the pane's name, and the note. The same title costs nothing."""
        new = (tuple(parts), (Part(note),))
        if new == self._title:
            return
        self._title = new
        self._retitle()

    def named(self, named: bool) -> None:
        """Whether the title begins with the pane's own name; not below tabs, which say it already."""
        if named != self._named:
            self._named = named
            self._retitle()

    def _retitle(self) -> None:
        if self._title is None:
            return
        parts, (note,) = self._title
        head = Part(f"{self.number} {self.label}", "bold", 99)
        edges = 6 if self.styles.border_left[0] else 4
        room = (self.outer_size.width or 200) - edges
        title = fit([head, *parts] if self._named else parts, [], room).rstrip() if room > 0 else Content("")
        # Without side edges Textual leaves no air around a title.
        self.border_title = title if edges == 6 or not title else Content.assemble(title, " ")
        self.border_subtitle = Content(note.text).stylize("$text-muted") if note.text else None

    def on_resize(self) -> None:
        self._retitle()

    def draw(self, picture: Picture) -> None:
        """Draw what of a picture is new."""

    # What keys do in a pane; the screen calls the focused pane's.

    def scroll_lines(self, lines: int) -> None:
        """Move by lines (negative: up)."""

    def scroll_pages(self, pages: float) -> None:
        """Move by pages (0.5: half a page down)."""

    def scroll_edge(self, end: bool) -> None:
        """Go to the top or to the end."""

    def plain(self) -> str:
        """The pane's content as text, to be copied."""
        return ""
