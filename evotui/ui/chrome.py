"""What stands around the panes: one-line texts that fit themselves, the key bar, the tab line.

Everything here redraws without a layout: a line keeps its size and only refreshes itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from evotui.ui.commands import Command


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line. ``style`` is a Textual style such as "bold $accent"; the least ``keep`` is left out first."""

    text: str
    style: str = ""
    keep: int = 5


def fit(left: Sequence[Part], right: Sequence[Part], width: int, gap: str = "  ") -> Content:
    """Parts on the left and on the right of ``width`` cells; the least kept are dropped until the rest fits."""
    parts = [(p, True) for p in left if p.text] + [(p, False) for p in right if p.text]

    def needed() -> int:
        return sum(cell_len(p.text) for p, _ in parts) + len(gap) * max(0, len(parts) - 1)

    while len(parts) > 1 and needed() > width:
        least = min(p.keep for p, _ in parts)
        last = max(i for i, (p, _) in enumerate(parts) if p.keep == least)
        del parts[last]
    sides = []
    for side in (True, False):
        texts: list[Content | str | tuple[str, str]] = []
        for part, is_left in parts:
            if is_left is side:
                texts += ([gap] if texts else []) + [(part.text, part.style)]
        sides.append(Content.assemble(*texts))
    space = width - sides[0].cell_length - sides[1].cell_length
    line = Content.assemble(sides[0], " " * max(0, space), sides[1])
    return line.truncate(width, ellipsis=True) if line.cell_length > width else line


class Line(Widget):
    """One line of text that never relayouts."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._left: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    def show(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        """Draw new parts; the same parts cost nothing."""
        new = (tuple(left), tuple(right))
        if new != (self._left, self._right):
            self._left, self._right = new
            self.refresh()

    @property
    def text(self) -> str:
        """What stands there, whatever the width."""
        return "  ".join(p.text for p in (*self._left, *self._right))

    def render(self) -> Content:
        return fit(self._left, self._right, self.content_size.width)


class KeyBar(Line):
    """The keys that do something now, or for a few seconds what was just said."""

    SECONDS: ClassVar[float] = 5.0

    class Picked(Message):
        """The user clicked at a key."""

        def __init__(self, bar: KeyBar, command: str) -> None:
            super().__init__()
            self.bar = bar
            self.command = command

        @property
        def control(self) -> KeyBar:
            return self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._commands: tuple[Command, ...] = ()
        self._said = ""
        self._tone = ""
        self._timer: Timer | None = None
        self._spots: list[tuple[int, int, str]] = []

    @property
    def said(self) -> str:
        return self._said

    def commands(self, commands: Sequence[Command]) -> None:
        if tuple(commands) != self._commands:
            self._commands = tuple(commands)
            self.refresh()

    def say(self, text: str, tone: str = "") -> None:
        """Say one sentence in place of the keys for a few seconds. ``tone`` is "", "warning" or "error"."""
        if self._timer is not None:
            self._timer.stop()
        self._said, self._tone = " ".join(text.split()), tone
        self._timer = self.set_timer(self.SECONDS, self._hush)
        self.refresh()

    def _hush(self) -> None:
        self._said, self._timer = "", None
        self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        self._spots = []
        if self._said:
            glyph = {"error": "✗ ", "warning": "! "}.get(self._tone, "› ")
            ink = {"error": "$text-error", "warning": "$text-warning"}.get(self._tone, "$accent")
            return fit([Part(f"{glyph}{self._said}", f"bold {ink}")], [], width)
        chosen: list[Command] = []
        used = 0
        for command in self._commands:
            need = cell_len(command.key_short) + 1 + cell_len(command.label) + (2 if chosen else 0)
            if used + need > width:
                break
            chosen.append(command)
            used += need
        # What belongs to the application (palette, help, leave) stands at the right end, where the eye looks for it.
        own = [c for c in chosen if c.group != "Application"]
        order = own + sorted((c for c in chosen if c.group == "Application"), key=lambda c: -c.bar)
        pieces: list[str | tuple[str, str]] = []
        at = 0
        for command in order:
            if pieces:
                pieces.append("  ")
                at += 2
            key = command.key_short
            length = cell_len(key) + 1 + cell_len(command.label)
            self._spots.append((at, at + length, command.id))
            pieces += [(key, "bold $accent"), " ", (command.label, "$text-muted")]
            at += length
        return Content.assemble(*pieces)

    def on_click(self, event: events.Click) -> None:
        for start, end, command in self._spots:
            if start <= event.x - self.styles.padding.left < end:
                self.post_message(self.Picked(self, command))


class TabLine(Line):
    """Names of the panes where only one fits on the screen."""

    class Picked(Message):
        """The user clicked at a name; ``index`` counts from 0."""

        def __init__(self, line: TabLine, index: int) -> None:
            super().__init__()
            self.line = line
            self.index = index

        @property
        def control(self) -> TabLine:
            return self.line

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._current = 0
        self._spots: list[tuple[int, int]] = []

    def choose(self, index: int) -> None:
        if index != self._current:
            self._current = index
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        names = self._names
        if sum(cell_len(n) + 5 for n in names) > width:
            names = tuple(n if i == self._current else n[:3] for i, n in enumerate(names))
        if sum(cell_len(n) + 5 for n in names) > width:
            names = tuple(n if i == self._current else "" for i, n in enumerate(names))
        pieces: list[str | tuple[str, str]] = []
        self._spots = []
        at = 0
        for i, name in enumerate(names):
            here = i == self._current
            text = f" {i + 1} {name} " if name else f" {i + 1} "
            pieces.append(
                (text, "bold $block-cursor-foreground on $block-cursor-background" if here else "$text-muted")
            )
            self._spots.append((at, at + cell_len(text)))
            at += cell_len(text)
        line = Content.assemble(*pieces)
        return line.truncate(width, ellipsis=True) if line.cell_length > width else line

    def on_click(self, event: events.Click) -> None:
        for i, (start, end) in enumerate(self._spots):
            if start <= event.x - self.styles.padding.left < end:
                self.post_message(self.Picked(self, i))
