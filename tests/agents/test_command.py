"""Any program as an agent, on real runs: a good one, and each kind of bad one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.agents import confine
from evotui.agents.base import AgentFailed
from evotui.agents.command import BURST, Voice, located, ready
from evotui.agents.sweep import survivors, tag_of
from evotui.cli.live import turn_of
from evotui.kernel.config import resolve
from evotui.kernel.gate import Mode
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session
from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.log import read
from tests.agents.places import Ear
from tests.kernel.scripts import GOOD
from tests.patience import PATIENCE, running, until

HARNESS = '''
"""An agent as one writes it for the published harness: urllib and the variables, nothing of evotui."""
import json, os, sys, time, threading, urllib.error, urllib.request
def call(which, body=None):
    url = os.environ["EVOPOLICYGYM_" + which + "_URL"]
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None,
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def info():
    return json.loads(call("INFO")[1])
def submit(cases):
    status, text = call("SUBMIT", {"env_instances": cases})
    return status, json.loads(text)
def write(text, path="system/policy.py"):
    with open(path, "w") as file:
        file.write(text)
def say(*words):
    print(*words, flush=True)
GOOD = ''' + repr(GOOD)


@pytest.fixture
def agent(tmp_path: Path) -> Callable[[str], list[str]]:
    """A program with the given body."""

    def write(body: str) -> list[str]:
        path = tmp_path / "agent.py"
        path.write_text(HARNESS + "\n" + textwrap.dedent(body))
        return [sys.executable, "-S", str(path)]

    return write


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Opens runs; each is left with a clean record and without a process."""
    sessions: list[Session] = []

    async def opener(runs: Path | None = None, **wishes: Any) -> Session:
        values = {"env": "cartpole", "agent": "command", "budget": 6, "validation": 2, "heldout": 2, "workers": 1}
        session = await open_run(resolve(**(values | wishes)), runs or tmp_path / "runs")
        if runs is None:
            sessions.append(session)
        return session

    yield opener
    for session in sessions:
        await session.close()
        assert check(session.run_dir.root) == []
        assert survivors(tag_of(session.run_dir.workspace)) == []


async def play(session: Session, program: list[str], grace: float = 30.0, **options: Any) -> str:
    turn = turn_of(session, "command", 0, {"program": program, **options})
    return await session.run(turn.kind, turn.name, turn.evolve, grace)


def facts(session: Session, kind: type[Any]) -> list[Any]:
    return [record.event for record in read(session.run_dir.events) if isinstance(record.event, kind)]


def ending(session: Session) -> e.AgentEnded:
    last: e.AgentEnded = facts(session, e.AgentEnded)[-1]
    return last


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = """
document = info()
assert document["episode_budget"] == 6 and document["env_meta"]["env"] == "gym/cartpole"
assert "def act(self, obs)" in call("TASK")[1]
prompt = sys.stdin.read()
assert "system/policy.py" in prompt and "evotui submit" in prompt and "EVOPOLICYGYM_SUBMIT_URL" in prompt
version = 0
while info()["state"]["remaining_budget"] >= 2:
    version += 1
    write(GOOD + f"# version {version}\\n")
    status, answer = submit([0, 1])
    assert status == 200, answer
    say(answer["submit_id"], answer["summary"]["mean_return"])
    assert json.load(open(f"feedback/{answer['submit_id']}/summary.json")) == answer["summary"]
status, answer = submit([0])
say("after the end:", status, answer["status"])
base = os.environ["EVOPOLICYGYM_INFO_URL"].rsplit("/", 1)[0]
os.environ["EVOPOLICYGYM_FINALIZE_URL"] = base + "/finalize"
say("finalize:", call("FINALIZE", {})[0], call("FINALIZE")[0])
"""


async def test_an_agent_of_the_published_harness_completes_a_headless_run(
    agent: Callable[[str], list[str]], tmp_path: Path
) -> None:
    command = [
        sys.executable, "-m", "evotui", "run", "cartpole", "--agent", "command", "--budget", "6", "--validation", "2",
        "--heldout", "2", "--headless", "--json", "--quiet", "--name", "whole", "--workers", "1", "--", "python3",
        "agent.py",
    ]  # fmt: skip
    agent(WHOLE)
    root = str(Path(__file__).parents[2])
    where: dict[str, Any] = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": root}}
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, **where)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    run = next((tmp_path / "runs").rglob("events.jsonl")).parent
    assert check(run) == []
    events = [record.event for record in read(run / "events.jsonl")]
    said = "\n".join(event.text for event in events if isinstance(event, e.AgentMessage))
    assert "submit_002 " in said and "after the end: 400 budget_invalid" in said and "finalize: 404 404" in said
    edits = [event.path for event in events if isinstance(event, e.FileEdited) and event.by == "agent"]
    assert edits == ["policy.py"] * 3
    assert [event.text for event in events if isinstance(event, e.AgentEnded)] == [
        "agent.py spent the budget and ended"
    ]
    assert (run / "logs" / "agent_stream.jsonl").read_text().startswith("submit_000 ")


async def test_a_shell_script_with_the_command_line(opened: Any, tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("evotui info >/dev/null || exit 9\nevotui submit 0-1 3\nevotui submit 9-8\nevotui submit 0-2\n")
    session = await opened()
    assert await play(session, ["sh", str(script)], prompt="none") == "completed"
    said = "\n".join(fact.text for fact in facts(session, e.AgentMessage))
    assert "submit_000: ok, mean return" in said and "remaining budget: 0 episodes" in said
    assert [s.cases for s in session.state.submissions] == [(0, 1, 3), (0, 1, 2)]
    assert facts(session, e.SubmissionRejected)[0].verdict is Verdict.INVALID_ENV_INSTANCE


async def test_the_jsonl_dialect(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        heard = ""
        for line in sys.stdin:
            asked = json.loads(line)
            assert asked["type"] == "prompt"
            heard += asked["message"]
            say("thinking aloud, no JSON")
            n = asked["turn"]
            assert n == 0 or "try the angle" in heard, heard
            assert "episodes" in asked["message"]
            if n < 2:
                write(GOOD + f"# turn {n}\\n")
                heard += str(submit("0-1")[1].get("notes"))
            say(json.dumps({"turn": n, "text": f"turn \\x1b[31m{n}", "data": {"n": n}, "stop": n == 2}))
    """)
    session = await opened()
    session.watchers.append(_once(e.SubmissionAccepted, lambda: session.say("try the angle")))
    status = await play(session, program, dialect="jsonl")
    assert status == "completed" and len(session.state.submissions) == 2
    assert [fact.text for fact in facts(session, e.AgentMessage)] == ["turn 0", "turn 1", "turn 2"]
    raw = [(fact.what, fact.text) for fact in facts(session, e.AgentRaw)]
    assert ("line", "thinking aloud, no JSON") in raw and ("data", '{"n": 2}') in raw
    assert ending(session).text == "agent.py said stop after 3 turns"
    assert facts(session, e.MessageDelivered)


def _once(kind: type[Any], then: Callable[[], Any]) -> Callable[[Any, e.Record], None]:
    """A watcher that starts ``then`` as a task at the first fact of a kind."""
    tasks: list[Any] = []

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, kind) and not tasks:
            tasks.append(asyncio.ensure_future(then()))

    return watch


@pytest.mark.parametrize("dialect", ["text", "jsonl"])
async def test_a_key_that_it_prints_is_not_recorded(
    opened: Any, agent: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, dialect: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOMEBODYS_API_KEY", "kept-for-me-0123456789")
    (tmp_path / "keys.env").write_text("OTHER_API_KEY=from-a-file-0123456789\n")
    body = """
    key, other = os.environ["SOMEBODYS_API_KEY"], os.environ["OTHER_API_KEY"]
    text = f"it is {key} and {other}"
    if sys.argv[1:] == ["jsonl"]:
        say(text)
        sys.stdin.readline()
        say(json.dumps({"turn": 0, "text": text, "data": {"key": key, "of": [other]}, "stop": True}))
    else:
        say(text)
    print(text, file=sys.stderr)
    sys.exit(1)
    """
    session = await opened()
    options: dict[str, Any] = {"dialect": dialect, "env_file": str(tmp_path / "keys.env")}
    await play(session, [*agent(body), dialect], **options)
    written = session.run_dir.events.read_text()
    assert "0123456789" not in written and "it is [key] and [key]" in written
    assert "it said: it is [key] and [key]" in ending(session).text


async def test_a_limit_of_turns_and_one_of_time(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        for line in sys.stdin:
            say(json.dumps({"turn": json.loads(line)["turn"], "text": "hm"}))
    """)
    session = await opened()
    await play(session, program, dialect="jsonl", max_turns=3)
    assert (ending(session).reason, ending(session).text) == ("limit", "the limit of 3 turns is reached")
    for wall in (3, 12, 48):  # a busy machine may not have rolled out by the first limit
        session = await opened()
        await play(session, agent("submit([0]); say('submitted'); time.sleep(600)"), max_wall=wall)
        assert (ending(session).reason, ending(session).text) == ("limit", f"the limit of {wall} s is reached")
        if facts(session, e.AgentMessage):
            break
    assert session.state.submissions[0].verdict is Verdict.OK


async def test_held_at_the_gate_and_spoken_to(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        write(GOOD)
        status, answer = submit([0, 1, 2, 3, 4, 5])
        say("note:", answer["notes"])
    """)
    session = await opened()
    await session.gate.set(Mode.PAUSE)

    async def speak() -> None:
        await session.say("look at the pole")
        await session.gate.set(Mode.RUN)

    session.watchers.append(_once(e.GateHeld, speak))
    assert await play(session, program) == "completed"
    assert [fact.text for fact in facts(session, e.AgentMessage)] == ["note: ['look at the pole']"]


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wall", [True, False])
async def test_it_writes_where_it_may_not(
    opened: Any, agent: Callable[[str], list[str]], wall: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not wall:
        monkeypatch.setattr(confine, "why_not", lambda: "switched off")
    elif confine.why_not():
        pytest.skip("no Landlock here")
    program = agent("""
        write(GOOD)
        def attempt(path):
            try:
                write("forged", path)
                say("wrote", path)
            except OSError:
                say("denied", path)
        for path in ("AGENTS.md", "notes.txt", "../events.jsonl.x"):
            if path.startswith("..") and sys.argv[1] == "False":
                continue
            attempt(path)
        submit([0, 1])
        attempt("feedback/submit_000/summary.json")
        attempt("feedback/mine.txt")
        submit([0, 1, 2, 3])
        attempt("late.txt")
    """)
    session = await opened()
    assert await play(session, [*program, str(wall)]) == "completed"
    root = session.run_dir.workspace
    assert sorted(p.name for p in root.iterdir()) == ["AGENTS.md", "feedback", "system"]
    assert "forged" not in (root / "AGENTS.md").read_text()
    assert json.loads((root / "feedback/submit_000/summary.json").read_text())["status"] == "ok"
    said = "\n".join(fact.text for fact in facts(session, e.AgentMessage))
    reverted = {(fact.path, fact.what) for fact in facts(session, e.WriteReverted)}
    if wall:
        assert said.count("denied") == 6 and "wrote" not in said and not reverted
    else:
        assert said.count("wrote") == 5
        assert reverted == {
            ("AGENTS.md", "restored"), ("notes.txt", "removed"), ("feedback/submit_000/summary.json", "restored"),
            ("feedback/mine.txt", "removed"), ("late.txt", "removed"),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit(0)", "agent.py ended without submitting anything"),
        ("sys.stderr.write('no \\x1b[31mkey\\n'); sys.exit(3)", "ended with exit code 3 without submitting anything"),
        ("os.kill(os.getpid(), 9)", "agent.py was killed by SIGKILL without submitting anything"),
        ("submit([9999])", "without submitting anything"),
    ],
)
async def test_it_ends_without_submitting(
    opened: Any, agent: Callable[[str], list[str]], body: str, words: str
) -> None:
    session = await opened()
    assert await play(session, agent(body)) == "failed"
    assert ending(session).reason == "failed" and words in ending(session).text
    assert "it said: no key" in ending(session).text or "stderr" not in body
    assert session.state.budget.used == 0 and session.state.ended is None


async def test_it_is_killed_with_budget_left_and_the_run_is_taken_up(
    opened: Any, agent: Callable[[str], list[str]]
) -> None:
    session = await opened()
    assert await play(session, agent("write(GOOD); submit([0, 1]); os.kill(os.getpid(), 9)")) == "failed"
    assert ending(session).text == "agent.py was killed by SIGKILL with budget left"
    await session.close()
    again, _ = await reopen_run(session.run_dir.root)
    try:
        program = agent("prompt = sys.stdin.read(); assert '2 of 6 episodes' in prompt, prompt; submit([0, 1, 2, 3])")
        assert await play(again, program) == "completed"
        assert again.state.budget.used == 6 and len(again.state.submissions) == 2
    finally:
        await again.close()


async def test_it_goes_on_for_ever_and_leaves_children(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        import subprocess
        child = subprocess.Popen(["setsid", "env", "-i", "sleep", "300"])
        write(GOOD)
        say("child", child.pid)
        submit([0, 1, 2, 3, 4, 5])
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("deaf")
        time.sleep(600)
    """)
    session = await opened()
    begun = time.monotonic()
    assert await play(session, program, grace=0.5) == "completed"
    assert time.monotonic() - begun < PATIENCE
    said = " ".join(fact.text for fact in facts(session, e.AgentMessage))
    assert not running(int(said.split()[1]))


async def test_it_prints_a_hundred_megabytes_and_control_sequences(
    opened: Any, agent: Callable[[str], list[str]]
) -> None:
    program = agent("""
        say("\\x1b]0;owned\\x07\\x1b[2Jclear \\u202egnp.exe \\x07\\x9b31m")
        line = ("x" * 98 + "\\n") * 10_000
        for _ in range(100):
            sys.stdout.write(line)
        say("the end of it")
        write(GOOD)
        submit([0, 1, 2, 3, 4, 5])
        say("submitted")
    """)
    session = await opened()
    assert await play(session, program) == "completed"
    told = facts(session, e.AgentMessage)
    assert told[0].text.startswith("clear gnp.exe ")
    assert not any(c in fact.text for fact in told for c in "\x1b\x07\x9b\u202e")
    assert sum(len(fact.text) for fact in told) < 4 * BURST
    assert any("came too fast to be shown" in fact.text for fact in facts(session, e.AgentRaw))
    assert told[-1].text.endswith("submitted")
    assert session.run_dir.events.stat().st_size < 8 << 20


async def test_it_submits_concurrently(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        write(GOOD)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(submit([0, 1])[0])) for _ in range(5)]
        [t.start() for t in threads]; [t.join() for t in threads]
        say(sorted(answers))
    """)
    session = await opened()
    assert await play(session, program) == "completed"
    assert [fact.text for fact in facts(session, e.AgentMessage)] == ["[200, 200, 200, 400, 400]"]
    assert session.state.budget.remaining == 0


async def test_it_dies_in_the_middle_of_a_request(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        import socket
        from urllib.parse import urlparse
        write(GOOD)
        url = urlparse(os.environ["EVOPOLICYGYM_SUBMIT_URL"])
        body = b'{"env_instances": [0, 1]}'
        head = f"POST {url.path} HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode()
        s = socket.create_connection((url.hostname, url.port))
        s.sendall(head + body[:-1])
        s.close()
        s = socket.create_connection((url.hostname, url.port))
        s.sendall(head + body)  # whole: accepted, and nobody waits for the answer
        while info()["state"]["remaining_budget"] == 6:
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
    """)
    session = await opened()
    assert await play(session, program) == "failed"
    assert session.state.budget.used == 2
    assert [s.verdict for s in session.state.submissions] == [Verdict.OK]


async def test_it_is_stopped_and_goes_on(opened: Any, agent: Callable[[str], list[str]]) -> None:
    program = agent("""
        import signal
        write(GOOD)
        say("pid", os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
        submit([0, 1, 2, 3, 4, 5])
    """)
    session = await opened()

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, e.AgentRaw) and "stopped by a signal" in record.event.text:
            said = [r.event.text for r in state.transcript if isinstance(r.event, e.AgentMessage)]
            os.kill(int(said[0].split()[1]), signal.SIGCONT)

    session.watchers.append(watch)
    assert await play(session, program) == "completed"
    assert len([fact for fact in facts(session, e.AgentRaw) if "stopped by a signal" in fact.text]) == 1


async def test_a_stop_ends_one_that_is_stopped(opened: Any, agent: Callable[[str], list[str]]) -> None:
    session = await opened()

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, e.AgentRaw):
            session.wish("stop")

    session.watchers.append(watch)
    assert await play(session, agent("import signal; os.kill(os.getpid(), signal.SIGSTOP)")) == "stopped"
    assert ending(session).reason == "stopped"


async def test_it_fills_the_disk(opened: Any, agent: Callable[[str], list[str]], tmp_path: Path) -> None:
    runs = tmp_path / "small"
    runs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "small", str(runs)]
    if os.getuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        session = await opened(runs)
        program = agent("""
            write(GOOD)
            submit([0, 1])
            try:
                with open("system/fill", "wb") as file:
                    while True:
                        file.write(bytes(1 << 16)); file.flush()
            except OSError as error:
                say("full:", error.strerror)
            status, answer = submit([0, 1])
            say(status, answer.get("message"))
            time.sleep(0.5)
        """)
        ended: Any = None
        try:
            ended = await play(session, program)
        except OSError as error:
            ended = error.strerror
        # The log could not be written either, unless there was a little room left for it.
        assert ended in ("failed", "completed", "No space left on device")
        await session.close()
        (session.run_dir.system / "fill").unlink()
        subprocess.run(["mount", "-o", "remount,size=128m", str(runs)], check=True)  # its blob may be as large
        again, _ = await reopen_run(session.run_dir.root)
        try:
            rest = "submit('0-%d' % (info()['state']['remaining_budget'] - 1))"
            assert await play(again, agent(rest)) == "completed"
            assert again.state.budget.used == 6
        finally:
            await again.close()
        assert check(session.run_dir.root) == []
    finally:
        await asyncio.sleep(0)
        subprocess.run(["umount", "-l", runs], check=True)


async def test_the_host_is_killed_and_the_run_taken_up(agent: Callable[[str], list[str]], tmp_path: Path) -> None:
    program = agent("""
        import subprocess
        write(GOOD)
        if info()["state"]["remaining_budget"] == 6:
            subprocess.Popen(["setsid", "sleep", "300"])
            submit([0, 1])
            write(GOOD + "# unseen\\n")
            say("pid", os.getpid())
            time.sleep(600)
        submit([0, 1, 2, 3])
    """)
    root = str(Path(__file__).parents[2])
    env = os.environ | {"PYTHONPATH": root}
    command = [
        sys.executable, "-m", "evotui", "run", "cartpole", "--agent", "command", "--budget", "6", "--validation", "2",
        "--heldout", "2", "--headless", "--quiet", "--name", "killed", "--workers", "1", "--", *program,
    ]  # fmt: skip
    host = subprocess.Popen(command, cwd=tmp_path, env=env)
    try:
        pid = 0

        def told() -> bool:
            nonlocal pid
            assert host.poll() is None
            said = "".join(path.read_text() for path in (tmp_path / "runs").rglob("agent_stream.jsonl"))
            pid = next((int(line.split()[1]) for line in said.splitlines(True) if re.match(r"pid \d+\n", line)), 0)
            return bool(pid)

        assert await until(told)
    finally:
        host.kill()
        host.wait()
    run = next((tmp_path / "runs").rglob("events.jsonl")).parent
    assert await until(lambda: not running(pid) and survivors(tag_of(run / "workspace")) == [])
    resumed = [sys.executable, "-m", "evotui", "run", "--resume", "killed", "--headless", "--quiet"]
    done = await asyncio.to_thread(subprocess.run, resumed, cwd=tmp_path, env=env, check=False)
    assert done.returncode == 0
    assert check(run) == []
    events = [record.event for record in read(run / "events.jsonl")]
    assert [event.cases for event in events if isinstance(event, e.SubmissionAccepted)] == [(0, 1), (0, 1, 2, 3)]
    edits = [event for event in events if isinstance(event, e.FileEdited) and event.by == "agent"]
    assert len(edits) == 3  # the one that nobody had seen too


async def test_another_takes_over_and_the_first_is_gone(opened: Any, agent: Callable[[str], list[str]]) -> None:
    first = agent("write(GOOD); submit([0]); say('pid', os.getpid()); time.sleep(600)")
    heir = ["sh", "-c", "evotui submit 0-4"]
    session = await opened()
    pids = []

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, e.AgentMessage) and record.event.text.startswith("pid"):
            pids.append(int(record.event.text.split()[1]))
            session.hand_over(turn_of(session, "command", 0, {"program": heir, "prompt": "none"}))

    session.watchers.append(watch)
    assert await play(session, first) == "completed"
    assert [end.reason for end in facts(session, e.AgentEnded)] == ["handed_over", "done"]
    assert [s.cases for s in session.state.submissions] == [(0,), (0, 1, 2, 3, 4)]
    assert not running(pids[0])


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_in_a_command_are_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("")
    (tmp_path / "train").mkdir()
    got = located(["./bin/run", "agent.py", "train", "-v", "--x=agent.py", "none.py", ""], tmp_path)
    assert got == [f"{tmp_path}/bin/run", f"{tmp_path}/agent.py", "train", "-v", "--x=agent.py", "none.py", ""]
    assert located(["python3"], tmp_path) == ["python3"] and located(got, tmp_path) == got


def test_what_is_missing_is_told_before_a_run_is_made(tmp_path: Path) -> None:
    ready({"program": [sys.executable]})
    for options, words in (
        ({}, "no program is given"), ({"program": ["no-such-program"]}, "no program that can be run here"),
        ({"program": [sys.executable], "prompt": str(tmp_path / "x")}, "prompt's file is not there"),
        ({"program": [sys.executable], "env_file": str(tmp_path / "x")}, "cannot be read: No such file"),
    ):  # fmt: skip
        with pytest.raises(AgentFailed, match=words):
            ready(options)


async def test_a_voice_tells_whole_lines_and_keeps_letters_whole() -> None:
    ear = Ear()
    voice = Voice(ear)
    data = "first\nsecönd".encode()
    voice.hear(data[:10])
    await voice.say(False)
    voice.hear(data[10:] + b"\n\n")
    await voice.end()
    assert [fact.text for fact in ear.facts] == ["first", "secönd"]
    voice.hear(b"x" * (BURST + 1000))
    await voice.end()
    assert sum(len(fact.text) for fact in ear.of(e.AgentMessage)[2:]) <= BURST
    assert "bytes of output came too fast" in ear.of(e.AgentRaw)[0].text
