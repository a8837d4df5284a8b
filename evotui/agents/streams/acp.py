"""The Agent Client Protocol (JSON-RPC on stdio): ``session/update`` notifications and what answers tell.

Messages and thoughts come in chunks without a whole: the whole is told when something else begins. A call may be
announced before its arguments are complete; it is told once they are, or once it runs, asks for permission or ends.
"""

from __future__ import annotations

from typing import Any

from evotui.agents.streams.base import Stream, arguments_of, content_text, count, items, money, record, status_of, word
from evotui.agents.streams.edits import change, relative
from evotui.record.events import Event

_DULL = frozenset({
    "available_commands_update", "current_mode_update", "config_option_update", "session_info_update",
    "user_message_chunk",
})  # fmt: skip
_PLAIN_STOPS = ("end_turn", "stop", "")


class AcpStream(Stream):
    """Reads what an ACP agent sends. Answers to requests are recognised by what they hold."""

    dialect = "acp"

    def __init__(self, root: str = "") -> None:
        super().__init__(root)
        self._coming: dict[str, dict[str, Any]] = {}
        """Calls announced but not told yet, with all that was said of them."""
        self._typed: dict[str, str] = {}
        self._known: dict[str, dict[str, Any]] = {}
        """Calls that were told, and what was said of them."""
        self._cost_so_far = self._paid = 0.0
        self._by_call = False
        """Whether this agent tells the tokens of each call of this turn."""
        self._replayed = False

    def begin(self) -> None:
        super().begin()
        self._by_call = False

    def paid(self, amount: Any) -> None:
        """What an earlier process of this conversation told of its cost: it goes on from there."""
        self._paid = money(amount) or 0.0

    def replaying(self, on: bool) -> None:
        """While a session is loaded the agent repeats its history, which was told before."""
        self._replayed = on

    def about(self, call: str) -> dict[str, Any]:
        """What was said of a call so far."""
        return dict(self._coming.get(call) or self._known.get(call) or {})

    def _take(self, value: dict[str, Any]) -> list[Event]:
        method = word(value.get("method"), 100)
        params = record(value, "params")
        if method == "session/update":
            return [] if self._replayed else self._update(record(params, "update"))
        if method == "session/request_permission":
            return self._announce(record(params, "toolCall"), must=True)
        if method:
            known = method.startswith(("fs/", "terminal/"))
            return [] if known else [self.raw(method, params)]
        return self._answer(value)

    def _answer(self, value: dict[str, Any]) -> list[Event]:
        result = record(value, "result")
        if "agentInfo" in result or "agentCapabilities" in result:
            self.version = word(record(result, "agentInfo").get("version"), 60)
            return []
        if isinstance(result.get("sessionId"), str):
            return self.started(result["sessionId"], _model(result), self.version)
        if "stopReason" not in result:
            return []
        facts = self._close() + self._usage(result)
        self.finished = True
        stop = word(result.get("stopReason"), 60)
        if stop not in _PLAIN_STOPS:
            self.is_error = stop != "max_turn_requests"
            self.reason = {"cancelled": "interrupted", "max_turn_requests": "its own limit of turns"}.get(stop, stop)
        return facts

    def failed(self, error: dict[str, Any]) -> list[Event]:
        """The prompt was answered with a JSON-RPC error."""
        self.finished = self.is_error = True
        data = record(error, "data")
        details = word(data.get("details"), 1_000) or word(data.get("message"), 1_000) or word(error.get("data"), 1_000)
        message = word(error.get("message"), 1_000)
        self.reason = f"{message}: {details}" if details and details not in message else message or "the turn failed"
        self.status = status_of(self.reason)
        if count(error.get("code")) in (401, 429) or error.get("code") == -32000:
            self.status = self.status or 401
        return self._close()

    def end(self) -> list[Event]:
        return self._close() + super().end()

    def _close(self) -> list[Event]:
        facts = self.flush()
        for call in list(self._coming):
            facts += self._tell(call)
        for call in list(self._open):
            facts += self.returned(call, False, "no result was told")
        self._typed.clear()
        return facts

    # ── updates ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _update(self, update: dict[str, Any]) -> list[Event]:
        kind = word(update.get("sessionUpdate"), 60)
        if kind == "agent_message_chunk":
            used = self._metered(record(update, "_meta", "usage"))
            if not _chunk(update):
                return used
            ended = self.whole("thought", "") if "thought" in self._said else []
            return ended + self.delta("text", _chunk(update)) + used
        if kind == "agent_thought_chunk":
            ended = self.whole("text", "") if "text" in self._said else []
            return ended + self.delta("thought", _chunk(update))
        if kind in ("tool_call", "tool_call_update"):
            return self._announce(update)
        if kind == "plan":
            entries = [f"[{word(record(e).get('status'), 20)}] {word(record(e).get('content'))}" for e in
                       items(update.get("entries"))]  # fmt: skip
            return [self.raw("plan", "\n".join(entries))]
        if kind == "usage_update":
            return self._money(record(update, "cost"))
        return [] if kind in _DULL else [self.raw(kind or "no sessionUpdate", update)]

    def _announce(self, update: dict[str, Any], must: bool = False) -> list[Event]:
        """More about a call: told once it is known well enough, or must be."""
        call = word(update.get("toolCallId"), 200)
        if not call:
            return [self.raw("tool_call without id", update)]
        status = word(update.get("status"), 40)
        over = status in ("completed", "failed", "cancelled")
        facts: list[Event] = []
        if call not in self._known:
            if call not in self._coming:
                facts += self.flush()
            known = self._coming.setdefault(call, {})
            facts += self._typing(call, update, status)
            for key, item in update.items():
                if item not in (None, "", [], {}) or key not in known:
                    known[key] = item
            silent = "rawInput" not in known and not _is_typed(known)
            running = status not in ("pending", "") and (silent or bool(known.get("rawInput")))
            if must or over or running:
                facts += self._tell(call)
        if over:
            result = update.get("rawOutput")
            text = content_text([b for b in items(update.get("content")) if record(b).get("type") != "diff"])
            if not text:
                text = _result(result)
            facts += self.returned(call, status == "completed", text)
        return facts

    def _typing(self, call: str, update: dict[str, Any], status: str) -> list[Event]:
        """Some agents show a call's arguments as text while they are being written."""
        if update.get("rawInput") or status not in ("pending", "in_progress"):
            return []
        text = content_text(update.get("content"))
        before = self._typed.get(call, "")
        if not text.startswith("{") or not text.startswith(before):
            return []
        self._typed[call] = text
        return self.delta("tool", text[len(before) :])

    def _tell(self, call: str) -> list[Event]:
        known = self._coming.pop(call)
        self._known[call] = known
        if len(self._known) > 1_000:
            del self._known[next(iter(self._known))]
        kind = word(known.get("kind"), 40)
        title = word(known.get("title"), 2_000)
        arguments = dict(arguments_of(known.get("rawInput")))
        for block in items(known.get("content")):
            if record(block).get("type") == "diff":
                arguments = _diffed(arguments, block, self.root)
        if not arguments:
            places = [word(record(place).get("path"), 2_000) for place in items(known.get("locations"))]
            typed = self._typed.get(call, "")
            if typed and "unreadable" not in arguments_of(typed):
                arguments = dict(arguments_of(typed))
            elif kind == "execute" and title:
                arguments = {"command": title}
            elif places and places[0]:
                arguments = {"path": relative(places[0], self.root)}
            elif title:
                arguments = {"title": title}
        self._typed.pop(call, None)
        known["arguments"] = arguments
        return self.called(call, kind if kind not in ("", "other") else title.split("\n")[0] or "tool", arguments)

    # ── tokens and money ─────────────────────────────────────────────────────────────────────────────────────────

    def _money(self, cost: dict[str, Any]) -> list[Event]:
        """An agent tells the session's cost so far, now and then: kept for the next report of tokens."""
        total = money(cost.get("amount"))
        if total and word(cost.get("currency"), 10).upper() in ("USD", ""):
            self._cost_so_far = max(self._cost_so_far, total)
        return []

    def _usage(self, result: dict[str, Any]) -> list[Event]:
        """A prompt's tokens, from wherever this agent tells them, where it did not tell them call by call."""
        cost = self._cost_so_far - self._paid - (self.cost or 0.0)
        price = round(cost, 9) if cost > 1e-12 else None
        if self._by_call:
            return []
        if record(result, "usage"):
            return self._metered(result["usage"], price)
        meta = record(result, "_meta", "quota", "token_count")
        total, output = count(meta.get("input_tokens")), count(meta.get("output_tokens"))
        if not total and not output and price is None:
            return []
        return self.used(total, 0, 0, output, price)

    def _metered(self, usage: dict[str, Any], price: float | None = None) -> list[Event]:
        """Tokens in the protocol's own names. Some count cached ones within the input, some beside it."""
        cached, written = count(usage.get("cachedReadTokens")), count(usage.get("cachedWriteTokens"))
        total, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
        told = count(usage.get("totalTokens"))
        if not total and not output:
            return []
        self._by_call = True
        inside = 0 < told < total + output + cached
        return self.used(max(0, total - cached) if inside else total, cached, written, output, price)


def _chunk(update: dict[str, Any]) -> str:
    content = update.get("content")
    return content if isinstance(content, str) else content_text([content])


def _is_typed(known: dict[str, Any]) -> bool:
    return content_text(known.get("content")).startswith("{")


def _result(result: Any) -> str:
    if isinstance(result, dict):
        if "fileDiff" in result:
            return ""
        return word(result.get("output"), 10**6) or word(result.get("error"), 10**6) or word(str(result), 2_000)
    return word(result, 10**6)


def _diffed(arguments: dict[str, Any], block: dict[str, Any], root: str) -> dict[str, Any]:
    path = relative(word(block.get("path"), 2_000), root)
    diff = change(word(block.get("oldText"), 10**6), word(block.get("newText"), 10**6))
    if "diff" in arguments:
        return {**arguments, f"diff of {path}": diff}
    return {"path": path, "diff": diff}


def _model(result: dict[str, Any]) -> str:
    model = word(record(result, "models").get("currentModelId"), 200)
    for entry in items(record(result, "models").get("availableModels")):
        if "|" in model and record(entry).get("modelId") == model:
            return word(record(entry).get("name"), 200) or model  # an id that names more than the model
    if model:
        return model
    for option in items(result.get("configOptions")):
        if record(option).get("id") == "model":
            return word(record(option).get("currentValue"), 200)
    return ""
