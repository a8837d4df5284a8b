"""The door as HTTP on loopback, for agents in processes of their own (PROTOCOL: the agent's HTTP interface).

Three calls below a path that cannot be guessed, and nothing else: whatever finalizes, pauses or reads hidden things has
no address here. A client that goes away before its submission is accepted takes the request back; one that goes away
later loses its answer only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from evotui.protocol.budget import DoorClosed, Rejected
from evotui.protocol.door import DoorUrls
from evotui.protocol.verdict import Verdict

if TYPE_CHECKING:
    from aiohttp import web

MAX_BODY = 1 << 20
"""Bytes of a request's body; a list of the most cases that anybody asks for is shorter."""


class Door(Protocol):
    """What is served: a session, or an agent's own view of one."""

    async def task(self) -> str: ...
    async def info(self) -> dict[str, Any]: ...
    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]: ...
    async def messages(self, how: str = "at the gate") -> list[str]: ...


@asynccontextmanager
async def serve_door(door: Door) -> AsyncIterator[DoorUrls]:
    """Serve ``door`` on a free port of 127.0.0.1 for as long as the context lives. Raises OSError."""
    from aiohttp import web

    token, waiting = secrets.token_urlsafe(24), 0

    async def info(request: web.Request) -> web.Response:
        return _json(await door.info())

    async def task(request: web.Request) -> web.Response:
        return web.Response(text=await door.task(), content_type="text/markdown")

    async def submit(request: web.Request) -> web.Response:
        nonlocal waiting
        waiting += 1
        try:
            return await _submit(door, request)
        finally:
            waiting -= 1

    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_get(f"/{token}/info", info, allow_head=False)
    application.router.add_get(f"/{token}/task", task, allow_head=False)
    application.router.add_post(f"/{token}/submit", submit)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        base = f"http://127.0.0.1:{port}/{token}"
        yield DoorUrls(f"{base}/info", f"{base}/task", f"{base}/submit", busy=lambda: waiting > 0)
    finally:
        await runner.cleanup()


async def _submit(door: Door, request: web.Request) -> web.Response:
    try:
        body = json.loads(await request.text())
        cases = body["env_instances"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return _refused(400, "bad_request", 'the body must be JSON such as {"env_instances": "0-3,7"}')
    if not isinstance(cases, (list, str)):
        message = f'env_instances must be a list of ids or a string such as "0-3,7", not {json.dumps(cases)[:40]}'
        return _refused(400, Verdict.INVALID_ENV_INSTANCE, message)
    try:
        answer = dict(await door.submit(cases))
    except Rejected as rejected:
        return await _with_notes(door, 400, _refusal(rejected.verdict, rejected.message))
    except DoorClosed as closed:
        return _refused(409, "finalized", str(closed))
    except Exception as error:  # told to whoever asked; a run must not end because of one request
        return _refused(500, "internal_error", f"{type(error).__name__}: {error}")
    return await _with_notes(door, 200, answer)


async def _with_notes(door: Door, status: int, document: dict[str, Any]) -> web.Response:
    """The answer, with what a person said to the agent meanwhile."""
    notes = await door.messages()
    return _json(document | {"notes": notes} if notes else document, status)


def _refusal(verdict: str, message: str) -> dict[str, Any]:
    return {"submit_id": None, "status": str(verdict), "error": str(verdict), "message": message}


def _refused(status: int, verdict: str, message: str) -> web.Response:
    return _json(_refusal(verdict, message), status)


def _json(document: dict[str, Any], status: int = 200) -> web.Response:
    from aiohttp import web

    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    return web.Response(text=text, status=status, content_type="application/json")
