"""The suite's screen: environments × agents while they are run, each box a run that can be opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget

from evotui.analysis.leaderboard import Entry, Row, ranking
from evotui.analysis.paper import paper_entries
from evotui.protocol.words import counted
from evotui.record.suitedir import CellState
from evotui.ui.chrome import Line, Part
from evotui.ui.commands import PLACES, Situation
from evotui.ui.feed import EnvChoice
from evotui.ui.screens.base import CommandScreen, bindings
from evotui.ui.suitefeed import SuiteFeed, SuiteView
from evotui.ui.widgets.matrix import GLYPHS, Box, Column, Matrix
from evotui.ui.widgets.paint import one_line
from evotui.ui.words import elapsed, number

_URGENT = ("running", "failed", "unfinished", "waiting", "finished")
"""Of a box with repeats, the state that is shown: the first of these that one of them has."""


class Drawn(Widget):
    """A line of the matrix that does not scroll."""

    DEFAULT_CSS = "Drawn { height: 1; width: 1fr; }"

    def __init__(self, draw: Callable[[], Strip], *, id: str) -> None:
        super().__init__(id=id)
        self._draw = draw

    def render_line(self, y: int) -> Strip:
        return self._draw().adjust_cell_length(self.size.width)


class SuiteScreen(CommandScreen):
    place: ClassVar[str] = "suite"
    CSS_PATH = "suite.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES["suite"])

    def __init__(self, feed: SuiteFeed) -> None:
        super().__init__()
        self.feed = feed
        self.view = feed.view
        self.paper = any(env.core16 for env in self.view.environments)
        self.repeat = 0
        """Of the selected box, counted from the one that says most; the rest follow."""
        self.matrix = Matrix(id="matrix")
        self._opening = False
        self._scales: Mapping[str, EnvChoice] = {}
        """What is known of each environment, by its key: the anchors, once they were read."""
        self._header = Line(id="header")
        self._heading = Drawn(self.matrix.heading, id="heading")
        self._footing = Drawn(self.matrix.footing, id="footing")
        self._now = Line(id="now")
        self._about = Line(id="about")

    def compose(self) -> ComposeResult:
        yield self._header
        yield Vertical(self._heading, self.matrix, self._footing, id="table")
        yield self._now
        yield self._about
        yield self.keybar
        yield self.small

    def on_mount(self) -> None:
        self.matrix.focus()
        self.redraw()
        self.run_worker(self._follow(), group="follow")
        self.run_worker(self._read_scales(), group="scales", exit_on_error=False)
        self.set_interval(1.0, self._tick)

    async def _follow(self) -> None:
        async for view in self.feed.updates():
            self.view = view
            self.redraw()
        self.has_ended("the suite")

    async def _read_scales(self) -> None:
        choices = await asyncio.to_thread(self.evotui.launcher.environments)
        self._scales = {name: choice for choice in choices for name in (choice.gym_id, choice.name)}
        self.redraw()

    def _tick(self) -> None:
        """Rates and times go on although nothing was recorded."""
        if self.feed.live and self.is_current:
            self.view = self.feed.view
            self._tell()

    def situation(self) -> Situation:
        return Situation(controls=self.feed.live, ended=not self.feed.live, runs=len(self._runs()))

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def redraw(self) -> None:
        names = [env.key for env in self.view.environments]
        self.matrix.show(names, [*columns_of(self.view, self.paper), *anchors_of(self.view, self._scales, self.paper)])
        self._heading.refresh()
        self._footing.refresh()
        self._tell()

    def _tell(self) -> None:
        view = self.view
        counts = {state: sum(cell.state == state for cell in view.cells) for state in GLYPHS}
        done = counts["finished"] + counts["failed"]
        tones = {"finished": "$text-success", "failed": "bold $text-error", "waiting": "$text-muted"}
        right = [
            Part(f"{GLYPHS[state]} {n} {state}", tones.get(state, "$text-warning"), 40 + (state == "failed"))
            for state, n in counts.items()
            if n and state != "running"
        ]
        self._header.show(
            [
                Part("evotui", "bold $primary", 90),
                Part(f"suite {one_line(view.name)}", "bold", 80),
                Part(f"{done}/{len(view.cells)} cells", "", 60),
            ],
            right,
        )
        if self.feed.failure:
            now = [Part(f"✗ {one_line(self.feed.failure)}", "bold $text-error")]
        elif view.at and self.feed.live:
            place = next((i for i, cell in enumerate(view.cells, 1) if cell.cell.name == view.at), 0)
            line = f"● [{place}/{len(view.cells)}]  {one_line(view.progress)}"
            now = [Part(line, "$text-success", 80)]
        else:
            how = "every cell is through" if done == len(view.cells) else "stopped"
            now = [Part("" if self.feed.live else f"{how}: q leaves", "$text-muted")]
        left = view.seconds_left
        ahead = [Part(f"then about {elapsed(left)} more", "$text-muted", 30)] if left else []
        self._now.show(now, ahead)
        self._describe()
        self.show_keys()

    def _boxed(self) -> list[CellState]:
        """The repeats of the selected box, the one that says most first."""
        row, column = self.matrix.selected
        cells = boxed(self.view, row, column)
        return sorted(cells, key=lambda cell: _URGENT.index(cell.state))

    def _runs(self) -> list[CellState]:
        return [cell for cell in self._boxed() if cell.run is not None and not cell.run.problem]

    def _describe(self) -> None:
        cells = self._boxed()
        if not cells:
            return
        cell = cells[self.repeat % len(cells)]
        parts = [Part(f"{GLYPHS[cell.state]} {cell.cell.env}, {cell.cell.agent.name}", "bold", 80)]
        if self.view.repeats > 1:
            parts.append(Part(f"repeat {cell.cell.repeat} of {self.view.repeats}", "", 60))
        parts.append(Part(cell.state, "", 50))
        if cell.reason:
            parts.append(Part(one_line(cell.reason), "$text-error", 70))
        run = cell.run
        if run is not None and run.total:
            parts.append(Part(f"{run.used}/{counted(run.total, 'episode')}", "$text-muted", 30))
            if run.heldout is not None:
                mean, _, n = run.heldout
                parts.append(Part(f"held-out {number(mean)} over {counted(n, 'case')}", "$text-accent", 45))
            elif run.best_in_loop is not None:
                parts.append(Part(f"best train mean {number(run.best_in_loop)}", "", 45))
        self._about.show(parts)

    def on_matrix_moved(self, message: Matrix.Moved) -> None:
        self.repeat = 0
        self._describe()
        self.show_keys()

    def on_matrix_opened(self, message: Matrix.Opened) -> None:
        self.action_command("open")

    def resized(self, width: int, height: int) -> None:
        self.set_class(height < 24, "-short")
        self._heading.refresh()
        self._footing.refresh()

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def do_open(self) -> None:
        cells = self._boxed()
        run = cells[self.repeat % len(cells)].run if cells else None
        if run is None:
            self.say("that cell has not begun", "warning")
            return
        if self._opening:
            return
        self._opening = True
        try:
            await self.evotui.open_run(run.path)
        finally:
            self._opening = False

    def do_repeat(self) -> None:
        self.repeat += 1
        self._describe()

    def do_paper(self) -> None:
        self.paper = not self.paper
        self.redraw()

    def do_down(self) -> None:
        self.matrix.move(down=1)

    def do_up(self) -> None:
        self.matrix.move(down=-1)

    def do_left(self) -> None:
        self.matrix.move(right=-1)

    def do_right(self) -> None:
        self.matrix.move(right=1)

    def do_top(self) -> None:
        self.matrix.move_to(0, self.matrix.selected[1])

    def do_bottom(self) -> None:
        self.matrix.move_to(self.matrix.rows - 1, self.matrix.selected[1])

    def do_copy(self) -> None:
        cells = self._runs()
        if cells and cells[0].run is not None:
            self.copy(str(cells[0].run.path), "the run's path")
        else:
            self.copy("", "")

    async def do_stop(self) -> None:
        await self._stop("Stop this suite?")

    async def do_leave(self) -> None:
        if not self.feed.live or await self._stop("Leave a suite that is still going?"):
            self.app.exit()

    async def _stop(self, question: str) -> bool:
        from evotui.ui.screens.confirm import Choice, Confirm

        detail = "What is finished stays. The cell that is run now can be taken up where it stopped."
        choices = [Choice("stay", "n", "Go on"), Choice("stop", "y", "Stop it", grave=True)]
        if await self.ask_while_live(Confirm(question, detail, choices, again="stop")) != "stop":
            return False
        self.say("stopping")
        await self.feed.stop()
        return True


def boxed(view: SuiteView, row: int, column: int) -> list[CellState]:
    """The repeats of one box."""
    if row >= len(view.environments) or column >= len(view.agents):
        return []
    env, agent = view.environments[row].key, view.agents[column]
    return [cell for cell in view.cells if cell.cell.env == env and cell.cell.agent.name == agent]


def columns_of(view: SuiteView, paper: bool) -> list[Column]:
    """The matrix's columns, ranked among each other and, where asked for, among the paper's entries."""
    table = {
        (row, column): boxed(view, row, column)
        for row in range(len(view.environments))
        for column in range(len(view.agents))
    }
    entries = [Entry(agent, agent, agent, _returns(view, column, table)) for column, agent in enumerate(view.agents)]
    foreign = paper_entries() if paper else ()
    known = {f"paper {entry.key}": entry for entry in foreign}
    rows = {
        row.entry.key: row
        for row in ranking(
            [*entries, *(Entry(key, e.model, e.harness, e.returns, random=e.random) for key, e in known.items())],
            view.environments,
        )
    }
    found = [
        Column(
            agent,
            tuple(_box(table[place, column], rows[agent], env.key) for place, env in enumerate(view.environments)),
            rows[agent].figures.overall,
        )
        for column, agent in enumerate(view.agents)
    ]
    for key, entry in known.items():
        row = rows[key]
        boxes = tuple(Box(value=row.means.get(env.key), rank=row.ranks.get(env.key)) for env in view.environments)
        found.append(Column(entry.model, boxes, row.figures.overall, foreign=True))
    return found


def anchors_of(view: SuiteView, scales: Mapping[str, EnvChoice], paper: bool) -> list[Column]:
    """The measured reference and random policies for scale, and the paper's best entry where its entries are not shown.

    A column of which nothing is known is left out. These are for people: no agent is told them.
    """
    agents = () if paper else tuple(entry for entry in paper_entries() if not entry.random)
    columns: dict[str, list[float | None]] = {"reference": [], "random": [], "paper's best": []}
    for env in view.environments:
        known = scales.get(env.key) or scales.get(env.gym_id)
        columns["reference"].append(None if known is None else known.reference_mean)
        columns["random"].append(env.random if known is None else known.random_mean)
        best = [entry.returns[env.key][0] for entry in agents if env.core16 and env.key in entry.returns]
        columns["paper's best"].append(max(best, default=None))
    return [
        Column(name, tuple(Box(value=value) for value in values), foreign=True, anchor=True)
        for name, values in columns.items()
        if any(value is not None for value in values)
    ]


def _returns(view: SuiteView, column: int, table: dict[tuple[int, int], list[CellState]]) -> dict[str, Sequence[float]]:
    return {
        env.key: returns
        for row, env in enumerate(view.environments)
        if (returns := [cell.heldout for cell in table[row, column] if cell.heldout is not None])
    }


def _box(cells: Sequence[CellState], row: Row, env: str) -> Box:
    if not cells:
        return Box()
    state = next(state for state in _URGENT if any(cell.state == state for cell in cells))
    finished = sum(cell.state == "finished" for cell in cells)
    shown = next(cell for cell in cells if cell.state == state)
    value, faint = row.means.get(env), False
    if value is None:
        best = [cell.run.best_in_loop for cell in cells if cell.run is not None and cell.run.best_in_loop is not None]
        value, faint = max(best, default=None), True
    rank = row.ranks.get(env) if env in row.rank_scores else None
    means = shown.run.means if shown.run is not None else ()
    return Box(state, means, value, faint, rank, f"{finished}/{len(cells)}" if len(cells) > 1 else "")
