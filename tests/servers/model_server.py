"""A scripted model behind a real socket: Anthropic Messages, OpenAI Responses and OpenAI Chat, streaming or whole.

In a test: ``async with ModelServer([turns]) as server: … server.url`` and ``server.requests``. As a program, for other
programs: ``python -m tests.servers.model_server --script FILE.json --port 0 --print-port [--log FILE]``. It listens on
127.0.0.1 only, and ends by itself: when whoever started it ends, or when nobody asked anything for a while.

The script is a list of turns (:class:`tests.servers.script.Turn`; see there for every way to fail), for example::

    [{"thinking": "Let me look.", "text": "I look first.", "calls": [{"name": ["Bash", "shell"], "arguments": {…}}]},
     {"fail": "429", "times": 2, "retry_after": 1, "text": "Done."}]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.servers.dialects import Anthropic, Chat, Responses
from tests.servers.script import BROKEN_STREAMS, REFUSALS, Request, Script, Turn

Dialect = Anthropic | Responses | Chat
FLOOD_PIECE = "delta {:06d} "
_SECRET_HEADERS = ("authorization", "x-api-key")


class ModelServer:
    """Serves one script. ``requests`` are those for an answer, in order; ``others`` the rest, as (method, path)."""

    def __init__(
        self, script: Any = ("Done.",), log: Path | None = None, aux: str | None = None, port: int = 0
    ) -> None:
        self.script = script if isinstance(script, Script) else Script(script, aux)
        self.requests: list[Request] = []
        self.others: list[tuple[str, str]] = []
        self.port = port
        self.last = time.monotonic()
        self._log = log
        self._runner: web.AppRunner | None = None
        self._over = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=256 << 20)
        for prefix in ("", "/v1"):
            for path, dialect in (
                ("/messages", Anthropic()),
                ("/responses", Responses()),
                ("/chat/completions", Chat()),
            ):
                app.router.add_post(prefix + path, self._handler(dialect))
            app.router.add_post(prefix + "/messages/count_tokens", self._count)
            app.router.add_post(prefix + "/responses/input_tokens", self._count)
            app.router.add_get(prefix + "/models", self._models)
            app.router.add_get(prefix + "/models/{name:.+}", self._models)
        app.router.add_route("*", "/{rest:.*}", self._other)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._over.set()
        if self._runner is not None:
            await self._runner.cleanup()

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _handler(self, dialect: Dialect) -> Any:
        async def handle(raw: web.Request) -> web.StreamResponse:
            if raw.headers.get("content-encoding") == "zstd":
                return web.Response(status=415)
            request = Request(dialect.name, raw.path_qs, dict(raw.headers), await raw.json(), time=time.monotonic())
            dialect.read(request)
            self.requests.append(request)
            self.last = time.monotonic()
            try:
                turn = await self.script.answer(request)
                self._write(request, turn)
                return await self._answer(raw, request, turn, dialect)
            except (ConnectionResetError, asyncio.CancelledError):
                request.gone = time.monotonic()
                raise
            finally:
                request.ended = time.monotonic()

        return handle

    async def _answer(self, raw: web.Request, request: Request, turn: Turn, dialect: Dialect) -> web.StreamResponse:
        if turn.fail in REFUSALS:
            return _refuse(turn, dialect)
        if turn.fail == "hang":
            await self._over.wait()
            return web.Response(status=503)
        if not request.streams and turn.fail not in ("stall", "cut", "garbage"):
            return web.json_response(dialect.whole(request, turn))
        out = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await out.prepare(raw)
        events = list(dialect.events(request, turn)) if turn.fail != "flood" else []
        if turn.fail == "flood":
            await self._flood(out, request, turn, dialect)
        for number, event in enumerate(events):
            if turn.fail in BROKEN_STREAMS and number == (len(events) + 1) // 2:
                if turn.fail == "stall":
                    await self._over.wait()
                    break
                if turn.fail == "cut":
                    await asyncio.sleep(0.05)  # what was written is to arrive before the end does
                    assert raw.transport is not None
                    raw.transport.abort()
                    return out
                if turn.fail == "nodone":
                    break
                if turn.fail == "garbage":
                    await out.write(b"data: {this is not json\n\n")
                if turn.fail == "mid_error":
                    await out.write(dialect.broken())
                    break
            await out.write(event)
            if turn.delay:
                await asyncio.sleep(turn.delay)
        await out.write_eof()
        return out

    async def _flood(self, out: web.StreamResponse, request: Request, turn: Turn, dialect: Dialect) -> None:
        """``rate`` deltas a second, by the clock, then the end of the answer."""
        count = int(turn.rate * turn.seconds)
        text = "".join(FLOOD_PIECE.format(number) for number in range(count))
        size = len(FLOOD_PIECE.format(0))
        whole = Turn(text=text, usage=turn.usage, piece=size)
        start = time.monotonic()
        for sent, event in enumerate(dialect.events(request, whole)):
            ahead = sent / turn.rate - (time.monotonic() - start)
            if ahead > 0:
                await asyncio.sleep(ahead)
            await out.write(event)

    async def _count(self, raw: web.Request) -> web.Response:
        body = await raw.read()
        self.others.append((raw.method, raw.path))
        return web.json_response({"input_tokens": max(1, len(body) // 4), "object": "response.input_tokens"})

    async def _models(self, raw: web.Request) -> web.Response:
        self.others.append((raw.method, raw.path))
        names = [raw.match_info.get("name") or "scripted"]
        models = [
            {"id": name, "object": "model", "created": 1, "owned_by": "tests", "type": "model", "display_name": name,
             "created_at": "2026-01-01T00:00:00Z"} for name in names
        ]  # fmt: skip
        if "name" in raw.match_info:
            return web.json_response(models[0])
        return web.json_response({"object": "list", "data": models, "models": [], "has_more": False})

    async def _other(self, raw: web.Request) -> web.Response:
        self.others.append((raw.method, raw.path))
        self.last = time.monotonic()
        if raw.path == "/":
            return web.Response(text="scripted")
        return web.json_response({"error": {"message": f"nothing at {raw.path}"}}, status=404)

    def _write(self, request: Request, turn: Turn) -> None:
        if self._log is None:
            return
        table = asdict(request)
        table["headers"] = {k: v for k, v in request.headers.items() if k.lower() not in _SECRET_HEADERS}
        table["answered"] = {"fail": turn.fail, "text": turn.text[:200], "calls": [asdict(c) for c in turn.calls]}
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(table) + "\n")


def _refuse(turn: Turn, dialect: Dialect) -> web.Response:
    status = REFUSALS[turn.fail]
    headers = {} if turn.retry_after is None else {"retry-after": f"{turn.retry_after:g}"}
    if turn.fail == "502":
        return web.Response(status=502, text="<html><h1>Bad Gateway</h1></html>", content_type="text/html")
    words = {401: "invalid api key", 404: "no such model", 429: "slow down", 500: "boom", 503: "unavailable"}
    message = turn.message or words.get(status, "refused")
    return web.json_response(dialect.refusal(status, turn.fail, message), status=status, headers=headers)


# ── as a program ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _parent() -> Iterator[int]:
    """End when the parent does (Linux: at once, by the kernel)."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    yield parent


async def serve(script: Script, port: int, log: Path | None, idle: float, tell_port: bool) -> None:
    with _parent() as parent:
        async with ModelServer(script, log, port=port) as server:
            if tell_port:
                print(server.port, flush=True)
            while os.getppid() == parent and time.monotonic() - server.last < idle:
                await asyncio.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--script", type=Path, required=True, help="JSON file: a list of turns")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--print-port", action="store_true", help="one line on stdout, as soon as it listens")
    parser.add_argument("--log", type=Path, default=None, help="every request as a line of JSON, without keys")
    parser.add_argument("--idle", type=float, default=600.0, help="seconds without a request after which it ends")
    args = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(Script.load(args.script), args.port, args.log, args.idle, args.print_port))


if __name__ == "__main__":
    main()
