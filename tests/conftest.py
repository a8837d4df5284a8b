"""What holds for every test: how many processes share them out and in which order, and folders that are nobody's own.

The whole suite runs in as many processes as there are cores (pytest-xdist: ``addopts`` in pyproject.toml);
the tests of a file stay together, so that what they share is made once. ``-n 0`` runs them all in one process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
MOST = 8
"""Processes at most: each has simulators, an engine and perhaps litellm in memory, half a gigabyte together."""
LONGEST_FIRST = ("rollout", "kernel", "agents", "suite", "cli", "servers")
"""Rooms whose files take long; what is left for the end is quick, and no process has to wait for another's."""
UNUSED = pytest.StashKey[list[str]]()


# Whoever runs the tests under nohup or behind an `&` has these ignored, and every program that a test starts would
# inherit that: an evotui that is told to ignore a signal does so.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Several for the whole suite only: for less, starting them would take longer, and nobody could look at a test."""
    whole = any(Path(argument).resolve() in (TESTS, TESTS.parent) for argument in config.args)
    if not whole or config.option.keyword or config.option.capture == "no" or config.option.update_snapshots:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST) if cores > 1 else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {room: place for place, room in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.relative_to(TESTS).parts[0], len(rank)))


# -- what xdist's workers find out at their end


def pytest_testnodedown(node: Any) -> None:
    """Snapshots that no test uses fail the run, as they do in one process; snapshots' own plugin forgets them here."""
    node.config.stash.setdefault(UNUSED, []).extend(getattr(node, "workeroutput", {}).get("unused", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config: Any = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["unused"] = [snapshot.name for found in config._syrupy.report.unused for snapshot in found]
    elif config.stash.get(UNUSED, None):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in sorted(terminalreporter.config.stash.get(UNUSED, [])):
        terminalreporter.write_line(f"No test uses the snapshot {name}.", red=True)


# -- the machine's owner


@pytest.fixture(scope="session", autouse=True)
def _nobodys_folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Agents, environments and settings of whoever runs the tests are not seen, and nothing is written beside them."""
    if "clis" in str(request.config.option.markexpr):  # programs that are not ours, with the settings they have here
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        for kind in ("config", "data", "state"):
            patched.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path_factory.mktemp(kind)))
        yield
