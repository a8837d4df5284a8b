"""The native agent: a loop of turns in which a model thinks, calls tools, and is told what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import json
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from evotui.agents.base import AgentFailed, Door, LimitReached, Place, Teller, Workspace
from evotui.agents.llm import prompt
from evotui.agents.llm.calls import Call, calls_in_text
from evotui.agents.llm.client import Delta, GatewayClient, Reply, Request, warmed
from evotui.agents.llm.faults import ModelFault
from evotui.agents.llm.history import History
from evotui.agents.llm.patience import reason, sentence
from evotui.agents.llm.scores import Scores
from evotui.agents.llm.tools import NAMES, TOOLS, Result, Tools
from evotui.agents.llm.wishes import Wishes
from evotui.protocol.words import counted
from evotui.record import events as e

FORMAT_ERRORS, SAME_RESULTS = 3, 4
_QUIET_REPLIES = 2
"""Replies without a tool call in a row, after which the model is taken at its word."""
_LEAST_WALL = 20.0
NOTES_FILE = "agent_notes.md"
_FILES_SHOWN, _FILE_SHOWN = 4, 20_000


class ModelAgent:
    """One session with a model, and with those to fall back to. ``options``: see :class:`Wishes`."""

    kind = "litellm"

    def __init__(self, options: Mapping[str, Any], place: Place, gateway: GatewayClient | None = None) -> None:
        """``gateway``: one that is there already, and stays."""
        self._wish = Wishes.of(options)
        self._models = list(self._wish.models)
        self.name = self._models[0]
        self._place = place
        self._own = gateway is None
        self._gateway = gateway or warmed(self._wish.env_file)
        self._scores = Scores()
        self._notes: list[str] = []
        self._said: list[str] = []
        self._cost = 0.0
        self._started = 0.0
        self._results: dict[str, int] = {}

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        self._workspace, self._door, self._tell = workspace, door, tell
        self._started = time.monotonic()
        try:
            await self._gateway.start()  # it warms up while the rest is made ready
            return await self._evolve()
        finally:
            if self._own:
                await self._gateway.close()

    async def _evolve(self) -> str:
        await self._tell(e.AgentSession("", self.name, f"litellm {_version()}"))
        self._notes = await asyncio.to_thread(self._kept_notes)
        self._cost = await asyncio.to_thread(self._earlier_cost)
        least = await self._look_at_budget()
        if self._scores.remaining < least:
            return self._nothing_left()
        self._task = await self._door.task()
        self._history = History(
            prompt.system_prompt(self._wish.turns, self._wish.wall, self._wish.max_cost), await self._first()
        )
        tools = Tools(self._workspace, self._door, self._scores, self._notes, self._place.stream.parent / NOTES_FILE)
        quiet = wrong = 0
        how = "at the gate"
        for turn in range(self._wish.turns):
            self._check_limits(turn)
            await self._look_at_budget()  # a person may have spent it
            if self._scores.remaining < least:
                return self._nothing_left()
            for text in await self._door.messages(how):
                self._said.append(text)
                self._history.user(prompt.OPERATOR.format(text))
                quiet = 0
            reply = await self._ask()
            calls, in_text, broken = self._calls_of(reply)
            self._history.reply(reply, () if in_text else calls)
            tools.submitted = False
            bad, closed = await self._carry_out(tools, calls, reply, in_text)
            if closed is not None:
                return closed
            if not calls:
                empty = not reply.text.strip()
                bad = empty or broken
                quiet += not bad
                if quiet >= _QUIET_REPLIES and not await self._waiting():
                    return reply.text.strip()[:500]
                left = prompt.GO_ON.format(remaining=self._scores.remaining)
                self._history.user(prompt.EMPTY if empty else prompt.LOOKS_LIKE_A_CALL if broken else left)
            else:
                quiet = 0
            wrong = wrong + 1 if bad else 0
            if wrong >= FORMAT_ERRORS:
                raise AgentFailed(
                    f"{self.name} made {wrong} replies in a row that cannot be used (empty, or calls with wrong names "
                    "or arguments): tell it what to do, or go on with another model"
                )
            if tools.submitted and self._scores.remaining < least:
                return self._nothing_left()
            how = "at the gate" if tools.submitted else "at once"
        raise LimitReached(f"{counted(self._wish.turns, 'turn')} used up")

    async def _look_at_budget(self) -> int:
        """Note how many episodes are left; how many a submission takes at least."""
        info = await self._door.info()
        self._scores.remaining = int((info.get("state") or {}).get("remaining_budget") or 0)
        return int(info.get("min_episodes_per_submit") or 1)

    def _nothing_left(self) -> str:
        left = self._scores.remaining
        return f"{counted(left, 'episode')} left, fewer than a submission takes" if left else "the budget is spent"

    async def _waiting(self) -> bool:
        """Whether a person has said something that the model has not been told."""
        spoken = asyncio.ensure_future(self._door.spoken_to())
        try:
            await asyncio.wait({spoken}, timeout=0)
            return spoken.done()
        finally:
            spoken.cancel()

    def _kept_notes(self) -> list[str]:
        path = self._place.stream.parent / NOTES_FILE
        return [n for n in path.read_text("utf-8").split("\n\n") if n.strip()] if path.exists() else []

    def _earlier_cost(self) -> float:
        """Dollars that earlier sessions of this run spent: the limit is the run's, however often it is taken up."""
        path, total = self._place.stream, 0.0
        if not self._wish.max_cost or not path.exists():
            return total
        for line in path.read_text("utf-8", errors="replace").splitlines():
            try:
                cost = json.loads(line)["cost"]
            except (ValueError, KeyError, TypeError):
                continue  # an error's line, another agent's, or one that a kill cut short
            total += cost if isinstance(cost, (int, float)) else 0.0
        return total

    async def _first(self) -> str:
        def files() -> dict[str, str]:
            system = self._workspace.system
            found = sorted(p for p in system.rglob("*.py") if p.is_file())[:_FILES_SHOWN]
            texts = {str(p.relative_to(system)): p.read_text("utf-8", errors="replace") for p in found}
            return {name: text for name, text in texts.items() if len(text) <= _FILE_SHOWN}

        shown = await asyncio.to_thread(files)
        info = await self._door.info()
        first = prompt.first_prompt(self._task, info, shown, self._place.past, self._notes, self._scores.table())
        return "\n\n".join([first, *(prompt.OPERATOR.format(text) for text in self._said)])

    def _check_limits(self, turn: int) -> None:
        """Raises LimitReached, between two turns."""
        if time.monotonic() - self._started >= self._wish.wall:
            raise LimitReached(f"the time of {self._wish.wall:g} s is used up, after {counted(turn, 'turn')}")
        if self._wish.max_cost and self._cost >= self._wish.max_cost:
            raise LimitReached(
                f"${self._cost:.4f} of at most ${self._wish.max_cost:g} are spent, after {counted(turn, 'turn')}"
            )

    # ── the model ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self) -> Reply:
        """One answer, with other tries and other models where that helps. Raises AgentFailed or LimitReached."""
        attempt, trimmed = 0, False
        while True:
            attempt += 1
            try:
                return await self._stream(self._models[0])
            except ModelFault as fault:
                await self._keep({"error": fault.kind, "message": fault.message, "model": self._models[0]})
                left = self._wish.wall - (time.monotonic() - self._started)
                if fault.kind == "context" and not trimmed and self._history.trim():
                    trimmed = True
                    self._history.first = await self._first()
                    await self._tell(e.AgentRetried("the conversation was too long and was shortened", 0.0, attempt))
                    continue
                wait = self._wish.patience.wait(fault, attempt)
                if wait is not None and wait >= left:
                    raise LimitReached(f"the time of {self._wish.wall:g} s is used up: {reason(fault)}") from None
                if wait is not None:
                    await self._tell(e.AgentRetried(reason(fault), round(wait, 1), attempt))
                    await asyncio.sleep(wait)
                    continue
                if len(self._models) == 1:
                    raise AgentFailed(sentence(fault, self._models[0], self._wish.base, attempt)) from None
                given_up = self._models.pop(0)
                words = f"{reason(fault)}; {self._models[0]} goes on instead of {given_up}"
                await self._tell(e.AgentRetried(words, 0.0, attempt))
                await self._tell(e.AgentSession("", self._models[0], f"litellm {_version()}"))
                attempt, trimmed = 0, False

    async def _stream(self, model: str) -> Reply:
        left = self._wish.wall - (time.monotonic() - self._started)
        deadlines = dict(self._wish.deadlines)
        if left < float("inf"):
            deadlines["wall"] = min(deadlines["wall"] or float("inf"), max(_LEAST_WALL, left))
        request = Request(
            model,
            self._history.messages(),
            TOOLS,
            self._wish.base,
            self._wish.params,
            self._wish.price,
            cache=any(word in model for word in ("anthropic", "claude")),
            **deadlines,
        )
        async with aclosing(self._gateway.call(request)) as stream:
            async for item in stream:
                if isinstance(item, Delta):
                    await self._tell(e.AgentDelta(item.channel, item.text))
                else:
                    await self._told(item)
                    return item
        raise ModelFault("gateway", "no reply")

    async def _told(self, reply: Reply) -> None:
        """A whole reply's facts, but for its calls."""
        await self._keep(_as_line(reply))
        if reply.thought:
            await self._tell(e.AgentThought(reply.thought))
        if reply.text.strip():
            await self._tell(e.AgentMessage(reply.text))
        await self._tell(
            e.UsageReported(
                reply.input, reply.cached, reply.written, reply.output, reply.cost, reply.estimated, reply.model
            )
        )
        self._cost += reply.cost or 0.0
        if reply.cost is None and self._wish.max_cost:
            raise AgentFailed(
                f"no price of {reply.model} is known, so that --max-cost cannot be kept: give it with --option "
                "price=IN,OUT (dollars per million tokens), or leave --max-cost out"
            )

    async def _keep(self, line: Mapping[str, Any]) -> None:
        """Append to the agent's stream file: what the model said, as it came."""
        text = json.dumps({"time": round(time.time(), 3), **line}, ensure_ascii=False) + "\n"

        def work() -> None:
            with self._place.stream.open("a", encoding="utf-8") as file:
                file.write(text)

        await asyncio.to_thread(work)

    # ── its calls ────────────────────────────────────────────────────────────────────────────────────────────────

    def _calls_of(self, reply: Reply) -> tuple[tuple[Call, ...], bool, bool]:
        """(calls, whether they were written in the text, whether the text looks like a call that cannot be read)."""
        if reply.calls:
            return reply.calls, False, False
        found, broken = calls_in_text(reply.text, NAMES)
        return tuple(found), bool(found), broken

    async def _carry_out(
        self, tools: Tools, calls: tuple[Call, ...], reply: Reply, in_text: bool
    ) -> tuple[bool, str | None]:
        """Carry calls out, in order. Returns whether one of them was made wrongly, and why the run takes no more."""
        bad, closed = False, None
        for call in calls:
            result, arguments = await self._carry(tools, call, reply.finish, closed)
            if in_text:
                self._history.user(f"Result of {call.name}:\n{result.text}")
            else:
                self._history.result(call, result.text)
            bad = bad or result.format
            closed = closed or (result.text if result.closed else None)
            self._check_stuck(call.name, arguments, result)
        return bad, closed

    async def _carry(
        self, tools: Tools, call: Call, finish: str, closed: str | None
    ) -> tuple[Result, Mapping[str, Any]]:
        try:
            arguments = call.arguments()
        except ValueError as wrong:
            await self._tell(e.ToolCalled(call.id, call.name or "?", {"arguments": call.text[:2000]}))
            words = prompt.CUT_OFF if finish == "length" else f"Not carried out: {wrong}. Send the call again."
            result, arguments = Result(False, words, format=True), {}
        else:
            await self._tell(e.ToolCalled(call.id, call.name or "?", arguments))
            result = Result(False, closed) if closed else await tools.run(call.name, arguments)
        await self._tell(e.ToolReturned(call.id, result.ok, result.text, result.denied))
        return result, arguments

    def _check_stuck(self, name: str, arguments: Mapping[str, Any], result: Result) -> None:
        """Raises AgentFailed for the same call with the same result again and again. A result that is new, or a success
        of a tool that changes something, makes all of it forgotten."""
        if result.ok and name in ("write_file", "str_replace", "submit"):
            self._results = {k: n for k, n in self._results.items() if k.startswith(name)}
        said = json.dumps([name, dict(arguments), result.text], sort_keys=True, default=str)
        key = f"{name}:{hashlib.sha256(said.encode()).hexdigest()}"
        self._results[key] = self._results.get(key, 0) + 1
        if self._results[key] >= SAME_RESULTS:
            raise AgentFailed(
                f"{self.name} is stuck: it called {name} {SAME_RESULTS} times in the same way, with the same result; "
                "tell it what to do, or go on with another model"
            )


def _as_line(reply: Reply) -> dict[str, Any]:
    return {
        "model": reply.model, "finish": reply.finish, "thought": reply.thought, "text": reply.text,
        "calls": [{"id": c.id, "name": c.name, "arguments": c.text} for c in reply.calls],
        "usage": [reply.input, reply.cached, reply.written, reply.output], "estimated": reply.estimated,
        "cost": reply.cost,
    }  # fmt: skip


def _version() -> str:
    return importlib.metadata.version("litellm")
