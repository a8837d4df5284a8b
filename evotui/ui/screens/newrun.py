"""The new-run dialog: choose, read in one sentence what will happen, start."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, OptionList, Select, Static
from textual.widgets.option_list import Option

from evotui.protocol.words import counted
from evotui.ui.agentfields import AgentFields, Who, wrong
from evotui.ui.feed import AgentChoice, EnvChoice, Feed, FrameSource, Launcher, NewRun
from evotui.ui.widgets.paint import pad
from evotui.ui.words import number, short

POOLS = (("secret, drawn for this run", "secret"), ("paper, public as published", "paper"))
LIFETIMES = (("episode, a fresh policy each", "episode"), ("submission, as published", "submission"))
_TITLE = 26
"""Cells of the longest name of an environment in the list."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


@dataclass(frozen=True, slots=True)
class Form:
    """What stands in the fields, as text."""

    env: str = ""
    agent: str = "search"
    budget: str = "128"
    seed: str = "0"
    pools: str = "secret"
    lifetime: str = "episode"
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    program: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a branch starts: the run's folder, the submission, and what stands in the fields at first. ``words`` name
    the environment and say what was left."""

    run: Path
    submission: int
    form: Form
    words: str


def problems(form: Form, agent: AgentChoice | None = None) -> dict[str, str]:
    """What is wrong, by field; empty where the run can be started. ``agent`` is the chosen one, once it is known."""
    found: dict[str, str] = {}
    if not form.env:
        found["env"] = "choose an environment"
    try:
        if int(form.budget) < 1:
            found["budget"] = "a budget is at least 1 episode"
        elif int(form.budget) > 100_000:
            found["budget"] = "a budget is at most 100,000 episodes"
    except ValueError:
        found["budget"] = f"{form.budget!r} is not a number of episodes" if form.budget else "how many episodes?"
    try:
        int(form.seed)
    except ValueError:
        found["seed"] = f"{form.seed!r} is not a whole number" if form.seed else "the agent's seed, such as 0"
    if form.name and not _NAME.match(form.name):
        found["name"] = "letters, digits, dots, dashes and underscores"
    if agent is not None:
        found |= wrong(Who(form.agent, form.options, form.program), agent)
    return found


def wish(form: Form, branch: Branch | None = None) -> NewRun:
    """The form as a wish. Raises ValueError where :func:`problems` finds any."""
    return NewRun(
        form.env, form.agent, int(form.budget), int(form.seed), form.pools, form.lifetime, form.name,
        dict(form.options), Who(program=form.program).words,
        None if branch is None else (branch.run, branch.submission),
    )  # fmt: skip


def _episodes(form: Form) -> str:
    return counted(int(form.budget), "episode")


def preflight(form: Form, choice: EnvChoice | None, branch: Branch | None = None, brief: bool = False) -> str:
    """What will happen, in one or two sentences; ``brief`` where few lines have room."""
    if problems(form):
        return ""
    if branch is not None:
        return (
            f"{form.agent} goes on from the policy of {short(branch.submission)} of {branch.run.name} with "
            f"{_episodes(form)}, on the same cases, as a run of its own; {branch.run.name} stays as it is."
        )
    if choice is None:
        return ""
    hidden = "secret hidden cases" if form.pools == "secret" else "the paper's public hidden cases"
    words = (
        f"{form.agent} evolves a policy for {choice.gym_id} with {_episodes(form)}; then every checkpoint is "
        f"validated on {hidden} and the best one is scored."
    )
    if not brief and choice.random_mean is not None and choice.reference_mean is not None:
        words += f" For scale: random {number(choice.random_mean)}, reference {number(choice.reference_mean)}."
    return words


class NewRunScreen(ModalScreen[tuple[Feed, FrameSource] | None]):
    """Answers with the started run, or None. It starts the run itself, so that a refusal is read beside the fields."""

    CSS_PATH: ClassVar = ["dialog.tcss", "newrun.tcss"]
    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("ctrl+c", "cancel", "cancel", show=False, priority=True),
        Binding("ctrl+s", "start", "start", show=False),
    ]

    def __init__(self, launcher: Launcher, branch: Branch | None = None) -> None:
        super().__init__()
        self._launcher = launcher
        self._branch = branch
        self._first = branch.form if branch is not None else Form()
        self.agents = AgentFields(Who(self._first.agent, self._first.options, self._first.program))
        self._choices: Sequence[EnvChoice] = ()
        self._busy = False
        self._known = False
        """Whether it is known which agents can be run here."""
        self._refused = ""

    def compose(self) -> ComposeResult:
        first, branch = self._first, self._branch
        title = "New run" if branch is None else f"Branch of {branch.run.name} {short(branch.submission)}"
        with Vertical(classes="dialog -wide", id="new-run"):
            yield Static(Content(title).stylize("bold"), classes="dialog-title")
            with Horizontal(id="new-run-columns"):
                with Vertical(id="env-column"):
                    if branch is None:
                        yield Label("environment", classes="field-label")
                        yield OptionList(id="env", markup=False, compact=True)
                    else:
                        yield Static(Content(branch.words), classes="dialog-text")
                with VerticalScroll(id="field-column", can_focus=False):
                    yield self.agents
                    yield from self._field(
                        "budget", Input(first.budget, id="budget", compact=True, select_on_focus=False)
                    )
                    yield from self._field("seed", Input(first.seed, id="seed", compact=True, select_on_focus=False))
                    if branch is None:
                        yield from self._field(
                            "pools", Select(POOLS, id="pools", compact=True, value=first.pools, allow_blank=False)
                        )
                    yield from self._field("lifetime", Select(
                        LIFETIMES, id="lifetime", compact=True, value=first.lifetime, allow_blank=False))  # fmt: skip
                    yield from self._field("name", Input(id="name", compact=True, placeholder="six hex digits"))
            yield Static(id="preflight")
            with Horizontal(classes="dialog-buttons"):
                yield Button(Content.assemble(("^s", "bold"), " Start"), id="start", compact=True)
                yield Button(Content.assemble(("esc", "bold"), " Cancel"), id="cancel", compact=True)

    def _field(self, name: str, widget: Input | Select[str]) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Label(name, classes="field-label")
            yield widget

    def on_mount(self) -> None:
        self.run_worker(self._load_agents(), group="agents")
        if self._branch is None:
            self.run_worker(self._load(), group="environments")
        else:
            self.query_one("#agent").focus()
        self._judge()

    async def _load_agents(self) -> None:
        self.agents.know(await asyncio.to_thread(self._launcher.agents))
        self._known = True
        self._judge()

    async def _load(self) -> None:
        found = await asyncio.to_thread(self._launcher.environments)
        self._choices = sorted(found, key=lambda choice: choice.title.lower())
        options = self.query_one("#env", OptionList)
        able = [c for c in self._choices if not c.why_not]
        unable = [c for c in self._choices if c.why_not]
        across = min(max((cell_len(c.title) for c in able), default=0), _TITLE)
        for choice in able:
            label = Content.assemble(f"{pad(choice.title, across)}  ", (choice.gym_id, "$text-muted"))
            options.add_option(Option(label, id=choice.name))
        for choice in unable:
            label = Content.assemble((f"{choice.title}: {choice.why_not}", "$text-disabled"))
            options.add_option(Option(label, id=choice.name, disabled=True))
        if able:
            options.highlighted = 0
        self._judge()

    # ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────

    def form(self) -> Form:
        env = self._first.env
        if self._branch is None:
            options = self.query_one("#env", OptionList)
            option = options.get_option_at_index(options.highlighted) if options.highlighted is not None else None
            env = option.id or "" if option is not None else ""

        def text(id: str) -> str:
            return self.query_one(f"#{id}", Input).value.strip()

        def choice(id: str) -> str:
            return str(self.query_one(f"#{id}", Select).value)

        who = self.agents.who
        pools = choice("pools") if self._branch is None else self._first.pools
        return Form(
            env, who.agent, text("budget"), text("seed"), pools, choice("lifetime"), text("name"), who.options,
            who.program,
        )  # fmt: skip

    def _judge(self) -> bool:
        form = self.form()
        found = problems(form, self.agents.choice if self._known else None)
        self.agents.mark(found)
        for id in ("budget", "seed", "name"):
            self.query_one(f"#{id}").set_class(id in found, "-invalid")
        line = self.query_one("#preflight", Static)
        if self._refused:
            line.update(Content(f"✗ {self._refused}").stylize("$text-error"))
        elif found and (self._choices or set(found) != {"env"}):
            name, sentence = next(iter(found.items()))
            line.update(Content(f"✗ {name.replace('_', ' ')}: {sentence}").stylize("$text-error"))
        else:
            choice = next((c for c in self._choices if c.name == form.env), None)
            words = preflight(form, choice, self._branch, brief=self.has_class("-slim"))
            if self._branch is None and not self._choices:
                words = "looking for environments …"
            line.update(Content(words).stylize("$text-muted"))
        self.query_one("#start", Button).disabled = bool(found) or self._busy
        return not found

    def _changed(self) -> None:
        self._refused = ""
        self._judge()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._changed()

    def on_select_changed(self, event: Select.Changed) -> None:
        if event.select.id == "agent":
            self.agents.fit()
        self._changed()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_list.id == "env":
            self._changed()

    # ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_list.id == "env":
            self.query_one("#start", Button).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_start()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "start":
            self.action_start()
        else:
            self.action_cancel()

    def action_start(self) -> None:
        if not self._busy and self._judge():
            self._busy = True
            self.run_worker(self._start(wish(self.form(), self._branch)), group="start")

    async def _start(self, new: NewRun) -> None:
        self.query_one("#preflight", Static).update(Content("starting …").stylize("$text-accent"))
        try:
            started = await self._launcher.start(new)
        except Exception as error:  # told beside the fields: what a launcher raises is a sentence for a person
            self._refused = str(error)
            self._busy = False
            self._judge()
        else:
            self.dismiss(started)

    def action_cancel(self) -> None:
        if not self._busy:
            self.dismiss(None)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < 84, "-slim")
        self.set_class(event.size.height < 24, "-low")
        self.set_class(event.size.height < 32 or event.size.width < 84, "-short")
        self._judge()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.action_cancel()
