"""The pieces between the command line and the screens, with a real kernel: resuming, and runs that break off."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evotui.cli.launcher import CannotStart, RunLauncher
from evotui.cli.live import LiveFeed
from evotui.cli.recorded import LogFeed
from evotui.cli.screen import tell_failures
from evotui.record import events as e
from evotui.record.log import Writer, read
from evotui.ui.feed import Feed, NewRun

WAIT = 60.0


async def started(launcher: RunLauncher) -> Feed:
    """A run whose agent is a person: nothing happens by itself."""
    feed, _ = await launcher.start(NewRun(env="cartpole", agent="human", budget=4, name="abc123"))
    return feed


async def test_a_run_that_was_left_goes_on(tmp_path: Path) -> None:
    launcher = RunLauncher(tmp_path / "runs")
    try:
        feed = await started(launcher)
        assert feed.controls is not None
        await feed.controls.submit("0-1")
        with pytest.raises(CannotStart, match="another process is running abc123"):
            await launcher.resume(feed.run.root)
        await feed.close()
        again, _ = await launcher.resume(feed.run.root)
        assert again.live and again.state.budget.used == 2
        assert again.controls is not None
        await again.controls.submit("2-3")
        assert again.state.budget.spent
        assert sum(isinstance(record.event, e.RunResumed) for record in read(feed.run.events)) == 1
        assert not tell_failures(launcher.opened)
    finally:
        await launcher.close()


async def test_a_run_that_has_ended_keeps_no_workers_however_long_it_is_looked_at(tmp_path: Path) -> None:
    launcher = RunLauncher(tmp_path / "runs")
    try:
        feed = await started(launcher)
        assert isinstance(feed, LiveFeed) and feed.controls is not None
        workers = [worker.pid for worker in feed._session.arena.engine.workers]
        assert workers and all(there(pid) for pid in workers)
        await feed.controls.stop()
        assert feed._resting is not None
        await asyncio.wait_for(asyncio.shield(feed._resting), WAIT)
        assert not any(there(pid) for pid in workers)
        await feed.close()
        again, _ = await launcher.resume(feed.run.root)  # where workers are needed again, they are there
        assert again.controls is not None
        await again.controls.submit("0")
        assert again.state.budget.used == 1
    finally:
        await launcher.close()


def there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SLOW = """import time

class Policy:
    def __init__(self, obs_space, action_space, env_meta): pass
    def reset(self, episode_index): pass
    def act(self, obs):
        time.sleep(0.2)
        return [0.0]
"""


async def under_way(feed: Feed) -> None:
    """Wait until an episode has taken a step."""
    async with asyncio.timeout(WAIT):
        while not feed.progress():
            await asyncio.sleep(0.02)


async def test_a_resumed_run_can_be_left_before_its_broken_submission_is_done(tmp_path: Path) -> None:
    launcher = RunLauncher(tmp_path / "runs")
    try:
        feed, _ = await launcher.start(NewRun(env="continuouscar", agent="human", budget=4, name="abc123"))
        assert feed.controls is not None
        (feed.controls.system / "policy.py").write_text(SLOW)
        submitting = asyncio.create_task(feed.controls.submit("0-1"))
        await under_way(feed)  # 999 steps of 0.2 s each: for minutes
        await asyncio.wait_for(feed.close(), WAIT)
        assert isinstance((await asyncio.gather(submitting, return_exceptions=True))[0], BaseException)
        again, _ = await launcher.resume(feed.run.root)
        await under_way(again)
        await asyncio.wait_for(again.close(), WAIT)
        assert again.state.active is not None and again.state.budget.used == 2
    finally:
        await launcher.close()


async def test_a_full_disk_ends_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = RunLauncher(tmp_path / "runs")
    try:
        feed = await started(launcher)
        assert feed.controls is not None

        async def last_state() -> Any:
            state = None
            async for newer in feed.updates():
                state = newer
            return state

        watching = asyncio.create_task(last_state())

        async def full(self: Writer, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Writer, "_write", full)
        await feed.controls.finalize()
        state = await asyncio.wait_for(watching, WAIT)  # the screen is told that nothing more comes
        assert state.ended is None and not feed.live and feed.controls is None
        assert feed.failure == "events.jsonl: No space left on device"
        assert tell_failures(launcher.opened)
        assert capsys.readouterr().err == "evotui: abc123: events.jsonl: No space left on device\n"
        monkeypatch.undo()
        await feed.close()
        again, _ = await launcher.resume(feed.run.root)  # once there is room again
        assert again.live and not again.failure
        assert not tell_failures(launcher.opened)  # how it went last is what counts
    finally:
        await launcher.close()


async def test_a_log_that_is_damaged_while_watched_is_told(tmp_path: Path) -> None:
    launcher = RunLauncher(tmp_path / "runs")
    try:
        feed = await started(launcher)
        watched = await LogFeed.open(feed.run.root)
        assert watched.live
        updates = watched.updates()
        await anext(updates)
        with feed.run.events.open("ab") as log:
            log.write(b"no fact\n")
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(updates), WAIT)
        assert "events.jsonl" in watched.failure and not watched.live
        await watched.close()
    finally:
        await launcher.close()


def test_our_own_faults_are_told_by_type(capsys: pytest.CaptureFixture[str]) -> None:
    from evotui.cli.errors import sentence

    assert sentence(ZeroDivisionError("division by zero")) == "ZeroDivisionError: division by zero"
    assert sentence(KeyError()) == "KeyError"
    feed: Any = SimpleNamespace(run=SimpleNamespace(root=Path("x/abc")), failure="")
    assert not tell_failures([feed]) and capsys.readouterr().err == ""
