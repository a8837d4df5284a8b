"""What the model's tools do, refuse and say; code of a model's in its sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.agents.llm.python_tool import run_python
from evotui.agents.llm.scores import Scores
from evotui.agents.llm.tools import NAMES, Tools, nearest
from evotui.protocol.budget import Budget
from evotui.record.events import FileEdited
from tests.agents.fakes import FakeDoor, SpaceWorld, Transcript, workspace
from tests.agents.llm.conftest import BOX, STARTER, TWO
from tests.patience import Stopwatch


class Bench:
    def __init__(self, root: Path, least: int = 1) -> None:
        self.root, self.told = root, Transcript()
        self.workspace = workspace(root, self.told)
        (root / "system" / "policy.py").write_text(STARTER)
        self.door = FakeDoor(root, lambda: SpaceWorld(BOX, TWO), Budget(6, 0, least, 6))
        self.notes: list[str] = []
        self.tools = Tools(self.workspace, self.door, Scores(), self.notes, root / "notes.md")  # type: ignore[arg-type]

    def policy(self) -> str:
        return (self.root / "system" / "policy.py").read_text()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_file_is_read_whole_by_lines_and_by_its_ends(bench: Bench) -> None:
    assert (await bench.tools.run("read_file", {"path": "system/policy.py"})).text == STARTER
    part = await bench.tools.run("read_file", {"path": "system/policy.py", "first_line": "8", "last_line": 9})
    assert part.text == "    def act(self, obs):\n        return 0\n"
    (bench.root / "feedback" / "long.txt").write_text("".join(f"{n}\n" for n in range(10_000)))
    long = (await bench.tools.run("read_file", {"path": "feedback/long.txt"})).text
    assert long.startswith("0\n1\n") and long.endswith("9999\n") and len(long) < 10_100 and "left out" in long
    (bench.root / "feedback" / "a.npy").write_bytes(b"\0\1" * 50)
    assert "binary" in (await bench.tools.run("read_file", {"path": "feedback/a.npy"})).text


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "feedback/../../secret", "link/secret"])
async def test_nothing_outside_of_the_workspace_is_read(bench: Bench, path: str) -> None:
    (bench.root / "system" / "out").symlink_to("/etc")
    for name in (path, "system/out/passwd"):
        result = await bench.tools.run("read_file", {"path": name})
        assert not result.ok and (result.denied or "no file" in result.text)
    assert (await bench.tools.run("list_files", {"path": ".."})).denied


NOT_OURS = (
    "policy.py",
    "feedback/x.py",
    "/etc/x",
    "system/../x",
    "system/",
    "AGENTS.md",
    "system/out/x",
    "../system/x",
)


@pytest.mark.parametrize("path", NOT_OURS)
async def test_nothing_is_written_but_below_system(
    bench: Bench, path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (bench.root / "system" / "out").symlink_to(tmp_path_factory.mktemp("outside"))
    before = sorted(p for p in bench.root.rglob("*"))
    for name, arguments in (("write_file", {"content": "x = 1"}), ("str_replace", {"old": "a", "new": "b"})):
        result = await bench.tools.run(name, {"path": path, **arguments})
        assert result.denied and not result.ok and "system/" in result.text
    assert sorted(p for p in bench.root.rglob("*")) == before and not bench.told


async def test_python_that_does_not_parse_is_not_written(bench: Bench) -> None:
    result = await bench.tools.run("write_file", {"path": "system/policy.py", "content": "def f(:\n    pass\n"})
    assert not result.ok and "line 1" in result.text and "def f(:" in result.text
    assert bench.policy() == STARTER and not bench.told
    written = await bench.tools.run("write_file", {"path": "system/gains.json", "content": {"k": 1}})
    assert written.ok and json.loads((bench.root / "system" / "gains.json").read_text()) == {"k": 1}


async def test_replacing_needs_one_exact_place(bench: Bench) -> None:
    tools = bench.tools
    missing = await tools.run("str_replace", {"path": "system/policy.py", "old": "    return  0", "new": "return 1"})
    assert not missing.ok and "9          return 0" in missing.text
    twice = await tools.run("str_replace", {"path": "system/policy.py", "old": "pass", "new": "return"})
    assert not twice.ok and "2 times" in twice.text
    broken = await tools.run("str_replace", {"path": "system/policy.py", "old": "return 0", "new": "return ("})
    assert not broken.ok and "Not written" in broken.text
    empty = await tools.run("str_replace", {"path": "system/policy.py", "old": "", "new": "x"})
    assert empty.format
    assert bench.policy() == STARTER
    done = await tools.run("str_replace", {"path": "system/policy.py", "old": "return 0", "new": "return 1"})
    assert done.ok and "return 1" in bench.policy()
    assert [type(fact) for fact in bench.told] == [FileEdited]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=8), max_size=20), st.text(min_size=1, max_size=20))
def test_the_nearest_lines_are_always_found(lines: list[str], wanted: str) -> None:
    assert nearest("\n".join(lines), wanted)


async def test_submitting_tells_each_return_and_keeps_the_table(bench: Bench) -> None:
    first = await bench.tools.run("submit", {"cases": "0-2", "why": "the starter"})
    assert first.ok and "case 2: return" in first.text and "the starter" in first.text
    assert "Episodes left: 3" in first.text and "feedback/submit_000/" in first.text
    assert (await bench.tools.run("submit", {"cases": ["3"]})).ok
    assert (await bench.tools.run("submit", {"cases": 4})).ok
    refused = await bench.tools.run("submit", {"cases": "0-9"})
    assert not refused.ok and "nothing was charged" in refused.text
    assert (await bench.tools.run("submit", {"cases": ""})).format
    bench.door.closed_after = 3
    assert (await bench.tools.run("submit", {"cases": "0"})).closed
    assert bench.door.requests == [[0, 1, 2], [3], [4]]


async def test_notes_outlive_the_agent(bench: Bench) -> None:
    assert (await bench.tools.run("note", {"text": "spin matters"})).ok
    assert bench.notes == ["spin matters"] and "spin matters" in (bench.root / "notes.md").read_text()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(NAMES - {"run_python", "submit"})),
    st.dictionaries(
        st.sampled_from(["path", "content", "old", "new", "text", "first_line", "last_line"]),
        st.none()
        | st.integers()
        | st.text(max_size=6)
        | st.sampled_from(["system/\0", "system/\ud800", "a" * 999])
        | st.lists(st.integers(), max_size=2)
        | st.booleans(),
    ),
)
def test_any_arguments_are_answered_with_words(
    tmp_path_factory: pytest.TempPathFactory, name: str, arguments: dict[str, object]
) -> None:
    bench = Bench(tmp_path_factory.mktemp("any"))
    result = asyncio.run(bench.tools.run(name, arguments))
    assert result.text


async def test_an_unknown_tool_is_named(bench: Bench) -> None:
    result = await bench.tools.run("bash", {"command": "ls"})
    assert result.format and "read_file" in result.text


# ── run_python ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_code_sees_feedback_and_modules_of_the_policy(bench: Bench) -> None:
    (bench.root / "feedback" / "a.json").write_text("[1, 2, 3.5]")
    code = (
        "import json, numpy as np, policy\nprint(np.mean(json.load(open('feedback/a.json'))))\n"
        "print(policy.Policy({}, {}, {}).act(0))"
    )
    assert (await bench.tools.run("run_python", {"code": code})).text == "2.1666666666666665\n0\n"
    silent = await bench.tools.run("run_python", {"code": "x = 1"})
    assert silent.ok and "print" in silent.text


async def test_an_error_is_told_from_the_codes_own_lines_on(bench: Bench) -> None:
    result = await bench.tools.run("run_python", {"code": "def f():\n    return 1 / 0\n\nprint('so far')\nf()\n"})
    assert not result.ok and "so far" in result.text and "ZeroDivisionError" in result.text
    assert "line 5" in result.text and "analysis.py" not in result.text and "exit code 1" in result.text


ESCAPES = {
    "write into the workspace": "open('system/policy.py', 'a')",
    "write outside": "open({escape!r}, 'w')",
    "read other files": "open({outside!r}).read()",
    "list other folders": "import os; os.listdir({folder!r})",
    "a socket": "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
    "a simulator": "import gymnasium",
    "a process": "import subprocess",
    "a program": "import os; os.execv('/bin/sh', ['sh', '-c', 'true'])",
    "the host's environment": "open('/proc/{parent}/environ').read()",
}


@pytest.mark.parametrize("what", ESCAPES)
async def test_code_gets_nowhere(bench: Bench, what: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("host") / "seeds.json"
    outside.write_text("secret")
    escape = Path(tempfile.gettempdir(), f"evotui-escape-{os.getpid()}")
    names = {"outside": str(outside), "folder": str(outside.parent), "escape": str(escape)}
    code = ESCAPES[what].format(parent=os.getpid(), **names)
    ran = await run_python(f"{code}\nprint('got ' + 'through')", bench.root)
    assert "got through" not in ran.output and ran.code != 0, ran
    assert not escape.exists()


async def test_code_has_no_keys(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never-to-be-seen")
    ran = await run_python("import os; print(sorted(os.environ.items()))", bench.root)
    assert ran.code == 0 and "never-to-be-seen" not in ran.output


async def test_late_code_is_killed_with_what_it_said(bench: Bench) -> None:
    for seconds in (1.5, 6.0, 24.0):  # a busy machine may not have begun with it at the first limit
        watch = Stopwatch()
        ran = await run_python("print('begun', flush=True)\nwhile True: pass", bench.root, seconds=seconds)
        assert ran.code is None and f"{seconds:g} s" in ran.output and watch.seconds < seconds + 2.5
        if "begun" in ran.output:
            return
    raise AssertionError(ran.output)


async def test_cancelled_code_is_gone_at_once(bench: Bench) -> None:
    task = asyncio.create_task(run_python("import time; time.sleep(60)", bench.root))
    while not (found := processes("analysis.py")):
        await asyncio.sleep(0.01)
    task.cancel()
    watch = Stopwatch(os.getpid(), *found)
    await asyncio.wait({task})
    assert watch.seconds < 0.5 and task.cancelled()
    assert not found & processes("analysis.py")


async def test_a_hundred_megabytes_of_output_cost_ten_kilobytes(bench: Bench) -> None:
    ran = await run_python("for _ in range(1000): print('x' * 100_000)", bench.root)
    assert ran.code == 0 and len(ran.output) < 10_200 and "left out" in ran.output


def processes(word: str) -> set[int]:
    """Children of this process whose command line has ``word``."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word in Path(f"/proc/{name}/cmdline").read_text() and f"\nPPid:\t{os.getpid()}\n" in Path(
                f"/proc/{name}/status"
            ).read_text():  # fmt: skip
                found.add(int(name))
        except OSError:
            continue
    return found
