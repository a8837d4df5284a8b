"""Claude Code over ``--input-format stream-json``: one process for all turns, spoken to and interrupted at any time."""

from __future__ import annotations

import asyncio
import itertools
import json

from evotui.agents.base import AgentFailed
from evotui.agents.cli.adapter import Adapter, NotResumed, Work, blame
from evotui.agents.streams import ClaudeStream

_TAKES_UP_IN = 2.0
"""Seconds in which a message of the middle of a turn begins one of its own, where it was read too late."""
_ANSWERS_IN = 20.0
"""Seconds in which an interrupted turn has to end."""


class ClaudeAdapter(Adapter):
    """A turn is a user message on stdin; it is over with the ``result`` that leaves no message waiting."""

    def __init__(self, work: Work) -> None:
        super().__init__(work, ClaudeStream(str(work.root)))
        self._over: asyncio.Future[None] | None = None
        self._said = False
        self._later: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)

    async def open(self) -> None:
        await self._start(self.work.words(resume=self.work.session))

    async def turn(self, prompt: str) -> None:
        if self.process is None or self.process.returncode is not None:
            if self.turns == 0:
                raise self._never_began()
            await self._again()
        self.stream.begin()
        self.turns += 1
        self._said = False
        self._over = asyncio.get_running_loop().create_future()
        if not await self._send(prompt):
            raise await self._broke_off()
        if not await self._await(self._over):
            if self._unknown_session():
                raise NotResumed(self.work.session)
            if not self.stream.finished:
                raise await self._broke_off()
        if self.stream.is_error and self._unknown_session():
            raise NotResumed(self.work.session)

    def _unknown_session(self) -> bool:
        words = self.process.last_words() if self.process is not None else ""
        return bool(self.work.session) and "No conversation found" in f"{words} {self.stream.reason}"

    def _never_began(self) -> Exception:
        if self._unknown_session():
            return NotResumed(self.work.session)
        words = self.process.last_words() if self.process is not None else ""
        return AgentFailed(blame(self.work.row, self.stream.status, self.stream.reason or words or "it ended at once"))

    async def _again(self) -> None:
        """A process that ended by itself after a turn is started again, in the same conversation."""
        await self._end()
        stream, self.stream = self.stream, ClaudeStream(str(self.work.root))
        self.stream.started(stream.session, stream.model, stream.version)
        await self._start(self.work.words(resume=stream.session))

    async def _send(self, text: str) -> bool:
        assert self.process is not None
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        return await self.process.write_line(json.dumps({"type": "user", "message": message}))

    @property
    def hears(self) -> bool:
        return self._over is not None and not self._over.done()

    async def say(self, text: str) -> bool:
        if not self.hears or self.process is None:
            return False
        self._said = True
        return await self._send(text)

    async def interrupt(self) -> None:
        if self.process is None or self._over is None or self._over.done():
            return
        request = {"type": "control_request", "request_id": f"evotui-{next(self._numbers)}"}
        await self.process.write_line(json.dumps({**request, "request": {"subtype": "interrupt"}}))
        await asyncio.wait({self._over}, timeout=_ANSWERS_IN)

    async def _line(self, line: str) -> None:
        if self._later is not None:  # the turn goes on with what was said meanwhile
            self._later.cancel()
            self._later = None
            self.stream.begin()
        await super()._line(line)
        if not self.stream.finished or self._over is None or self._over.done():
            return
        if self._said and isinstance(self.stream, ClaudeStream) and not self.stream.tells_queue:
            self._later = asyncio.get_running_loop().call_later(_TAKES_UP_IN, self._end_turn)
        else:
            self._end_turn()

    def _end_turn(self) -> None:
        self._later = None
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def _read(self) -> None:
        await super()._read()
        if self.turns == 0:
            raise self._never_began()
