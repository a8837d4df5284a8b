"""Every key of the screen below, from the one list of commands; what can do nothing now is dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from evotui.ui.commands import Command, Situation, groups

_KEYS = 9


def page(group: str, commands: Sequence[Command], situation: Situation, width: int) -> Content:
    """One group within ``width`` cells: its name, then keys and words, wrapped beside the keys."""
    lines: list[Content] = [Content(group).stylize("bold $text-primary")]
    for command in commands:
        able = not command.why_not(situation)
        keys = f"{command.key_text:>{_KEYS}}"
        for words in wrap(command.help, max(10, width - _KEYS - 2)):
            line = Content.assemble((keys, "bold $text-accent" if able else "$text-disabled"), "  ",
                                    (words, "" if able else "$text-disabled"))  # fmt: skip
            lines.append(line)
            keys = " " * _KEYS
    return Content("\n").join(lines)


def balanced(found: dict[str, list[Command]], count: int) -> list[list[str]]:
    """Group names in ``count`` columns of about equal height, in their order."""
    heights = {name: len(commands) + 2 for name, commands in found.items()}
    columns: list[list[str]] = [[]]
    done = 0
    for name, height in heights.items():
        share = sum(heights.values()) * len(columns) / count
        if columns[-1] and len(columns) < count and done + height / 2 > share:
            columns.append([])
        columns[-1].append(name)
        done += height
    return columns


class HelpScreen(ModalScreen[None]):
    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = "#help-scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter,ctrl+c", "close", "close", show=False),
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
        self._width = 0

    def compose(self) -> ComposeResult:
        found = groups(self._commands)
        inner = min(174, self.app.size.width) - 8
        columns = balanced(found, min(max(1, inner // 44), 3))  # narrower ones could not be read
        if len(columns) < 3:
            inner = min(inner, 108)
        width = inner // len(columns) - 2
        with Vertical(classes="dialog -wide" + " -widest" * (len(columns) > 2)):
            yield Static(Content("Keys").stylize("bold"), classes="dialog-title")
            with VerticalScroll(id="help-scroll"), Horizontal(id="help-columns"):
                for column in columns:
                    with Vertical(classes="help-column"):
                        for name in column:
                            yield Static(page(name, found[name], self._situation, width), classes="help-group")
            foot = "esc closes · dimmed: not possible just now · all are in the palette, ^p"
            yield Static(Content(foot), classes="dialog-foot")

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            first, self._width = self._width == 0, event.size.width
            if not first:
                self.refresh(recompose=True)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#help-scroll").scroll_relative(y=lines, animate=False)

    def action_edge(self, end: bool) -> None:
        scroll = self.query_one("#help-scroll")
        scroll.scroll_to(y=scroll.max_scroll_y if end else 0, animate=False)
