"""A run that this process does not drive, finished or written by another process: its log, folded as it grows."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from evotui.cli.errors import sentence
from evotui.record.fold import fold_all
from evotui.record.lock import is_held
from evotui.record.log import LogError, Reader, probe
from evotui.record.rundir import RunDir, width_of
from evotui.record.state import FoldError, RunState
from evotui.ui.feed import Progress

POLL_SECONDS = 0.2
"""How often a growing log is looked at: one read of a file that did not grow costs some microseconds."""

IDLE_SECONDS = 1.0
"""How often the log of an interrupted run is looked at."""


class LogFeed:
    """``ui.feed.Feed`` without controls."""

    controls = None

    def __init__(self, root: Path) -> None:
        self._reader = Reader(root / "events.jsonl")
        self.state = RunState()
        self.run = RunDir(root)
        self.live = False
        self.failure = ""

    @classmethod
    async def open(cls, root: Path) -> LogFeed:
        """Read and fold what is there. Raises LogError, FoldError."""
        probe(root / "events.jsonl")
        feed = cls(root)
        await feed._catch_up()
        gc.freeze()  # nothing of a record is ever garbage: no later collection need look through it
        feed.run = RunDir(root, width_of(feed.state.header.budget))
        return feed

    async def _catch_up(self) -> bool:
        def work() -> RunState:
            return fold_all(self._reader.poll(skim=True), self.state, skimmed=True)

        before = self.state.seq
        # Whether somebody writes is asked first: what was written before the writer left is then surely read.
        held = await asyncio.to_thread(is_held, self.run)
        self.state = await asyncio.to_thread(work)
        self.live = held and self.state.ended is None
        return self.state.seq != before

    async def updates(self) -> AsyncIterator[RunState]:
        yield self.state
        while self.state.ended is None:
            # A run that broke off may be resumed by somebody: look on, only less often.
            live = self.live
            await asyncio.sleep(POLL_SECONDS if live else IDLE_SECONDS)
            try:
                news = await self._catch_up() or self.live != live
            except (LogError, FoldError, OSError) as error:  # what was read so far stays on the screen
                self.live, self.failure = False, sentence(error)
                return
            if news:
                yield self.state

    def progress(self) -> Sequence[Progress]:
        return ()

    async def close(self) -> None:
        self._reader.close()
