"""What an agent's program says on its stderr: read to its end, kept to a limit, its last words remembered."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from evotui.agents.pipes import Kept, plain

STDERR_BYTES = 16 << 20
_CHUNK = 1 << 16
_TAIL = 8 << 10


class Errors:
    """Keeps what it reads from a descriptor at ``path``."""

    def __init__(self, path: Path, most: int = STDERR_BYTES) -> None:
        self.kept = Kept(path, most)
        self._tail = bytearray()

    async def drain(self, number: int) -> None:
        """Read a descriptor to its end, without letting a flood keep the loop."""
        loop, waiter = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(number, waiter.set)
        try:
            while True:
                try:
                    data = os.read(number, _CHUNK)
                except BlockingIOError:
                    waiter.clear()
                    await waiter.wait()
                    continue
                if not data:
                    return
                self.kept.write(data)
                self._tail += data
                del self._tail[:-_TAIL]
                await asyncio.sleep(0)
        finally:
            loop.remove_reader(number)

    def last_words(self, most: int) -> str:
        """The end of it, as one line of at most ``most`` characters."""
        text = plain(self._tail.decode("utf-8", "replace"))
        return " · ".join(line.strip() for line in text.splitlines() if line.strip())[-most:]
