"""A run without a screen: progress and errors on stderr, its result on stdout, Ctrl-C ends it with the record whole.

A terminal shows both streams, so nothing is told on both.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from evotui.agents.catalog import agent_kind, preflight, warm_up
from evotui.cli.early import NOTHING_BEGUN
from evotui.cli.ending import heard, write
from evotui.cli.errors import OK, RUN_FAILED, USAGE, Told
from evotui.cli.live import drive, past_of
from evotui.cli.screen import parting_words
from evotui.kernel.config import RunConfig
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session
from evotui.record.events import Record
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.report.text import ended_because, progress_line

TICK_TTY, TICK_PLAIN = 0.2, 5.0
"""Seconds between progress lines: redrawn in place on a terminal, appended rarely elsewhere."""


_Opened = tuple[Session, RunConfig, Sequence[Record]]


async def run_headless(config: RunConfig, runs: Path, name: str | None, quiet: bool) -> tuple[RunState, RunDir, int]:
    """Run to the end. Returns the final state, the run's folder and the exit code."""
    _check(config)
    await asyncio.to_thread(preflight, config.agent, config.options)

    async def opened() -> _Opened:
        await warm_up(config.agent, config.options)
        return await open_run(config, runs, name=name), config, ()

    return await _to_the_end(opened(), quiet)


async def resume_headless(root: Path, quiet: bool, weak: bool = False) -> tuple[RunState, RunDir, int]:
    """Take a run up where its log ends, with ``weak`` isolation if need be; returns as :func:`run_headless`."""

    async def opened() -> _Opened:
        session, config = await reopen_run(root, allow_weak_isolation=weak)
        try:
            _check(config)
            return session, config, await past_of(session)
        except BaseException:
            await session.close()
            raise

    return await _to_the_end(opened(), quiet)


def _check(config: RunConfig) -> None:
    if not agent_kind(config.agent).headless:
        raise Told(f"the agent {config.agent!r} needs the screen; leave --headless out", USAGE)


async def _to_the_end(opening: Coroutine[Any, Any, _Opened], quiet: bool) -> tuple[RunState, RunDir, int]:
    caught: list[int] = []
    session: Session | None = None
    opened = asyncio.ensure_future(opening)

    def stop(number: int) -> None:
        caught.append(number)
        if session is not None:
            session.wish("stop")
        else:
            opened.cancel()

    with heard(stop):
        await asyncio.wait({opened})
        if opened.cancelled() and caught:
            raise Told(NOTHING_BEGUN, 128 + caught[0])
        session, config, past = opened.result()
        if caught:  # it was open just then
            session.wish("stop")
        status = await _driven(session, config, past, quiet)
    if not quiet:
        _show(progress_line(session.state, time.time()), last=True)
    if status == "failed" and not caught:
        write(f"evotui: {ended_because(session.state)}\n")
    if not quiet and (caught or status == "failed"):  # of a quiet run the result, on stdout, is this very line
        write(parting_words(session.run_dir.root, session.state) + "\n")
    if caught:
        return session.state, session.run_dir, 128 + caught[0]
    return session.state, session.run_dir, OK if status == "completed" else RUN_FAILED


async def _driven(session: Session, config: RunConfig, past: Sequence[Record], quiet: bool) -> str:
    """Drive an open run and close it; returns its status."""
    ticker = None if quiet else asyncio.create_task(_tick(lambda: session.state))
    try:
        options = dict(config.options) | ({"headless": True} if config.agent == "human" else {})
        return await drive(session, config.agent, config.seed, options, past)
    finally:
        if ticker is not None:
            ticker.cancel()
            await asyncio.wait({ticker})
        await session.close()


async def _tick(state: Callable[[], RunState]) -> None:
    while True:
        _show(progress_line(state(), time.time()))
        await asyncio.sleep(TICK_TTY if sys.stderr.isatty() else TICK_PLAIN)


def _show(line: str, last: bool = False) -> None:
    write(f"\r\x1b[2K{line}" + ("\n" if last else "") if sys.stderr.isatty() else line + "\n")
