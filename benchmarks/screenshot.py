"""The README's picture: `python -m benchmarks.screenshot [--env ENV] [--at N] [--size 140x42] [--out FILE]`.

A real run in the real application: kernel, engine and search agent work as ever until N submissions are made; then the
run pauses at its gate, and the screen is saved as SVG when the last one's episode has been played far enough. On the
paper's cases, so that the picture can be made again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from evotui.cli.frames import Frames
from evotui.cli.launcher import RunLauncher
from evotui.cli.live import start
from evotui.kernel.config import resolve
from evotui.ui.app import EvotuiApp
from evotui.ui.screens.run import RunScreen
from evotui.ui.theme import DEFAULT

OUT = Path(__file__).with_name("screenshot.svg")
PATIENCE = 180.0
"""Seconds until something that should happen is said not to have happened."""


async def until(pilot: Pilot[None], condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"no picture: {what} did not come in {PATIENCE:.0f} s")
        await pilot.pause(0.02)


async def shoot(env: str, at: int, step: int, size: tuple[int, int], seed: int, budget: int, theme: str) -> str:
    """The screen as SVG when the last of ``at`` submissions is done and its episode was played up to ``step``."""
    feed = await start(resolve(env=env, budget=budget, seed=seed, pools="paper"), Path("runs"), "b3f2a1")
    frames = Frames(feed)
    launcher = RunLauncher(Path("runs"))
    app = EvotuiApp(launcher, (feed, frames), theme_name=theme)
    try:
        async with app.run_test(size=size) as pilot:
            screen = app.screen
            assert isinstance(screen, RunScreen)
            await until(pilot, lambda: len(feed.state.submissions) > at - 1, f"submission {at}")
            await screen.controls.pause()
            await until(pilot, lambda: bool(feed.state.held), "the gate")
            await pilot.press("left_square_bracket")  # the submission itself, not the workspace after it
            shown = len(feed.state.submissions) - 1

            def ready() -> bool:
                player = screen.environment.player
                shot = player.shot if player is not None else None
                return shown in screen.edits and shot is not None and shot.step >= min(step, shot.last_step)

            await until(pilot, ready, f"step {step} of the episode")
            return app.export_screenshot(title="evotui")
    finally:
        await frames.close()
        await feed.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="acrobot")
    parser.add_argument("--at", type=int, default=17, help="submissions")
    parser.add_argument("--step", type=int, default=70, help="environment step of the frame")
    parser.add_argument("--size", default="140x42")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--theme", default=DEFAULT)
    parser.add_argument("--out", type=Path, default=OUT)
    wish = parser.parse_args()
    out = wish.out.resolve()
    width, height = map(int, wish.size.split("x"))
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    os.environ["COLORTERM"] = "truecolor"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # no path of this machine on the screen
        svg = asyncio.run(shoot(wish.env, wish.at, wish.step, (width, height), wish.seed, wish.budget, wish.theme))
        for path in (folder, os.path.expanduser("~")):
            if path in svg:
                raise SystemExit(f"no picture: it would show {path}")
        os.chdir("/")
    out.write_text(svg, "utf-8")
    print(f"{out.name}: {len(svg) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
