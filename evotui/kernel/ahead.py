"""Streams that run side by side and are read one after the other.

Owns the order: whoever reads :meth:`Ahead.items` of the first, then of the second …, gets what a plain sequence would
have given, while the later ones are already at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """A stream that runs in a task of its own as soon as ``turn`` lets it, and keeps what it gives until it is read."""

    def __init__(self, stream: AsyncGenerator[T, None], turn: AbstractAsyncContextManager[Any]) -> None:
        self._kept: asyncio.Queue[T | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._run(stream, turn))

    async def _run(self, stream: AsyncGenerator[T, None], turn: AbstractAsyncContextManager[Any]) -> None:
        try:
            async with turn, aclosing(stream):
                async for item in stream:
                    self._kept.put_nowait(item)
        finally:
            self._kept.put_nowait(None)

    async def items(self) -> AsyncIterator[T]:
        """What the stream gave and gives, to its end; then what it raised, if anything."""
        while (item := await self._kept.get()) is not None:
            yield item
        await self._task

    async def close(self) -> None:
        """Break the stream off; nothing of it is left at work."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
