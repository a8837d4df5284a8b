"""What a test may hold against a clock: other programs on the machine must not decide what it finds.

Something that must come is waited for, for ``PATIENCE`` seconds: only a failure takes that long. Something that must
be quick is measured with a ``Stopwatch``, which stands still while a process that takes part is kept from a core.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from evotui.rollout.clocks import waiting_seconds

PATIENCE = 240.0


class Stopwatch:
    """``seconds`` since it was made, less those that the processes ``pids``, this one by default, waited for a core."""

    def __init__(self, *pids: int) -> None:
        self._waited = {pid: waiting_seconds(pid) for pid in pids or (os.getpid(),)}
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return self.at(time.monotonic())

    def at(self, moment: float) -> float:
        """The seconds at a moment that ``time.monotonic`` told shortly before."""
        waited = sum(max(waiting_seconds(pid) - before, 0.0) for pid, before in self._waited.items())
        return moment - self._began - waited


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether ``condition`` came to hold; looked at a hundred times a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return bool(condition())
        await asyncio.sleep(0.01)
    return True


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """:func:`until` where there is no event loop."""
    return asyncio.run(until(condition, seconds))


def running(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
