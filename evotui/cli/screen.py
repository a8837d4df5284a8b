"""The interface on the terminal: opens what is asked for, shows it, and leaves nothing running behind it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from evotui.cli.errors import FAILURE, OK

if TYPE_CHECKING:
    from textual.app import App

    from evotui.record.state import RunState
    from evotui.ui.feed import Feed

Start = Literal["home"] | Callable[[], Awaitable[Any]]


def show(runs: Path, start: Start) -> int:
    """Run the application until its user leaves. Errors of opening are raised before the screen is taken."""
    # A key is painted at the next frame: 120 a second instead of 60 halves that wait (INTERFACE: figures).
    os.environ.setdefault("TEXTUAL_FPS", "120")
    return asyncio.run(_show(runs, start))


async def _show(runs: Path, start: Start) -> int:
    from evotui.cli.launcher import RunLauncher
    from evotui.ui.app import EvotuiApp

    launcher = RunLauncher(runs)
    opened = start if start == "home" else await start()
    try:
        app = EvotuiApp(launcher, opened)
        leave_when_told(app)
        await app.run_async()
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


def part(feeds: Sequence[Feed]) -> None:
    """Say on stderr how the runs that were driven here stand, and what can be done with them."""
    from evotui.cli.live import LiveFeed

    driven = {feed.run.root: feed.state for feed in feeds if isinstance(feed, LiveFeed)}
    for root, state in driven.items():
        click.echo(parting_words(root, state), err=True)


def parting_words(root: Path, state: RunState) -> str:
    """One line about a run that is left: its place and the command that goes on with it."""
    if state.ended is None:
        used = f"{state.budget.used} of {state.budget.total} episodes used"
        return f"{root}: stopped, {used}; `evotui run --resume {root}` goes on with it"
    score = state.heldout.score if state.heldout is not None else None
    figures = f", held-out mean {score.mean:g} ± {score.std:g} (n {score.n})" if score is not None else ""
    return f"{root}: {state.ended.status}{figures}; `evotui open {root}` shows it"


def leave_when_told(app: App[None]) -> None:
    """SIGTERM and a lost terminal end the application in good order: terminal restored, record whole, nobody left."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, partial(app.exit, return_code=128 + number))


def tell_failures(feeds: Sequence[Feed]) -> bool:
    """Say on stderr which runs broke off and why: the screen that showed it is gone. A run that was resumed since is
    judged by how it went last."""
    failed = {feed.run.root: feed.failure for feed in feeds}
    for root, failure in failed.items():
        if failure:
            click.echo(f"evotui: {root.name}: {failure}", err=True)
    return any(failed.values())
