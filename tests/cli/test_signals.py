"""Signals and closed terminals, as they come to suites and evaluations: exit code, record, nothing left over."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.cli import headless
from evotui.cli.errors import Told
from evotui.cli.main import run
from evotui.kernel import opening
from evotui.kernel.config import resolve
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import scan

EVOTUI = [sys.executable, "-m", "evotui"]
SUITE = """\
name = "small"
envs = ["cartpole", "pendulum"]
profile = "core16-paper"
budget = 4
validation = 2
heldout = 3
workers = 1
"""


def session_of(number: int) -> list[str]:
    """Processes of the session that ``number`` leads, but itself."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(number) and place.parent.name != str(number):
            found.append(place.parent.name)
    return found


def left_by(number: int) -> list[str]:
    """What is left of a session a moment after its leader is gone."""
    deadline = time.monotonic() + 5
    while session_of(number) and time.monotonic() < deadline:
        pass
    return session_of(number)


def ended_by(
    arguments: list[str], number: signal.Signals, ready: Callable[[bytes], bool], folder: Path
) -> tuple[int, bytes]:
    """Exit code and output of evotui on a terminal of its own, which is closed for SIGHUP, once ``ready(output)``.

    Nothing of it may be left running, or in its temporary folder.
    """
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*EVOTUI, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )  # fmt: skip
    os.close(theirs)
    output = b""
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and not ready(output):
            if select.select([ours], [], [], 0.05)[0]:
                output += os.read(ours, 65536)
        if number == signal.SIGHUP:
            os.close(ours)
        process.send_signal(number)
        while number != signal.SIGHUP and process.poll() is None:
            if select.select([ours], [], [], 0.05)[0]:
                try:
                    output += os.read(ours, 65536)
                except OSError:  # its last writer is gone
                    break
        code = process.wait(30)
    finally:
        process.kill()
        process.wait()
        if number != signal.SIGHUP:
            os.close(ours)
    assert left_by(process.pid) == [] and list(scratch.iterdir()) == []
    return code, output


def began(folder: Path, env: str) -> Callable[[bytes], bool]:
    def ready(output: bytes) -> bool:
        log = next((path / "events.jsonl" for path in scan(folder / "runs") if f".{env}." in path.name), None)
        return log is not None and b"SubmissionFinished" in log.read_bytes()

    return ready


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])  # an interrupt: test_suite
def test_a_suite_ends_in_good_order_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "small.toml").write_text(SUITE)
    arguments = ["suite", "small.toml", "--headless", "--allow-weak-isolation"]
    code, output = ended_by(arguments, number, began(tmp_path, "pendulum"), tmp_path)
    assert code == 128 + number
    assert number == signal.SIGHUP or b"goes on with it" in output
    states = {path.name: fold_all(read(path / "events.jsonl")) for path in scan(tmp_path / "runs")}
    assert states["small.search.cartpole.1"].ended is not None
    stopped = states["small.search.pendulum.1"]
    assert stopped.ended is None and stopped.agent_ended == "stopped"
    assert all(run(["check", str(path)]) == 0 for path in scan(tmp_path / "runs"))
    kept = len(stopped.submissions)
    assert run(["suite", str(tmp_path / "runs" / "small"), "--quiet", "--runs", str(tmp_path / "runs")]) == 0
    finished = fold_all(read(next(p for p in scan(tmp_path / "runs") if ".pendulum." in p.name) / "events.jsonl"))
    assert finished.ended is not None and finished.ended.status == "completed" and len(finished.submissions) >= kept


@pytest.mark.parametrize("more", [[], ["--quiet"]])
def test_a_stopped_run_says_how_to_go_on_once(tmp_path: Path, more: list[str]) -> None:
    arguments = ["run", "cartpole", "--budget", "5000", "--headless", "--allow-weak-isolation", *more]
    code, output = ended_by(
        [*arguments, "--name", "x.cartpole.1"], signal.SIGINT, began(tmp_path, "cartpole"), tmp_path
    )
    assert code == 130 and output.count(b"goes on with it") == output.count(b"stopped, ") == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_an_evaluation_ends_with_nothing_left_over(tmp_path: Path, number: signal.Signals) -> None:
    command = ["evaluate", "starter", "--env", "acrobot", "--pools", "paper", "--cases", "0-255", "--workers", "1"]
    code, output = ended_by(command, number, lambda output: b"/256 episodes" in output, tmp_path)
    assert code == 128 + number and b"mean return" not in output and b"Traceback" not in output
    assert number == signal.SIGHUP or b"evotui: interrupted" in output


def test_a_closed_terminal_ends_the_suites_screen_in_good_order(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SUITE.replace("budget = 4", "budget = 5000"))
    code, _ = ended_by(["suite", "small.toml"], signal.SIGHUP, began(tmp_path, "cartpole"), tmp_path)
    assert code == 129
    state = fold_all(read(next(scan(tmp_path / "runs")) / "events.jsonl"))
    assert state.ended is None and state.agent_ended == "stopped"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
async def test_a_run_that_is_still_being_opened_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    cleaned: list[bool] = []

    async def open_run(*arguments: Any, **more: Any) -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    monkeypatch.setattr(headless, "open_run", open_run)
    with pytest.raises(Told) as told:
        await headless.run_headless(resolve(env="cartpole"), tmp_path, None, True)
    assert told.value.code == 128 + number and cleaned == [True] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("point", ["probe", "create", "lay_out", "edits_between"])
async def test_a_run_that_was_called_off_while_it_was_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Also where a thread was just making its folder, or its first fact was just written."""
    loop, real = asyncio.get_running_loop(), getattr(opening, point)

    def called_off(*arguments: Any) -> Any:
        loop.call_soon_threadsafe(os.kill, os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # the cancellation is there while this thread still works
        return real(*arguments)

    monkeypatch.setattr(opening, point, called_off)
    config = resolve(env="cartpole", budget=4, validation=2, heldout=2, workers=1, allow_weak_isolation=True)
    with pytest.raises(Told, match="before the run began: there is nothing to resume") as told:
        await headless.run_headless(config, tmp_path, "x", True)
    assert told.value.code == 130
    assert [path for path in tmp_path.rglob("*") if path.name == "x" or not path.is_dir()] == []


@pytest.mark.parametrize("module", ["evotui.cli.main", "evotui.kernel.config", "evotui.agents.catalog"])
def test_an_interrupt_while_python_still_imports_is_one_sentence(tmp_path: Path, module: str) -> None:
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, *more):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["evotui", "run", "cartpole", "--headless"]
from evotui.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 130 and list(tmp_path.iterdir()) == []
    assert done.stderr.strip() == "evotui: interrupted before the run began: there is nothing to resume"
