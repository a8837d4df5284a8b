"""A terminal that is closed, and a leaving that takes too long: nothing may survive either."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.terminal import Terminal
from evotui.agents.options import OptionError, read_options
from evotui.cli.main import run
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import scan
from tests.cli.test_terminal import evotui
from tests.patience import PATIENCE

STUCK = """
import asyncio, sys, time
from evotui.cli import screen
screen.LAST_RESORT = 0.3
class App:
    def exit(self, return_code): pass
async def main():
    leaving = screen.Leaving()
    leaving.watch(App())
    print("watching", flush=True)
    while True:
        time.sleep(1)  # a loop that is held up, as by a terminal that takes nothing any more
asyncio.run(main())
"""


BEGUN = """
import asyncio, sys
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from evotui.cli import screen
async def main():
    app = App()
    with app._context():
        app._driver = LinuxDriver(app)
        app._driver.start_application_mode()  # and its terminal goes before the application stands
    if sys.argv[1] == "let go":
        screen.let_go(app)
asyncio.run(main())
"""


@pytest.mark.parametrize(("what", "ends"), [("let go", True), ("keep", False)])
def test_a_driver_that_was_never_stopped_holds_nobody_up(what: str, ends: bool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", BEGUN, what], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        assert os.read(ours, 1)
        if ends:
            assert process.wait(PATIENCE) == 0
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_leaving_that_is_stuck_ends_all_the_same(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"watching\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    finally:
        process.kill()
        process.communicate()


def test_a_closed_terminal_stops_a_headless_run_in_good_order(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = evotui("run", "cartpole", "--budget", "10000", "--workers", "1", "--headless")
    process = subprocess.Popen(
        [*command, "--allow-weak-isolation", "--runs", str(tmp_path)], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            os.read(ours, 65536)
            found = next(scan(tmp_path), None)
            if found is not None and b"SubmissionFinished" in (found / "events.jsonl").read_bytes():
                break
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 129
    finally:
        process.kill()
        process.wait()
    root = next(scan(tmp_path))
    state = fold_all(read(root / "events.jsonl"))
    assert state.ended is None and state.agent_ended == "stopped"
    assert run(["check", str(root)]) == 0


@pytest.mark.parametrize(
    ("kind", "name", "text", "told"),
    [
        ("replay", "speed", "abc", "speed takes a number of 0 or more"),
        ("replay", "speed", "-1", "speed takes a number of 0 or more"),
        ("replay", "speed", "nan", "speed takes a number of 0 or more"),
        ("litellm", "api_base", "notaurl", "api-base takes an address such as http://127.0.0.1:8080/v1"),
        ("litellm", "api_base", "http://:x", "api-base takes an address such as http://127.0.0.1:8080/v1"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_told(kind: str, name: str, text: str, told: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(kind, {name: text})
    assert str(caught.value) == told
    assert read_options("replay", {"speed": "0", "source": "x"})["speed"] == 0
    good = {"api_base": "http://127.0.0.1:8080/v1", "model": "m"}
    assert read_options("litellm", good)["api_base"] == good["api_base"]


def test_a_closed_terminal_ends_the_interface_in_good_order(tmp_path: Path) -> None:
    with Terminal(evotui("run", "acrobot", "--budget", "500", "--workers", "1", "--runs", str(tmp_path))) as terminal:
        assert terminal.until(b"rolling out", PATIENCE) is not None
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), terminal._ours)  # closes it: the kernel hangs the terminal up
        assert terminal.process.wait(PATIENCE) == 129
    state = fold_all(read(next(scan(tmp_path)) / "events.jsonl"))
    assert state.agent_ended == "stopped" and state.ended is None
