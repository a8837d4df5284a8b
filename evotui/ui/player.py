"""Plays one recorded episode at a watchable speed: pulls shots when they are due, holds, steps, steps back.

Owns the pace, never the picture: it hands each shot to ``show``. Nothing is queued; at high speeds shots are skipped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic

from evotui.ui.feed import FrameSource, Shot

RATES: tuple[tuple[float, str], ...] = (
    (7.5, "×¼"), (15.0, "×½"), (30.0, "×1"), (60.0, "×2"), (120.0, "×4"), (240.0, "×8"), (480.0, "×16"),
)  # fmt: skip
"""Environment steps a second, and how that is called."""
NORMAL = 2
_FRAMES = 30.0
_HOLD_SECONDS = 1.5
_REMEMBERED = 240
_JUDGED = 2.0
"""Seconds over which the pace is judged."""


def rate_for(length: int) -> int:
    """The speed (index into RATES) at which an episode of ``length`` steps takes some ten seconds."""
    return NORMAL + (length > 350) + (length > 700) + (length > 1400)


class Player:
    """One episode. ``run`` plays until it is cancelled, or ended for good; ``loops`` None repeats until it is bounded,
    which :meth:`last_round` does at any time."""

    def __init__(
        self, source: FrameSource, submission: int, position: int, length: int, show: Callable[[Shot], None],
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self.source = source
        self.submission = submission
        self.position = position
        self.rate = rate_for(length)
        self.held = False
        self.ended = False
        self.rounds = 0
        """How often the episode was played to its end."""
        self.loops: int | None = None
        """After how many rounds it ends."""
        self.shot: Shot | None = None
        self.started_at = monotonic()
        self._show = show
        self._changed = changed
        self._wake = asyncio.Event()
        self._permits = 0
        self._back: int | None = None
        self._past: deque[Shot] = deque(maxlen=_REMEMBERED)
        self._ahead: list[Shot] = []
        self._pace: deque[tuple[float, int]] = deque(maxlen=128)
        """When which step was shown, of the last seconds."""
        self._resting = False

    @property
    def step(self) -> int:
        return self.shot.step if self.shot is not None else 0

    @property
    def forgotten(self) -> bool:
        """Whether the step before can only be had by playing anew."""
        return len(self._past) < 2 and self.step > 0

    @property
    def speed(self) -> str:
        return RATES[self.rate][1]

    @property
    def behind(self) -> float | None:
        """Environment steps a second of late, where that is less than half of what was asked for; else None."""
        began, step = self._pace[0] if self._pace else (self.started_at, 0)
        since = monotonic() - began
        if self.held or self.ended or self._resting or since < _JUDGED:
            return None
        made = self._pace[-1][1] - step if self._pace else 0
        pace = made / since
        return pace if pace < RATES[self.rate][0] / 2 else None

    def _paced(self, step: int) -> None:
        """A step was shown at its time: keep those of the last seconds."""
        now = monotonic()
        if self._pace and step < self._pace[-1][1]:
            self._pace.clear()
        self._pace.append((now, step))
        while len(self._pace) > 2 and now - self._pace[1][0] > _JUDGED:
            self._pace.popleft()

    def last_round(self) -> None:
        """Play on to the end of this round, then rest on the last frame for good, unless an end was set already."""
        if self.loops is None:
            self.loops = self.rounds + (not self._resting)

    def faster(self, by: int) -> None:
        self.rate = min(max(self.rate + by, 0), len(RATES) - 1)
        self._pace.clear()
        self._wake.set()
        self._changed()

    def hold(self, held: bool) -> None:
        """Stand still, or go on."""
        if held != self.held:
            self.held = held
            self._permits = 0
            self._pace.clear()
            self._wake.set()
            self._changed()

    def step_on(self) -> None:
        """One shot on, while held."""
        if self._ahead:
            self._past.append(self._ahead.pop())
            self._present()
        else:
            self._permits += 1
            self._wake.set()

    def step_back(self) -> None:
        """One shot back, while held."""
        if len(self._past) >= 2:
            self._ahead.append(self._past.pop())
            self._present()
        elif self.step > 0 and not self.ended:
            self._back = self.step - 1
            self._wake.set()

    def _present(self) -> None:
        self.shot = self._past[-1]
        self._show(self.shot)

    async def _pull(self, shots: AsyncIterator[Shot], most: int) -> int:
        """Up to ``most`` shots, those first that were stepped back over. Returns how many there were."""
        for count in range(most):
            shot = self._ahead.pop() if self._ahead else await anext(shots, None)
            if shot is None:
                return count
            self._past.append(shot)
        return most

    async def run(self, width: int, height: int, start: int = 0, loops: int | None = None) -> None:
        """Play from step ``start`` in frames of at most width × height pixels."""
        self.loops = loops
        while True:
            self._past.clear()
            self._ahead.clear()
            first = start
            shots = self.source.play(self.submission, self.position, width, height, start)
            try:
                back = await self._through(shots, once=self.held)
            finally:
                close = getattr(shots, "aclose", None)
                if close is not None:
                    await close()
            if back is not None:
                start = back
                continue
            # A picture made anew from the middle (the pane was resized) is no playing of its own.
            self.rounds += first == 0
            if self._over:
                break
            self._changed()
            self._resting = True
            start = await self._rest(_HOLD_SECONDS)
            self._resting = False
            self._pace.clear()
            if self._over and not start:
                break
        self.ended = True
        self._changed()

    @property
    def _over(self) -> bool:
        return self.loops is not None and self.rounds >= self.loops

    async def _through(self, shots: AsyncIterator[Shot], once: bool) -> int | None:
        """All shots of one playing, when they are due. Returns a step to begin anew from, if that was asked for.

        ``once`` shows one shot even while held: a picture, though a still one.
        """
        permits = 1 if once else 0
        due = monotonic()
        while True:
            while self.held and not permits and not self._permits and self._back is None:
                self._wake.clear()
                await self._wake.wait()
                due = monotonic()
            if self._back is not None:
                back, self._back = self._back, None
                return back
            stepping = self.held
            if stepping:
                if permits:
                    permits -= 1
                else:
                    self._permits -= 1
            rate = RATES[self.rate][0]
            stride = 1 if stepping else max(1, round(rate / _FRAMES))
            if not await self._pull(shots, stride):
                return None
            if self.held and not stepping:  # somebody said stop while it was being pulled
                for _ in range(len(self._past)):
                    if self._past[-1].step <= self.step:
                        break
                    self._ahead.append(self._past.pop())
                continue
            self._present()
            if not stepping:
                self._paced(self.step)
            due = max(due + 1.0 / min(rate, _FRAMES), monotonic() - 0.1)
            await asyncio.sleep(max(0.0, due - monotonic()))

    async def _rest(self, seconds: float) -> int:
        """Hold the last picture for a moment, or until somebody lets it go on. Returns the step to begin at."""
        await asyncio.sleep(seconds)
        while self.held and not self._permits and self._back is None:
            self._wake.clear()
            await self._wake.wait()
        back, self._back = self._back, None
        return back or 0
