"""Words about steering, the banner that waits for a person, and the line in which a message is written."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from evotui.protocol.budget import Rejected, parse_cases
from evotui.protocol.words import counted
from evotui.record.state import RunState
from evotui.ui.chrome import Part
from evotui.ui.select import plain_cases
from evotui.ui.widgets.paint import cut, one_line

DEAF = ("search", "human", "replay")
"""Agents that a message would never reach."""

SENDS = "⏎ sends, esc leaves"

WHAT_NEXT = "what next"
"""How the session begins the name of the place where it waits for a person once its agent has left early."""


def waits_for_what_next(state: RunState) -> bool:
    """Whether the agent ended with budget left and the run waits to be told who goes on."""
    return state.held.startswith(WHAT_NEXT) and not state.agent_live


def delivery(agent: str) -> str:
    """When a message reaches an agent of that kind."""
    if agent == "command":
        return "with the answer to its next submission"
    return "at once if it can be interrupted, else with its next turn"


def about_message(state: RunState, unheard: str = "") -> list[Part]:
    """What stands above a message that is being written. ``unheard``: why it cannot be sent now, if so."""
    if unheard:
        return [Part(f"! cannot be sent: {unheard}", "$text-warning", 90), Part("esc leaves", "$text-muted", 20)]
    known = [] if state.assisted else [Part("the run counts as assisted", "$text-warning", 80)]
    return [Part(f"reaches the agent {when(state)}", "$text-muted", 90), *known]


def when(state: RunState) -> str:
    """When a message that is written now reaches the agent of a run."""
    return delivery(state.agent) if state.agent_live else "as soon as it goes on"


def request_words(state: RunState) -> tuple[str, str]:
    """The submission that waits for approval, as far as it can be read: (its cases, what they cost)."""
    asked = one_line(state.asked or "")
    try:
        count = len(parse_cases(asked.strip("[]"), state.header.n_train))
    except Rejected:
        return f"cases {cut(asked, 24)!r}", "which cannot be"
    return f"cases {cut(plain_cases(asked), 24)}", f"{count} of the {counted(state.budget.remaining, 'episode')} left"


def banner(state: RunState, astray: bool = False) -> list[Part]:
    """What waits for a person in this run; empty where nothing does. ``astray``: another diff than its own is shown."""
    mark = Part("‖", "bold $text-warning", 99)
    if state.asked is not None:
        cases, cost = request_words(state)
        return [
            mark,
            Part(f"submit {cases}?", "bold $text-warning", 93),
            Part(cost, "$text-warning", 60),
            Part("a", "bold $accent", 95),
            Part("answers", "", 95),
            Part("· f shows what it changed" if astray else "· its diff stands in pane 1", "$text-muted", 10),
        ]
    if waits_for_what_next(state):
        left = state.budget.remaining
        return [
            mark,
            Part("the agent has left", "bold $text-warning", 93),
            Part(f"with {left} episode{'s' * (left != 1)} to spend", "$text-warning", 60),
            Part("w", "bold $accent", 95),
            Part("what next", "", 95),
        ]
    return []


class MessageLine(Input):
    """A message to the agent. Says :class:`Sent`, or :class:`Left` when it is to go."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "back", show=False),
        Binding("tab,shift+tab,up,down,pageup,pagedown", "nothing", "", show=False),
    ]

    class Sent(Message):
        """Enter was pressed on a text."""

        def __init__(self, line: MessageLine, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

        @property
        def control(self) -> MessageLine:
            return self.line

    class Left(Message):
        """The line is to go; what stands in it stays for the next time."""

    def __init__(self) -> None:
        super().__init__(placeholder=SENDS, id="message-line", compact=True, select_on_focus=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text, self.value = event.value.strip(), ""
        self.post_message(self.Left())
        if text:
            self.post_message(self.Sent(self, text))

    def on_blur(self, event: events.Blur) -> None:
        self.post_message(self.Left())

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def action_nothing(self) -> None:
        """Keys of the screen below do nothing here."""
