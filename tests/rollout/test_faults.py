"""Every way a policy can fail, injected into real guests: the right fault, other episodes kept, nothing left over."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from evotui.protocol.results import EpisodeResult
from evotui.protocol.verdict import STRIKES, FaultKind
from evotui.rollout.engine import Engine, EngineError
from evotui.rollout.limits import Limits
from tests.patience import until

from .conftest import GOOD, SHORT, make_job, run_job

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAILING = """
import ctypes, fcntl, os, signal, socket, stat, struct, sys, time, threading
def pipes(way):
    for n in range(3, 30):
        try:
            if stat.S_ISFIFO(os.fstat(n).st_mode) and fcntl.fcntl(n, fcntl.F_GETFL) & 3 == way: yield n
        except OSError: pass
def lines():
    yield from pipes(os.O_WRONLY)
    for n in range(3, 30):
        try:
            if stat.S_ISSOCK(os.fstat(n).st_mode): yield n
        except OSError: pass
class Nasty(BaseException):
    def __str__(self): raise self
    __repr__ = __str__
class Policy:
    def __init__(self, *given): self.index = 0
    def reset(self, index):
        self.index = index
        if index == 1 and {where!r} == "reset":
            {body}
    def act(self, obs):
        if self.index == 1 and {where!r} == "act":
            {body}
        return int(obs[2] + 0.5 * obs[3] > 0)
"""


def failing(body: str, where: str = "act") -> str:
    """The good policy, which in its second episode does ``body`` instead."""
    lines = body.strip().splitlines()
    return FAILING.format(where=where, body="\n            ".join(lines))


STOP_SIGNALS = """for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
import re; re.match("(a+)+$", "a" * 60 + "b")"""

JAM = """for n in pipes(0):
    fcntl.fcntl(n, fcntl.F_SETPIPE_SZ, 4096)
    line = os.open(f"/proc/self/fd/{n}", os.O_WRONLY)
    while True: os.write(line, bytes(100))"""

STEAL = """for n in pipes(1):
    line = os.open(f"/proc/self/fd/{n}", os.O_RDONLY)
    threading.Thread(target=lambda: [os.read(line, 4096) for _ in range(10)], daemon=True).start()
    time.sleep(0.05)"""

CASES = [
    (r"raise ValueError('half a pair: \ud800')", "act", "act_error"),
    (r"raise type('\udfff', (Exception,), {})('\ud800')", "reset", "reset_error"),
    ("while True: pass", "act", "act_timeout"),
    ("time.sleep(1000)", "act", "act_timeout"),
    (STOP_SIGNALS, "act", "act_timeout"),
    ("while True: pass", "reset", "reset_timeout"),
    ("os._exit(0)", "act", "exited"),
    ("os._exit(3)", "reset", "exited"),
    ("ctypes.string_at(0)", "act", "exited"),
    ("os.abort()", "act", "exited"),
    ("signal.raise_signal(signal.SIGKILL)", "act", "oom"),
    ("os.closerange(0, 1024)", "act", "exited"),
    ("raise MemoryError", "act", "oom"),
    ("x = bytearray(20 << 30)", "act", "oom"),
    ("raise SystemExit(0)", "act", "act_error"),
    ("raise KeyboardInterrupt", "reset", "reset_error"),
    ("raise Nasty", "act", "act_error"),
    ("raise ValueError('x' * 10**6)", "act", "act_error"),
    ("raise ValueError('\\U0001f600' * 10**4)", "act", "act_error"),
    ("return self.act(obs) if True else 0", "act", "act_error"),
    ("import subprocess", "act", "act_error"),
    ("[os.write(n, b'garbage' * 50) for n in lines()]", "act", "protocol"),
    ("[os.write(n, b'z' * 150000) for n in lines()]", "act", "protocol"),
    ("[os.write(n, b'\\x01') for n in lines()]\ntime.sleep(9)", "act", "protocol"),
    # the lane: answers announced and not sent, ends closed, filled, shrunk, stolen from
    ("[os.write(n, struct.pack('<IHH', 1, 11, 0)) for n in pipes(1)]\ntime.sleep(9)", "act", "protocol"),
    ("[os.close(n) for n in pipes(1)]\ntime.sleep(9)", "act", "exited"),
    (JAM, "act", None),  # act_timeout; act_error where there is no /proc to open a pipe's other end by
    (STEAL, "act", None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "where", "kind"), CASES, ids=[f"{c[0][:28]} in {c[1]}" for c in CASES])
async def test_a_fault_ends_its_episode_only(roll, tmp_path, body, where, kind):
    outcome = await roll(failing(body, where), 3)
    assert outcome.load_fault is None
    assert [outcome.results[i].return_ for i in (0, 2)] == [500.0, 500.0]
    fault = outcome.results[1].fault
    assert fault is not None
    if kind is not None:
        assert fault.kind == kind, fault
    assert len(fault.message) <= 1000 and "/tmp" not in fault.traceback and "/guest/" not in fault.traceback
    folder = tmp_path / "episodes" / "ep_001"
    assert (folder / "error.txt").exists()
    assert len((folder / "trajectory.jsonl").read_text().splitlines()) == outcome.results[1].length
    assert outcome.results[1].length == (1 if fault.kind == FaultKind.ACT_ERROR else 0)


async def test_a_very_long_source_is_only_slow(roll):
    outcome = await roll(GOOD + "x = 1\n" * 50_000, limits=Limits(load_seconds=20.0))
    assert outcome.load_fault is None and outcome.results[0].return_ == 500.0


async def test_a_policy_that_stops_listening_has_ended(roll):
    outcome = await roll(failing("[os.close(n) for n in pipes(0)]"), 3)
    fault = outcome.results[1].fault
    assert fault is not None and fault.kind == FaultKind.EXITED and fault.step == 1
    assert [outcome.results[i].return_ for i in (0, 2)] == [500.0, 500.0]


async def test_a_forged_answer_is_at_most_the_policys_own_action(roll):
    body = """for seq in range(1, 40):
    for n in range(3, 12):
        try: os.write(n, struct.pack("<IHHq", seq, 5, 1, 1))
        except OSError: pass"""
    outcome = await roll(failing(body), 3)
    fault = outcome.results[1].fault
    assert fault is not None and fault.kind == FaultKind.PROTOCOL
    assert outcome.results[0].fault is None and outcome.results[2].fault is None


@pytest.mark.parametrize(
    "action",
    [
        "float('nan')",
        "[1, 2]",
        "'left'",
        "'\\ud800'",
        "None",
        "object()",
        "10**400",
        "7",
        "-1",
        "{1: 2}",
        "[[0] * 1000] * 1000",
    ],
)
async def test_odd_actions_are_repaired_and_counted(roll, tmp_path, action):
    outcome = await roll(GOOD.replace("int(obs[2] + 0.5 * obs[3] > 0)", action))
    result = outcome.results[0]
    assert result.fault is None and result.invalid_actions == result.length > 0
    text = (tmp_path / "episodes" / "ep_000" / "trajectory.jsonl").read_text()
    assert text.count('"action_invalid":true') == result.length
    assert len(text) < 60_000


async def test_hostile_objects_as_actions(roll):
    source = """
    class Hostile:
        def __array__(self, *a, **k): raise SystemExit(3)
        def __int__(self): return 1
        __index__ = __float__ = __int__
        def __repr__(self): raise SystemExit(4)
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index): pass
        def act(self, obs): return Hostile()
    """
    outcome = await roll(source)
    assert outcome.results[0].fault is None and outcome.results[0].invalid_actions == outcome.results[0].length


async def test_a_flood_of_prints_is_cut_and_harms_nothing(roll, tmp_path):
    body = "[os.write(fd, b'y' * (1 << 20)) for fd in (1, 2) for _ in range(50)]\nprint('last')"
    once = failing(body).replace("self.index == 1", "self.index == 1 and not self.__dict__.update(index=9)")
    outcome = await roll(once, 3, limits=Limits(act_seconds=5.0))
    assert outcome.kinds == [None, None, None]
    for name in ("stdout.txt", "stderr.txt"):
        text = (tmp_path / "episodes" / "ep_001" / name).read_text()
        assert text.startswith("y" * (64 << 10)) and "bytes more were dropped" in text and len(text) < (64 << 10) + 100


async def test_output_before_a_crash_is_kept_and_cleaned(roll, tmp_path):
    await roll(failing("print('\\x1b[31mon the way\\x07', [1]); print('half', end=''); os._exit(1)"), 2)
    text = (tmp_path / "episodes" / "ep_001" / "stdout.txt").read_text()
    assert text.startswith("on the way [1]\n")
    assert (tmp_path / "episodes" / "ep_000" / "stdout.txt").read_text() == ""


async def test_output_without_a_line_end_is_kept(roll, tmp_path):
    await roll(GOOD.replace("self, episode_index): pass", "self, episode_index): print('no end', end='')"))
    assert (tmp_path / "episodes" / "ep_000" / "stdout.txt").read_text() == "no end"


async def test_the_snapshot_survives_its_policy(roll, tmp_path):
    body = """import shutil
for root in (os.getcwd(), sys.path[0]):
    shutil.rmtree(root, ignore_errors=True)
    try: open(root + "/policy.py", "w").write("broken(")
    except OSError: pass"""
    source = failing(body)
    outcome = await roll(source, 5)
    assert [outcome.results[i].return_ for i in (0, 2, 3, 4)] == [500.0] * 4
    assert sorted(os.listdir(tmp_path / "snapshot")) == ["policy.py"]
    assert "rmtree" in (tmp_path / "snapshot" / "policy.py").read_text()


async def test_three_strikes_end_the_remaining_episodes(pair, tmp_path):
    endless = GOOD.replace("return int", "while True: pass\n        return int")
    outcome = await run_job(pair, make_job(tmp_path, endless, 12, limits=SHORT))
    assert outcome.kinds == ["act_timeout"] * 12
    tried = [r for r in outcome.results.values() if "not tried" not in r.fault.message]
    assert STRIKES <= len(tried) <= STRIKES + 2
    assert all((tmp_path / "episodes" / f"ep_{i:03}" / "error.txt").exists() for i in range(12))


async def test_raised_errors_are_no_strikes(roll):
    outcome = await roll(GOOD.replace("return int", "raise ValueError\n        return int"), 8)
    assert outcome.kinds == ["act_error"] * 8
    assert not any("not tried" in r.fault.message for r in outcome.results.values())


async def test_an_episode_may_not_take_more_than_its_processor_time(roll):
    spin = "t = __import__('time').process_time\n        s = t()\n        while t() < s + 0.05: 0\n        return int"
    slow = GOOD.replace("return int", spin)
    outcome = await roll(slow, 1, limits=Limits(episode_cpu_seconds=0.5, act_seconds=2.0))
    result = outcome.results[0]
    assert result.fault is not None and result.fault.kind == FaultKind.EPISODE_TIMEOUT
    assert 0.5 <= result.cpu_seconds < 2.0 and 5 <= result.length < 30


@pytest.mark.parametrize(("background", "work", "limit", "neighbours"), [(False, 0.25, 0.4, 4), (True, 0.01, 0.1, 2)])
async def test_a_starved_policy_is_not_accused(tmp_path, background, work, limit, neighbours):
    """Busy neighbours on the guest's core alone; in the background it is kept from there for long at a time."""
    import subprocess
    import sys

    patient = f"""
    import time
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index):
            t = time.process_time()
            while time.process_time() < t + {work}: pass
        def act(self, obs): return 0
    """
    endless = [sys.executable, "-c", "while True: pass"]
    job = make_job(tmp_path, patient, 1, limits=Limits(reset_seconds=limit))
    async with Engine(workers=1, background=background) as engine, engine.open(job) as rollout:
        assert await rollout.compile() is None and await rollout.initialize() is None
        core = os.sched_getaffinity(engine.workers[0].pid)
        hogs = [subprocess.Popen(endless) for _ in range(neighbours)]
        try:
            for hog in hogs:
                os.sched_setaffinity(hog.pid, core)
            told = [event async for event in rollout.episodes()]
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
    result = told[-1]
    assert isinstance(result, EpisodeResult) and result.fault is None
    assert result.wall_seconds > limit + 0.1  # the wall clock alone would have failed it


async def test_submission_lifetime_goes_on_after_a_crash(roll):
    outcome = await roll(failing("os._exit(1)"), 3, lifetime="submission")
    assert outcome.kinds == [None, "exited", None]


async def test_an_environment_that_raises_is_no_crash(engine, tmp_path):
    job = make_job(tmp_path, GOOD, 2, seeds=[5, 6])
    broken = type(job)(**{f: getattr(job, f) for f in job.__slots__} | {"obs_schema": {**job.obs_schema, "shape": [5]}})
    outcome = await run_job(engine, broken)
    assert outcome.kinds == ["environment", "environment"]
    assert "shape" in outcome.results[0].fault.message


def descendants(pid: int) -> list[int]:
    """All live processes below ``pid``."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry)] = int(fields[1])
    found, fresh = [], [pid]
    while fresh:
        fresh = [child for child, parent in parents.items() if parent in fresh]
        found += fresh
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


async def test_a_dead_worker_is_replaced_and_its_episode_run_again(tmp_path):
    slow = GOOD.replace("return int", "__import__('time').sleep(0.002); return int")
    async with Engine(workers=1) as engine:
        before = set(descendants(os.getpid()))
        worker = next(p for p in before if "rollout.worker" in command_of(p) and engine.workers[0].pid == p)
        running = asyncio.create_task(run_job(engine, make_job(tmp_path, slow, 3)))
        assert await until(lambda: (tmp_path / "episodes" / "ep_000" / "trajectory.jsonl").exists())
        os.kill(worker, signal.SIGKILL)
        outcome = await running
        assert outcome.kinds == [None, None, None]
        assert len((tmp_path / "episodes" / "ep_000" / "trajectory.jsonl").read_text().splitlines()) == 500
        mine = descendants(engine.workers[0].pid)
    assert await until(lambda: not set(mine) & set(descendants(os.getpid())))


async def test_a_worker_that_hangs_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("evotui.rollout.engine._SILENT_SECONDS", 5.0)
    async with Engine(workers=1) as engine, engine.open(make_job(tmp_path, GOOD, 2)) as rollout:
        assert await rollout.compile() is None
        os.kill(engine.workers[0].pid, signal.SIGSTOP)
        results = [event async for event in rollout.episodes() if isinstance(event, EpisodeResult)]
    assert sorted((r.position, r.fault) for r in results) == [(0, None), (1, None)]


async def test_a_worker_that_cannot_be_replaced_ends_the_rollout(tmp_path, monkeypatch):
    async with Engine(workers=1) as engine, engine.open(make_job(tmp_path, GOOD, 2)) as rollout:
        assert await rollout.compile() is None
        monkeypatch.setattr("sys.executable", "/nonexistent/python")
        os.kill(engine.workers[0].pid, signal.SIGKILL)
        with pytest.raises(EngineError, match="cannot be started"):
            async for _ in rollout.episodes():
                pass


async def test_closing_leaves_no_process_and_no_file(tmp_path):
    engine = Engine(workers=2)
    await engine.start()
    scratch = engine._scratch
    workers = [w.pid for w in engine.workers]
    async with engine.open(make_job(tmp_path, GOOD, 4)) as rollout:
        assert await rollout.compile() is None
        assert await until(lambda: all(descendants(w) for w in workers))
        running = [p for w in workers for p in [w, *descendants(w)]]
        await engine.close()
    assert not scratch.exists()
    assert await until(lambda: not any(os.path.exists(f"/proc/{p}/exe") for p in running))


async def test_nothing_survives_a_killed_coordinator(tmp_path):
    import subprocess
    import sys

    (tmp_path / "main.py").write_text(
        "import asyncio, sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
        "from tests.rollout.conftest import *\n"
        "async def main():\n"
        "    async with Engine(workers=2) as engine:\n"
        "        source = GOOD.replace('return int', 'while True: pass\\n        return int')\n"
        "        job = make_job(Path(sys.argv[1]), source, 4, limits=Limits(act_seconds=60.0))\n"
        "        async for told in evaluate(engine, job):\n"
        "            print(told, flush=True)\n"
        "asyncio.run(main())\n"
    )
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen([sys.executable, str(tmp_path / "main.py"), str(tmp_path), root], stdout=subprocess.PIPE)
    assert process.stdout is not None and b"EpisodeStarted" in process.stdout.readline()
    assert await until(lambda: len(descendants(process.pid)) >= 4)
    below = descendants(process.pid)
    process.kill()
    process.wait()
    assert await until(lambda: not any(os.path.exists(f"/proc/{p}/exe") for p in below))
    process.stdout.close()
