"""A suite on the terminal: run and shown by one process, nothing left running behind it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from evotui.cli.errors import INTERRUPTED, OK
from evotui.cli.launcher import RunLauncher
from evotui.cli.screen import Leaving
from evotui.cli.suite import SuiteRun
from evotui.cli.suitefeed import LiveSuite
from evotui.record.suitedir import SuiteDir
from evotui.record.suitefile import Plan
from evotui.report.suite import suite_text


def show_suite(plan: Plan, suite: SuiteDir, runs: Path) -> int:
    """Run the suite under its screen until its user leaves. Returns the exit code."""
    os.environ.setdefault("TEXTUAL_FPS", "120")
    leaving = Leaving()
    try:
        return asyncio.run(_show(plan, suite, runs, leaving))
    finally:
        leaving.done()


async def _show(plan: Plan, suite: SuiteDir, runs: Path, leaving: Leaving) -> int:
    from evotui.ui.app import EvotuiApp

    launcher = RunLauncher(runs)
    feed = LiveSuite(SuiteRun(plan, suite, quiet=True, background=True))
    try:
        app = EvotuiApp(launcher, feed)
        leaving.watch(app)
        feed.begin()
        await app.run_async()
    finally:
        await feed.close()
        await launcher.close()
    if feed.failure:
        click.echo(f"evotui: {feed.failure}", err=True)
    states = await asyncio.to_thread(suite.states, plan)
    click.echo(suite_text(states))
    if any(state.state in ("unfinished", "waiting") for state in states):
        click.echo(f"{suite.root}: stopped; `evotui suite {suite.root}` goes on with it", err=True)
    # Who leaves a suite, or a run, of their own accord has not failed.
    return app.return_code or (OK if feed.code == INTERRUPTED else feed.code)
