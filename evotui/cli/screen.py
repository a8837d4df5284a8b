"""The interface on the terminal: opens what is asked for, shows it, and leaves nothing running behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from evotui.cli.errors import OK

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
        await app.run_async()
        return app.return_code or OK
    finally:
        await launcher.close()
        if opened != "home":
            feed, frames = opened
            await frames.close()
            await feed.close()
