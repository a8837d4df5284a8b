"""The conversation as the model is sent it, always well-formed: every call has its result, arguments are JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from evotui.agents.llm.calls import Call
from evotui.agents.llm.client import Reply

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_SHORT = 300
_LATEST = 3
"""Turns that are left alone at first."""
_MUCH = 0.6
"""What may be left of a conversation that was too long."""


class History:
    """System prompt, first prompt, then turns. Each turn is an assistant message with all that answers it."""

    def __init__(self, system: str, first: str) -> None:
        self._system = system
        self.first = first
        self._turns: list[list[dict[str, Any]]] = []

    def messages(self) -> list[dict[str, Any]]:
        head = [{"role": "system", "content": self._system}, {"role": "user", "content": self.first}]
        return head + [message for turn in self._turns for message in turn]

    def reply(self, reply: Reply, calls: Sequence[Call]) -> None:
        """Begin a turn with what the model said. ``calls``: those made by the interface; bad arguments become {}."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.blocks:
            message["thinking_blocks"] = list(reply.blocks)
        if calls:
            message["tool_calls"] = [_sent_back(call) for call in calls]
        elif not reply.text:
            message["content"] = "(no reply)"
        self._turns.append([message])

    def result(self, call: Call, text: str) -> None:
        self._turns[-1].append({"role": "tool", "tool_call_id": call.id, "content": text or "(nothing)"})

    def user(self, text: str) -> None:
        """Something said to the model; joined to what was said just before."""
        if not self._turns:
            self.first += "\n\n" + text
            return
        last = self._turns[-1][-1]
        if last["role"] == "user":
            last["content"] += "\n\n" + text
        else:
            self._turns[-1].append({"role": "user", "content": text})

    def trim(self) -> bool:
        """Make it much shorter, the oldest first: results are cut, then turns dropped. False where nothing is left to
        take away."""
        before = self._size()
        steps = (lambda: self._cut(_LATEST), lambda: self._cut(1), lambda: self._drop(_LATEST), lambda: self._drop(1))
        for step in steps:
            step()
            if self._size() <= _MUCH * before:
                break
        return self._size() < before

    def _size(self) -> int:
        return sum(len(json.dumps(message)) for turn in self._turns for message in turn)

    def _cut(self, kept: int) -> None:
        """Shorten the results in all but the latest ``kept`` turns."""
        for turn in self._turns[:-kept]:
            for message in turn:
                content = message.get("content")
                if message["role"] != "assistant" and isinstance(content, str) and len(content) > 2 * _SHORT:
                    message["content"] = content[:_SHORT] + "\n… (shortened: read it again if you need it)"

    def _drop(self, kept: int) -> None:
        del self._turns[:-kept]


def _sent_back(call: Call) -> dict[str, Any]:
    try:
        text = json.dumps(call.arguments())
    except ValueError:
        text = "{}"
    name = _NO_NAME.sub("_", call.name)[:64] or "unknown"  # providers refuse other names, even of past calls
    entry: dict[str, Any] = {"id": call.id, "type": "function", "function": {"name": name, "arguments": text}}
    if call.extra:
        entry["provider_specific_fields"] = call.extra
    return entry
