"""Guests that are forked from a worker's warm interpreter: as clean as executed ones, and as well kept."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evotui.protocol.results import EpisodeResult
from evotui.rollout.engine import Engine
from tests.patience import until

from .conftest import GOOD, make_job, run_job

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(sys.platform != "linux", reason="guests are forked on Linux only"),
]

# What a policy can see of where it came from.
LOOK = """
import builtins, gc, os, random, resource, signal, sys, threading
import numpy as np
seen = {"numbers": (random.random(), np.random.rand(3).tolist())}
class Policy:
    def __init__(self, *given): pass
    def reset(self, index):
        files = []
        for n in range(64):
            try: files.append((n, os.fstat(n).st_mode))
            except OSError: pass
        seen["files"] = files
        seen["modules"] = sorted(sys.modules)
        seen["environment"] = sorted(os.environ)
        seen["builtins"] = sorted(vars(builtins))
        seen["path"] = len(sys.path)
        seen["ids"] = os.getpgid(0) == os.getpid(), threading.active_count()
        seen["umask"] = os.umask(0o22)
        seen["signals"] = [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
        seen["mask"] = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        seen["limits"] = [resource.getrlimit(n) for n in range(16)]
        seen["streams"] = [(s.encoding, s.errors, s.line_buffering, s.seekable()) for s in (sys.stdout, sys.stderr)]
        seen["hash"] = hash("evotui")
        seen["numbers"] += (random.random(), np.random.rand(3).tolist())
        print(seen)
    def act(self, obs): return 0
"""

# A policy that leaves as many traces as it can.
DIRTY = """
import builtins, decimal, os, random, signal, sys
import numpy as np
builtins.trace = np.trace_of_mine = os.trace = 1
sys.path.append("/trace"); os.environ["TRACE"] = "1"; os.umask(0); os.chdir("/")
random.seed(5); np.random.seed(5); np.random.rand(99)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
kept = [open("/dev/null") for _ in range(9)]
class Policy:
    def __init__(self, *given): pass
    def reset(self, index): pass
    def act(self, obs): return 0
"""


def state(pid: int) -> tuple[str, int]:
    """``(state, parent)`` of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[1])


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def seen(engine: Engine, folder: Path) -> str:
    folder.mkdir()
    outcome = await run_job(engine, make_job(folder, LOOK))
    assert outcome.kinds == [None], outcome
    return (folder / "episodes" / "ep_000" / "stdout.txt").read_text()


@pytest.mark.parametrize("walls", [{"namespaces", "landlock", "seccomp"}, {"landlock", "seccomp"}, set()])
async def test_a_guest_forked_later_is_as_one_forked_first(tmp_path, walls):
    async with Engine(workers=1, walls=frozenset(walls)) as engine:
        first = await seen(engine, tmp_path / "first")
        dirty = tmp_path / "dirty"
        dirty.mkdir()
        assert (await run_job(engine, make_job(dirty, DIRTY, 2))).kinds == [None, None]
        assert await seen(engine, tmp_path / "second") == first
    files = eval(first)["files"]
    assert [n for n, _ in files][:3] == [0, 1, 2] and len(files) == 6  # and the connection to the worker, the lane


async def test_a_guest_is_the_workers_child_and_leaves_nothing(engine, tmp_path):
    worker = engine.workers[0].pid
    assert await until(lambda: len(children(worker)) == 1)  # what earlier tests closed is gone; the warm one stays
    resting = children(worker)
    for _ in range(3):
        async with engine.open(make_job(tmp_path, GOOD, 1)) as rollout:
            assert await rollout.compile() is None
            (guest,) = set(children(worker)) - set(resting)
            assert b"\0warm\0" in Path(f"/proc/{guest}/cmdline").read_bytes()
            assert os.getpgid(guest) == guest
        assert await until(lambda: children(worker) == resting)


async def test_a_dead_warm_interpreter_is_replaced_and_its_guests_live_on(tmp_path):
    async with Engine(workers=1) as engine:
        worker = engine.workers[0].pid
        (warm,) = children(worker)
        async with engine.open(make_job(tmp_path, GOOD, 3)) as rollout:
            assert await rollout.compile() is None and await rollout.initialize() is None
            os.kill(warm, signal.SIGKILL)
            results = [event async for event in rollout.episodes() if isinstance(event, EpisodeResult)]
        assert [(r.fault, r.return_) for r in results] == [(None, 500.0)] * 3
        assert (await run_job(engine, make_job(tmp_path, GOOD, 2))).kinds == [None, None]
        assert warm not in children(worker) and not [pid for pid in children(worker) if state(pid)[0] == "Z"]


ATTACK = """
import ctypes, os, resource
PID = @PID@
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def ptrace():
    if libc.ptrace(0x4206, PID, 0, 0) < 0: raise OSError(ctypes.get_errno(), "")
WAYS = {
    "signal": lambda: os.kill(PID, 0),
    "thread signal": lambda: libc.syscall(234, PID, PID, 0) == 0 or 1 / 0,
    "memory": lambda: open(f"/proc/{PID}/mem", "rb").close(),
    "files": lambda: os.listdir(f"/proc/{PID}/fd"),
    "limits": lambda: resource.prlimit(PID, resource.RLIMIT_CORE),
    "core": lambda: os.sched_setaffinity(PID, os.sched_getaffinity(PID)),
    "trace": ptrace,
}
through = []
for name, way in WAYS.items():
    try: way()
    except Exception: continue
    through.append(name)
class Policy:
    def __init__(self, *given): pass
    def reset(self, index): print(*through, sep=",")
    def act(self, obs): return 0
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call")
@pytest.mark.parametrize(
    ("walls", "kept_out"),
    [
        ({"namespaces", "landlock", "seccomp"}, True),
        ({"landlock", "seccomp"}, True),
        ({"namespaces", "seccomp"}, True),
        (set(), False),  # the control
    ],
)
async def test_a_policy_cannot_reach_the_warm_interpreter(tmp_path, walls, kept_out):
    async with Engine(workers=1, walls=frozenset(walls)) as engine:
        if kept_out and not walls <= set(engine.isolation.layers):
            pytest.skip(f"not to be had here: {engine.isolation.missing}")
        (warm,) = children(engine.workers[0].pid)
        outcome = await run_job(engine, make_job(tmp_path, ATTACK.replace("@PID@", str(warm))))
        assert outcome.kinds == [None], outcome
    told = (tmp_path / "episodes" / "ep_000" / "stdout.txt").read_text().strip()
    assert (told == "") if kept_out else ("signal" in told and "limits" in told), told


BROKEN = """
import sys
from pathlib import Path
from evotui.rollout import warm, worker
from evotui.rollout.host import Guest
from evotui.rollout.limits import ALL_WALLS, Limits

class Broken(warm.WarmInterpreter):
    def _fork(self, stdout, stderr):
        raise OSError("not today")

broken = Broken()
walls, isolation, source = worker.try_walls(Path(sys.argv[1]), ALL_WALLS, broken)
space = {"type": "Discrete", "n": 2}
guest = Guest(Path(sys.argv[2]), space, space, {}, Limits(), (), walls, broken)
process = guest.fork()
process.load()
process.construct()
print(isolation.level, guest.alive, broken.usable)
process.kill()
guest.close()
print(guest.alive)
"""


async def test_without_a_warm_interpreter_guests_are_executed(engine, tmp_path):
    job = make_job(tmp_path, GOOD)
    tmp_path.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path), str(job.snapshot)], capture_output=True, text=True
    )
    assert ran.stdout.split() == [engine.isolation.level, "True", "False", "False"], ran
