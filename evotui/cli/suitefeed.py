"""A suite that this process runs, as its screen sees it: the cells behind a feed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from evotui.cli.errors import FAILURE, OK, sentence
from evotui.cli.leaderboard import environment
from evotui.cli.suite import SuiteRun
from evotui.kernel.session import Session
from evotui.record.suitedir import CellState
from evotui.record.summary import RunSummary
from evotui.report.text import progress_line
from evotui.ui.feed import Latest
from evotui.ui.suitefeed import SuiteView

REST_SECONDS = 0.3
"""Between two views of a suite: a matrix is no live frame."""


class LiveSuite:
    """``ui.suitefeed.SuiteFeed`` of a :class:`SuiteRun`. ``begin`` runs it as a task of this event loop."""

    def __init__(self, suite: SuiteRun) -> None:
        self._suite = suite
        self._slot = Latest()
        self._environments = tuple(environment(env) for env in suite.plan.envs)
        self.root: Path = suite.suite.root
        self.work: asyncio.Task[int] | None = None
        self.failure = ""
        suite.changed = self._slot.put

    def begin(self) -> None:
        self.work = asyncio.create_task(self._suite.run(signals=False), name="suite")
        self.work.add_done_callback(self._ended)

    def _ended(self, work: asyncio.Task[int]) -> None:
        error = None if work.cancelled() else work.exception()
        if error is not None:
            self.failure = sentence(error)
        self._slot.close()

    @property
    def code(self) -> int:
        """The exit code: the suite's own once it is done, else that it did not fail."""
        if self.failure:
            return FAILURE
        return self.work.result() if self.work is not None and self.work.done() and not self.work.cancelled() else OK

    @property
    def live(self) -> bool:
        return self.work is not None and not self.work.done()

    @property
    def view(self) -> SuiteView:
        suite, session = self._suite, self._suite.session
        cells = list(suite.states)
        at, progress = "", ""
        if suite.at >= 0:
            cell = cells[suite.at]
            at, progress = cell.cell.name, "opening"
            cells[suite.at] = replace(cell, state="running", reason="")
            if session is not None:
                cells[suite.at] = CellState(cell.cell, "running", "", summary_of(session))
                progress = progress_line(session.state, time.time())
        return SuiteView(
            suite.plan.name, self._environments, tuple(agent.name for agent in suite.plan.agents), suite.plan.repeats,
            tuple(cells), at, progress, suite.seconds_left,
        )  # fmt: skip

    async def updates(self) -> AsyncIterator[SuiteView]:
        yield self.view
        if self.work is not None and self.work.done():
            return
        while await self._slot.wait():
            yield self.view
            await asyncio.sleep(REST_SECONDS)
        yield self.view

    async def stop(self) -> None:
        if self.live and self.work is not None:
            self._suite.stop()
            await asyncio.wait({self.work})

    async def close(self) -> None:
        await self.stop()


def summary_of(session: Session) -> RunSummary:
    """What a list would show of a run that is being driven here."""
    state, head = session.state, session.state.header
    held = state.heldout.score if state.heldout is not None else None
    return RunSummary(
        path=session.run_dir.root,
        name=head.run,
        env=head.env,
        env_version=head.env_version,
        agent=head.agent,
        model=head.model,
        status="running",
        total=state.budget.total,
        used=state.budget.used,
        submissions=len(state.submissions),
        means=tuple(s.mean for s in state.submissions),
        heldout=(held.mean, held.std, held.n) if held is not None else None,
        started_at=state.started_at,
        last_at=state.last_at,
    )
