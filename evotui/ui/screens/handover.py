"""Hand a run over: who goes on from here, told beside the fields what that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Select, Static

from evotui.ui.agentfields import AgentFields, Who, wrong
from evotui.ui.feed import Launcher

Give = Callable[[str, Mapping[str, str], tuple[str, ...]], Awaitable[None]]
"""Hands over to an agent with options and a program's words; its exceptions are read beside the fields."""


class HandOverScreen(ModalScreen[str]):
    """Answers with the agent that was handed over to; "" where nothing was."""

    CSS_PATH: ClassVar = ["dialog.tcss", "newrun.tcss"]
    AUTO_FOCUS = "#agent"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("ctrl+c", "cancel", "cancel", show=False, priority=True),
        Binding("ctrl+s", "give", "hand over", show=False),
    ]

    def __init__(self, launcher: Launcher, give: Give, now: str, left: int, start: Who | None = None) -> None:
        super().__init__()
        self._launcher = launcher
        self._give = give
        self._now = now
        self._left = left
        self._busy = False
        self._refused = ""
        self.fields = AgentFields(start or Who("human"))

    def compose(self) -> ComposeResult:
        stops = f"{self._now} stops; a submission under way ends first. " if self._now else ""
        with Vertical(classes="dialog -narrow", id="hand-over"):
            yield Static(Content("Hand over").stylize("bold"), classes="dialog-title")
            yield Static(
                Content(f"{stops}Whoever goes on has {self._left} episode{'s' * (self._left != 1)}, and the run counts "
                        "as assisted."),
                classes="dialog-text",
            )  # fmt: skip
            with VerticalScroll(id="hand-over-fields", can_focus=False):
                yield self.fields
            yield Static(id="preflight")
            with Horizontal(classes="dialog-buttons"):
                yield Button(Content.assemble(("^s", "bold"), " Hand over"), id="start", compact=True)
                yield Button(Content.assemble(("esc", "bold"), " Cancel"), id="cancel", compact=True)

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="agents")
        self._judge()

    async def _load(self) -> None:
        self.fields.know(await asyncio.to_thread(self._launcher.agents))
        self._judge()

    def _judge(self) -> bool:
        choice = self.fields.choice
        found = wrong(self.fields.who, choice)
        self.fields.mark(found)
        line = self.query_one("#preflight", Static)
        if self._refused:
            line.update(Content(f"✗ {self._refused}").stylize("$text-error"))
        elif found:
            name, sentence = next(iter(found.items()))
            line.update(Content(f"✗ {name.replace('_', ' ')}: {sentence}").stylize("$text-error"))
        else:
            line.update(Content(choice.about if choice is not None else "").stylize("$text-muted"))
        self.query_one("#start", Button).disabled = bool(found) or self._busy
        return not found

    def on_input_changed(self, event: Input.Changed) -> None:
        self._refused = ""
        self._judge()

    def on_select_changed(self, event: Select.Changed) -> None:
        self._refused = ""
        self.fields.fit()
        self._judge()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_give()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "start":
            self.action_give()
        else:
            self.action_cancel()

    def action_give(self) -> None:
        if not self._busy and self._judge():
            self._busy = True
            self.run_worker(self._hand(self.fields.who), group="give")

    async def _hand(self, who: Who) -> None:
        try:
            await self._give(who.agent, who.options, who.words)
        except Exception as error:  # told beside the fields: what the controls raise is a sentence for a person
            self._refused, self._busy = str(error), False
            self._judge()
        else:
            self.dismiss(who.agent)

    def action_cancel(self) -> None:
        if not self._busy:
            self.dismiss("")

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < 24 or event.size.width < 60, "-short")
