"""``opencode run --format json``: finished parts of messages; a turn ends with the step that calls no tools."""

from __future__ import annotations

from typing import Any

from evotui.agents.streams.base import Stream, count, money, record, status_of, word
from evotui.record.events import Event


class OpencodeStream(Stream):
    """Reads ``opencode run --format json``. A tool's part comes once it is over, or twice: running and over."""

    dialect = "opencode"

    def _take(self, value: dict[str, Any]) -> list[Event]:
        facts = self.started(value.get("sessionID"))
        kind = word(value.get("type"), 60)
        part = record(value, "part")
        if kind == "step_start":
            return facts
        if kind == "text":
            return facts + self.whole("text", part.get("text"))
        if kind == "reasoning":
            return facts + self.whole("thought", part.get("text"))
        if kind == "tool_use":
            return facts + self._tool(part)
        if kind == "step_finish":
            return facts + self._step(part)
        if kind == "error":
            error = record(value, "error")
            self.finished = self.is_error = True
            data = record(error, "data")
            self.reason = word(data.get("message"), 2_000) or word(error.get("name"), 200) or "the turn failed"
            self.status = count(data.get("statusCode")) or status_of(self.reason)
            return [*facts, self.raw("error", self.reason)]
        return [*facts, self.raw(kind or "no type", value)]

    def _tool(self, part: dict[str, Any]) -> list[Event]:
        call, state = part.get("callID"), record(part, "state")
        status = word(state.get("status"), 40)
        facts = self.called(call, part.get("tool"), record(state, "input"))
        if status in ("completed", "error"):
            error = word(state.get("error"), 10**5)
            refused = "rejected permission" in error or ("permission" in error.lower() and "denied" in error.lower())
            code = record(state, "metadata").get("exit")
            ok = status == "completed" and (code is None or code == 0)
            facts += self.returned(call, ok, word(state.get("output"), 10**6) or error, refused)
        return facts

    def _step(self, part: dict[str, Any]) -> list[Event]:
        tokens = record(part, "tokens")
        cache = record(tokens, "cache")
        output = count(tokens.get("output")) + count(tokens.get("reasoning"))
        # A model without a price costs 0 here: that is no price.
        cost = money(part.get("cost")) or None
        reason = word(part.get("reason"), 40)
        if reason not in ("tool-calls", ""):
            self.finished = True
            if reason not in ("stop", "end_turn"):
                self.reason = reason
        return self.used(tokens.get("input"), cache.get("read"), cache.get("write"), output, cost)
