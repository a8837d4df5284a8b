"""The home screen: the runs that were found, and the way to a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from evotui.protocol.words import counted
from evotui.ui.chrome import Line, Part
from evotui.ui.commands import PLACES, Situation
from evotui.ui.runlist import STATES, RunList, matching
from evotui.ui.screens.base import CommandScreen, bindings

if TYPE_CHECKING:
    from textual.widgets import Input

    from evotui.record.summary import RunSummary
    from evotui.ui.preview import Preview

_PREVIEW_FROM = 160
"""Columns of a terminal from which the selected run is shown beside the list."""
_BATCH = 48
_REFRESH_SECONDS = 5.0


def _summaries(runs: Path) -> Iterator[RunSummary]:
    """Imported in the thread that reads: the first paint does not wait for it."""
    from evotui.record.summary import summaries

    return summaries(runs)


class Heading(Widget):
    """The columns' names above the list."""

    DEFAULT_CSS = "Heading { height: 1; width: 1fr; }"

    def __init__(self, runs: RunList) -> None:
        super().__init__(id="heading")
        self._runs = runs

    def render_line(self, y: int) -> Strip:
        return self._runs.heading().adjust_cell_length(self.size.width)


class HomeScreen(CommandScreen):
    place: ClassVar[str] = "home"
    CSS_PATH = "home.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES["home"])

    def __init__(self) -> None:
        super().__init__()
        self._found: list[RunSummary] = []
        self._scanning = False
        self._opening = False
        self.runs = RunList(id="runs")
        self.words: Input | None = None
        """The filter's field, once somebody asked for it."""
        self._header = Line(id="header")
        self._heading = Heading(self.runs)
        self._table = Vertical(self._heading, self.runs, id="table")
        self._beside = Vertical(id="beside")
        self._preview: Preview | None = None
        """The selected run beside the list, once there was room for it."""
        self._welcome = Static(id="welcome")
        self._about = Line(id="about")

    def compose(self) -> ComposeResult:
        yield self._header
        yield Horizontal(self._table, self._beside, id="found")
        yield self._welcome
        yield self._about
        yield self.keybar
        yield self.small

    def on_mount(self) -> None:
        self.runs.focus()
        self._show()
        self.set_interval(_REFRESH_SECONDS, self._again)

    def on_screen_resume(self) -> None:
        self.do_refresh()

    def situation(self) -> Situation:
        run = self.runs.selected
        return Situation(runs=len(self._found), status=run.status if run is not None else "")

    # ── finding runs ─────────────────────────────────────────────────────────────────────────────────────────────

    def do_refresh(self) -> None:
        if not self._scanning:
            self._scanning = True
            self.run_worker(self._scan(), group="scan")

    async def _scan(self) -> None:
        """Read the runs folder in a thread, some runs at a time: what is there is shown, the rest follows."""
        known = {run.path: run for run in self._found}
        found: list[RunSummary] = []
        source = await asyncio.to_thread(_summaries, self.evotui.launcher.runs)
        while batch := await asyncio.to_thread(lambda: list(islice(source, _BATCH))):
            found += batch
            known.update({run.path: run for run in batch})
            self._found = list(known.values())
            self._show()
        self._found = found
        self._scanning = False
        self._show()

    def _again(self) -> None:
        """Look again at the runs that are going on; nothing else changes by itself."""
        running = [run for run in self._found if run.status == "running"]
        if running and not self._scanning and self.is_current:
            self.run_worker(self._look_at(running), group="look", exclusive=True)

    async def _look_at(self, running: list[RunSummary]) -> None:
        from evotui.record.summary import summary

        newer = await asyncio.to_thread(lambda: {run.path: summary(run.path) for run in running})
        self._found = [newer.get(run.path, run) for run in self._found]
        self._show()

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _show(self) -> None:
        text = self.words.value if self.words is not None else ""
        rows = matching(self._found, text)
        self.runs.show(rows, self.evotui.clock())
        running = sum(run.status == "running" for run in self._found)
        count = f"{len(rows)} of {len(self._found)} runs" if text else f"{len(rows)} run{'s' * (len(rows) != 1)}"
        right = [Part(f"● {running} running", "bold $text-success", 60)] if running else []
        right.append(Part(count + (" …" if self._scanning else ""), "$text-muted", 50))
        where = str(self.evotui.launcher.runs)
        self._header.show(
            [Part("evotui", "bold $primary", 90), Part("agents that evolve executable policies", "$text-muted", 20)],
            right,
        )
        empty = not self._found
        self._table.parent.display = not empty  # type: ignore[union-attr]
        self._welcome.display = empty
        if empty:
            self._welcome.update(welcome_text(where, self._scanning))
        self._heading.refresh()
        self.show_keys()

    def on_run_list_moved(self, message: RunList.Moved) -> None:
        run = message.run
        self.show_keys()
        self._show_beside()
        if run is None:
            self._about.show([Part("no run matches; esc clears the filter", "$text-muted")] if self._found else [])
            return
        parts = [Part(str(run.path), "$text-muted", 40)]
        if run.problem:
            parts = [Part(f"✗ {run.problem}", "$text-error", 60)]
        elif run.best is not None:
            final = "" if run.final_score is None else f", final score {run.final_score:.1f}"
            parts.insert(0, Part(f"post-hoc: s{run.best[0]:03d} selected{final}", "$text-accent", 50))
        else:
            word = STATES.get(run.status, ("?", run.status))[1]
            parts.insert(0, Part(f"{word}, {counted(run.submissions, 'submission')}", "", 50))
        self._about.show(parts)

    def _show_beside(self) -> None:
        """Show the selected run beside the list; from what the list knows of it, nothing is read for that."""
        if not self.has_class("-roomy"):
            return
        if self._preview is None:
            from evotui.ui.preview import Preview

            self._preview = Preview()
            self._beside.mount(self._preview)
            self.run_worker(self._read_scales(), group="scales", exit_on_error=False)
        self._preview.show(self.runs.selected, self.evotui.clock())

    async def _read_scales(self) -> None:
        choices = await asyncio.to_thread(self.evotui.launcher.environments)
        if self._preview is not None:
            self._preview.scales = {choice.gym_id: choice for choice in choices}
            self._show_beside()

    def resized(self, width: int, height: int) -> None:
        self.set_class(height < 24, "-short")
        self.set_class(width >= _PREVIEW_FROM and height >= 24, "-roomy")
        self.call_after_refresh(self._show_beside)
        self._heading.refresh()

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def do_open(self) -> None:
        run = self.runs.selected
        if run is None or self._opening:
            return
        self._opening = True
        try:
            await self.evotui.open_run(run.path)
        finally:
            self._opening = False

    async def do_resume(self) -> None:
        from evotui.ui.resuming import read_state, wanted

        run = self.runs.selected
        if run is None or self._opening:
            return
        self._opening = True
        try:
            state = await asyncio.to_thread(read_state, run.path)
            if await wanted(self, run.name, state):
                self.say("resuming …")
                await self.evotui.show_run(*await self.evotui.launcher.resume(run.path))
        finally:
            self._opening = False

    def on_run_list_opened(self, message: RunList.Opened) -> None:
        self.action_command("open")

    async def do_new(self) -> None:
        from evotui.ui.screens.newrun import NewRunScreen

        started = await self.ask(NewRunScreen(self.evotui.launcher))
        if started is not None:
            await self.evotui.show_run(*started)

    def do_filter(self) -> None:
        if self.words is None:
            from textual.widgets import Input

            self.words = Input(placeholder="words of environment, agent, run or state", id="filter", compact=True)
            self.mount(self.words, before="#found")
        self.words.display = True
        self.type_into(self.words)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._typing = None
        event.input.display = bool(event.value)
        self.runs.focus()

    def on_key(self, event: events.Key) -> None:
        field = self.words
        if field is None:
            return
        if event.key == "escape" and field.display:
            event.stop()
            self._typing = None
            field.value = ""
            field.display = False
            self.runs.focus()
        elif event.key == "down" and field.has_focus:
            event.stop()
            self.runs.focus()

    def do_down(self) -> None:
        self.runs.move(1)

    def do_up(self) -> None:
        self.runs.move(-1)

    def do_half_down(self) -> None:
        self.runs.page(0.5)

    def do_half_up(self) -> None:
        self.runs.page(-0.5)

    def do_top(self) -> None:
        self.runs.move_to(0)

    def do_bottom(self) -> None:
        self.runs.move_to(len(self.runs.rows) - 1)

    def do_copy(self) -> None:
        run = self.runs.selected
        if run is not None:
            self.copy(str(run.path), "the run's path")

    def do_leave(self) -> None:
        self.app.exit()


def welcome_text(where: str, scanning: bool) -> Content:
    """What a person reads who has no run yet."""
    if scanning:
        return Content("looking for runs …").stylize("$text-muted")
    lines = [
        Content("▁▂▃▄▅▆▇█").stylize("$primary"),
        Content(""),
        Content("No run yet").stylize("bold"),
        Content(""),
        Content.assemble("press ", ("n", "bold $accent"), " and watch an agent evolve a policy"),
        Content("no key, no network and no display needed").stylize("$text-muted"),
        Content(""),
        Content.assemble(("evotui demo", "bold $text-primary"), ("  a short run on CartPole", "$text-muted")),
        Content.assemble(("evotui run ENV", "bold $text-primary"), ("  one run, from the shell", "$text-muted")),
        Content(""),
        Content(f"runs are looked for below {where}").stylize("$text-muted"),
    ]
    return Content("\n").join(lines)
