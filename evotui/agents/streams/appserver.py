"""``codex app-server``: JSON-RPC whose notifications carry deltas, items with diffs, and usage call by call.

Answers to our own requests are the adapter's business; requests of the server (approvals) become nothing here either,
but for the call that they are about.
"""

from __future__ import annotations

from typing import Any

from evotui.agents.streams.base import Stream, content_text, count, items, record, status_of, word
from evotui.agents.streams.codex import bare_command, file_changes, retried
from evotui.record.events import AgentRetried, Event

_DULL = frozenset({
    "thread/started", "thread/status/changed", "turn/started", "turn/diff/updated", "account/rateLimits/updated",
    "remoteControl/status/changed", "item/reasoning/summaryPartAdded", "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta", "item/fileChange/patchUpdated", "thread/name/updated", "serverRequest/resolved",
    "account/updated", "mcpServer/startupStatus/updated", "item/commandExecution/terminalInteraction",
    "thread/settings/updated", "thread/goal/cleared", "thread/goal/updated",
})  # fmt: skip
_KINDS = {
    "unauthorized": 401, "modelNotFound": 404, "usageLimitExceeded": 429, "internalServerError": 500,
    "serverOverloaded": 503,
}  # fmt: skip
"""Codex's own classes of errors, as the HTTP status that they stand for."""
_BAD = ("failed", "declined", "error", "cancelled", "interrupted")


class CodexServerStream(Stream):
    """Reads what ``codex app-server`` sends. ``turn`` is the turn under way, to interrupt it by."""

    dialect = "codex-app-server"

    def __init__(self, root: str = "") -> None:
        super().__init__(root)
        self.turn = ""
        self._turns: set[str] = set()
        self._total: tuple[int, ...] = ()
        self._warned: set[str] = set()

    def begin(self) -> None:
        super().begin()
        self.turn = ""

    def _take(self, value: dict[str, Any]) -> list[Event]:
        method = word(value.get("method"), 100)
        params = record(value, "params")
        if not method:
            return self._answer(value)
        if "id" in value:
            return []
        if method == "thread/started":
            return self._thread(record(params, "thread"))
        if method == "turn/started":
            self._turn_is(record(params, "turn").get("id"))
            return []
        if method == "item/agentMessage/delta":
            return self.delta("text", params.get("delta"))
        if method in ("item/reasoning/summaryTextDelta", "item/reasoning/textDelta"):
            return self.delta("thought", params.get("delta"))
        if method in ("item/started", "item/completed"):
            return self._item(record(params, "item"), method == "item/completed")
        if method == "thread/tokenUsage/updated":
            return self._usage(record(params, "tokenUsage"), word(params.get("turnId"), 100))
        if method == "turn/completed":
            return self._completed(record(params, "turn"))
        if method == "error":
            return self._error(params)
        if method in ("warning", "configWarning", "deprecationNotice"):
            return self._warning(word(params.get("message") or params.get("summary"), 2_000))
        return [] if method in _DULL else [self.raw(method, params)]

    def _answer(self, value: dict[str, Any]) -> list[Event]:
        result = record(value, "result")
        if "userAgent" in result:
            agent = word(result.get("userAgent"), 200)
            self.version = agent.partition("/")[2].partition(" ")[0]
        if isinstance(result.get("thread"), dict):
            return self._thread(result["thread"], result.get("model"))
        if isinstance(result.get("turn"), dict):
            self._turn_is(result["turn"].get("id"))
        return []

    def _turn_is(self, ident: Any) -> None:
        self.turn = word(ident, 100) or self.turn
        self._turns.add(self.turn)

    def _thread(self, thread: dict[str, Any], model: Any = None) -> list[Event]:
        return self.started(thread.get("id"), model or thread.get("model"), self.version)

    def _warning(self, text: str) -> list[Event]:
        """Once each: some come with every turn."""
        if text in self._warned:
            return []
        self._warned.add(text)
        return [self.raw("warning", text)]

    def _usage(self, usage: dict[str, Any], turn: str) -> list[Event]:
        """The last call's, told when the thread's total moves: of a resumed thread an old turn's comes first."""
        last, total_of_all = record(usage, "last"), record(usage, "total")
        now = tuple(count(total_of_all.get(key)) for key in ("inputTokens", "outputTokens"))
        known, self._total = now == self._total, now
        if (turn and turn not in self._turns) or (known and any(now)):
            return []
        total, cached = count(last.get("inputTokens")), count(last.get("cachedInputTokens"))
        output = count(last.get("outputTokens"))
        if not total and not output:
            return []
        return self.used(max(0, total - cached), cached, last.get("cacheWriteInputTokens"), output)

    def _completed(self, turn: dict[str, Any]) -> list[Event]:
        self.finished = True
        status = word(turn.get("status"), 40)
        if status == "failed":
            self.is_error = True
            self._blame(record(turn, "error"))
        elif status == "interrupted":
            self.is_error = True
            self.reason = "interrupted"
        self.turn = ""
        return self.flush()

    def _blame(self, error: dict[str, Any]) -> None:
        self.reason = word(error.get("message"), 2_000) or self.reason or "the turn failed"
        told = status_of(f"{self.reason} {word(error.get('additionalDetails'), 500)}") or _http(error)
        self.status = told or self.status  # what it was tried again for, where the end does not say

    def _error(self, params: dict[str, Any]) -> list[Event]:
        error = record(params, "error")
        message = word(error.get("message"), 2_000)
        if params.get("willRetry") is True:
            self.void()
            again = retried(message)
            details = word(error.get("additionalDetails"), 500)
            if again is None:
                return [AgentRetried(details or message or "the model's server failed", 0.0, 1)]
            self.status = status_of(message + " " + details) or _http(error)
            return [AgentRetried(details or again.reason, 0.0, again.attempt)]
        self._blame(error)
        return [self.raw("error", message)]

    def _item(self, item: dict[str, Any], done: bool) -> list[Event]:
        kind = word(item.get("type"), 60)
        call = item.get("id")
        if kind == "userMessage":
            return []
        if kind in ("agentMessage", "plan"):
            return self.whole("text", item.get("text")) if done else []
        if kind == "reasoning":
            parts = items(item.get("summary")) or items(item.get("content"))
            return self.whole("thought", content_text(parts)) if done else []
        known = self._call(kind, item)
        if known is None:
            return [self.raw(kind or "an item without type", item)] if done else []
        name, arguments, result = known
        facts = self.called(call, name, arguments)
        if done:
            status, code = word(item.get("status"), 40), item.get("exitCode")
            ok = status not in _BAD and (code is None or code == 0)
            facts += self.returned(call, ok, result, denied=status == "declined")
        return facts

    def _call(self, kind: str, item: dict[str, Any]) -> tuple[str, Any, str] | None:
        if kind == "commandExecution":
            code = item.get("exitCode")
            text = word(item.get("aggregatedOutput"), 10**6)
            return (
                "shell",
                {"command": bare_command(item.get("command"))},
                text + (f"\n[exit code {code}]" if code else ""),
            )
        if kind == "fileChange":
            return "edit", file_changes(item.get("changes"), self.root), ""
        if kind == "mcpToolCall":
            name = f"{word(item.get('server'), 60)}.{word(item.get('tool'), 60)}"
            answer = record(item, "error").get("message") or content_text(record(item, "result").get("content"))
            return name, item.get("arguments"), word(answer, 10**6)
        if kind == "webSearch":
            return "web_search", {"query": item.get("query")}, ""
        return None


def _http(error: dict[str, Any]) -> int | None:
    """The HTTP status in Codex's own classification of an error."""
    info = error.get("codexErrorInfo")
    if isinstance(info, str):
        return _KINDS.get(info)
    for detail in info.values() if isinstance(info, dict) else ():
        status = count(record(detail).get("httpStatusCode"))
        if status:
            return status
    return None
