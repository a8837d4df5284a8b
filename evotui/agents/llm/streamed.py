"""The gateway's side of one answer: pieces of litellm's stream put together, and told to the parent as they come."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from evotui.agents.llm.calls import Accumulator, Splitter, without_opening
from evotui.agents.llm.faults import Fault
from evotui.agents.llm.keys import redact

FLUSH_SECONDS = 1 / 15
"""Deltas of a channel are put together for so long: a screen shows no more."""


class Out:
    """Events to the parent, one line each, with secrets taken out. Deltas are put together for a moment."""

    def __init__(self, fd: int, secrets: list[str]) -> None:
        self._fd = fd
        self._secrets = secrets
        self._waiting: dict[int, list[tuple[str, str]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def send(self, **event: Any) -> None:
        """Write an event, after the deltas of its call."""
        self._flush(event.get("id"))
        self._write(event)

    def _write(self, event: dict[str, Any]) -> None:
        data = (json.dumps(event, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(self._fd, data) :]

    def delta(self, call: int, channel: str, text: str) -> None:
        waiting = self._waiting.setdefault(call, [])
        if waiting and waiting[-1][0] == channel:
            waiting[-1] = (channel, waiting[-1][1] + text)
        else:
            waiting.append((channel, text))
        if self._timer is None:
            due = max(0.0, self._last + FLUSH_SECONDS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._last = time.monotonic()
        for call in list(self._waiting):
            self._flush(call)

    def _flush(self, call: Any) -> None:
        for channel, text in self._waiting.pop(call, ()):
            self._write({"event": channel, "id": call, "text": text})

    def drop(self, call: int) -> None:
        self._waiting.pop(call, None)

    def error(self, call: int, fault: Fault, partial: bool) -> None:
        message = redact(fault.message, self._secrets)
        after = fault.retry_after
        self.send(event="error", id=call, kind=fault.kind, message=message, retry_after=after, partial=partial)


class Answer:
    """One answer while it is streamed: its text, thoughts, calls and usage."""

    def __init__(self, out: Out, call: int) -> None:
        self.out, self.call = out, call
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls = Accumulator()
        self.finish = ""
        self.usage: Any = None
        self.model = ""
        self.blocks: list[dict[str, Any]] = []
        self.begun = False
        self._splitter = Splitter()

    def take(self, chunk: Any) -> None:
        """A chunk of litellm's stream."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        self.model = getattr(chunk, "model", None) or self.model
        for choice in (getattr(chunk, "choices", None) or [])[:1]:
            self.finish = getattr(choice, "finish_reason", None) or self.finish
            delta = getattr(choice, "delta", None)
            if delta is not None:
                self._take_delta(delta)

    def _take_delta(self, delta: Any) -> None:
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and thought:
            self._tell("thought", thought)
        for block in getattr(delta, "thinking_blocks", None) or ():
            self._take_block(dict(block))
        content = getattr(delta, "content", None)
        if isinstance(content, str) and content:
            for channel, piece in self._splitter.feed(content):
                self._tell(channel, piece)
        for piece in getattr(delta, "tool_calls", None) or ():
            function = getattr(piece, "function", None)
            arguments = getattr(function, "arguments", None)
            extra = getattr(piece, "provider_specific_fields", None)
            name = getattr(function, "name", None)
            self.calls.add(getattr(piece, "index", None), getattr(piece, "id", None), name, arguments, extra)
            said = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
            if said:
                self.begun = True
                self.out.delta(self.call, "tool", said)

    def _take_block(self, block: dict[str, Any]) -> None:
        """Thinking with its signature, as the provider wants to see it again."""
        block.pop("index", None)
        last = self.blocks[-1] if self.blocks else None
        if block.get("type") != "thinking" or last is None or last.get("type") != "thinking" or last.get("signature"):
            self.blocks.append(block)
            return
        last["thinking"] = (last.get("thinking") or "") + (block.get("thinking") or "")
        if block.get("signature"):
            last["signature"] = block["signature"]

    def _tell(self, channel: str, piece: str) -> None:
        self.begun = True
        (self.thoughts if channel == "thought" else self.texts).append(piece)
        self.out.delta(self.call, channel, piece)

    def close(self) -> tuple[str, str]:
        """(thought, text), whole."""
        for channel, piece in self._splitter.end():
            self._tell(channel, piece)
        thought, text = "".join(self.thoughts), "".join(self.texts)
        if not thought:
            thought, text = without_opening(text)
        return thought, text
