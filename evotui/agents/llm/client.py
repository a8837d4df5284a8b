"""The parent's end of the gateway: starts the child, makes calls, cancels them. Costs nothing while nothing happens."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evotui
from evotui.agents.llm.calls import Call
from evotui.agents.llm.faults import ModelFault

LINE_LIMIT = 256 << 20
READY_SECONDS = 120.0
WALL = 900.0
"""Seconds that a call may take, if the request says nothing else."""
_SLACK_SECONDS = 15.0
_UNHEARD_SECONDS = 2.0
"""A cancelled call that says nothing for so long: the child hangs, and is replaced."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece on a ``channel``: text, thought or tool."""

    channel: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Tokens: fresh, cached and cache-written input, output; ``cost`` in dollars, None: not known."""

    text: str
    thought: str
    calls: tuple[Call, ...]
    finish: str
    input: int
    cached: int
    written: int
    output: int
    estimated: bool
    cost: float | None
    model: str
    blocks: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Request:
    """A call: see :mod:`evotui.agents.llm.gateway` for the deadlines' meaning."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    api_base: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    price: list[float] | None = None
    cache: bool = False
    first: float | None = None
    idle: float | None = None
    wall: float | None = None

    def to_json(self) -> dict[str, Any]:
        names = self.__slots__
        return {name: dict(v) if isinstance(v := getattr(self, name), Mapping) else v for name in names}


class GatewayClient:
    """One child process, started with :meth:`start` (which returns at once), warm after :meth:`ready`."""

    def __init__(self, env_file: str = "") -> None:
        self._env_file = env_file
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._queues: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._ids = itertools.count(1)
        self._watch: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Start the child if it is not there. Its keys are what the environment and the named file hold."""
        if self._process is not None and self._process.returncode is None:
            return
        # -P: it holds the keys, and must not import what lies in the working directory, an agent's code perhaps.
        command = [sys.executable, "-P", "-m", "evotui.agents.llm.gateway", "--parent", str(os.getpid())]
        home = str(Path(evotui.__file__).parent.parent)
        path = os.pathsep.join([home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
        if self._env_file:
            command += ["--env-file", self._env_file]
        self._ready = asyncio.get_running_loop().create_future()
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=LINE_LIMIT,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._reader = asyncio.create_task(self._read(self._process, self._ready), name="model gateway")

    async def ready(self) -> None:
        """Wait until the child can take calls. Raises ModelFault."""
        await self.start()
        assert self._ready is not None
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), READY_SECONDS)
        except TimeoutError:
            raise ModelFault("gateway", f"litellm was not loaded within {READY_SECONDS:g} s") from None

    async def call(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        """Deltas, then the reply. Raises ModelFault. Closing the iterator cancels the call at once."""
        await self.ready()
        call = next(self._ids)
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._queues[call] = queue
        process, ended = self._process, False
        give_up = time.monotonic() + (request.wall or WALL) + _SLACK_SECONDS
        try:
            await self._send({"do": "call", "id": call, "request": request.to_json()})
            while True:
                event = await self._next(queue, give_up - time.monotonic(), process)
                kind = event["event"]
                if kind in ("text", "thought", "tool"):
                    yield Delta(kind, event["text"])
                    continue
                ended = True
                if kind == "done":
                    yield _reply(event)
                    return
                raise ModelFault(
                    event.get("kind", "gateway"),
                    event.get("message") or "the model gateway ended",
                    event.get("retry_after"),
                    bool(event.get("partial")),
                )
        finally:
            if not ended:
                self._cancel(call, process)
            else:
                self._queues.pop(call, None)

    async def _next(
        self, queue: asyncio.Queue[dict[str, Any]], seconds: float, process: asyncio.subprocess.Process | None
    ) -> dict[str, Any]:
        """The next event. A child that is silent past its own deadlines does not run: it is killed."""
        try:
            return await asyncio.wait_for(queue.get(), seconds)
        except TimeoutError:
            if process is not None:
                _kill(process)
                await process.wait()
            raise ModelFault("gateway", "the model gateway does not answer", partial=True) from None

    def _cancel(self, call: int, process: asyncio.subprocess.Process | None) -> None:
        """Tell the child, without waiting; a child that does not hear it is killed."""
        if process is None or process.returncode is not None or process.stdin is None:
            self._queues.pop(call, None)
            return
        process.stdin.write(json.dumps({"do": "cancel", "id": call}).encode() + b"\n")
        task = asyncio.create_task(self._heard(call, process))
        self._watch.add(task)
        task.add_done_callback(self._watch.discard)

    async def _heard(self, call: int, process: asyncio.subprocess.Process) -> None:
        queue = self._queues[call]
        try:
            async with asyncio.timeout(_UNHEARD_SECONDS):
                while (await queue.get())["event"] in ("text", "thought", "tool"):
                    pass
        except TimeoutError:
            _kill(process)
        finally:
            self._queues.pop(call, None)

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        data = await asyncio.to_thread(lambda: json.dumps(message).encode() + b"\n")
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise ModelFault("gateway", "the model gateway ended") from None

    async def _read(self, process: asyncio.subprocess.Process, ready: asyncio.Future[None]) -> None:
        assert process.stdout is not None
        broken = "the model gateway ended"
        while line := await process.stdout.readline():
            event = json.loads(line)
            if event["event"] == "ready":
                ready.set_result(None)
            elif event["event"] == "broken":
                broken = event["message"]
            elif event["id"] in self._queues:
                self._queues[event["id"]].put_nowait(event)
        await process.wait()
        if not ready.done():
            ready.set_exception(ModelFault("bad_request", broken))
            ready.exception()  # whoever waits is told; nobody need wait
        for queue in self._queues.values():
            queue.put_nowait({"event": "error", "kind": "gateway", "message": broken, "partial": True})

    def abandon(self) -> None:
        """Kill the child of an event loop that is gone."""
        if self._process is not None:
            _kill(self._process)

    async def close(self) -> None:
        """End the child, now."""
        for task in list(self._watch):
            task.cancel()
        if self._process is None:
            return
        _kill(self._process)
        await self._process.wait()
        if self._reader is not None:
            await asyncio.wait({self._reader})
        self._process = None


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _reply(event: dict[str, Any]) -> Reply:
    fresh, cached, written, output = event["usage"]
    calls = tuple(Call(c["id"], c["name"], c["text"], c.get("extra")) for c in event["calls"])
    return Reply(
        event["text"], event["thought"], calls, event["finish"], fresh, cached, written, output, event["estimated"],
        event["cost"], event["model"], tuple(event["blocks"]),
    )  # fmt: skip


_warm: dict[str, tuple[asyncio.AbstractEventLoop, GatewayClient]] = {}
"""Gateways that were started before their agent was there, by the file of keys, with the loop that they belong to."""


async def warm_up(env_file: str = "") -> None:
    """Start a gateway for the agent that comes next; it loads litellm meanwhile. Returns at once."""
    client = warmed(env_file)
    await client.start()
    _warm[env_file] = (asyncio.get_running_loop(), client)


def warmed(env_file: str = "") -> GatewayClient:
    """The gateway that was started for this in the running event loop, or a new one."""
    loop, client = _warm.pop(env_file, (None, None))
    if client is not None and loop is asyncio.get_running_loop():
        return client
    if client is not None:
        client.abandon()
    return GatewayClient(env_file)
