"""The run screen as a picture: one run, live or recorded, drawn under one cursor; `run` adds what its keys do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from evotui.analysis.edits import Edit
from evotui.analysis.evidence import Evidence
from evotui.analysis.usage import Ledger
from evotui.record.state import RunState
from evotui.ui import header, select
from evotui.ui.agentfields import Who
from evotui.ui.bundles import Bundles
from evotui.ui.chrome import Line, TabLine
from evotui.ui.commands import PLACES, Situation, find
from evotui.ui.costs import Limits, read_limits
from evotui.ui.feed import EditFile, Feed, FrameSource
from evotui.ui.paced import Paced
from evotui.ui.panes.agent import AgentPane
from evotui.ui.panes.budget import BudgetPane
from evotui.ui.panes.environment import EnvironmentPane
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.panes.policy import PolicyPane
from evotui.ui.panes.score import ScorePane
from evotui.ui.screens.base import CommandScreen, bindings
from evotui.ui.screens.layout import Layout, form_for
from evotui.ui.steering import DEAF, SENDS, MessageLine, about_message, banner, waits_for_what_next
from evotui.ui.study import Study
from evotui.ui.widgets.budget import BudgetMeter, CaseMap
from evotui.ui.widgets.plot import ScorePlot
from evotui.ui.widgets.tail import TranscriptTail

PROGRESS_SECONDS = 0.2


class RunView(CommandScreen):
    """Owns the state on the screen, when each pane is drawn, and which panes fit.

    ``clock`` gives seconds since the epoch; ``edit_file`` opens an editor (tests hand in their own).
    """

    place: ClassVar[str] = "run"
    CSS_PATH = "run.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES["run"])

    def __init__(
        self, feed: Feed, frames: FrameSource, clock: Callable[[], float] = time.time, edit_file: EditFile | None = None
    ) -> None:
        super().__init__()
        self.feed = feed
        self.frames = frames
        self.cursor = select.Cursor()
        self.edits: Mapping[int, Edit] = {}
        self.evidence: Mapping[int, Evidence] = {}
        self._clock = clock
        self._edit_file = edit_file
        self._editing = False
        """Whether the policy is open in an editor of ours: one at a time."""
        self._newest = feed.state
        self._frozen: RunState | None = None
        self.closed = False
        """Whether :meth:`close` was called: nothing on this screen can be gone back to."""
        self._trouble = ""
        """What went wrong here while the feed was followed."""
        self._banner = Static(id="failure")
        self._asks = Line(id="asks")
        """What waits for a person: a submission to be approved, a run whose agent has left."""
        self._words = Line(id="saying-words")
        self._message: MessageLine | None = None
        """The line for a message to the agent, once somebody asked for it."""
        self._given: dict[str, Who] = {}
        """Whom the run was handed over to here, and with which options."""
        self._layout = Layout("wide")
        self._current = 0
        self._study = Study(feed.run)
        self._ledger = Ledger()
        self.limits = Limits()
        """What the agent may spend, once the run's folder was read."""
        self.policy = PolicyPane(Bundles(feed.run))
        self.environment = EnvironmentPane(frames, feed.progress)
        self.agent = AgentPane()
        self.score = ScorePane()
        self.budget = BudgetPane()
        self.panes: tuple[Pane, ...] = (self.policy, self.environment, self.agent, self.score, self.budget)
        self._header = Line(id="header")
        self._tabs = TabLine([pane.label for pane in self.panes], id="tabs")

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._tabs
        with Horizontal(id="columns"):
            with Vertical(id="left", classes="column"):
                yield self.policy
                yield self.agent
            with Vertical(id="right", classes="column"):
                yield self.environment
                yield self.score
                yield self.budget
        yield self._banner
        yield self._asks
        yield self.keybar
        yield self.small

    def on_mount(self) -> None:
        self._draw_top = Paced(self, 0.2, self._top)
        self._draw_tail = Paced(self, 1 / 15, lambda: self._draw(2))
        self._draw_files = Paced(self, 0.2, lambda: self._draw(0, 1, 4))
        self._draw_plot = Paced(self, 0.25, lambda: self._draw(3))
        self._rolling = Paced(self, PROGRESS_SECONDS, self._progress)
        self._seconds = self.set_interval(1.0, self._second, pause=not self.feed.live)
        self.panes[0].focus()
        self.changed()
        self.run_worker(self._watch(), group="feed")
        self.run_worker(self._read_limits(), group="limits")

    async def _read_limits(self) -> None:
        self.limits = await asyncio.to_thread(read_limits, self.feed.run)
        self._draw(2, 4)

    def _second(self) -> None:
        """What a second changes: times, and waits that are counted down."""
        self._top()
        if not self.frozen and (self.agent.waiting or self.limits.wall is not None or self.budget.has_class("-priced")):
            self._draw(2, 4)

    async def _watch(self) -> None:
        try:
            async for state in self.feed.updates():
                self._newest = state
                self.changed()
        except Exception as error:  # a record that cannot be read on is told; what was read stays on the screen
            self._trouble = str(error)
        self._seconds.pause()
        self.changed()
        self.has_ended("the run")

    # ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RunState:
        """The state on the screen: the newest, or the one at which the display stands still."""
        return self._frozen if self._frozen is not None else self._newest

    @property
    def newest(self) -> RunState:
        return self._newest

    @property
    def frozen(self) -> bool:
        return self._frozen is not None

    @property
    def picture(self) -> Picture:
        state = self.state
        # The limits on the record are those of the agent that the run began with.
        own = state.opened is not None and state.agent in ("", state.opened.agent)
        return Picture(
            state,
            self.cursor,
            self.feed.live,
            self.frozen,
            self.edits,
            self._clock(),
            self._ledger.of(state),
            self.limits if own else Limits(),
            self.evidence,
        )

    def changed(self) -> None:
        """Something is new: draw each part when it is due."""
        self._draw_top.request()
        if self.frozen:
            return
        for part in (self._draw_tail, self._draw_files, self._draw_plot, self._rolling):
            part.request()
        self._study.request(self, self._newest)

    def redraw(self) -> None:
        """A person asked: draw everything now."""
        self._top()
        self._draw(*range(len(self.panes)))

    def studied(self, edits: Mapping[int, Edit], evidence: Mapping[int, Evidence]) -> None:
        """The transitions' classes and what stood behind them are known (again)."""
        self.edits, self.evidence = edits, evidence
        self._draw(0, 3)

    def _draw(self, *panes: int) -> None:
        picture = self.picture
        for at in panes:
            self.panes[at].draw(picture)

    def _top(self) -> None:
        live, drives = self.feed.live, self.feed.controls is not None
        state, now, broken = self.state, self._clock(), bool(self.failure)
        left, right = header.parts(state, self._newest, self.cursor, self.frozen, live, drives, now, broken)
        if broken:
            self._tell_failure()
        asks = banner(self._newest, not self.cursor.follow or self.frozen) if live and drives else []
        self._asks.show(asks)
        if asks and not self.has_class("-asking"):
            self.app.bell()  # the one thing that a person who looks elsewhere must hear
        self.set_class(bool(asks), "-asking")
        self._header.show(left, right)
        self._show_words()
        self.show_keys()

    def _unheard(self) -> str:
        """Why a message to the agent cannot be sent now; "" where it can."""
        return find(self.commands, "say").why_not(self.situation())

    def _show_words(self) -> None:
        """Say above the message line when what is written there reaches the agent, or that it cannot."""
        if self._message is not None:
            unheard = self._unheard()
            self._message.placeholder = "" if unheard else SENDS
            self._words.show(about_message(self._newest, unheard))

    @property
    def failure(self) -> str:
        """Why the run broke off or cannot be read on; "" while nothing is wrong."""
        return " ".join((self.feed.failure or self._trouble).split())

    def _tell_failure(self) -> None:
        if not self.has_class("-broken"):
            ahead = "; R resumes it" if self.status == "interrupted" else ""
            words = Content.assemble(("✗ broke off: ", "bold"), f"{self.failure}. What was recorded is kept{ahead}.")
            self._banner.update(words.stylize("$text-error"))
            self.add_class("-broken")

    def _progress(self) -> None:
        """Episodes under way are no facts: they are asked for while there are any."""
        if self.frozen:
            return
        self.environment.tell()
        if self._newest.active is not None and self.feed.live:
            self._rolling.request()

    # ── panes ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def current(self) -> Pane:
        return self.panes[self._current]

    @property
    def status(self) -> str:
        """running, interrupted, or ended."""
        if self.feed.live:
            return "running"
        return "interrupted" if self._newest.ended is None and self._newest.opened is not None else "ended"

    def situation(self) -> Situation:
        state = self.state
        return Situation(
            controls=self.feed.controls is not None,
            ended=not self.feed.live,
            stage=self._newest.stage,
            spent=self._newest.budget.spent,
            gate=self._newest.gate,
            submissions=len(state.submissions),
            display_paused=self.frozen,
            following=self.cursor.follow,
            episode=select.spotlit_view(state, self.cursor) is not None,
            drawn=self.environment.drawn,
            as_text=self.environment.as_text,
            maximised=self._layout.maximised,
            hears=self._newest.agent not in DEAF and (self._newest.agent_live or waits_for_what_next(self._newest)),
            asked=self._newest.asked is not None,
            left=waits_for_what_next(self._newest),
            approval=self._newest.approval,
            checkpoint=self._branch_point() is not None,
            status=self.status,
        )

    def _branch_point(self) -> int | None:
        """The submission that a branch would start from: the selected one, else the newest, if it was recorded."""
        state = self.state
        at = select.resolve(state, self.cursor).submission
        at = len(state.submissions) - 1 if at is None else at
        return at if at >= 0 and state.submissions[at].tree_hash else None

    def resized(self, width: int, height: int) -> None:
        self._layout = replace(self._layout, form=form_for(width, height))
        self.lay_out()

    def lay_out(self) -> None:
        """Show what the layout shows, the current pane in any case."""
        self.set_class(self._layout.single, "-single")
        self.set_class(self._layout.form == "single", "-tabs")
        self.set_class(self._layout.form == "compact" and not self._layout.single, "-compact")
        for at, pane in enumerate(self.panes):
            pane.set_class(at == self._current, "-current")
            pane.named(self._layout.form != "single")
        for column in self.query(".column"):
            column.set_class(any(pane.parent is column for pane in (self.current,)), "-current")
        self._tabs.choose(self._current)
        self.show_keys()

    def go(self, pane: int) -> None:
        """Make a pane the current one."""
        self._current = pane % len(self.panes)
        self.lay_out()
        self.current.focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Pane) and event.widget is not self.current:
            self._current = self.panes.index(event.widget)
            self.lay_out()

    def on_tab_line_picked(self, message: TabLine.Picked) -> None:
        self.go(message.index)

    def choose(self, cursor: select.Cursor) -> None:
        """Move the cursor; every pane follows at once."""
        if cursor != self.cursor:
            self.cursor = cursor
            self.redraw()

    # ── what was clicked at ──────────────────────────────────────────────────────────────────────────────────────

    def on_score_plot_point_picked(self, message: ScorePlot.PointPicked) -> None:
        self.choose(select.pick(self.cursor, message.index))

    def on_budget_meter_charge_picked(self, message: BudgetMeter.ChargePicked) -> None:
        self.choose(select.pick(self.cursor, message.submission))

    def on_case_map_cell_picked(self, message: CaseMap.CellPicked) -> None:
        cursor = select.pick(self.cursor, message.submission)
        for episode in self.state.submissions[message.submission].episodes:
            if episode.case == message.case:
                cursor = replace(cursor, position=episode.position)
        self.choose(cursor)

    def on_transcript_tail_entry_picked(self, message: TranscriptTail.EntryPicked) -> None:
        at = message.entry.submission
        if at is not None and at < len(self.state.submissions):
            self.choose(select.pick(self.cursor, at))

    def on_environment_pane_drawn_known(self) -> None:
        self.show_keys()

    async def close(self) -> None:
        """Leave the run: whatever it still does here ends, the record stays whole."""
        self.closed = True
        if self.environment.player is not None:
            self.environment.player.hold(True)
        await self.feed.close()
        await self.frames.close()
        await asyncio.sleep(0)
