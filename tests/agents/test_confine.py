"""The wall around an agent's program, tried from inside; and the guard that mends where there is none."""

from __future__ import annotations

import ctypes
import os
import pty
import resource
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from evotui.agents import confine
from evotui.agents.guard import Guard
from evotui.agents.process import AgentProcess
from evotui.agents.station import Station
from evotui.record.events import AgentRaw, WriteReverted
from tests.agents.places import POLICY, Site

filterable = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
walled = pytest.mark.skipif(bool(confine.why_not()), reason=f"no Landlock here: {confine.why_not()}")


async def tries(site: Site, *attempts: str, **how: Any) -> list[bool]:
    """Which of the shell commands succeed inside."""
    script = "\n".join(f"({attempt}) >/dev/null 2>&1 && echo yes || echo no" for attempt in attempts)
    async with await AgentProcess.start(["sh", "-c", script], site.workspace, site.place(), **how) as p:
        answers = [line async for line in p.lines()]
    assert len(answers) == len(attempts), p.last_words()
    return [answer == "yes" for answer in answers]


def assert_all(results: list[bool], attempts: tuple[str, ...], expected: bool) -> None:
    assert [a for a, r in zip(attempts, results, strict=True) if r is not expected] == []


@walled
async def test_what_an_agent_may_do(site_outside: Site) -> None:
    site = site_outside
    may = (
        "cat AGENTS.md feedback/submit_000/summary.json system/policy.py",
        "echo x > system/new.py", "mkdir -p system/a/b && echo y > system/a/b/c.py && mv system/a/b/c.py system/d.py",
        "ln system/new.py system/hard.py", "ln -s new.py system/link.py", "rm -r system/a system/new.py",
        "truncate -s 0 system/policy.py", "echo x > $TMPDIR/x", "echo x > /dev/null", "head -c 4 /dev/urandom",
        "ls /", "ls ..", "cat /etc/passwd", f"{sys.executable} -c 'import json'", "sleep 5 & kill $!",
        "command -v evotui && evotui --version", f"cat {Path(__file__)}",
    )  # fmt: skip
    assert_all(await tries(site, *may), may, True)
    assert (site.workspace.system / "d.py").read_text() == "y\n"


@walled
async def test_what_an_agent_may_not_do(site_outside: Site) -> None:
    site = site_outside
    run, pid = site.run, os.getpid()
    (site.workspace.system / "way").symlink_to(run / ".host")
    may_not = (
        "echo x > AGENTS.md", "echo x >> AGENTS.md", "rm AGENTS.md", "truncate -s 0 AGENTS.md", "mv AGENTS.md system/",
        "ln AGENTS.md system/rules", "echo x > new.txt", "mkdir dir", "ln -s system link", "rm -r feedback",
        "echo x > feedback/submit_000/summary.json", "mkdir feedback/submit_001", "mv system elsewhere", "rmdir system",
        "mv feedback/submit_000 system/", f"cat {run}/.host/pools/heldout.json", f"cat {run}/events.jsonl",
        "cat ../events.jsonl", "cat system/way/pools/heldout.json", f"cat {run}/checkpoints/submit_000/policy.py",
        f"cat {run}/../other/workspace/system/policy.py", f"echo x > {run}/events.jsonl", f"echo x > {run}/x",
        f"rm -r {run}/checkpoints", f"echo x > {site.runs.parent}/x", "echo x > /tmp/evotui-x",
        "echo x > /etc/evotui-x",
        f"cat /proc/{pid}/root{run}/events.jsonl", f"cat /proc/{pid}/environ", f"cat /proc/{pid}/mem",
        f"readlink /proc/{pid}/fd/0",
        f"kill -0 {pid}", "kill -9 $PPID", f"cat /proc/{pid}/cwd/pyproject.toml", "echo x > /dev/tty",
        "unshare -Urm mount -t tmpfs x /mnt", f"unshare -Ur cat {run}/events.jsonl",
        f"env -i setsid cat {run}/events.jsonl",
    )  # fmt: skip
    assert_all(await tries(site, *may_not), may_not, False)
    assert (site.workspace.root / "AGENTS.md").read_text() == "# Rules\n"
    assert sorted(p.name for p in site.workspace.root.iterdir()) == ["AGENTS.md", "feedback", "system"]


@pytest.fixture
def site_outside(tmp_path: Path) -> Site:
    return Site(tmp_path)


@walled
async def test_of_the_home_only_its_own_settings_are_writable_and_made(site_outside: Site, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folders = [".config", ".cache", ".local/share", ".local/state", "documents"]
    for name in folders:
        (home / name).mkdir(parents=True)
    env = {"HOME": str(home)}
    own = home / ".agent"
    may_not = [f"echo x > ~/{name}/x" for name in folders] + ["echo x > ~/.profile"]
    attempts = ("echo x > ~/.agent/x", 'echo x > "$XDG_CACHE_HOME/x"', *may_not)
    answers = await tries(site_outside, *attempts, env=env, writable=[own])
    assert answers == [True, True, *(False for _ in may_not)]
    assert await tries(site_outside, "echo x > ~/.agent/y", env=env) == [False]


@walled
async def test_what_evotui_keeps_for_itself_is_never_writable(
    site_outside: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "home" / ".config"
    (config / "evotui").mkdir(parents=True)
    (config / "agent").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    attempts = (f"echo x > {config}/agent/x", f"echo x > {config}/evotui/agents.toml")
    assert await tries(site_outside, *attempts, writable=[config]) == [True, False]


@walled
async def test_a_run_inside_of_what_is_writable_stays_closed(tmp_path: Path) -> None:
    """A program whose settings folder holds the runs folder does not get it all."""
    config = tmp_path / "home" / ".config"
    site = Site(config)
    (config / "other").mkdir()
    attempts = (
        f"echo x > {config}/other/x", "echo x > system/x", f"echo x > {site.run}/x", f"cat {site.run}/events.jsonl",
        "echo x > AGENTS.md",
    )  # fmt: skip
    assert await tries(site, *attempts, writable=[config]) == [True, True, False, False, False]


FILTERED = """
import ctypes, errno, fcntl, os, resource, socket, sys
host, path = int(sys.argv[1]), sys.argv[2]
def told(name, call, *arguments):
    try:
        call(*arguments)
        print(name, "went well", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
def local(kind):
    with socket.socket(socket.AF_UNIX, kind) as made:
        made.connect(path)
def turned():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", path)
def ioprio(which, who):
    libc = ctypes.CDLL(None, use_errno=True)
    number = 251 if os.uname().machine == "x86_64" else 30
    if libc.syscall(number, which, who, 2 << 13 | 4) < 0:
        raise OSError(ctypes.get_errno(), "ioprio_set")
def push():
    main, other = socket.socketpair()
    fcntl.ioctl(main, 0x5412, b"x")
same = resource.getrlimit(resource.RLIMIT_NOFILE)
told("stream", local, socket.SOCK_STREAM)
told("datagram", turned)
told("pair", socket.socketpair)
told("loopback", lambda: socket.socket().bind(("127.0.0.1", 0)))
told("limit", resource.prlimit, host, resource.RLIMIT_NOFILE, same)
told("own limit", resource.prlimit, 0, resource.RLIMIT_NOFILE, same)
told("cores", os.sched_setaffinity, host, os.sched_getaffinity(0))
told("own cores", os.sched_setaffinity, 0, os.sched_getaffinity(0))
told("scheduler", os.sched_setscheduler, host, os.SCHED_OTHER, os.sched_param(0))
told("priority", os.setpriority, os.PRIO_PROCESS, host, 19)
told("priority of all", os.setpriority, os.PRIO_USER, 0, 19)
told("own priority", os.setpriority, os.PRIO_PROCESS, 0, 19)
told("disk", ioprio, 1, host)
told("own disk", ioprio, 1, 0)
told("push", push)
"""


async def filtered(site: Site, path: Path, **how: Any) -> dict[str, str]:
    command = [sys.executable, "-c", FILTERED, str(os.getpid()), str(path)]
    async with await AgentProcess.start(command, site.workspace, site.place(), **how) as p:
        assert p.walls["seccomp"] is True, p.walls
        said = [
            line.rpartition(" ") if not line.endswith("went well") else (line[:-10], "", "") async for line in p.lines()
        ]
    return {name.strip(): result for name, _, result in said}


@filterable
@pytest.mark.parametrize("wall", [True, False])
async def test_calls_that_lead_around_the_wall_are_refused(site_outside: Site, wall: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "s"
        server.bind(str(path))
        server.listen()
        server.setblocking(False)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))  # it is there for everybody else
            server.accept()[0].close()
        before = resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0)
        assert await filtered(site_outside, path, wall=wall) == {
            "stream": "EACCES", "datagram": "EACCES", "pair": "", "loopback": "", "limit": "EPERM", "own limit": "",
            "cores": "EPERM", "own cores": "", "scheduler": "EPERM", "priority": "EPERM", "priority of all": "EPERM",
            "own priority": "", "disk": "EPERM", "own disk": "", "push": "EPERM",
        }  # fmt: skip
        assert (resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0)) == before
        with pytest.raises(BlockingIOError):
            server.accept()


TERMINAL = """
import asyncio, os, sys
from pathlib import Path
from evotui.agents.process import AgentProcess
from tests.agents.places import Site
async def main():
    site = Site(Path(sys.argv[1]))
    tty = os.ttyname(0)
    os.close(os.open("/dev/tty", os.O_RDWR))
    attempts = [f"exec 3>{tty}", f"exec 3<{tty}", "exec 3>/dev/tty", "exec 3</dev/tty", "exec 3<>/dev/ptmx",
                "exec 3<>/dev/pts/ptmx", "setsid sh -c 'exec 3<" + tty + "'"]
    script = "".join(f"({attempt}) 2>/dev/null && echo yes || echo no\\n" for attempt in attempts)
    wall = sys.argv[2] == "1"
    async with await AgentProcess.start(["sh", "-c", script], site.workspace, site.place(), wall=wall) as p:
        print("ANSWERS", *[line async for line in p.lines()], flush=True)
        print("TERMINAL", Path("/proc/self/stat").read_text().rpartition(")")[2].split()[4] != "0", flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("wall", [pytest.param(True, marks=walled), False])
def test_no_terminal_can_be_opened(tmp_path: Path, wall: bool) -> None:
    """From a host that has one, as a person has who watches."""
    root = Path(__file__).parents[2]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = str(root)
        os.execv(sys.executable, [sys.executable, "-c", TERMINAL, str(tmp_path), str(int(wall))])
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:
        pass  # its other side is closed
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    answers = next(line for line in said.decode().splitlines() if line.startswith("ANSWERS")).split()[1:]
    assert b"TERMINAL True" in said, said
    if wall:
        assert answers == ["no"] * 7
    else:  # the way by its name stays; the one that everybody has is gone
        assert answers[2:4] == ["no", "no"]


NESTED = """
import sys
sys.path.insert(0, {root!r})
from evotui.agents import confine
plan = confine.Plan(parent=0, closed=({feedback!r},), opened=(), writable=())
confine.raise_wall(plan)
def allowed(path, mode):
    try:
        open(path, mode).close()
        return True
    except OSError:
        return False
print(allowed("AGENTS.md", "r"), allowed("feedback/submit_000/summary.json", "r"), allowed("system/x", "w"))
"""


@walled
async def test_a_sandbox_inside_of_it_works(site_outside: Site) -> None:
    root, feedback = str(Path(__file__).parents[2]), str(site_outside.workspace.feedback)
    code = NESTED.format(root=root, feedback=feedback)
    async with await AgentProcess.start(
        [sys.executable, "-c", code], site_outside.workspace, site_outside.place()
    ) as p:
        assert [line async for line in p.lines()] == ["True False False"], p.last_words()


@pytest.mark.skipif(not os.path.exists("/usr/bin/unshare"), reason="no unshare")
async def test_user_namespaces_inside_of_it_as_outside(site_outside: Site) -> None:
    outside = os.system("unshare -Ur true 2>/dev/null") == 0
    assert await tries(site_outside, "unshare -Ur true") == [outside]


@walled
async def test_the_wall_is_told_and_can_be_left_out(site_outside: Site) -> None:
    site = site_outside
    async with await AgentProcess.start(["true"], site.workspace, site.place()) as p:
        assert p.walls["landlock"] >= 1 and p.walls["why"] == ""
    async with await AgentProcess.start(["touch", "made"], site.workspace, site.place(), wall=False) as p:
        assert p.walls["landlock"] == 0 and await p.wait() == 0
    assert (site.workspace.root / "made").exists()


def test_around_names_everything_but_the_closed(tmp_path: Path) -> None:
    for path in ("a/b/c", "a/b/d", "a/e", "f"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "b" / "c")
    top = str(tmp_path)
    named = [path.removeprefix(top) for path in confine.around(top, [f"{top}/a/b/c"])]
    assert named == ["/a/b/d", "/a/e", "/f"]
    assert list(confine.around(top, [])) == [top]
    assert list(confine.around(top, [top])) == []
    assert list(confine.around(f"{top}/f", [f"{top}/fg"])) == [f"{top}/f"]


def test_where_there_is_no_landlock_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Any, number: int, *arguments: object) -> int:
        raise OSError(38, "Landlock: Function not implemented")

    monkeypatch.setattr(confine.Ruleset, "_call", none)
    assert confine.why_not() == "Landlock: Function not implemented"
    assert ctypes.CDLL(None) is not None


# ── without the wall ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_guard_puts_back_what_was_broken(site_outside: Site) -> None:
    site = site_outside
    root = site.workspace.root
    async with Guard(site.workspace, site.ear) as guard:
        assert await guard.mend(1) == 0
        (root / "AGENTS.md").write_text("# No rules\n")
        (root / "feedback/submit_000/summary.json").unlink()
        (root / "feedback/submit_000/more.txt").write_text("x")
        (root / "feedback/submit_007").mkdir()
        (root / "feedback/submit_007/summary.json").write_text("{}")
        (root / "notes").mkdir()
        (root / "notes/a.txt").write_text("x")
        (root / "way").symlink_to(site.run / ".host")
        (root / "system/policy.py").write_text("# mine\n")
        assert await guard.mend(1) == 6
        assert await guard.mend(1) == 0
    assert {(f.path, f.what) for f in site.ear.of(WriteReverted)} == {
        ("AGENTS.md", "restored"), ("feedback/submit_000/summary.json", "restored"),
        ("feedback/submit_000/more.txt", "removed"), ("feedback/submit_007", "removed"), ("notes", "removed"),
        ("way", "removed"),
    }  # fmt: skip
    assert (root / "AGENTS.md").read_text() == "# Rules\n"
    assert (root / "feedback/submit_000/summary.json").read_text() == '{"mean_return": 1}\n'
    assert (root / "system/policy.py").read_text() == "# mine\n"
    assert (site.run / ".host/pools/heldout.json").exists()


async def test_the_guard_notices_a_change_that_hides_its_time(site_outside: Site) -> None:
    site = site_outside
    rules = site.workspace.root / "AGENTS.md"
    async with Guard(site.workspace, site.ear) as guard:
        was = rules.stat()
        rules.write_text("# Rulez\n")
        os.utime(rules, ns=(was.st_atime_ns, was.st_mtime_ns))
        assert await guard.mend(1) == 1
    assert rules.read_text() == "# Rules\n"


async def test_the_guard_takes_new_feedback_and_messages_as_the_hosts(site_outside: Site) -> None:
    site = site_outside
    feedback = site.workspace.feedback
    async with Guard(site.workspace, site.ear) as guard:
        for index in (1, 2):
            (feedback / f"submit_00{index}").mkdir()
            (feedback / f"submit_00{index}/summary.json").write_text(str(index))
        (feedback / "operator.md").write_text("try harder\n")
        await guard.adopt("feedback/submit_001")
        assert await guard.mend(3) == 0
        (feedback / "operator.md").write_text("try harder\nreally\n")
        (feedback / "submit_001/summary.json").write_text("forged")
        assert await guard.mend(3) == 1
        assert (feedback / "submit_001/summary.json").read_text() == "1"
        os.rename(feedback / "submit_001", feedback / "submit_001x")
        os.rename(site.workspace.system, site.workspace.root / "sys")
        await guard.mend(3)
        assert (feedback / "submit_001/summary.json").read_text() == "1"
        assert site.workspace.system.is_dir() and not (site.workspace.root / "sys").exists()


async def test_a_station_without_a_wall_says_so_and_mends_at_the_end(site_outside: Site) -> None:
    site = site_outside

    class Door:
        async def info(self) -> dict[str, Any]:
            return {"state": {"n_submits": 1}}

    door: Any = Door()
    async with Station(site.workspace, door, site.ear, site.place(), wall=False) as station:
        command = ["sh", "-c", "echo x > AGENTS.md; mkdir made; echo y > system/policy.py"]
        async with await station.program(command) as program:
            assert await program.wait() == 0
    assert "no wall around the agent" in site.ear.of(AgentRaw)[0].text
    assert [(f.path, f.what) for f in site.ear.of(WriteReverted)] == [("made", "removed"), ("AGENTS.md", "restored")]
    assert site.workspace.system.joinpath("policy.py").read_text() == "y\n" != POLICY
