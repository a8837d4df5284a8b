"""The player's pace: holding, stepping both ways, rounds, skipping at speed. Time is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from evotui.ui import player as module
from evotui.ui.feed import Shot
from evotui.ui.panes.environment import cells_beside, slow_words
from evotui.ui.player import NORMAL, RATES, Player, rate_for
from tests.ui.fakes import FakeFrames


@pytest.fixture(autouse=True)
def _own_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sleeping takes no time: it lets the loop go round."""
    now = [0.0]
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        await real(0)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    yield


class Watcher:
    def __init__(self, last_step: int = 20, length: int = 20) -> None:
        self.frames = FakeFrames(last_step, kind="none")
        self.steps: list[int] = []
        self.player = Player(self.frames, 3, 1, length, self._show, lambda: None)

    def _show(self, shot: Shot) -> None:
        self.steps.append(shot.step)

    async def until(self, done: object) -> None:
        for _ in range(2000):
            if callable(done) and done():
                return
            await asyncio.tasks.sleep(0)
        raise AssertionError(f"never: {self.steps}")


async def test_an_episode_is_shown_step_by_step_and_rounds_are_counted() -> None:
    watcher = Watcher()
    await watcher.player.run(10, 10, loops=2)
    assert watcher.steps == [*range(21), *range(21)]
    assert watcher.player.rounds == 2 and watcher.player.ended
    assert watcher.frames.played == [(3, 1, 0), (3, 1, 0)]


async def test_high_speed_skips_instead_of_queueing() -> None:
    watcher = Watcher(last_step=100)
    watcher.player.rate = len(RATES) - 1
    await watcher.player.run(10, 10, loops=1)
    assert len(watcher.steps) < 10 and watcher.steps[-1] == 100


async def test_held_shows_one_still_and_steps_both_ways() -> None:
    watcher = Watcher()
    player = watcher.player
    player.hold(True)
    task = asyncio.create_task(player.run(10, 10))
    await watcher.until(lambda: watcher.steps == [0])
    player.step_on()
    player.step_on()
    await watcher.until(lambda: watcher.steps == [0, 1, 2])
    player.step_back()
    player.step_back()
    assert watcher.steps == [0, 1, 2, 1, 0] and player.step == 0
    player.step_on()
    assert watcher.steps[-1] == 1
    player.hold(False)
    await watcher.until(lambda: player.step == 20)
    task.cancel()


async def test_stepping_back_beyond_what_is_remembered_begins_anew_there() -> None:
    watcher = Watcher()
    player = watcher.player
    player.hold(True)
    task = asyncio.create_task(player.run(10, 10, start=9))
    await watcher.until(lambda: watcher.steps == [9])
    player.step_back()
    await watcher.until(lambda: watcher.steps == [9, 8])
    assert watcher.frames.played == [(3, 1, 9), (3, 1, 8)]
    task.cancel()


async def test_playing_from_the_middle_is_no_round() -> None:
    watcher = Watcher()
    await watcher.player.run(10, 10, start=15, loops=1)
    assert watcher.steps == [*range(15, 21), *range(21)]


async def test_whoever_played_for_ever_ends_with_the_round_once_it_is_the_last() -> None:
    watcher = Watcher()
    player = watcher.player
    task = asyncio.create_task(player.run(10, 10))
    await watcher.until(lambda: player.rounds == 2 and player.step == 5)
    player.last_round()
    player.last_round()
    await watcher.until(lambda: player.ended)
    assert player.rounds == 3 and player.step == 20 and len(watcher.frames.played) == 3
    await task


async def test_resting_between_two_rounds_it_begins_none() -> None:
    watcher = Watcher()
    task = asyncio.create_task(watcher.player.run(10, 10))
    await watcher.until(lambda: watcher.player._resting)
    watcher.player.last_round()
    await task
    assert watcher.player.rounds == 1 and watcher.frames.played == [(3, 1, 0)]


def test_speeds() -> None:
    assert [RATES[rate_for(n)][1] for n in (10, 350, 500, 1000, 5000)] == ["×1", "×1", "×2", "×4", "×8"]
    watcher = Watcher()
    watcher.player.faster(-99)
    assert watcher.player.speed == "×¼"
    watcher.player.faster(99)
    assert watcher.player.speed == "×16" and RATES[NORMAL][1] == "×1"


@pytest.mark.parametrize(
    ("width", "height", "aspect", "below", "beside"),
    [
        (56, 16, 1.0, 3, True), (56, 16, 1.5, 3, False), (120, 35, 1.0, 3, True), (120, 35, 1.5, 3, True),
        (96, 27, 2.0, 3, False), (39, 8, 1.0, 1, False), (10, 3, 1.0, 1, False),
    ],
)  # fmt: skip
def test_values_go_beside_a_picture_that_loses_nothing_by_it(
    width: int, height: int, aspect: float, below: int, beside: bool
) -> None:
    cells = cells_beside(width, height, aspect, below)
    assert bool(cells) is beside
    if cells:
        left = width - cells - 2
        assert cells >= 26 and left > 0
        shown = min(left, 2 * height * aspect)
        assert shown**2 >= 0.75 * min(width, 2 * (height - below) * aspect) ** 2


async def test_frames_that_come_slower_than_asked_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(last_step=200)
    player, waits, told = watcher.player, 0.5, list[float | None]()
    play = watcher.frames.play

    async def slow(*args: int) -> AsyncIterator[Shot]:
        async for shot in play(*args):
            await module.asyncio.sleep(waits)
            told.append(player.behind)
            yield shot

    monkeypatch.setattr(watcher.frames, "play", slow)
    await player.run(10, 10, loops=1)
    assert told[0] is None and told[-1] == pytest.approx(2.0, abs=0.5)
    waits = 0.0
    told.clear()
    player.ended = False
    await player.run(10, 10, loops=2)
    assert told[-1] is None


async def test_before_the_first_frame_it_is_drawing_and_held_it_is_never_behind() -> None:
    player = Watcher().player
    assert player.behind is None
    await module.asyncio.sleep(5.0)
    assert player.behind == 0.0
    player.hold(True)
    assert player.behind is None


def test_slow_words() -> None:
    assert slow_words(4.4) == "slow: 4 steps/s" and slow_words(0.0) == "drawing …"
