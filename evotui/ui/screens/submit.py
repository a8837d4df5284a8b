"""Submit the workspace yourself: which cases, and what that costs, said while you type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from evotui.protocol.budget import Budget, Rejected, format_cases, parse_cases
from evotui.ui.widgets.casepicker import CasePicker


def judge(text: str, n_train: int, budget: Budget) -> tuple[str, str]:
    """(problem, sentence) about a request: problem is empty where it can be submitted, the sentence says its cost."""
    if not text.strip():
        return "write case ids, such as 0-3,7", ""
    try:
        cases = parse_cases(text, n_train, limit=10_000)
        budget.check(cases)
    except Rejected as refused:
        return refused.message, ""
    n = len(cases)
    left = budget.remaining - n
    repeats = n - len(set(cases))
    words = f"costs {n} episode{'s' * (n != 1)}; {left} of {budget.total} would remain"
    return "", words + (f"; {repeats} repeated" if repeats else "")


def suggestion(last: tuple[int, ...], n_train: int, budget: Budget) -> str:
    """The cases of the last submission as far as the budget goes, else the first few."""
    most = min(budget.remaining, budget.max_submit)
    cases = (last or tuple(range(min(8, n_train))))[:most]
    return format_cases(cases)


class SubmitScreen(ModalScreen[str]):
    """Answers with the text of the cases; "" where nothing shall be submitted."""

    CSS_PATH = "dialog.tcss"
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("ctrl+c", "cancel", "cancel", show=False, priority=True),
    ]

    def __init__(
        self, n_train: int, budget: Budget, last: tuple[int, ...] = (), seen: Sequence[tuple[int, float | None]] = ()
    ) -> None:
        """``seen`` are the cases rolled out so far with their latest returns: they can be chosen by cell."""
        super().__init__()
        self._seen = tuple(seen)
        self._n_train = n_train
        self._budget = budget
        self._start = suggestion(last, n_train, budget)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -narrow"):
            yield Static(Content("Submit the workspace").stylize("bold"), classes="dialog-title")
            yield Static(
                Content(f"Train cases 0 to {self._n_train - 1}; ranges such as 0-3,7; a repeat costs again. "
                        "The run counts as assisted from here on."),
                classes="dialog-text",
            )  # fmt: skip
            yield Input(self._start, placeholder="0-3,7", id="cases", select_on_focus=False)
            if self._seen:
                yield CasePicker(self._seen, id="picker")
            yield Static(id="judgement")
            keys = "⏎ submit · esc cancel" + (
                " · tab to the cases: space chooses, w the worst, a all" * bool(self._seen)
            )
            yield Static(Content(keys).stylize("$text-muted"), classes="dialog-foot")

    def on_mount(self) -> None:
        self._judge(self._start)

    def _judge(self, text: str) -> bool:
        problem, sentence = judge(text, self._n_train, self._budget)
        line = f"✗ {problem}" if problem else f"✓ {sentence}"
        judgement = self.query_one("#judgement", Static)
        judgement.update(Content(line).stylize("$text-error" if problem else "$text-success"))
        self.query_one("#cases").set_class(bool(problem), "-invalid")
        if self._seen:
            try:
                self.query_one(CasePicker).choose(parse_cases(text, self._n_train, limit=10_000))
            except Rejected:
                self.query_one(CasePicker).choose(())
        return not problem

    def on_input_changed(self, event: Input.Changed) -> None:
        self._judge(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._judge(event.value):
            self.dismiss(event.value)

    def on_case_picker_picked(self, message: CasePicker.Picked) -> None:
        message.stop()
        self.query_one("#cases", Input).value = format_cases(message.cases) if message.cases else ""

    def on_key(self, event: events.Key) -> None:
        if event.key == "enter" and isinstance(self.focused, CasePicker):
            text = self.query_one("#cases", Input).value
            if self._judge(text):
                self.dismiss(text)

    def action_cancel(self) -> None:
        self.dismiss("")
