"""A question with a safe answer: nothing that costs happens by a stray key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: the key that gives it, its words, and whether it cannot be taken back."""

    id: str
    key: str
    label: str
    grave: bool = False


class Confirm(ModalScreen[str]):
    """Answers with a choice's id; ``escape`` and a click outside give the ``safe`` one, the first unless named."""

    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "answer('')", "no", show=False),
        Binding("left,shift+tab,h", "app.focus_previous", show=False),
        Binding("right,l", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, detail: str, choices: Sequence[Choice], safe: str = "") -> None:
        super().__init__()
        self._safe = safe or choices[0].id
        self._question = question
        self._detail = detail
        self._choices = tuple(choices)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -narrow"):
            yield Static(Content(self._question).stylize("bold"), classes="dialog-title")
            yield Static(Content(self._detail), classes="dialog-text")
            with Horizontal(classes="dialog-buttons"):
                for choice in self._choices:
                    label = Content.assemble((choice.key, "bold underline"), " ", choice.label)
                    yield Button(
                        label, id=f"choice-{choice.id}", classes="-grave" if choice.grave else "", compact=True
                    )

    def on_mount(self) -> None:
        self.query(Button).first().focus()

    def on_key(self, event: events.Key) -> None:
        for choice in self._choices:
            if event.key == choice.key:
                event.stop()
                self.dismiss(choice.id)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss((event.button.id or "").removeprefix("choice-"))

    def action_answer(self, id: str) -> None:
        self.dismiss(id or self._safe)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.action_answer("")
