"""The fields that say who tries: an agent, and what it can be told, each shown only where it means something."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Label, Select

from evotui.ui.feed import AgentChoice

FIELDS = {
    "model": ("model", "such as anthropic/… or openai/…"),
    "api_base": ("api base", "an OpenAI-compatible server"),
    "env_file": ("env file", "a file of KEY=value lines"),
    "max_cost": ("max cost", "dollars; empty: no limit"),
    "max_turns": ("max turns", "empty: the agent's own"),
    "max_wall": ("max wall", "90s, 30m, 2h"),
    "price": ("price", "dollars a million tokens in,out: 3,15"),
    "source": ("re-enacts", "a recorded run"),
    "program": ("program", "PROGRAM ARGS…"),
}
"""Options that have a field: label and placeholder. The others go by ``--option`` on the command line."""


@dataclass(frozen=True, slots=True)
class Who:
    """What stands in the fields: an agent, its options as typed, a program's words as typed."""

    agent: str = "search"
    options: Mapping[str, str] = field(default_factory=dict)
    program: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The program's words. Raises ValueError where quotes do not match."""
        return tuple(shlex.split(self.program))


def wrong(who: Who, choice: AgentChoice | None) -> dict[str, str]:
    """What is wrong, by field."""
    if choice is None:
        return {"agent": f"there is no agent {who.agent!r}"}
    if choice.why_not:
        return {"agent": choice.why_not}
    found = {name: "this agent needs it" for name in choice.needs if name != "program" and not who.options.get(name)}
    if "program" in choice.needs:
        try:
            if not who.words:
                found["program"] = "which program? Such as python agent.py"
        except ValueError as error:
            found["program"] = str(error).lower()
    return found


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options of a run's record as they are typed; a program's words are not among them."""
    found = {}
    for name, value in options.items():
        if name == "program" or isinstance(value, bool):
            continue
        if isinstance(value, (list, tuple)):
            found[name] = ",".join(map(str, value))
        else:
            found[name] = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return found


def program_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """A command's words in a run's record."""
    words = options.get("program", ())
    return tuple(map(str, words)) if isinstance(words, (list, tuple)) else ()


class AgentFields(Vertical):
    """``start`` stands in the fields at first; ``more`` are options without a field that are kept as they are."""

    DEFAULT_CSS = """
    AgentFields { height: auto; }
    AgentFields .field { height: 1; }
    AgentFields .-unused { display: none; }
    """

    def __init__(self, start: Who | None = None) -> None:
        super().__init__(id="agent-fields")
        self._start = start or Who()
        self._choices: dict[str, AgentChoice] = {self._start.agent: AgentChoice(self._start.agent, "")}

    def compose(self) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Label("agent", classes="field-label")
            yield Select(
                self._labels(), id="agent", compact=True, value=self._start.agent, allow_blank=False
            )  # fmt: skip
        for name, (label, placeholder) in FIELDS.items():
            value = self._start.program if name == "program" else self._start.options.get(name, "")
            with Horizontal(classes="field -unused", id=f"row-{name}"):
                yield Label(label, classes="field-label")
                yield Input(value, id=f"option-{name}", compact=True, select_on_focus=False, placeholder=placeholder)

    def _labels(self) -> list[tuple[Content, str]]:
        return [
            (Content.assemble((c.name, "$text-disabled"), ("  not here", "$text-disabled")) if c.why_not
             else Content(c.name), c.name)
            for c in self._choices.values()
        ]  # fmt: skip

    def know(self, choices: Sequence[AgentChoice]) -> None:
        """Offer these agents; the one that is chosen stays."""
        select: Select[str] = self.query_one("#agent", Select)
        chosen = str(select.value)
        self._choices = {choice.name: choice for choice in choices}
        if chosen not in self._choices:
            chosen = next(iter(self._choices))
        with select.prevent(Select.Changed):
            select.set_options(self._labels())
            select.value = chosen
        self.fit()

    @property
    def choice(self) -> AgentChoice | None:
        return self._choices.get(str(self.query_one("#agent", Select).value))

    def fit(self) -> None:
        """Show the fields that the chosen agent has."""
        choice = self.choice
        for name in FIELDS:
            self.query_one(f"#row-{name}").set_class(choice is None or name not in choice.options, "-unused")

    @property
    def who(self) -> Who:
        choice = self.choice
        agent = str(self.query_one("#agent", Select).value)
        known = choice.options if choice is not None else ()
        options = {
            name: value
            for name in FIELDS
            if name in known and name != "program" and (value := self.query_one(f"#option-{name}", Input).value.strip())
        }
        if agent == self._start.agent:  # what has no field here is kept
            options |= {name: value for name, value in self._start.options.items() if name not in FIELDS}
        program = self.query_one("#option-program", Input).value.strip() if "program" in known else ""
        return Who(agent, options, program)

    def mark(self, found: Mapping[str, str]) -> None:
        """Mark the fields with problems."""
        for name in FIELDS:
            self.query_one(f"#option-{name}").set_class(name in found, "-invalid")
