"""The interface on a real pseudo-terminal: it opens, takes keys, and ends in good order whatever ends it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from benchmarks.terminal import Terminal
from evotui.cli.main import run
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import scan
from tests.patience import PATIENCE

PATIENT = f"from evotui.cli import main, screen; screen.LAST_RESORT = {PATIENCE}; raise SystemExit(main.run())"
"""The command line with time to leave in good order on a busy machine too."""
LEFT_THE_SCREEN = b"\x1b[?1049l"


def evotui(*arguments: str) -> list[str]:
    return [sys.executable, "-c", PATIENT, *arguments]


def ending(terminal: Terminal, seconds: float = PATIENCE) -> bytes:
    """The last that was drawn before the process ended."""
    drawn, deadline = b"", time.monotonic() + seconds
    while terminal.process.poll() is None and time.monotonic() < deadline:
        drawn = (drawn + terminal.read(0.1))[-8192:]
    while more := terminal.read(0.05):
        drawn = (drawn + more)[-8192:]
    return drawn


def test_home_opens_and_q_leaves(tmp_path: Path) -> None:
    with Terminal(evotui("--runs", str(tmp_path))) as terminal:
        assert terminal.until(b"evotui demo", PATIENCE) is not None
        terminal.type(b"q")
        assert LEFT_THE_SCREEN in ending(terminal)
        assert terminal.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal_and_closes_the_record(tmp_path: Path, number: signal.Signals) -> None:
    with Terminal(evotui("run", "acrobot", "--budget", "500", "--workers", "1", "--runs", str(tmp_path))) as terminal:
        assert terminal.until(b"rolling out", PATIENCE) is not None
        os.kill(terminal.process.pid, number)
        drawn = ending(terminal)
        assert terminal.process.returncode == 128 + number
        assert LEFT_THE_SCREEN in drawn
    root = next(scan(tmp_path))
    state = fold_all(read(root / "events.jsonl"))
    assert state.agent_ended == "stopped" and state.ended is None
    assert run(["check", str(root)]) == 0


def test_leaving_a_live_run_asks_first(tmp_path: Path) -> None:
    with Terminal(evotui("run", "cartpole", "--budget", "500", "--workers", "1", "--runs", str(tmp_path))) as terminal:
        assert terminal.until(b"rolling out", PATIENCE) is not None
        terminal.type(b"q")
        assert terminal.until(b"Leave a run that is still going?", PATIENCE) is not None
        terminal.type(b"y")
        ending(terminal)
        assert terminal.process.returncode == 0
    assert fold_all(read(next(scan(tmp_path)) / "events.jsonl")).agent_ended == "stopped"
