"""The interface on the terminal: opens what is asked for, shows it, and leaves nothing running behind it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import click

from evotui.cli.errors import FAILURE, OK
from evotui.protocol.words import counted

if TYPE_CHECKING:
    from textual.app import App

    from evotui.record.state import RunState
    from evotui.ui.feed import Feed

LAST_RESORT = 6.0
"""Seconds that leaving in good order may take once a signal asked for it."""

Start = Literal["home"] | Callable[[], Awaitable[Any]]


def show(runs: Path, start: Start) -> int:
    """Run the application until its user leaves. Errors of opening are raised before the screen is taken."""
    # A key is painted at the next frame: 120 a second instead of 60 halves that wait (INTERFACE: figures).
    os.environ.setdefault("TEXTUAL_FPS", "120")
    leaving = Leaving()
    try:
        return asyncio.run(_show(runs, start, leaving))
    finally:
        leaving.done()


async def _show(runs: Path, start: Start, leaving: Leaving) -> int:
    from evotui.cli.launcher import RunLauncher
    from evotui.ui.app import EvotuiApp

    launcher = RunLauncher(runs)
    opened = start if start == "home" else await start()
    try:
        app = EvotuiApp(launcher, opened)
        leaving.watch(app)
        try:
            await app.run_async()
        finally:
            let_go(app)
    finally:
        await launcher.close()
        if opened != "home":
            feed, frames = opened
            await frames.close()
            await feed.close()
    feeds = [*([] if opened == "home" else [opened[0]]), *launcher.opened]
    if tell_failures(feeds):
        return FAILURE
    if not app.return_code:
        part(feeds)
    return app.return_code or OK


def let_go(app: App[None]) -> None:
    """End the driver's threads where the application ended without doing so, as when its terminal went while it began:
    one of them is waited for at the end of the process, and reads what is in place of the terminal for ever."""
    driver = app._driver
    if driver is not None:
        driver.disable_input()
        driver.close()


def part(feeds: Sequence[Feed]) -> None:
    """Say on stderr how the runs that were driven here stand, and what can be done with them."""
    from evotui.cli.live import LiveFeed

    driven = {feed.run.root: feed.state for feed in feeds if isinstance(feed, LiveFeed)}
    for root, state in driven.items():
        click.echo(parting_words(root, state), err=True)


def parting_words(root: Path, state: RunState) -> str:
    """One line about a run that is left: its place and the command that goes on with it."""
    if state.ended is None:
        used = f"{state.budget.used} of {counted(state.budget.total, 'episode')} used"
        return f"{root}: stopped, {used}; `evotui run --resume {root}` goes on with it"
    from evotui.ui.words import mean_of

    score = state.heldout.score if state.heldout is not None else None
    figures = f", held-out mean {mean_of(score.mean, score.std, score.n)} (n {score.n})" if score is not None else ""
    return f"{root}: {state.ended.status}{figures}; `evotui open {root}` shows it"


class Leaving:
    """SIGTERM and a lost terminal end the application in good order: terminal restored, record whole, nobody left.

    Where that takes longer than ``LAST_RESORT`` the process ends at once: the log is whole at any moment, and workers,
    guests and the drawing process end with their parent.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._before: dict[int, Any] = {}

    def watch(self, app: App[None]) -> None:
        """Hear the signals from now on. In the main thread, with the loop running."""
        loop = asyncio.get_running_loop()
        # In place of a terminal that is gone: what is drawn to it at the end would wait for ever.
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        terminals = [fd for fd in (0, 1, 2) if os.isatty(fd)]

        def told(number: int, _: FrameType | None) -> None:
            if self._timer is None:
                self._timer = threading.Timer(LAST_RESORT, os._exit, (128 + number,))
                self._timer.daemon = True
                self._timer.start()
            for fd in terminals:
                if not os.isatty(fd):
                    os.dup2(nowhere, fd)
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: app.exit(return_code=128 + number))

        # No handler of the loop's: a write to a terminal that is gone may hold the loop for ever.
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, told)

    def done(self) -> None:
        """What was open is closed: no last resort is needed."""
        if self._timer is not None:
            self._timer.cancel()
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)


def tell_failures(feeds: Sequence[Feed]) -> bool:
    """Say on stderr which runs broke off and why: the screen that showed it is gone. A run that was resumed since is
    judged by how it went last."""
    failed = {feed.run.root: feed.failure for feed in feeds}
    for root, failure in failed.items():
        if failure:
            click.echo(f"evotui: {root.name}: {failure}", err=True)
    return any(failed.values())
