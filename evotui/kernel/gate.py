"""The gate of a run: what may pass before the next submission and before the next phase."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum


class Mode(StrEnum):
    """RUN lets everything through; PAUSE holds the next submission; ITERATION and PHASE hold after one more of each."""

    RUN = "run"
    PAUSE = "pause"
    ITERATION = "iteration"
    PHASE = "phase"


class Gate:
    """Holds callers of :meth:`submission` and :meth:`phase` according to its mode.

    ``moved(mode, by)`` is awaited after each change, ``held(where)`` when somebody begins to wait ("" when it goes on):
    the session makes facts of them. A submission under way is never held in PAUSE: pausing costs no half-done work.
    Stepping by phase holds before each phase; a submission's passage is its first, the request.
    """

    def __init__(
        self,
        moved: Callable[[Mode, str], Awaitable[None]],
        held: Callable[[str], Awaitable[None]],
        mode: Mode = Mode.RUN,
    ) -> None:
        self.mode = mode
        self._permits = 0
        self._moved = moved
        self._held = held
        self._changed = asyncio.Condition()

    async def set(self, mode: Mode, by: str = "human") -> None:
        """Change the mode; ITERATION and PHASE also grant one passage."""
        async with self._changed:
            self.mode = mode
            self._permits = 1 if mode in (Mode.ITERATION, Mode.PHASE) else 0
            self._changed.notify_all()
        await self._moved(mode, by)

    async def submission(self, where: str) -> None:
        """Wait until a new submission may be accepted."""
        await self._pass(where, (Mode.PAUSE, Mode.ITERATION, Mode.PHASE))

    async def phase(self, where: str) -> None:
        """Wait until the next phase of a submission may begin."""
        await self._pass(where, (Mode.PHASE,))

    async def _pass(self, where: str, holding: tuple[Mode, ...]) -> None:
        waited = False
        spent: Mode | None = None
        try:
            async with self._changed:
                while self.mode in holding and self._permits == 0:
                    if not waited:
                        waited = True
                        await self._held(where)
                    await self._changed.wait()
                if self.mode in holding:
                    self._permits -= 1
                    spent = self.mode
                    if spent is Mode.ITERATION:
                        self.mode = Mode.PAUSE
        finally:
            if waited:
                await asyncio.shield(self._held(""))
        if spent is Mode.ITERATION:
            await self._moved(Mode.PAUSE, "step")
