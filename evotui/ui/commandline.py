"""The one-line input behind ``:``: every action by its id or its label, completed while it is typed."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input

from evotui.ui.commands import Command


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").replace("-", " ").split())


def names(commands: Sequence[Command]) -> list[str]:
    """What can be typed, in the order in which it is suggested: labels, then ids that read differently."""
    labels = [command.label for command in commands]
    return labels + [command.id for command in commands if _plain(command.id) not in map(_plain, labels)]


def match(commands: Sequence[Command], text: str) -> tuple[Command | None, str]:
    """The command that ``text`` means, or why none: its label or id, the only one that begins so, or its key."""
    wanted = _plain(text)
    for name in ("id", "label"):
        exact = [c for c in commands if _plain(getattr(c, name)) == wanted]
        if exact:
            return exact[0], ""
    begun = [c for c in commands if _plain(c.label).startswith(wanted) or _plain(c.id).startswith(wanted)]
    if len(begun) == 1:
        return begun[0], ""
    by_key = [c for c in commands if text.strip() in c.key_text.split()]
    if by_key:
        return by_key[0], ""
    if begun:
        return None, f"{text.strip()} can be {', '.join(c.label for c in begun[:6])}{' …' * (len(begun) > 6)}"
    near = get_close_matches(wanted, [_plain(name) for name in names(commands)], 3, 0.5)
    return None, f"there is no action {text.strip()!r}" + (f"; near: {', '.join(near)}" if near else "")


class CommandLine(Input):
    """Says :class:`Entered` for what was typed, or :class:`Left`; it shows itself only while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "cursor_right", "complete", show=False),
        Binding("escape,ctrl+c", "leave", "back", show=False),
        Binding("up", "recall", "the line before", show=False),
        Binding("down,shift+tab,pageup,pagedown", "nothing", "", show=False),
    ]

    class Entered(Message):
        """A line was entered."""

        def __init__(self, line: CommandLine, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

        @property
        def control(self) -> CommandLine:
            return self.line

    class Left(Message):
        """The line is to go."""

    def __init__(self, commands: Sequence[Command]) -> None:
        suggester = SuggestFromList(names(commands), case_sensitive=False)
        super().__init__(placeholder="action: tab completes", suggester=suggester, id="command-line", compact=True)
        self._before = ""

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text, self.value = event.value, ""
        self.post_message(self.Left())
        if text.strip():
            self._before = text
            self.post_message(self.Entered(self, text))

    def on_blur(self, event: events.Blur) -> None:
        self.post_message(self.Left())

    def action_leave(self) -> None:
        self.value = ""
        self.post_message(self.Left())

    def action_recall(self) -> None:
        if self._before:
            self.value = self._before
            self.cursor_position = len(self.value)

    def action_nothing(self) -> None:
        """Keys of the screen below do nothing here."""
