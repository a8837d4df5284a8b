"""A coding agent's turn at a run: prompted, watched, limited, prompted again, until the budget is spent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evotui.agents.base import AgentFailed, Door, LimitReached, Place, Teller, Workspace
from evotui.agents.cli.acp import AcpAdapter
from evotui.agents.cli.adapter import Adapter, NotOffered, NotResumed, Work, blame
from evotui.agents.cli.claude import ClaudeAdapter
from evotui.agents.cli.codex import CodexAdapter
from evotui.agents.cli.detect import Found, look
from evotui.agents.cli.lines import LinesAdapter
from evotui.agents.cli.prompts import first_prompt, next_prompt, noted
from evotui.agents.cli.rows import Row, RowError, rows
from evotui.agents.cli.teller import PacedTeller
from evotui.agents.llm.keys import read_env_file, secrets_of
from evotui.agents.station import Station
from evotui.protocol.words import counted
from evotui.record.events import AgentRaw, Event, ToolCalled, ToolReturned, UsageReported

ADAPTERS: dict[str, Callable[[Work], Adapter]] = {
    "claude": ClaudeAdapter,
    "codex": CodexAdapter,
    "acp": AcpAdapter,
    "lines": LinesAdapter,
}
IDLE = 900.0
"""Seconds without a line, no tool being at work, after which an agent is taken to be stuck."""
_FRUITLESS = 2
"""Turns in a row without a submission after which a person is asked for."""
_LAST_WORDS = 5.0


def row_of(name: str) -> Row:
    """The row of an agent. Raises AgentFailed."""
    try:
        found = rows()
    except RowError as error:
        raise AgentFailed(str(error)) from None
    if name not in found:
        raise AgentFailed(f"agents.toml has no row [{name}]; there are {', '.join(found)}")
    return found[name]


def ready(name: str, options: Mapping[str, Any]) -> Found:
    """Look whether the agent can be run; blocking. Raises AgentFailed with the sentence that helps."""
    row = row_of(name)
    found = look(row, str(options.get("cli") or ""), {**os.environ, **extra_environment(row, options)})
    if not found.ok:
        raise AgentFailed(found.wrong)
    if options.get("effort") and not row.effort and row.adapter != "codex":
        raise AgentFailed(f"{row.title} cannot be told how hard to think: leave effort out")
    return found


def extra_environment(row: Row, options: Mapping[str, Any]) -> dict[str, str]:
    """What is passed on by name: the row's ``keys`` of our environment, then the file that was named on purpose."""
    env = {key: os.environ[key] for key in row.keys if os.environ.get(key)}
    if options.get("env_file"):
        path = Path(str(options["env_file"]))
        try:
            env |= read_env_file(path)
        except OSError as error:
            raise AgentFailed(f"{path} cannot be read: {error.strerror}") from None
    return env


class CliAgent:
    """A coding agent of ``agents.toml``. ``options``: cli, model, effort, env_file, max_turns, max_cost, max_wall."""

    def __init__(self, kind: str, options: Mapping[str, Any], place: Place) -> None:
        self.kind = kind
        self._options = options
        self._place = place
        self._row = row_of(kind)
        model = options.get("model")
        self.name = f"{self._row.title} ({model})" if model else self._row.title
        self._calls = self._tools = 0
        self._at_work: set[str] = set()
        self._unpriced = False
        self._cost: float | None = None
        self._limit: asyncio.Future[str] | None = None

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        found = await asyncio.to_thread(ready, self.kind, self._options)
        extra = extra_environment(self._row, self._options)
        paced = PacedTeller(tell, secrets_of(extra))
        self._limit = asyncio.get_running_loop().create_future()
        try:
            async with Station(workspace, door, paced, self._place) as station:
                work = Work(
                    self._row, found.program, station, paced, self._heard, self._place.session, self._options, extra,
                    tuple(extra), IDLE,
                )  # fmt: skip
                return await self._evolve(work, door)
        finally:
            await paced.close()

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _evolve(self, work: Work, door: Door) -> str:
        deadline = time.monotonic() + float(self._options.get("max_wall") or 1e12)
        adapter = await opened(work)
        fruitless = 0
        try:
            prompt = await self._first(door, work, bool(adapter.work.session))
            while True:
                before = await door.info()
                try:
                    await self._turn(adapter, prompt, door, deadline)
                except NotResumed:
                    await adapter.close()
                    await work.tell(AgentRaw("session", f"{work.session} cannot be taken up; a new one begins"))
                    adapter = await opened(replace(adapter.work, session=""))
                    prompt = await self._first(door, adapter.work, False)
                    continue
                info = await door.info()
                title, stream = self._row.title, adapter.stream
                if spent(info):
                    return f"{title} spent the budget"
                if stream.is_error and stream.reason.startswith("Reached maximum budget"):
                    raise LimitReached(f"the limit of ${self._options.get('max_cost')} is reached")
                if (
                    stream.is_error
                    and stream.reason != "interrupted"
                    and "maximum number of turns" not in stream.reason
                ):
                    raise AgentFailed(blame(self._row, stream.status, stream.reason))
                submitted = info["state"]["n_submits"] > before["state"]["n_submits"]
                if self._options.get("max_cost") and self._cost is None and not self._unpriced:
                    self._unpriced = True
                    await work.tell(AgentRaw("limit", f"{title} tells no price: no limit of money can be kept"))
                turns = self._options.get("max_turns")
                if turns is not None and max(self._calls, self._tools) >= turns:
                    raise LimitReached(f"the limit of {counted(turns, 'turn')} is reached")
                fruitless = 0 if submitted else fruitless + 1
                if fruitless >= _FRUITLESS:
                    raise AgentFailed(self._stuck(info, stream.denials))
                notes = await door.messages()
                prompt = next_prompt(info, notes, submitted, stream.denials)
        finally:
            await adapter.close()

    async def _first(self, door: Door, work: Work, resumed: bool) -> str:
        info, notes = await door.info(), await door.messages()
        if resumed:
            return next_prompt(info, notes, True, ())
        return first_prompt(await door.task(), info, self._place.past, notes)

    def _stuck(self, info: Mapping[str, Any], denials: list[str]) -> str:
        left = info["state"]["remaining_budget"]
        why = f" (refused: {', '.join(sorted(set(denials))[:5])})" if denials else ""
        return (
            f"{self._row.title} ended {_FRUITLESS} turns without submitting anything, with {left} episodes left{why}; "
            "tell it what to do and resume, hand over, or finalize"
        )

    async def _turn(self, adapter: Adapter, prompt: str, door: Door, deadline: float) -> None:
        """One turn, spoken into where that can be, broken off at a limit. Raises LimitReached and what it raises."""
        assert self._limit is not None
        turn = asyncio.create_task(adapter.turn(prompt), name="agent turn")
        ear = asyncio.create_task(self._listen(adapter, door), name="agent messages")
        try:
            left = max(0.0, deadline - time.monotonic())
            waited: set[asyncio.Future[Any]] = {turn, self._limit}
            await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if turn.done():
                turn.result()
                if self._limit.done():
                    raise LimitReached(self._limit.result())
                return
            while adapter.work.station.urls.busy() and not turn.done():  # what is paid for is waited for
                await asyncio.wait({turn}, timeout=0.2)
            await adapter.interrupt()
            await asyncio.wait({turn}, timeout=_LAST_WORDS)
            reason = self._limit.result() if self._limit.done() else ""
            raise LimitReached(reason or f"the limit of {float(self._options['max_wall']):g} s is reached")
        finally:
            for task in (ear, turn):
                task.cancel()
            await asyncio.wait({ear, turn})
            for task in (ear, turn):
                if not task.cancelled():
                    task.exception()  # looked at: what matters of it was raised above

    async def _listen(self, adapter: Adapter, door: Door) -> None:
        """Pass on what a person says while the program can hear it."""
        while True:
            await door.spoken_to()
            if not adapter.hears:
                await asyncio.sleep(0.2)  # the message stays where it is, for the next prompt at the latest
                continue
            for text in await door.messages("at once"):
                if not await adapter.say(noted([text])):
                    await adapter.work.tell(AgentRaw("message", f"not heard in the middle of its turn: {text}"))

    async def _heard(self, fact: Event) -> None:
        """Count what has a limit. Turns end with the results of their tools: those are waited for."""
        turns, cost = self._options.get("max_turns"), self._options.get("max_cost")
        reason = ""
        if isinstance(fact, UsageReported):
            self._calls += 1
            if fact.cost_usd is not None:
                self._cost = (self._cost or 0.0) + fact.cost_usd
            if cost is not None and self._cost is not None and self._cost >= cost:
                reason = f"the limit of ${cost:g} is reached (${self._cost:.4f} spent)"
        elif isinstance(fact, ToolCalled):
            self._tools += 1
            self._at_work.add(fact.call)
        elif isinstance(fact, ToolReturned):
            self._at_work.discard(fact.call)
            if turns is not None and not self._at_work and max(self._calls, self._tools) >= turns:
                reason = f"the limit of {counted(turns, 'turn')} is reached"
        if reason and self._limit is not None and not self._limit.done():
            self._limit.set_result(reason)


async def opened(work: Work) -> Adapter:
    """A conversation, by the row's adapter or its fallback, the earlier one where it is still there.

    Raises AgentFailed.
    """
    adapter = ADAPTERS[work.row.adapter](work)
    try:
        await adapter.open()
        return adapter
    except NotResumed:
        await adapter.close()
        await work.tell(AgentRaw("session", f"{work.session} cannot be taken up; a new one begins"))
        return await opened(replace(work, session=""))
    except NotOffered as reason:
        await adapter.close()
        if work.row.fallback is None:
            raise AgentFailed(f"{work.row.title} cannot be spoken with: {reason}") from None
        await work.tell(AgentRaw("adapter", f"{reason}; it is run turn by turn instead"))
        return await opened(replace(work, row=work.row.fallback))
    except BaseException:
        await adapter.close()
        raise


def spent(info: Mapping[str, Any]) -> bool:
    """Whether no submission can be made any more."""
    left = info["state"]["remaining_budget"]
    return bool(info["state"]["is_finalized"]) or left < max(1, info["min_episodes_per_submit"])
