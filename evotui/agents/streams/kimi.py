"""``kimi -p --output-format stream-json``: messages of a chat as they are finished, tool calls inside; no usage."""

from __future__ import annotations

from typing import Any

from evotui.agents.streams.base import Stream, arguments_of, content_text, items, record, word
from evotui.record.events import Event


class KimiStream(Stream):
    """Reads Kimi Code's stream. Its last line is a hint how to resume the session, which names it."""

    dialect = "kimi"

    def _take(self, value: dict[str, Any]) -> list[Event]:
        role = word(value.get("role"), 40)
        if role == "assistant":
            return self._assistant(value)
        if role == "tool":
            text = content_text(value.get("content"))
            ok = value.get("is_error") is not True and not text.startswith(("<system>ERROR", "Error:"))
            return self.returned(value.get("tool_call_id"), ok, text)
        if role == "meta":
            return self._meta(value)
        return [] if role == "user" else [self.raw(role or "no role", value)]

    def _assistant(self, value: dict[str, Any]) -> list[Event]:
        facts: list[Event] = []
        content = value.get("content")
        for block in items(content):
            if record(block).get("type") == "think":
                facts += self.whole("thought", block.get("think"))
        facts += self.whole("thought", value.get("reasoning_content"))
        texts = content if isinstance(content, str) else content_text(
            [b for b in items(content) if record(b).get("type") != "think"]
        )  # fmt: skip
        facts += self.whole("text", texts)
        for call in items(value.get("tool_calls")):
            function = record(call, "function")
            facts += self.called(record(call).get("id"), function.get("name"), arguments_of(function.get("arguments")))
        return facts

    def _meta(self, value: dict[str, Any]) -> list[Event]:
        kind = word(value.get("type"), 60)
        if kind == "system.version":
            self.version = word(value.get("version"), 60)
            return []
        if kind == "session.resume_hint":
            self.finished = True
            return self.started(value.get("session_id"))
        if kind in ("error", "system.error"):
            self.is_error = True
            self.reason = word(value.get("content"), 2_000) or word(value.get("message"), 2_000)
        return [self.raw(kind or "meta", value.get("content") or value)]
