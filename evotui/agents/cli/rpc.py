"""JSON-RPC on a program's pipes, one message a line: our requests with their answers, its requests with ours."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

from evotui.agents.cli.adapter import BIG_LINE, Adapter
from evotui.agents.streams.base import record


class RpcError(Exception):
    """The program answered a request with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message") or error)[:1000])
        self.error = error


class Gone(Exception):
    """The program ended before it answered."""


class RpcAdapter(Adapter):
    """An adapter whose program speaks JSON-RPC. A subclass answers the program's requests in :meth:`_asked`."""

    header: dict[str, Any] = {"jsonrpc": "2.0"}  # noqa: RUF012

    def _begin(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def _send(self, message: dict[str, Any]) -> bool:
        assert self.process is not None
        return await self.process.write_line(json.dumps({**self.header, **message}, ensure_ascii=True))

    async def call(self, method: str, params: dict[str, Any], seconds: float | None = 60.0) -> dict[str, Any]:
        """Ask the program. Raises RpcError, Gone, TimeoutError, and what reading raised."""
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if not await self._send({"id": number, "method": method, "params": params}):
                raise Gone(method)
            async with asyncio.timeout(seconds):
                if not await self._await(answer):
                    raise Gone(method)
            return answer.result()
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> bool:
        return await self._send({"method": method, **({} if params is None else {"params": params})})

    async def _line(self, line: str) -> None:
        try:
            value = await asyncio.to_thread(json.loads, line) if len(line) > BIG_LINE else json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            await super()._line(line)
            return
        number = value.get("id")
        if "method" not in value and isinstance(number, int) and number in self._waiting:
            await self._told(self.stream.take(value, line))
            answer = self._waiting[number]
            if not answer.done():
                if "error" in value:
                    answer.set_exception(RpcError(record(value, "error")))
                else:
                    answer.set_result(record(value, "result"))
            return
        if "method" in value and "id" in value:
            await self._request(value, line)
            return
        await self._told(self.stream.take(value, line))
        await self._noticed(value)

    async def _request(self, value: dict[str, Any], line: str) -> None:
        await self._told(self.stream.take(value, line))
        method = value.get("method")
        try:
            result = await self._asked(method if isinstance(method, str) else "", record(value, "params"))
        except RpcError as refused:
            await self._send({"id": value.get("id"), "error": refused.error})
            return
        await self._send({"id": value.get("id"), "result": result})

    async def _asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request of the program. Raises RpcError."""
        raise RpcError({"code": -32601, "message": f"{method} is not offered here"})

    async def _noticed(self, value: dict[str, Any]) -> None:
        """A notification came; its facts are told already."""
