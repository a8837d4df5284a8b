"""A drawing that happens at most so often, and only when something asked for it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from textual.message_pump import MessagePump
from textual.timer import Timer


class Paced:
    """Calls ``draw`` at once when the last call is ``seconds`` ago, else once as soon as it is. Idle costs nothing."""

    def __init__(self, owner: MessagePump, seconds: float, draw: Callable[[], None]) -> None:
        self._owner = owner
        self._seconds = seconds
        self._draw = draw
        self._last = float("-inf")
        self._timer: Timer | None = None

    def request(self) -> None:
        """Ask for a drawing."""
        if self._timer is not None:
            return
        wait = self._last + self._seconds - monotonic()
        if wait <= 0:
            self.now()
        else:
            self._timer = self._owner.set_timer(wait, self.now)

    def now(self) -> None:
        """Draw without waiting (a key was pressed, or the wait is over)."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._last = monotonic()
        self._draw()
