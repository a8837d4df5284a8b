"""The facts of a live run: each is admitted, stamped, written and folded here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evotui.kernel.logs import ProtocolLogs
from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.log import Writer
from evotui.record.rundir import RunDir
from evotui.record.state import RunState

Watcher = Callable[[RunState, e.Record], None]


class Ledger:
    """The log's only writer. ``state`` is the fold of the log and nothing else; ``watchers`` hear of each fact."""

    def __init__(self, run: RunDir, clock: Callable[[], float], state: RunState) -> None:
        self.state = state
        self.watchers: list[Watcher] = []
        self._logs = ProtocolLogs(run)
        self._folded: dict[int, RunState] = {}
        self._log = Writer(run.events, self._take, state.seq + 1, clock, self._admit)

    def _admit(self, records: Sequence[e.Record]) -> None:
        """Fold facts that are about to be written. Raises FoldError where one cannot follow; then none is written."""
        state = self.state
        self._folded.clear()
        for record in records:
            state = fold(state, record)
            self._folded[record.seq] = state

    def _take(self, record: e.Record) -> None:
        self.state = self._folded.pop(record.seq)
        self._logs.take(record, self.state)
        for watcher in self.watchers:
            watcher(self.state, record)

    async def append(self, *facts: e.Event, sync: bool = False) -> None:
        """Write facts, all or none. Raises FoldError where one cannot follow, OSError where they cannot be written."""
        await self._log.append(*facts, sync=sync)
        await self._logs.flush()

    async def close(self) -> None:
        await self._log.close()
