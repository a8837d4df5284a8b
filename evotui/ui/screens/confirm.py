"""A question with a safe answer: nothing that costs happens by a stray key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
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
        Binding("escape,q", "answer('')", "no", show=False),
        Binding("ctrl+c", "again", "again", show=False),
        Binding("left,up,shift+tab", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    HELD: ClassVar[float] = 0.5
    """Seconds in which ctrl+c counts as the one that asked: a key that is held down answers nothing."""

    def __init__(
        self, question: str, detail: str, choices: Sequence[Choice], safe: str = "", again: str = ""
    ) -> None:  # fmt: skip
        """``again`` is the choice that ctrl+c gives once the question has stood for a moment; else the safe one."""
        super().__init__()
        self._again = again
        self._asked_at = monotonic()
        self._safe = safe or choices[0].id
        self._question = question
        self._detail = detail
        self._choices = tuple(choices)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -narrow"):
            yield Static(Content(self._question).stylize("bold"), classes="dialog-title")
            yield Static(Content(self._detail), classes="dialog-text")
            with Horizontal(classes="dialog-buttons -stacked" if len(self._choices) > 3 else "dialog-buttons"):
                for choice in self._choices:
                    label = Content.assemble((choice.key, "bold underline"), " ", choice.label)
                    yield Button(
                        label, id=f"choice-{choice.id}", classes="-grave" if choice.grave else "", compact=True
                    )

    def on_mount(self) -> None:
        self._asked_at = monotonic()
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

    def action_again(self) -> None:
        if not self._again:
            self.action_answer("")
        elif monotonic() - self._asked_at >= self.HELD:
            self.dismiss(self._again)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.action_answer("")
