"""``gemini -o stream-json``: deltas of messages without a whole, tool uses and results, one result with all usage."""

from __future__ import annotations

from typing import Any

from evotui.agents.streams.base import Stream, count, record, status_of, word
from evotui.record.events import Event


class GeminiStream(Stream):
    """Reads ``gemini -p … -o stream-json``, of one process."""

    dialect = "gemini"

    def _take(self, value: dict[str, Any]) -> list[Event]:
        kind = word(value.get("type"), 60)
        if kind == "init":
            return self.started(value.get("session_id"), value.get("model"))
        if kind == "message":
            return self._message(value)
        if kind in ("thought", "thinking"):
            return self.flush() + self.whole("thought", value.get("content") or value.get("description"))
        if kind == "tool_use":
            facts = self.flush()
            return facts + self.called(value.get("tool_id"), value.get("tool_name"), value.get("parameters"))
        if kind == "tool_result":
            error = record(value, "error")
            ok = value.get("status") in ("success", None)
            refused = word(error.get("type"), 100) in ("tool_not_registered", "execution_denied", "policy_violation")
            text = word(value.get("output"), 10**6) or word(error.get("message"), 10**5)
            return self.returned(value.get("tool_id"), ok, text, denied=refused)
        if kind == "error":
            return [self.raw(word(value.get("severity"), 40) or "error", value.get("message"))]
        if kind == "result":
            return self._result(value)
        return [self.raw(kind or "no type", value)]

    def _message(self, value: dict[str, Any]) -> list[Event]:
        if value.get("role") == "user":
            return []
        if value.get("delta"):
            return self.delta("text", value.get("content"))
        return self.whole("text", value.get("content"))

    def _result(self, value: dict[str, Any]) -> list[Event]:
        facts = self.flush()
        stats = record(value, "stats")
        models = record(stats, "models")
        for name, usage in models.items() if len(models) > 1 else [("", stats)]:
            total, cached = count(record(usage).get("input_tokens")), count(record(usage).get("cached"))
            output = max(count(record(usage).get("output_tokens")), count(record(usage).get("total_tokens")) - total)
            if total or output:
                facts += self.used(max(0, total - cached), cached, 0, output, model=name)
        self.finished = True
        self.is_error = value.get("status") not in ("success", None)
        if self.is_error:
            error = record(value, "error")
            self.reason = word(error.get("message"), 2_000) or word(error.get("type"), 200) or "the turn failed"
            self.status = status_of(self.reason)
        return facts
