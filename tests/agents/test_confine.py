"""The wall around an agent's program, tried from inside; and the guard that mends where there is none."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from evotui.agents import confine
from evotui.agents.guard import Guard
from evotui.agents.process import AgentProcess
from evotui.agents.station import Station
from evotui.record.events import AgentRaw, WriteReverted
from tests.agents.places import POLICY, Site

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
async def test_its_own_settings_are_writable_and_made(site_outside: Site, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    (home / "documents").mkdir()
    env = {"HOME": str(home)}
    own = home / ".agent"
    attempts = ("echo x > ~/.config/x", "echo x > ~/.agent/x", "echo x > ~/documents/x", "echo x > ~/.profile")
    assert await tries(site_outside, *attempts, env=env, writable=[own]) == [True, True, False, False]


@walled
async def test_a_run_inside_of_what_is_writable_stays_closed(tmp_path: Path) -> None:
    """A program whose settings folder holds the runs folder does not get it all."""
    site = Site(tmp_path / "home" / ".config")
    home = tmp_path / "home"
    (home / ".config" / "other").mkdir()
    attempts = (
        "echo x > ~/.config/other/x", "echo x > system/x", f"echo x > {site.run}/x", f"cat {site.run}/events.jsonl",
        "echo x > AGENTS.md",
    )  # fmt: skip
    assert await tries(site, *attempts, env={"HOME": str(home)}) == [True, True, False, False, False]


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
