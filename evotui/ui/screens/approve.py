"""A submission waits: approve it, or refuse it and say why. It leaves the diff above it in sight."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class ApproveScreen(ModalScreen[tuple[bool, str] | None]):
    """Answers with (approved, what the agent is told), or None: it goes on waiting."""

    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,a", "approve", "approve", show=False),
        Binding("n", "refuse", "refuse", show=False),
        Binding("escape", "back", "back", show=False),
        Binding("ctrl+c", "back", "back", show=False, priority=True),
    ]

    def __init__(self, cases: str, cost: str) -> None:
        super().__init__()
        self._request = f"{cases} ({cost})"

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="approve"):
            yield Static(Content(f"May the agent submit {self._request}?").stylize("bold"), id="approve-question")
            yield Input(placeholder="what should it do instead? ⏎ refuses, with or without a reason", id="reason")
            keys = Content.assemble(
                ("y", "bold underline"), " approve   ", ("n", "bold underline"), " refuse, and say why   ",
                ("esc", "bold underline"), " later",
            )  # fmt: skip
            yield Static(keys, id="approve-keys")

    def on_mount(self) -> None:
        self.query_one("#reason").display = False

    @property
    def _refusing(self) -> bool:
        return bool(self.query_one("#reason").display)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters of a reason answer nothing."""
        return not (self._refusing and action in ("approve", "refuse"))

    def action_approve(self) -> None:
        self.dismiss((True, ""))

    def action_refuse(self) -> None:
        reason = self.query_one("#reason", Input)
        reason.display = True
        self.query_one("#approve-keys", Static).update(
            Content.assemble(
                ("⏎", "bold underline"), " refuse, it costs nothing   ", ("esc", "bold underline"), " back"
            )
        )
        reason.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss((False, event.value.strip()))

    def action_back(self) -> None:
        self.dismiss(None)
