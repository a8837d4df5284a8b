"""Any agent that takes one prompt, prints a stream, and ends: one process a turn, the conversation taken up by name."""

from __future__ import annotations

import asyncio

from evotui.agents.base import AgentFailed
from evotui.agents.cli.adapter import Adapter, NotResumed, Work, blame
from evotui.agents.cli.codex import sandbox_of
from evotui.agents.cli.kept import last_kept
from evotui.agents.streams import STREAMS, CodexExecStream, Stream
from evotui.agents.streams.base import record


class LinesAdapter(Adapter):
    """Runs the row's command for each prompt and reads its dialect."""

    needs_stdin = False

    def __init__(self, work: Work) -> None:
        super().__init__(work, self._stream(work))
        self.stream.session = work.session

    @staticmethod
    def _stream(work: Work) -> Stream:
        return STREAMS[work.row.dialect](str(work.root))

    async def open(self) -> None:
        if isinstance(self.stream, CodexExecStream) and self.work.session:
            told = await asyncio.to_thread(last_kept, self.work.station.place.stream, b'"turn.completed"')
            self.stream.seen(record(told, "usage"))

    async def turn(self, prompt: str) -> None:
        resumed = self.stream.session
        self.stream = self._next(self.stream)
        self.stream.begin()
        self.turns += 1
        calls = self.stream.calls
        process = await self._start(self.work.words(prompt, resume=resumed, sandbox=sandbox_of(self.work.walled)))
        assert self._pump is not None
        await self._pump
        await self._told(self.stream.end())
        code = await process.wait()
        said = process.last_words()
        interrupted = process.killed
        await self._end()
        if code == 0 or interrupted:
            return
        if resumed and self.turns == 1 and self.stream.calls == calls and not self.stream.finished:
            raise NotResumed(resumed)
        if self.stream.is_error:
            return
        if self.stream.finished:
            return
        raise AgentFailed(blame(self.work.row, self.stream.status, f"exit code {code}: {said}"))

    def _next(self, before: Stream) -> Stream:
        """The stream of the next process of the same conversation."""
        if isinstance(before, CodexExecStream):
            return before
        stream = self._stream(self.work)
        stream.started(before.session, before.model, before.version)
        stream.calls, stream.cost = before.calls, before.cost
        return stream

    async def interrupt(self) -> None:
        if self.process is not None:
            await self.process.stop()
