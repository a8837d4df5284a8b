"""What all adapters share: one conversation with a program, whose lines become facts while somebody waits for a turn.

An adapter is opened, takes turns one after the other, and is closed; between, it may be interrupted and, where the
program can, spoken to. It does not know budgets, limits or doors: :mod:`evotui.agents.cli.agent` does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from platformdirs import user_cache_path

from evotui.agents.base import AgentFailed, Teller
from evotui.agents.cli.rows import Row
from evotui.agents.process import AgentProcess
from evotui.agents.station import Station
from evotui.agents.streams import Stream
from evotui.agents.surroundings import found_at
from evotui.record.events import AgentRetried, Event

BIG_LINE = 1 << 20
"""Characters from which a line is parsed in a thread, so that nothing else waits for it."""
_PROMPT = 100_000
"""Bytes of a prompt that is passed as a word of a command line: the system takes 128 kB."""


class NotOffered(Exception):
    """The program does not speak what the adapter does: its row's fallback is to be tried."""


class NotResumed(Exception):
    """The conversation that was to be taken up is not there any more."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an adapter works with. ``session`` is the conversation to take up, ``""`` for a new one."""

    row: Row
    program: str
    station: Station
    tell: Teller
    heard: Callable[[Event], Awaitable[None]]
    session: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    idle: float | None = 900.0

    @property
    def root(self) -> Path:
        """The workspace's folder."""
        return self.station.workspace.root

    @property
    def walled(self) -> bool:
        """Whether programs stand behind a wall."""
        return bool(self.station.wall)

    def words(self, prompt: str = "", **more: str) -> list[str]:
        """The whole command of the row."""
        cost = self.options.get("max_cost")
        values = {
            "prompt": prompt.encode("utf-8", "replace")[:_PROMPT].decode("utf-8", "ignore"),
            "workspace": str(self.root),
            "model": str(self.options.get("model") or ""),
            "effort": str(self.options.get("effort") or ""),
            "budget": f"{cost:g}" if isinstance(cost, int | float) else "",
            **more,
        }
        return [self.program, *self.row.words(**values)]


class Adapter:
    """Base of the adapters. Each has a ``stream`` that reads its program's dialect."""

    needs_stdin = True

    def __init__(self, work: Work, stream: Stream) -> None:
        self.work = work
        self.stream = stream
        self.process: AgentProcess | None = None
        self.turns = 0
        self._pump: asyncio.Task[None] | None = None

    # ── for the agent ────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Begin the conversation. Raises AgentFailed, NotOffered, NotResumed."""

    async def turn(self, prompt: str) -> None:
        """One turn: over when the program says so, or has ended. Raises AgentFailed, NotResumed."""
        raise NotImplementedError

    @property
    def hears(self) -> bool:
        """Whether what a person says reaches the program now, in the middle of its turn."""
        return False

    async def say(self, text: str) -> bool:
        """Pass on what a person says, now; False where that cannot be done."""
        return False

    async def interrupt(self) -> None:
        """Ask the program to break its turn off."""

    async def close(self) -> None:
        """End the program, and all that it started."""
        await self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ── for the adapters ─────────────────────────────────────────────────────────────────────────────────────────

    async def _start(self, command: Sequence[str]) -> AgentProcess:
        work = self.work
        # Some believe the variable more than the folder that they are started in.
        env = {"PWD": str(work.root), **work.row.env, **await asyncio.to_thread(self._write_settings), **work.env}
        station = work.station
        self.process = await AgentProcess.start(
            list(command), station.workspace, station.place, station.urls, tell=work.tell, env=env, keys=work.keys,
            stdin=self.needs_stdin, idle=work.idle, busy=self._busy, wall=work.walled,
            writable=[found_at(path, {**os.environ, **env}) for path in work.row.writable],
        )  # fmt: skip
        self._pump = asyncio.create_task(self._read(), name="agent stream")
        return self.process

    def _write_settings(self) -> dict[str, str]:
        """The row's settings, as the variable that names or holds them. Blocking."""
        settings = self.work.row.settings
        if not settings:
            return {}
        document = dict(settings.get("json") or {})
        key, model = settings.get("model"), self.work.options.get("model")
        if key and model:
            document[str(key)] = str(model)
        text = json.dumps(document)
        if settings.get("inline"):
            return {settings["variable"]: text}
        # Not in a temporary folder: settings are passed over below one that others can write to.
        name = f"{self.work.row.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
        file = user_cache_path("evotui") / "agent-settings" / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        except OSError as error:
            raise AgentFailed(f"{file} cannot be written: {error.strerror}") from None
        return {settings["variable"]: str(file)}

    def _busy(self) -> bool:
        """A tool is at work, or nobody asked for anything: silence means nothing then."""
        return self.stream.waits or self.turns == 0 or self.stream.finished or self.work.station.urls.busy()

    async def _read(self) -> None:
        """Every line of the program, as facts, until it ends."""
        assert self.process is not None
        async for line in self.process.lines():
            await self._line(line)

    async def _line(self, line: str) -> None:
        if len(line) > BIG_LINE:
            facts = await asyncio.to_thread(self.stream.feed, line)
        else:
            facts = self.stream.feed(line)
        await self._told(facts)

    async def _told(self, facts: Sequence[Event]) -> None:
        for fact in facts:
            await self.work.tell(fact)
            await self.work.heard(fact)
            if isinstance(fact, AgentRetried) and self.stream.status in (401, 403):
                raise AgentFailed(blame(self.work.row, self.stream.status, fact.reason))

    async def _await(self, over: asyncio.Future[Any]) -> bool:
        """Wait for ``over``, or for the end of the program; whether it was the former. Raises what reading raised."""
        assert self._pump is not None
        await asyncio.wait({over, self._pump}, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            return True
        self._pump.result()
        return False

    async def _broke_off(self) -> AgentFailed:
        """The program is gone in the middle of a turn: tell what it left, and say so."""
        assert self.process is not None
        await self._told(self.stream.end())
        code = await self.process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        said = self.process.last_words()
        title = self.work.row.title
        status = self.stream.status
        if status in (401, 403):
            return AgentFailed(blame(self.work.row, status, said))
        return AgentFailed(f"{title} {how} in the middle of its turn" + (f"; it said: {said}" if said else ""))

    async def _end(self) -> None:
        process, self.process = self.process, None
        pump, self._pump = self._pump, None
        if process is not None:
            await process.stop()
        if pump is not None:
            pump.cancel()
            await asyncio.wait({pump})
            if not pump.cancelled():
                pump.exception()  # whoever waited for the turn has heard of it


def blame(row: Row, status: int | None, reason: str) -> str:
    """One sentence on a turn that failed, with what a person can do."""
    said = " ".join(reason.split())[:400]
    if status in (401, 403):
        return f"{row.title} was refused by its provider ({status}): {row.login or 'log in'} ({said})"
    if status == 404:
        return f"{row.title}: the provider does not know the model, choose another with --model ({said})"
    if status in (402, 429):
        return f"{row.title}: the provider's limit of requests or money is reached, go on later ({said})"
    if status is not None and status >= 500:
        return f"{row.title}: the provider's server fails ({status}), go on later ({said})"
    return f"{row.title} failed: {said or 'without saying why'}"
