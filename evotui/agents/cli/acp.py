"""Agents that speak the Agent Client Protocol: prompts, permission requests, files served within the workspace."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import evotui
from evotui.agents.base import AgentFailed
from evotui.agents.cli.adapter import NotOffered, NotResumed, Work, blame
from evotui.agents.cli.kept import last_kept
from evotui.agents.cli.permits import call_allowed, read_allowed, write_allowed
from evotui.agents.cli.rpc import Gone, RpcAdapter, RpcError
from evotui.agents.streams import AcpStream
from evotui.agents.streams.base import arguments_of, items, record, word

_START = 60.0
_ANSWERS_IN = 20.0
_FILE = 8 << 20
"""Bytes of a file that is served."""

_REFUSALS = {
    "edit": "refused: only files below system/ may be written",
    "execute": "refused: only evotui, and commands that look at files, may be run",
    "read": "refused: only files of the workspace may be read",
}


class AcpAdapter(RpcAdapter):
    """A turn is ``session/prompt``, over with its answer."""

    def __init__(self, work: Work) -> None:
        super().__init__(work, AcpStream(str(work.root)))
        self._under_way = False
        self._begin()

    @property
    def _acp(self) -> AcpStream:
        return cast(AcpStream, self.stream)

    async def open(self) -> None:
        await self._start(self.work.words())
        files = {"readTextFile": True, "writeTextFile": True}
        hello = {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": files, "terminal": False},
            "clientInfo": {"name": "evotui", "title": "evotui", "version": evotui.__version__},
        }
        try:
            able = await self.call("initialize", hello, _START)
        except (RpcError, Gone, TimeoutError) as error:
            said = self.process.last_words(200) if self.process is not None else ""
            await self._end()
            raise NotOffered(f"it does not answer over ACP ({said or error or 'silence'})") from None
        await self._session(able)

    async def _session(self, able: dict[str, Any]) -> None:
        wishes: dict[str, Any] = {"cwd": str(self.work.root), "mcpServers": []}
        loads = record(able, "agentCapabilities").get("loadSession") is True
        try:
            if self.work.session:
                if not loads:
                    raise NotResumed(self.work.session)
                self._acp.replaying(True)
                try:
                    answer = await self.call("session/load", {**wishes, "sessionId": self.work.session}, _START)
                except (RpcError, TimeoutError):
                    raise NotResumed(self.work.session) from None
                finally:
                    self._acp.replaying(False)
                mark = self.work.session.encode()
                told = await asyncio.to_thread(last_kept, self.work.station.place.stream, b'"usage_update"', mark)
                self._acp.paid(record(told, "params", "update", "cost").get("amount"))
                await self._told(self.stream.take({"result": {**answer, "sessionId": self.work.session}}))
            else:
                await self.call("session/new", wishes, _START)
        except RpcError as error:
            self._acp.failed(error.error)
            raise AgentFailed(blame(self.work.row, self.stream.status, self.stream.reason)) from None
        except (Gone, TimeoutError):
            raise await self._broke_off() from None

    async def turn(self, prompt: str) -> None:
        self.stream.begin()
        self.turns += 1
        self._under_way = True
        asked = {"sessionId": self.stream.session, "prompt": [{"type": "text", "text": prompt}]}
        try:
            await self.call("session/prompt", asked, None)
        except RpcError as error:
            await self._told(self._acp.failed(error.error))
        except Gone:
            raise await self._broke_off() from None
        finally:
            self._under_way = False

    async def interrupt(self) -> None:
        if self._under_way and self.process is not None:
            await self.notify("session/cancel", {"sessionId": self.stream.session})
            for _ in range(int(_ANSWERS_IN / 0.1)):
                if not self._under_way:
                    break
                await asyncio.sleep(0.1)

    # ── what it asks ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "session/request_permission":
            return await self._permission(params)
        if method == "fs/read_text_file":
            return {"content": await asyncio.to_thread(self._read_file, params)}
        if method == "fs/write_text_file":
            await asyncio.to_thread(self._write_file, params)
            return {}
        return await super()._asked(method, params)

    async def _permission(self, params: dict[str, Any]) -> dict[str, Any]:
        call = record(params, "toolCall")
        ident = word(call.get("toolCallId"), 200)
        known = {**self._acp.about(ident), **{key: value for key, value in call.items() if value}}
        allowed = self._allowed(known)
        if not allowed:  # told now: some agents never say what became of it
            kind = word(known.get("kind"), 40)
            self.stream.deny(ident)
            await self._told(self.stream.returned(ident, False, _REFUSALS.get(kind, "refused: not allowed here")))
        wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        options = [record(option) for option in items(params.get("options"))]
        for kind in wanted:
            for option in options:
                if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        return {"outcome": {"outcome": "cancelled"}}

    def _allowed(self, call: dict[str, Any]) -> bool:
        given = {**record(call, "arguments"), **arguments_of(call.get("rawInput"))}
        paths = [word(record(place).get("path"), 4_000) for place in items(call.get("locations"))]
        paths += [word(record(b).get("path"), 4_000) for b in items(call.get("content")) if record(b).get("type") ==
                  "diff"]  # fmt: skip
        for key in ("path", "file_path", "filePath", "filepath", "absolute_path"):
            if isinstance(given.get(key), str):
                paths.append(given[key])
        command = word(given.get("command"), 20_000)
        kind = word(call.get("kind"), 40)
        title = word(call.get("title"), 20_000)
        if kind == "execute" and not command:
            command = title
        return call_allowed(kind, paths, command, self.work.root)

    def _read_file(self, params: dict[str, Any]) -> str:
        path, root = word(params.get("path"), 4_000), self.work.root
        if not path or not read_allowed(path, root):
            raise RpcError({"code": -32602, "message": f"{path} is outside of the workspace"})
        try:
            with (root / path).open("rb") as file:
                text = file.read(_FILE).decode("utf-8", "replace")
        except FileNotFoundError:
            raise RpcError({"code": -32002, "message": f"{path} is not there", "data": {"code": "ENOENT"}}) from None
        except OSError as error:
            raise RpcError({"code": -32603, "message": f"{path}: {error.strerror}"}) from None
        line, limit = params.get("line"), params.get("limit")
        if isinstance(line, int) or isinstance(limit, int):
            lines = text.splitlines(keepends=True)
            start = max(0, line - 1) if isinstance(line, int) else 0
            text = "".join(lines[start : start + limit] if isinstance(limit, int) else lines[start:])
        return text

    def _write_file(self, params: dict[str, Any]) -> None:
        path, root, text = word(params.get("path"), 4_000), self.work.root, params.get("content")
        if not path or not write_allowed(path, root):
            raise RpcError({"code": -32602, "message": f"{path} is outside of system/: write below it"})
        if not isinstance(text, str) or len(text) > _FILE:
            raise RpcError({"code": -32602, "message": "content is a text of at most 8 MiB"})
        target = Path(os.path.realpath(root / path))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", errors="replace")
        except OSError as error:
            raise RpcError({"code": -32603, "message": f"{path}: {error.strerror}"}) from None
