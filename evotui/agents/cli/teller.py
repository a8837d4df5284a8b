"""Facts on their way into the log: pieces of text put together, keys and terminal sequences taken out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from evotui.agents.base import Teller
from evotui.agents.pipes import plain
from evotui.record.events import AgentDelta, AgentRetried, Event, ToolCalled

PERIOD = 1 / 15
"""Seconds in which the pieces of one channel become one fact."""
_HIDDEN = "[key]"


class PacedTeller:
    """A teller in front of another. :class:`AgentDelta` facts are joined, at most fifteen a second for each channel;
    any other fact first lets out what was held back, so that the order stays. ``close`` it in the end."""

    def __init__(self, tell: Teller, secrets: Sequence[str] = ()) -> None:
        self._tell = tell
        self._secrets = tuple(secret for secret in secrets if len(secret) >= 8)
        self._held: dict[str, list[str]] = {}
        self._timer: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.failure: BaseException | None = None
        """What the log said when it took no more."""

    async def __call__(self, fact: Event) -> None:
        if self.failure is not None:
            raise self.failure
        if isinstance(fact, AgentDelta):
            self._held.setdefault(fact.channel, []).append(fact.text)
            if self._timer is None or self._timer.done():
                self._timer = asyncio.create_task(self._later(), name="agent deltas")
            return
        if isinstance(fact, AgentRetried):
            self._held.clear()
        await self.flush()
        async with self._lock:
            await self._tell(self._fit(fact))

    async def flush(self) -> None:
        """Tell what is held back."""
        async with self._lock:
            held, self._held = self._held, {}
            for channel, pieces in held.items():
                await self._tell(AgentDelta(channel, self._text("".join(pieces))))

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.wait({self._timer})
        if self.failure is None:
            await self.flush()

    async def _later(self) -> None:
        await asyncio.sleep(PERIOD)
        try:
            await self.flush()
        except Exception as error:  # told to whoever tells the next fact: a timer has nobody to raise to
            self.failure = error

    def _fit(self, fact: Event) -> Event:
        changes: dict[str, Any] = {}
        for item in fields(fact):
            value = getattr(fact, item.name)
            if isinstance(value, str):
                changes[item.name] = self._text(value)
        if isinstance(fact, ToolCalled):
            changes["arguments"] = self._inside(fact.arguments)
        return replace(fact, **changes)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._inside(item) for key, item in value.items()}
        return [self._inside(item) for item in value] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, _HIDDEN)
        return text if text.isprintable() else plain(text)
