"""Codex over its app-server: deltas, diffs, usage call by call, interrupts, and words in the middle of a turn."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import evotui
from evotui.agents.base import AgentFailed
from evotui.agents.cli.adapter import NotOffered, NotResumed, Work, blame
from evotui.agents.cli.rpc import Gone, RpcAdapter, RpcError
from evotui.agents.streams import CodexServerStream
from evotui.agents.streams.base import record, word

_START = 30.0
_ANSWERS_IN = 20.0


def sandbox_of(walled: bool) -> str:
    """Codex's own sandbox mounts, which nobody may behind our wall: there it has none, and the wall is what holds."""
    return "danger-full-access" if walled else "workspace-write"


class CodexAdapter(RpcAdapter):
    """A turn is ``turn/start``, over with ``turn/completed``."""

    header: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, work: Work) -> None:
        super().__init__(work, CodexServerStream(str(work.root)))
        self._over: asyncio.Future[None] | None = None
        self._begin()

    @property
    def _codex(self) -> CodexServerStream:
        return cast(CodexServerStream, self.stream)

    async def open(self) -> None:
        await self._start(self.work.words())
        client = {"clientInfo": {"name": "evotui", "title": "evotui", "version": evotui.__version__}}
        try:
            await self.call("initialize", client, _START)
            await self.notify("initialized")
        except (RpcError, Gone, TimeoutError) as error:
            await self._end()
            raise NotOffered(f"its app-server does not answer ({error})") from None
        await self._thread()

    async def _thread(self) -> None:
        assert self.process is not None
        walled = bool(self.process.walls.get("landlock"))
        wishes: dict[str, Any] = {
            "cwd": str(self.work.root), "approvalPolicy": "never", "sandbox": sandbox_of(walled),
        }  # fmt: skip
        if self.work.options.get("model"):
            wishes["model"] = str(self.work.options["model"])
        method = "thread/start"
        if self.work.session:
            method = "thread/resume"
            wishes |= {"threadId": self.work.session, "excludeTurns": True}
        try:
            await self.call(method, wishes)
        except RpcError as error:
            if self.work.session:
                raise NotResumed(self.work.session) from None
            raise AgentFailed(blame(self.work.row, None, str(error))) from None
        except (Gone, TimeoutError):
            raise await self._broke_off() from None

    async def turn(self, prompt: str) -> None:
        self.stream.begin()
        self.turns += 1
        self._over = asyncio.get_running_loop().create_future()
        asked: dict[str, Any] = {"threadId": self.stream.session, "input": [{"type": "text", "text": prompt}]}
        if self.work.options.get("effort"):
            asked["effort"] = str(self.work.options["effort"])
        try:
            await self.call("turn/start", asked)
            if not await self._await(self._over):
                raise Gone("turn")
        except RpcError as error:
            raise AgentFailed(blame(self.work.row, self.stream.status, str(error))) from None
        except (Gone, TimeoutError):
            raise await self._broke_off() from None

    @property
    def hears(self) -> bool:
        return self._over is not None and not self._over.done() and bool(self._codex.turn)

    async def say(self, text: str) -> bool:
        if not self.hears:
            return False
        steer = {"threadId": self.stream.session, "expectedTurnId": self._codex.turn}
        try:
            await self.call("turn/steer", {**steer, "input": [{"type": "text", "text": text}]}, _ANSWERS_IN)
        except (RpcError, Gone, TimeoutError):
            return False
        return True

    async def interrupt(self) -> None:
        if not self.hears or self._over is None:
            return
        try:
            await self.call(
                "turn/interrupt", {"threadId": self.stream.session, "turnId": self._codex.turn}, _ANSWERS_IN
            )
            await asyncio.wait({self._over}, timeout=_ANSWERS_IN)
        except (RpcError, Gone, TimeoutError):
            return

    async def _noticed(self, value: dict[str, Any]) -> None:
        if self.stream.finished and self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def _asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method.endswith("/requestApproval"):
            self.stream.deny(word(params.get("itemId"), 200))
            return {"decision": "decline"}
        if method in ("execCommandApproval", "applyPatchApproval"):
            self.stream.deny(word(params.get("callId"), 200) or word(record(params, "item").get("id"), 200))
            return {"decision": "denied"}
        return await super()._asked(method, params)
