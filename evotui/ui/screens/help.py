"""Every key of the screen below, from the one list of commands; what can do nothing now is dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from evotui.ui.commands import Command, Situation, groups


def page(group: str, commands: Sequence[Command], situation: Situation, width: int = 11) -> Content:
    """One group: its name, then a line for each command."""
    lines: list[Content] = [Content(group).stylize("bold $text-primary")]
    for command in commands:
        able = not command.why_not(situation)
        key = Content(f"{command.key_text:>{width}}").stylize("bold $text-accent" if able else "$text-disabled")
        words = Content(command.help).stylize("" if able else "$text-disabled")
        lines.append(Content.assemble(key, "  ", words))
    return Content("\n").join(lines)


def balanced(found: dict[str, list[Command]]) -> tuple[list[str], list[str]]:
    """Group names in two columns of about equal height, in their order."""
    total = sum(len(commands) + 2 for commands in found.values())
    left: list[str] = []
    height = 0
    for name, commands in found.items():
        if left and height + (len(commands) + 2) / 2 > total / 2:
            break
        left.append(name)
        height += len(commands) + 2
    return left, [name for name in found if name not in left]


class HelpScreen(ModalScreen[None]):
    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = "#help-scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "close", "close", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("ctrl+d", "scroll(10)", show=False),
        Binding("ctrl+u", "scroll(-10)", show=False),
        Binding("g", "edge(False)", show=False),
        Binding("G", "edge(True)", show=False),
    ]

    def __init__(self, commands: Sequence[Command], situation: Situation) -> None:
        super().__init__()
        self._commands = commands
        self._situation = situation

    def compose(self) -> ComposeResult:
        found = groups(self._commands)
        with Vertical(classes="dialog -wide"):
            yield Static(Content("Keys").stylize("bold"), classes="dialog-title")
            with VerticalScroll(id="help-scroll"), Horizontal(id="help-columns"):
                for column in balanced(found):
                    with Vertical(classes="help-column"):
                        for name in column:
                            yield Static(page(name, found[name], self._situation), classes="help-group")
            yield Static(
                Content("esc closes · dimmed keys can do nothing just now · every action is in the palette, ^p"),
                classes="dialog-foot",
            )

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#help-scroll").scroll_relative(y=lines, animate=False)

    def action_edge(self, end: bool) -> None:
        scroll = self.query_one("#help-scroll")
        scroll.scroll_to(y=scroll.max_scroll_y if end else 0, animate=False)
