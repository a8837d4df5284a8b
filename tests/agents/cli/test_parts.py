"""Rows, detection, permissions and the paced teller, each by itself."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from evotui.agents.base import AgentFailed
from evotui.agents.catalog import AGENTS, UnknownAgent, agent_kind
from evotui.agents.cli.adapter import Adapter, Work
from evotui.agents.cli.agent import ready
from evotui.agents.cli.detect import look
from evotui.agents.cli.kept import last_kept
from evotui.agents.cli.permits import call_allowed, command_allowed, read_allowed, write_allowed
from evotui.agents.cli.rows import RowError, read_rows, rows
from evotui.agents.cli.teller import PacedTeller
from evotui.agents.options import OptionError, read_options
from evotui.agents.streams import AcpStream
from evotui.record import events as e
from tests.patience import PATIENCE

SHIPPED = rows([])

# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_agent_of_the_catalogue_that_is_a_program_has_a_row():
    assert set(SHIPPED) == {"claude", "codex", "gemini", "qwen", "opencode", "kimi"} <= set(AGENTS)
    for row in SHIPPED.values():
        assert row.install and row.login and row.writable and row.least


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_no_row_leaves_a_brace_in_its_command(name: str):
    for row in (SHIPPED[name], SHIPPED[name].fallback):
        if row is None:
            continue
        bare = row.words(prompt="do it", workspace="/w", model="", effort="", budget="", resume="", sandbox="")
        full = row.words(prompt="do it", workspace="/w", model="m1", effort="low", budget="2", resume="s1", sandbox="x")
        assert not [word for word in bare + full if "{" in word and "}" in word and '"' not in word]
        assert "" not in bare and "m1" not in bare
        if row.model:
            assert "m1" in full
        if row.adapter == "lines":
            assert "do it" in bare and "s1" in full


def test_what_must_not_phone_home_does_not():
    assert SHIPPED["claude"].env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    for row in (SHIPPED["codex"], SHIPPED["codex"].fallback):
        assert row is not None and {"analytics.enabled=false", "feedback.enabled=false"} <= set(row.command)
    for name in ("gemini", "qwen"):
        for row in (SHIPPED[name], SHIPPED[name].fallback):
            assert row is not None and row.settings["json"]["privacy"] == {"usageStatisticsEnabled": False}
    assert SHIPPED["opencode"].env["OPENCODE_DISABLE_AUTOUPDATE"] == "1"
    assert SHIPPED["kimi"].env["KIMI_CODE_NO_AUTO_UPDATE"] == "1"


def test_a_row_of_a_person_changes_a_shipped_one_or_stands_beside_it(tmp_path: Path):
    (tmp_path / "agents.toml").write_text(
        '[claude]\nprogram = "/opt/claude"\n[x]\nprogram="x"\nadapter="acp"\ncommand=[]\n'
    )
    found = rows([tmp_path])
    assert found["claude"].program == "/opt/claude" and found["claude"].command == SHIPPED["claude"].command
    assert found["x"].title == "x" and found["codex"] == SHIPPED["codex"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[a]\nprogram = "a"\nadapter = "telnet"\ncommand = []\n', 3, "claude, codex, acp, lines"),
        ('[a]\nadapter = "acp"\ncommand = []\n', 1, "needs a field 'program'"),
        ('[a]\nprogram = "a"\nadapter = "lines"\ncommand = ["x"]\ndialect = "claude"\n', 4, "{prompt}"),
        ('[a]\nprogram = "a"\nadapter = "lines"\ncommand = ["{prompt}"]\ndialect = "x"\n', 5, "kimi"),
        ('[a]\nprogram = "a"\nadapter = "acp"\ncommand = "x"\n', 4, "a list of texts"),
        ('[a]\nprogram = 3\nadapter = "acp"\ncommand = []\n', 2, "a text"),
        ('[a]\nprogram = "a"\nadapter = "acp"\ncommand = []\ncolour = "red"\n', 5, "no field 'colour'"),
        ('[a]\nprogram = "a"\nadapter = "acp"\ncommand = []\nenv = {A = 1}\n', 0, "a.env.A is a text"),
        ('[A B]\n', 0, "Expected"),
        ('["A b"]\n', 0, "lower case"),
        ("x = 1\n", 1, "a table"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_told_with_file_line_and_field(tmp_path: Path, text: str, line: int, words: str):
    file = tmp_path / "agents.toml"
    file.write_text(text)
    with pytest.raises(RowError) as wrong:
        read_rows(file)
    assert str(wrong.value).startswith(str(file)) and words in str(wrong.value)
    assert not line or f", line {line}:" in str(wrong.value)


def test_an_added_agent_is_one_with_the_options_of_a_coding_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "agents.toml").write_text('[mine]\ntitle="My own"\nprogram="x"\nadapter="acp"\ncommand=[]\n')
    monkeypatch.chdir(tmp_path)
    kind = agent_kind("mine")
    assert kind.about == "My own" and kind.placed
    assert read_options("mine", {"max_turns": "3", "effort": "low"}) == {"max_turns": 3, "effort": "low"}
    with pytest.raises(OptionError):
        read_options("mine", {"temperature": "1"})
    with pytest.raises(AgentFailed, match="My own is not there"):
        ready("mine", {})
    (tmp_path / "agents.toml").write_text("[mine]\n")
    with pytest.raises(UnknownAgent, match="needs a field"):
        agent_kind("mine")


# ── detection ────────────────────────────────────────────────────────────────────────────────────────────────────


def _programs(folder: Path, **scripts: str) -> dict[str, str]:
    for name, body in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return {"PATH": str(folder), "HOME": str(folder)}


def test_a_program_that_is_there_is_found_with_its_version_and_login(tmp_path: Path):
    env = _programs(tmp_path, claude="echo '2.1.9 (Claude Code)'") | {"ANTHROPIC_API_KEY": "x"}
    found = look(SHIPPED["claude"], environment=env)
    assert (found.ok, found.version, found.login, found.hint) == (True, "2.1.9", "ANTHROPIC_API_KEY", "")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/.credentials.json").write_text("{}")
    del env["ANTHROPIC_API_KEY"]
    assert look(SHIPPED["claude"], environment=env).login == "~/.claude/.credentials.json"


@pytest.mark.parametrize(
    ("name", "scripts", "words"),
    [
        ("claude", {}, "npm install -g @anthropic-ai/claude-code"),
        ("claude", {"claude": "echo 1.0.30"}, "1.0.30 is too old: at least 2.0.0"),
        ("claude", {"claude": "echo broken >&2; exit 3"}, "does not start (broken)"),
        ("kimi", {"kimi": "echo 2.1.0"}, "there is no `node`"),
        ("kimi", {"kimi": "echo 2.1.0", "node": "echo v20.1.0"}, "needs Node.js 22.19 or newer, and `node` is 20.1.0"),
    ],
)
def test_what_is_missing_is_one_sentence(tmp_path: Path, name: str, scripts: dict[str, str], words: str):
    found = look(SHIPPED[name], environment=_programs(tmp_path, **scripts))
    assert not found.ok and words in found.wrong and found.hint.startswith("no login was found")


def test_versions_are_compared_as_numbers(tmp_path: Path):
    env = _programs(tmp_path, kimi="echo kimi, version 10.0", node="echo v22.19.0")
    assert look(SHIPPED["kimi"], environment=env).ok


def test_an_option_that_an_agent_cannot_take_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    env = _programs(tmp_path, opencode="echo 1.18.33", claude="echo 2.1.0")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert ready("claude", {"effort": "low"}).version == "2.1.0"
    with pytest.raises(AgentFailed, match="leave effort out"):
        ready("opencode", {"effort": "low"})


# ── permissions ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        "evotui submit 0-3", "evotui info", "cat feedback/submit_000/summary.json | head -20",
        "ls -la && evotui submit 0", "grep -n 'a|b > c' system/policy.py", "cat a 2>/dev/null", "cat a 2>&1 | tail -3",
        "cd feedback; ls", "FOO=1 evotui task", 'echo "done; rm x"', "jq '.mean_return' x.json\nevotui info",
        "sed -n '1,20p' AGENTS.md",
    ],
)  # fmt: skip
def test_commands_that_look_or_submit_are_allowed(command: str):
    assert command_allowed(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "rm -rf feedback", "evotui submit 0 && rm x", "evotui run cartpole", "evotui", "cat a > b", "cat a >> b",
        "echo $(rm x)", "echo `rm x`", "cat <(curl x)", "python x.py", "evotui submit 0 & rm x", "curl http://x",
        "sed -i s/a/b/ AGENTS.md", "find . -delete", "find . -exec rm {} +", "PATH=. evotui submit 0",
        'echo "$(rm x)"', "ls; python -c 'x'", "sort -o AGENTS.md x", "env evotui submit 0", "evotui submit 0 &",
    ],
)  # fmt: skip
def test_other_commands_are_refused(command: str):
    assert not command_allowed(command)


def test_files_are_written_below_system_and_read_in_the_workspace(tmp_path: Path):
    root = tmp_path / "workspace"
    (root / "system/sub").mkdir(parents=True)
    (root / "feedback").mkdir()
    (root / "system/out").symlink_to(tmp_path)
    for path in ("system/policy.py", "system/sub/new/x.py", str(root / "system/a.py")):
        assert write_allowed(path, root)
    for path in (
        "AGENTS.md",
        "feedback/x",
        "system",
        "system/../AGENTS.md",
        "system/out/x",
        "/etc/passwd",
        "systems/x",
    ):
        assert not write_allowed(path, root)
    assert read_allowed("feedback/x", root) and read_allowed("AGENTS.md", root) and read_allowed(str(root), root)
    assert not read_allowed("../.host/pools", root) and not read_allowed("system/out/secret", root)
    assert call_allowed("edit", ["system/a.py"], "", root) and not call_allowed("edit", [], "", root)
    assert not call_allowed("edit", ["system/a.py", "AGENTS.md"], "", root)
    assert not call_allowed("fetch", [], "", root) and not call_allowed("", [], "", root)
    assert call_allowed("execute", [], "evotui submit 0", root) and call_allowed("other", [], "evotui info", root)


# ── the teller ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_pieces_are_joined_without_a_loss_and_in_order():
    told: list[e.Event] = []

    async def tell(fact: e.Event) -> None:
        told.append(fact)

    paced = PacedTeller(tell)
    begun = asyncio.get_running_loop().time()
    for at in range(400):
        await paced(e.AgentDelta("text", f"{at} "))
        await paced(e.AgentDelta("tool", "x"))
        if at % 100 == 99:
            await asyncio.sleep(0.1)
    seconds = asyncio.get_running_loop().time() - begun
    await paced(e.AgentMessage("whole"))
    await paced.close()
    text = [f.text for f in told if isinstance(f, e.AgentDelta) and f.channel == "text"]
    assert "".join(text) == "".join(f"{at} " for at in range(400))
    assert 2 <= len(text) <= seconds * 15 + 2
    assert told[-1] == e.AgentMessage("whole")


async def test_a_piece_alone_is_told_soon_and_a_retry_voids_it():
    told: list[e.Event] = []

    async def tell(fact: e.Event) -> None:
        told.append(fact)

    paced = PacedTeller(tell)
    await paced(e.AgentDelta("text", "a"))
    async with asyncio.timeout(PATIENCE):
        while not told:
            await asyncio.sleep(0.01)
    await paced(e.AgentDelta("text", "void"))
    await paced(e.AgentRetried("429", 1.0, 1))
    await paced.close()
    assert told == [e.AgentDelta("text", "a"), e.AgentRetried("429", 1.0, 1)]


async def test_keys_and_terminal_sequences_are_taken_out():
    told: list[e.Event] = []

    async def tell(fact: e.Event) -> None:
        told.append(fact)

    paced = PacedTeller(tell, ["secret-key-1"])
    await paced(e.ToolCalled("c", "Bash", {"command": "echo secret-key-1", "list": ["\x1b[31msecret-key-1"]}))
    await paced(e.ToolReturned("c", True, "secret-key-1\x1b]0;title\x07 ok\nline"))
    await paced.close()
    assert told == [
        e.ToolCalled("c", "Bash", {"command": "echo [key]", "list": ["[key]"]}),
        e.ToolReturned("c", True, "[key] ok\nline"),
    ]


async def test_a_log_that_takes_no_more_is_heard_of():
    async def tell(fact: e.Event) -> None:
        raise OSError("disk full")

    paced = PacedTeller(tell)
    await paced(e.AgentDelta("text", "a"))
    async with asyncio.timeout(PATIENCE):
        while paced.failure is None:
            await asyncio.sleep(0.01)
    with pytest.raises(OSError, match="disk full"):
        await paced(e.AgentMessage("b"))
    await paced.close()


def test_the_last_kept_line_is_found_from_the_end(tmp_path: Path):
    file = tmp_path / "stream"
    file.write_text('{"type": "turn.completed", "n": 1}\n{"type": "turn.completed", "n": 2}\n{"type": "turn.comple')
    assert last_kept(file, b'"turn.completed"') == {"type": "turn.completed", "n": 2}
    assert last_kept(file, b"never") == {} and last_kept(tmp_path / "gone", b"x") == {}
    assert os.path.exists(file)


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings(name: str, **options: str) -> dict[str, str]:
    async def nothing(fact: e.Event) -> None:
        return None

    station: Any = None
    work = Work(SHIPPED[name], "x", station, nothing, nothing, options=options)
    return Adapter(work, AcpStream())._write_settings()


def test_settings_lie_in_a_file_of_ours_or_in_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (path,) = _settings("qwen").values()
    assert (
        Path(path).is_relative_to(tmp_path) and json.loads(Path(path).read_text()) == SHIPPED["qwen"].settings["json"]
    )
    assert _settings("qwen") == {"QWEN_CODE_SYSTEM_SETTINGS_PATH": path}
    told = json.loads(_settings("opencode", model="anthropic/x")["OPENCODE_CONFIG_CONTENT"])
    assert told["model"] == "anthropic/x" and told["permission"]["edit"] == "ask"
    assert "model" not in json.loads(_settings("opencode")["OPENCODE_CONFIG_CONTENT"])
    assert _settings("claude") == {}
