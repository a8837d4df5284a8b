"""Tool calls of every dialect as what they do; nothing raises on arguments that nobody expects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis.tools import Act, command_of, feedback_read, understand

WS = "/srv/run/workspace/"
CALLS: list[tuple[str, dict[str, Any], Act, str]] = [
    ("Read", {"file_path": WS + "system/policy.py"}, Act.READ, "system/policy.py"),
    ("read_file", {"path": "feedback/submit_000/summary.json"}, Act.READ, "feedback/submit_000/summary.json"),
    ("Edit", {"file_path": WS + "system/policy.py", "old_string": "a\nb", "new_string": "c"}, Act.EDIT,
     "system/policy.py  +1 −2"),
    ("write_file", {"path": "system/policy.py", "content": "a\nb\n"}, Act.EDIT, "system/policy.py  2 lines"),
    ("str_replace", {"path": "policy.py", "old": "a", "new": "b"}, Act.EDIT, "policy.py  +1 −1"),
    ("Bash", {"command": "evotui submit 0-7", "description": "try"}, Act.SUBMIT, "evotui submit 0-7"),
    ("Bash", {"command": "cd x && ls\necho"}, Act.RUN, "cd x && ls"),
    ("shell", {"command": ["bash", "-lc", "cat system/policy.py"]}, Act.RUN, "cat system/policy.py"),
    ("command_execution", {"command": "/bin/bash -lc 'cat AGENTS.md'"}, Act.RUN, "cat AGENTS.md"),
    ("file_change", {"changes": [{"path": WS + "system/policy.py", "kind": "update"}]}, Act.EDIT, "system/policy.py"),
    ("edit", {"path": "system/policy.py", "diff": "@@ -1 +1,2 @@\n-GAIN = 1\n+GAIN = 2\n+BIAS = 0\n"}, Act.EDIT,
     "system/policy.py  +2 −1"),
    ("run_shell_command", {"command": "ls"}, Act.RUN, "ls"),
    ("mcp__evotui__submit", {"cases": "0-3"}, Act.SUBMIT, "0-3"),
    ("submit", {"cases": [0, 1]}, Act.SUBMIT, "0, 1"),
    ("Grep", {"pattern": "mean", "path": "feedback"}, Act.SEARCH, "'mean' in feedback"),
    ("Reading /x/workspace/system/policy.py", {"locations": [{"path": "/x/workspace/system/policy.py"}]}, Act.READ,
     "system/policy.py"),
    ("weather", {"city": "Bern"}, Act.OTHER, "Bern"),
    ("note", {}, Act.OTHER, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "act", "line"), CALLS, ids=lambda v: str(v)[:30])
def test_a_call_is_what_it_does(name: str, arguments: dict[str, Any], act: Act, line: str) -> None:
    call = understand(name, arguments)
    assert (call.act, call.line) == (act, line)


def test_an_edit_unfolds_to_what_goes_and_what_comes() -> None:
    call = understand("Edit", {"file_path": "system/policy.py", "old_string": "a\nb", "new_string": "c"})
    assert call.whole == "− a\n− b\n+ c"
    assert understand("write_file", {"path": "p", "content": "x = 1\n"}).whole == "x = 1\n"


READS = [
    ("cat feedback/submit_000/summary.json", ("submit_000/summary.json",)),
    ("cd feedback/submit_001 && head -5 summary.json", ("submit_001/summary.json",)),
    ("sed -n 1,20p " + WS + "feedback/submit_002/episodes/ep_004/stdout.txt | head", (
        "submit_002/episodes/ep_004/stdout.txt",)),
    ("grep -r theta feedback/", (".",)),
    ("for f in feedback/submit_000/episodes/*/error.txt; do cat $f; done", ("submit_000/episodes/*/error.txt",)),
    ("python -c \"import json; print(json.load(open('feedback/submit_000/summary.json'))['mean'])\"", (
        "submit_000/summary.json",)),
    ("ls feedback/submit_000", ()),
    ("cat system/policy.py", ()),
    ("echo x > feedback/submit_000/notes.txt", ()),
    ("cd feedback && cat submit_000/summary.json", ("submit_000/summary.json",)),
]  # fmt: skip


@pytest.mark.parametrize(("command", "paths"), READS)
def test_what_a_command_reads_of_the_feedback(command: str, paths: tuple[str, ...]) -> None:
    assert feedback_read(understand("Bash", {"command": command}), command) == paths


def test_reading_tools_read_what_they_name() -> None:
    call = understand("Read", {"file_path": WS + "feedback/submit_000/summary.json"})
    assert feedback_read(call) == ("submit_000/summary.json",)
    assert feedback_read(understand("Edit", {"file_path": "feedback/submit_000/summary.json"})) == ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["command", "path", "file_path", "changes", "locations", "content", "new_string", "old_string",
                         "cases", "rawInput", "kind", "x"])  # fmt: skip


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    name=st.text(max_size=20) | st.sampled_from(["Bash", "Edit", "Read", "Grep"]),
    arguments=st.dictionaries(_KEYS, _JSON, max_size=4),
)
def test_nothing_raises_and_a_line_is_one_line(name: str, arguments: dict[str, Any]) -> None:
    call = understand(name, arguments)
    assert len(call.line) < 1200
    feedback_read(call, command_of(arguments))
