"""Agents' programs as processes: what they print, what they are told, how they end, what they leave behind."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.agents.base import AgentFailed
from evotui.agents.pipes import Kept, LineCutter, plain
from evotui.agents.process import AgentProcess
from evotui.agents.surroundings import environment
from evotui.agents.sweep import sweep_leftovers, tag_of
from evotui.record.events import AgentRaw
from tests.agents.places import Site
from tests.patience import PATIENCE, Stopwatch, running, until


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site that must have no process left when a test is over."""
    site = Site(tmp_path)
    yield site
    assert site.processes() == []


async def start(site: Site, script: str | Sequence[str], **how: Any) -> AgentProcess:
    command = ["sh", "-c", script] if isinstance(script, str) else list(script)
    return await AgentProcess.start(command, site.workspace, site.place(), tell=site.ear, **how)


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", textwrap.dedent(code)]


async def lines(program: AgentProcess) -> list[str]:
    return [line async for line in program.lines()]


async def test_it_talks_in_lines_both_ways_and_every_byte_is_kept(site: Site) -> None:
    async with await start(site, "read a; echo got $a; pwd; printf '\\033[1mü\\303\\n'; printf end", stdin=True) as p:
        assert await p.write_line("hello ü")
        p.close_stdin()
        assert await lines(p) == ["got hello ü", str(site.workspace.root), "\x1b[1mü\ufffd", "end"]
        assert await p.wait() == 0
    assert site.stream.read_bytes().endswith(b"\x1b[1m\xc3\xbc\xc3\nend")
    assert p.unkept() == []


async def test_without_stdin_it_is_at_its_end_and_a_reader_that_left_is_no_error(site: Site) -> None:
    async with await start(site, "cat; echo over") as p:
        assert await lines(p) == ["over"]
        assert not await p.write("x")
    async with await start(site, "exec 0<&-; echo closed; sleep 30", stdin=True) as p:
        assert await anext(p.lines()) == "closed"
        assert not await p.write("x" * 1_000_000)


async def test_writing_waits_for_a_slow_reader(site: Site) -> None:
    async with await start(site, "read go; cat | wc -c", stdin=True) as p:
        writing = asyncio.create_task(p.write("go\n" + "x" * 1_000_000))
        await writing
        p.close_stdin()
        assert [line.strip() for line in await lines(p)] == ["1000000"]


async def test_exit_codes_and_signals_are_its_own(site: Site) -> None:
    async with await start(site, "echo why >&2; exit 3") as p:
        assert await p.wait() == 3 and not p.killed
        await lines(p)
    assert p.last_words() == "why"
    async with await start(site, "kill -SEGV $$") as p:
        assert await p.wait() == -signal.SIGSEGV


async def test_all_of_its_last_words_are_heard(site: Site) -> None:
    async with await start(site, "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 2") as p:
        await p.wait()
    assert p.last_words().endswith("x · the end")


async def test_what_cannot_be_started_is_a_sentence(site: Site) -> None:
    with pytest.raises(AgentFailed, match="no-such-program cannot be started: No such file"):
        await start(site, ["no-such-program"])
    with pytest.raises(AgentFailed, match="Permission denied"):
        await start(site, [str(site.workspace.root)])


async def test_no_more_processes_and_no_folder_are_sentences(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*arguments: Any, **how: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr("subprocess.Popen", none)
        with pytest.raises(AgentFailed, match="cannot be started: Resource temporarily unavailable"):
            await start(site, "true")
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(site.run / "missing"))
        with pytest.raises(AgentFailed, match="cannot be started: No such file"):
            await start(site, "true")


async def test_what_it_finds_in_its_environment(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "EVOTUI_RUNS",
        "CLAUDECODE",
        "CLAUDE_CODE_X",
        "EVOPOLICYGYM_INFO_URL",
        "MINE_API_KEY",
        "OTHER_API_KEY",
    ):
        monkeypatch.setenv(name, "x")
    kept = environment(site.workspace.root, None, {"A": "b"}, ["MINE_API_KEY"])
    assert kept["MINE_API_KEY"] == "x" and kept["A"] == "b" and kept["EVOTUI_AGENT"] == tag_of(site.workspace.root)
    assert not {"EVOTUI_RUNS", "CLAUDECODE", "CLAUDE_CODE_X", "EVOPOLICYGYM_INFO_URL", "OTHER_API_KEY"} & set(kept)
    assert environment(site.workspace.root, None, {}, None)["OTHER_API_KEY"] == "x"
    async with await start(site, "command -v evotui; evotui --version; echo $TMPDIR; touch $TMPDIR/x && echo ok") as p:
        where, version, folder, ok = await lines(p)
    assert version.startswith("evotui ") and ok == "ok"
    assert not os.path.exists(where) and not os.path.exists(folder)


# ── floods ───────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\r", b"")), max_size=8), st.integers(1, 40), st.data())
def test_lines_do_not_depend_on_how_bytes_come(pieces: list[bytes], most: int, data: st.DataObject) -> None:
    whole = b"\n".join(pieces)
    cutter, got, at = LineCutter(most), [], 0
    while at < len(whole):
        step = data.draw(st.integers(1, 10))
        got += cutter.feed(whole[at : at + step])
        at += step
    got += cutter.rest()
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert got == [line[:most].decode("utf-8", "replace") for line in expected]
    assert cutter.dropped == sum(max(len(line) - most, 0) for line in expected)


async def test_a_line_too_long_is_cut_and_told(site: Site) -> None:
    async with await start(site, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after", line_bytes=1 << 20) as p:
        long, after = await lines(p)
    assert len(long) == 1 << 20 and after == "after"
    assert p.unkept() == ["1,951,424 bytes of lines too long to be kept were cut off"]


async def test_a_hundred_megabytes_are_read_and_let_go(site: Site) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest = 0.0

    async def heartbeat() -> None:
        nonlocal longest
        while True:
            watch = Stopwatch()
            await asyncio.sleep(0.01)
            longest = max(longest, watch.seconds)

    beating = asyncio.create_task(heartbeat())
    size = 0
    script = "head -c 100000000 /dev/zero | tr '\\0' y; head -c 20000000 /dev/zero >&2"
    async with await start(site, script, stream_bytes=1 << 20) as p:
        async for piece in p.pieces():
            size += len(piece)
        assert await p.wait() == 0
    beating.cancel()
    assert size == 100_000_000
    assert site.stream.stat().st_size == 1 << 20
    assert site.stream.with_name("agent_stderr.txt").stat().st_size == 16 << 20
    assert [s for s in p.unkept() if "98,951,424 bytes of its stdout" in s]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10
    assert longest < 1.0


def test_a_record_that_cannot_be_written_is_told_and_never_raised(tmp_path: Path) -> None:
    full = Kept(Path("/dev/full"), 1000)
    full.write(b"x" * 10)
    full.close()
    assert full.lost == 10 and full.why == "No space left on device"
    none = Kept(tmp_path / "file" / "below", 1000)
    none.write(b"x")
    assert none.lost == 0
    (tmp_path / "plain").write_text("")
    blocked = Kept(tmp_path / "plain" / "below", 1000)
    blocked.write(b"xy")
    assert blocked.lost == 2 and blocked.why


def test_control_sequences_are_taken_out() -> None:
    dirty = "a\x1b[31mred\x1b[0m\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x00\x9b\u202ec\rd\te\x1bP1$q\x1b\\f"
    assert plain(dirty) == "aredblinkcd\tef"
    assert plain("\x1b]0;never ended") == ""


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_one_that_asks_for_time_gets_it_and_one_that_ignores_everything_is_killed(site: Site) -> None:
    async with await start(site, "trap 'echo bye; exit 7' INT; echo up; while :; do sleep 0.05; done") as p:
        assert await anext(p.lines()) == "up"
        await p.stop()
        assert p.returncode == 7 and p.killed
    begun = time.monotonic()
    async with await start(site, "trap '' INT TERM HUP; echo up; while :; do sleep 0.05; done") as p:
        assert await anext(p.lines()) == "up"
    assert p.returncode == -signal.SIGKILL
    assert 3.5 < time.monotonic() - begun < PATIENCE


HIDERS = {
    "a child": "sleep 300 & echo $!",
    "another session": "setsid sleep 300 & echo $!",
    "a daemon": "python3 -c 'import os\nr,w=os.pipe()\n"
    "if os.fork(): print(int(os.read(r,20)),flush=True); os._exit(0)\n"
    "os.setsid()\nif os.fork(): os._exit(0)\nos.write(w,str(os.getpid()).encode())\n"
    'os.execvp("sleep",["sleep","300"])\'',
    "no environment": "env -i setsid sleep 300 & echo $!",
    "deaf": "sh -c 'trap \"\" INT TERM HUP; while :; do sleep 1; done' & echo $!",
}


@pytest.mark.parametrize("how", HIDERS)
@pytest.mark.parametrize("goes_on", [False, True])
async def test_nothing_that_it_started_is_left(site: Site, how: str, goes_on: bool) -> None:
    tail = "; echo up; exec sleep 300" if goes_on else "; echo up"
    async with await start(site, HIDERS[how] + tail) as p:
        spoken = p.lines()
        pid = int(await anext(spoken))
        assert pid > 1
        assert await anext(spoken) == "up"
        if not goes_on:
            await p.wait()
    assert not running(pid) and not running(p.pid)


async def test_cancellation_waits_until_it_is_gone(site: Site) -> None:
    pids: list[int] = []

    async def work() -> None:
        async with await start(site, "sleep 300 & echo $!; exec sleep 300") as p:
            pids.append(p.pid)
            pids.append(int(await anext(p.lines())))
            await p.wait()

    task = asyncio.create_task(work())
    assert await until(lambda: len(pids) == 2)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # the impatient kind
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(running, pids))


async def test_a_child_that_holds_the_pipe_does_not_hold_us(site: Site) -> None:
    async with await start(site, "(while :; do echo more; sleep 0.01; done) & echo done") as p:
        assert "done" in await asyncio.wait_for(lines(p), PATIENCE)


async def test_one_that_is_stopped_is_noticed_goes_on_and_can_be_ended(site: Site) -> None:
    noted = asyncio.Event()
    site.ear.on = lambda fact: noted.set() if isinstance(fact, AgentRaw) else None
    async with await start(site, "echo up; kill -STOP $$; echo again; kill -STOP $$; echo never", idle=60) as p:
        spoken = p.lines()
        assert await anext(spoken) == "up"
        await asyncio.wait_for(noted.wait(), PATIENCE)
        assert "stopped by a signal" in site.ear.of(AgentRaw)[0].text and f"kill -CONT -{p.pid}" in (
            site.ear.of(AgentRaw)[0].text
        )
        p.signal(signal.SIGCONT)
        assert await anext(spoken) == "again"
    assert p.returncode is not None


async def test_silence_fails_unless_it_waits_for_us(site: Site) -> None:
    async with await start(site, "echo up; exec sleep 300", idle=1.0) as p:
        with pytest.raises(AgentFailed, match="said nothing for 1 s"):
            await lines(p)
    waiting = True
    async with await start(site, "echo up; exec sleep 300", idle=1.0, busy=lambda: waiting) as p:
        reading = asyncio.create_task(lines(p))
        await asyncio.sleep(2.5)
        assert not reading.done()
        waiting = False
        with pytest.raises(AgentFailed):
            await reading


HOST = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = [{root!r}]
from tests.agents.places import Site
from evotui.agents.process import AgentProcess
async def main():
    site = Site.__new__(Site); Site.__init__(site, Path(sys.argv[1]))
    p = await AgentProcess.start(["sh", "-c", "setsid sleep 300 & echo $!; env -i setsid sleep 301 & echo $!;"
        "echo $TMPDIR; exec sleep 302"], site.workspace, site.place())
    spoken = p.lines()
    print(p.pid, p.walls["pid"], await anext(spoken), await anext(spoken), await anext(spoken), flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


async def test_a_host_that_is_killed_takes_its_agent_along(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST.format(root=root), str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    *numbers, folder = (await host.stdout.readline()).decode().split()
    pids = [int(number) for number in numbers]
    assert os.path.isdir(folder)
    assert len(pids) == 4 and all(map(running, pids))
    host.kill()
    await host.wait()
    assert await until(lambda: not any(map(running, pids)) and not os.path.exists(folder))


async def test_what_a_killed_launcher_left_is_found_by_its_tag(site: Site) -> None:
    async with await start(site, "setsid sleep 300 & echo $!; exec sleep 300") as p:
        pid = int(await anext(p.lines()))
        os.kill(p.pid, signal.SIGKILL)  # as nothing but the system's memory killer would
        await p.wait()
        assert running(pid)
        assert await asyncio.to_thread(sweep_leftovers, site.workspace.root) >= 1
        assert not running(pid)


async def test_the_end_of_one_program_is_not_that_of_another(site: Site) -> None:
    async with await start(site, "echo up; exec sleep 300") as p:
        assert await anext(p.lines()) == "up"
        async with await start(site, "setsid sleep 300 & echo up") as q:
            assert await anext(q.lines()) == "up"
            await q.wait()
        assert running(p.pid) and running(p.walls["pid"])


async def test_a_sweep_spares_other_runs(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "another")
    async with await start(site, "echo up; exec sleep 300") as p:
        assert await anext(p.lines()) == "up"
        assert await asyncio.to_thread(sweep_leftovers, other.workspace.root) == 0
        assert running(p.pid)
