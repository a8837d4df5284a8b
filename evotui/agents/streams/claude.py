"""Claude Code's ``--output-format stream-json``, and Qwen Code's variant of it.

With ``--include-partial-messages`` the pieces come as ``stream_event``; each finished block of a message then comes as
an ``assistant`` event of its own that repeats the message's usage, so usage is taken once a message id. Money is told
only in ``result``, as a total of the process so far, and is invented for models whose price Claude Code does not know.
"""

from __future__ import annotations

import re
from typing import Any

from evotui.agents.streams.base import Stream, content_text, count, items, money, record, status_of, word
from evotui.record.events import AgentRetried, Event

_KNOWN_AND_DULL = frozenset({"status", "thinking_tokens", "hook_started", "hook_response", "session_state_changed"})
_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
_REFUSED = re.compile(r"Permission (to use|for) .{1,200}? denied|Claude requested permissions? to ", re.DOTALL)
"""How the result of a refused call begins, of versions that have no event for it."""
_NONE = (0, 0, 0, 0)
_LONGER = re.compile(r"(\[\w+\]|-\d{8})+\Z")


def _short(model: str) -> str:
    """A model's name without its date and without ``[1m]``."""
    return _LONGER.sub("", word(model, 200))


def _columns(table: dict[str, list[int]]) -> list[list[int]]:
    return [[row[at] for row in table.values()] for at in range(4)]


class _Call:
    """Usage of one message as it becomes known."""

    def __init__(self, ident: str, model: str) -> None:
        self.ident = ident
        self.model = model
        self.tokens = [0, 0, 0, 0]

    def learn(self, usage: dict[str, Any]) -> None:
        for at, key in enumerate(_TOKENS):
            self.tokens[at] = max(self.tokens[at], count(usage.get(key)))


class ClaudeStream(Stream):
    """Reads the stream of ``claude -p --output-format stream-json --verbose``, of one process."""

    dialect = "claude"
    _version_key = "claude_code_version"

    def __init__(self, root: str = "") -> None:
        super().__init__(root)
        self.tells_queue = False
        """Whether its results say how many messages wait to be read."""
        self._pending: _Call | None = None
        self._reported: set[str] = set()
        self._since: dict[str, list[int]] = {}
        """Tokens reported since the last result, by model: the result's own figures are what they must add up to."""
        self._total_cost = 0.0
        self._totals: dict[str, list[int]] = {}

    def _take(self, value: dict[str, Any]) -> list[Event]:
        kind = word(value.get("type"), 60)
        if kind == "system":
            return self._system(value)
        if kind == "stream_event":
            return self._piece(value)
        if kind == "assistant":
            return self._assistant(value)
        if kind == "user":
            return self._user(value)
        if kind == "result":
            return self._result(value)
        if kind in ("control_response", "keep_alive"):
            return []
        return [self.raw(kind or "no type", value)]

    # ── beginnings ───────────────────────────────────────────────────────────────────────────────────────────────

    def _system(self, value: dict[str, Any]) -> list[Event]:
        what = word(value.get("subtype"), 60)
        if what == "init":
            return self.started(value.get("session_id"), value.get("model"), value.get(self._version_key))
        if what == "api_retry":
            self.void()
            status = count(value.get("error_status"))
            reason = f"{status or ''} {word(value.get('error')).replace('_', ' ')}".strip()
            self.status = status or self.status
            return [
                AgentRetried(
                    reason or "the model's server failed",
                    min(count(value.get("retry_delay_ms")), 10**9) / 1000,
                    min(count(value.get("attempt")), 10**6),
                )
            ]
        if what == "permission_denied":
            self.deny(word(value.get("tool_use_id"), 200))
            return []
        return [] if what in _KNOWN_AND_DULL else [self.raw(f"system {what}".strip(), value)]

    # ── a message, in pieces and in whole ────────────────────────────────────────────────────────────────────────

    def _piece(self, value: dict[str, Any]) -> list[Event]:
        event = record(value, "event")
        kind = word(event.get("type"), 60)
        if kind == "message_start":
            message = record(event, "message")
            return self._usage(message, record(message, "usage"))
        if kind == "message_delta":
            if self._pending is not None:
                self._pending.learn(record(event, "usage"))
            return []
        if value.get("parent_tool_use_id"):
            return []  # a subagent's pieces would mix with the agent's own; its blocks come in whole
        if kind == "content_block_delta":
            delta = record(event, "delta")
            what = word(delta.get("type"), 60)
            if what == "text_delta":
                return self.delta("text", delta.get("text"))
            if what == "thinking_delta":
                return self.delta("thought", delta.get("thinking"))
            if what == "input_json_delta":
                return self.delta("tool", delta.get("partial_json"))
            return [] if what in ("signature_delta", "citations_delta") else [self.raw(what or "delta", event)]
        if kind in ("content_block_start", "content_block_stop", "message_stop", "ping", "goal_state"):
            return []
        return [self.raw(f"stream_event {kind}".strip(), event)]

    def _assistant(self, value: dict[str, Any]) -> list[Event]:
        message = record(value, "message")
        facts = self._usage(message, record(message, "usage"))
        sub = bool(value.get("parent_tool_use_id"))
        content = message.get("content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else items(content):
            kind = word(record(block).get("type"), 60)
            if kind == "text":
                facts += [self.raw("subagent", block.get("text"))] if sub else self.whole("text", block.get("text"))
            elif kind in ("thinking", "redacted_thinking"):
                facts += [] if sub else self.whole("thought", block.get("thinking"))
            elif kind in ("tool_use", "server_tool_use"):
                facts += self.called(block.get("id"), block.get("name"), block.get("input"))
            else:
                facts.append(self.raw(kind or "a block without type", block))
        error = word(value.get("error"))
        if error and self.status is None:
            self.status = status_of(content_text(content))
        return facts

    def _user(self, value: dict[str, Any]) -> list[Event]:
        facts: list[Event] = []
        for meta in items(value.get("tool_result_meta")):
            if record(meta, "permission_decision").get("decision") == "reject":
                self.deny(word(record(meta).get("id"), 200))
        content = record(value, "message").get("content")
        for block in items(content):
            kind = word(record(block).get("type"), 60)
            if kind == "tool_result":
                ok, text = block.get("is_error") is not True, content_text(block.get("content"))
                facts += self._settle()
                refused = not ok and _REFUSED.match(text) is not None
                facts += self.returned(block.get("tool_use_id"), ok, text, refused)
            elif not value.get("isReplay"):
                facts.append(self.raw("user", block.get("text") if kind == "text" else block))
        return facts

    # ── tokens and money ─────────────────────────────────────────────────────────────────────────────────────────

    def _usage(self, message: dict[str, Any], usage: dict[str, Any]) -> list[Event]:
        """Remember a message's usage; the one before it is complete now."""
        ident = word(message.get("id"), 200)
        model = word(message.get("model"), 200)
        if not ident or not usage or model == "<synthetic>":
            return []
        if self._pending is not None and self._pending.ident == ident:
            self._pending.learn(usage)
            return []
        facts = self._settle()
        if ident not in self._reported:
            self._pending = _Call(ident, model)
            self._pending.learn(usage)
        return facts

    def _settle(self, more: list[int] | None = None, cost: float | None = None) -> list[Event]:
        """Report the message that is complete, with what only the result told of it."""
        call, self._pending = self._pending, None
        if call is None:
            return []
        self._reported.add(call.ident)
        tokens = [a + b for a, b in zip(call.tokens, more or _NONE, strict=True)]
        spent = self._since.setdefault(_short(call.model or self.model), [0, 0, 0, 0])
        for at, n in enumerate(tokens):
            spent[at] += n
        fresh, cached, written, output = tokens
        return self.used(fresh, cached, written, output, cost, call.model)

    def _result(self, value: dict[str, Any]) -> list[Event]:
        facts = self.flush() + self._account(value)
        for denial in items(value.get("permission_denials")):
            name = word(record(denial).get("tool_name"), 100)
            if name and name not in self.denials:
                self.denials.append(name)
        waiting = value.get("queued_turn_count")
        self.tells_queue = waiting is not None
        self.finished = not count(waiting)
        self.is_error = value.get("is_error") is True
        self.status = count(value.get("api_error_status")) or (self.status if self.is_error else None)
        subtype = word(value.get("subtype"), 100)
        if self.is_error or subtype not in ("success", ""):
            self.is_error = True
            told = [word(text) for text in items(value.get("errors")) if word(text)]
            aborted = word(value.get("terminal_reason"), 100).startswith("aborted")
            fallback = word(record(value, "error").get("message")) or word(value.get("result")) or subtype
            self.reason = "interrupted" if aborted else "; ".join(told) or fallback
            self.status = self.status or status_of(self.reason)
        else:
            facts += self.started(value.get("session_id"))
        return facts

    def _account(self, value: dict[str, Any]) -> list[Event]:
        """Usage of the last message, and what the result's totals hold beyond all that was reported.

        The totals may call a model by a longer name than its messages do: never more is told than the sum says.
        """
        told, cost = self._told(value), self._cost(value)
        pending, since = self._pending, dict(self._since)
        last = _short(pending.model or self.model) if pending is not None else ""
        if pending is not None:
            since[last] = [a + b for a, b in zip(since.get(last, _NONE), pending.tokens, strict=True)]
        left = [max(0, sum(t) - sum(k)) for t, k in zip(_columns(told), _columns(since), strict=True)]
        beyond = {}
        for model, total in told.items():
            rest = [max(0, min(t - k, n)) for t, k, n in zip(total, since.get(model, _NONE), left, strict=True)]
            left = [n - r for n, r in zip(left, rest, strict=True)]
            if any(rest):
                beyond[model] = rest
        facts: list[Event] = []
        if pending is not None:
            facts += self._settle(beyond.pop(last, None), cost)
            cost = None
        for model, rest in beyond.items():
            facts += self.used(rest[0], rest[1], rest[2], rest[3], cost, model)
            cost = None
        if cost:
            facts += self.used(0, 0, 0, 0, cost=cost)
        self._since = {}
        return facts

    def _told(self, value: dict[str, Any]) -> dict[str, list[int]]:
        """Tokens since the last result by model, as the result tells them."""
        latest = value.get("model_usage_since_last_result")
        if isinstance(latest, dict):
            return {_short(m): [count(record(u).get(key)) for key in _TOTALS] for m, u in latest.items()}
        told = {}
        for model, usage in record(value, "modelUsage").items():
            now = [count(record(usage).get(key)) for key in _TOTALS]
            before = self._totals.get(model, _NONE)
            told[_short(model)] = [max(0, n - b) for n, b in zip(now, before, strict=True)]
            self._totals[model] = now
        return told

    def _cost(self, value: dict[str, Any]) -> float | None:
        """What was spent since the last result; None where a price was invented."""
        total = money(value.get("total_cost_usd"))
        if total is None:
            return None
        spent, self._total_cost = max(0.0, total - self._total_cost), max(total, self._total_cost)
        models = record(value, "modelUsage")
        if not models or any(not _priced(model, record(usage)) for model, usage in models.items()):
            return None
        return round(spent, 9)

    def end(self) -> list[Event]:
        return super().end() + self._settle()


def _priced(model: str, usage: dict[str, Any]) -> bool:
    """Whether a model's cost comes from a price list. Versions that do not say so know the prices of their own only."""
    basis = usage.get("costBasis")
    if basis is None:
        return model.startswith("claude-")
    return basis == "list"


class QwenStream(ClaudeStream):
    """Qwen Code: usage is each call's own, cached tokens within the input; the result repeats their sum, or, where a
    session was resumed, more than that. It knows no prices and ends without a result when a limit is hit."""

    dialect = "qwen"
    _version_key = "qwen_code_version"

    def _usage(self, message: dict[str, Any], usage: dict[str, Any]) -> list[Event]:
        cached = count(usage.get("cache_read_input_tokens"))
        total = count(usage.get("input_tokens"))
        if not total and not count(usage.get("output_tokens")):
            return []
        ident = word(message.get("id"), 200)
        if ident in self._reported:
            return []
        self._reported.add(ident)
        fresh = max(0, total - cached)
        return self.used(fresh, cached, 0, usage.get("output_tokens"), model=word(message.get("model"), 200))

    def _account(self, value: dict[str, Any]) -> list[Event]:
        if self._reported:
            return []
        usage = record(value, "usage")
        cached, total = count(usage.get("cache_read_input_tokens")), count(usage.get("input_tokens"))
        if not total:
            return []
        return self.used(max(0, total - cached), cached, 0, usage.get("output_tokens"))
