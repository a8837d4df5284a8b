"""Google's Gemini API for a scripted model: as much of it as Gemini CLI asks for."""

from __future__ import annotations

import itertools
import json
from typing import Any, Self

from aiohttp import web

from tests.agents.clis.author import Author
from tests.servers.script import Request, Turn

_USAGE = {"promptTokenCount": 140, "cachedContentTokenCount": 40, "candidatesTokenCount": 25, "totalTokenCount": 165}
_ROUTED = {"reasoning": "easy", "model_choice": "flash", "complexity_reasoning": "easy", "complexity_score": 1}


class GoogleServer:
    """Serves an :class:`Author` on a free port; ``refuse`` is a status that every request is answered with."""

    def __init__(self, author: Author, refuse: int = 0) -> None:
        self.author, self.refuse = author, refuse
        self.requests: list[Request] = []
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/{version}/models/{what:.*}", self._answer)
        app.router.add_route("*", "/{rest:.*}", self._other)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: Any) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _other(self, raw: web.Request) -> web.Response:
        return web.json_response({"error": {"code": 404, "message": raw.path, "status": "NOT_FOUND"}}, status=404)

    async def _answer(self, raw: web.Request) -> web.StreamResponse:
        body, action = await raw.json(), raw.path.rsplit(":", 1)[-1]
        if action == "countTokens":
            return web.json_response({"totalTokens": 100})
        if self.refuse:
            error = {"code": self.refuse, "message": "invalid api key", "status": "UNAUTHENTICATED"}
            return web.json_response({"error": error}, status=self.refuse)
        declared = [f for tool in body.get("tools") or () for f in tool.get("functionDeclarations") or ()]
        tools = [
            {"name": f["name"], "parameters": f.get("parametersJsonSchema") or f.get("parameters")} for f in declared
        ]
        request = Request("google", raw.path, dict(raw.headers), {"tools": tools, "sent": body})
        request.tools = [tool["name"] for tool in tools]
        self.requests.append(request)
        turn = self.author(request) if tools else json.dumps(_ROUTED)
        parts = self._parts(turn if isinstance(turn, Turn) else Turn(turn))
        if action == "generateContent":
            return web.json_response(self._chunk(parts, True))
        out = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await out.prepare(raw)
        for at, part in enumerate(parts):
            await out.write(f"data: {json.dumps(self._chunk([part], at == len(parts) - 1))}\n\n".encode())
        await out.write_eof()
        return out

    def _parts(self, turn: Turn) -> list[dict[str, Any]]:
        half = len(turn.text) // 2
        parts: list[dict[str, Any]] = [{"text": turn.text[:half]}, {"text": turn.text[half:]}]
        for call in turn.calls:
            function = {"id": f"fc{next(self._ids)}", "name": call.called([]), "args": call.arguments}
            parts.append({"functionCall": function, "thoughtSignature": "c2ln"})
        return [part for part in parts if part.get("text") != ""]

    def _chunk(self, parts: list[dict[str, Any]], last: bool) -> dict[str, Any]:
        candidate = {
            "content": {"role": "model", "parts": parts},
            "index": 0,
            **({"finishReason": "STOP"} if last else {}),
        }
        return {"candidates": [candidate], "usageMetadata": _USAGE, "modelVersion": "scripted", "responseId": "r1"}
