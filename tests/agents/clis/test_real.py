"""Real coding agents, installed on this machine, on whole runs against a scripted model: no network, no account.

Run with ``pytest -m clis tests/agents/clis``, the programs on the PATH (``npm install @anthropic-ai/claude-code
@openai/codex @qwen-code/qwen-code opencode-ai @moonshot-ai/kimi-code`` in a folder, its ``node_modules/.bin`` on the
PATH; Kimi needs Node 22.19). Nothing is installed from here. ``EVOTUI_KEEP_RUNS`` names a folder that the runs are left
in, to be looked at with ``evotui open``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from evotui.agents.cli.detect import look
from evotui.agents.cli.rows import rows
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.log import read
from tests.agents.clis.author import PLAN, Author
from tests.agents.clis.google import GoogleServer
from tests.servers.model_server import ModelServer
from tests.servers.script import Script, Turn

pytestmark = [pytest.mark.clis, pytest.mark.timeout(300)]
KEY = "sk-test-of-evotui-0123456789"
ROOT = Path(__file__).parents[3]


def _claude(home: Path, url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}


def _codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(
        f'model = "scripted"\nmodel_provider = "tests"\n[model_providers.tests]\nname = "tests"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    )
    return {"OPENAI_API_KEY": KEY}


def _qwen(home: Path, url: str) -> dict[str, str]:
    (home / ".qwen").mkdir()
    (home / ".qwen/settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


def _opencode(home: Path, url: str) -> dict[str, str]:
    (home / ".config/opencode").mkdir(parents=True)
    model = {"name": "Scripted", "cost": {"input": 1, "output": 2}, "limit": {"context": 100_000, "output": 8_000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Tests", "models": {"scripted": model}}
    provider["options"] = {"baseURL": f"{url}/v1", "apiKey": KEY}
    chosen = {"model": "tests/scripted", "small_model": "tests/scripted", "provider": {"tests": provider}}
    (home / ".config/opencode/opencode.json").write_text(json.dumps(chosen))
    return {}


def _kimi(home: Path, url: str) -> dict[str, str]:
    (home / ".kimi-code").mkdir()
    (home / ".kimi-code/config.toml").write_text(
        f'default_model = "scripted"\n[providers.tests]\ntype = "openai"\nbase_url = "{url}/v1"\napi_key = "{KEY}"\n'
        '[models.scripted]\nprovider = "tests"\nmodel = "scripted"\nmax_context_size = 100000\n'
    )
    return {}


def _gemini(home: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}


SETUPS: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": _claude, "codex": _codex, "qwen": _qwen, "opencode": _opencode, "kimi": _kimi,
}  # fmt: skip


class Bench:
    """A home of its own for the program, a folder of runs, and `evotui` as a person starts it."""

    def __init__(self, folder: Path, kind: str) -> None:
        found = look(rows([])[kind])
        if not found.ok:
            pytest.skip(found.wrong)
        self.kind = kind
        self.home = folder / "home"
        self.home.mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        self.runs = Path(os.environ.get("EVOTUI_KEEP_RUNS") or folder / "runs")
        self.said = ""

    def by_lines(self) -> None:
        """Make the row's fallback its first choice."""
        row = rows([])[self.kind].fallback
        assert row is not None
        fields = {
            "adapter": row.adapter,
            "dialect": row.dialect,
            "command": list(row.command),
            "model": list(row.model),
        }
        fields |= {"resume": list(row.resume), "settings": dict(row.settings)}
        (self.work / "agents.toml").write_text(tomli_w.dumps({self.kind: fields}))

    async def evotui(self, url: str, *arguments: str) -> int:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "ANTHROPIC", "OPENAI", "XDG_"))}
        if not any(self.home.iterdir()):
            self.extra = (_gemini if self.kind == "gemini" else SETUPS[self.kind])(self.home, url)
        env = kept | {"HOME": str(self.home), "PYTHONPATH": str(ROOT)} | self.extra
        if self.kind == "claude":
            env["ANTHROPIC_BASE_URL"] = url
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "evotui", *arguments), cwd=self.work, env=env,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await process.communicate()
        self.said += out.decode()
        assert process.returncode is not None
        return process.returncode

    async def run(self, url: str, *more: str) -> tuple[int, Path]:
        start = ("run", "cartpole", "--agent", self.kind, "--budget", "12", "--validation", "4", "--heldout", "4")
        before = set(self.runs.rglob("events.jsonl"))
        code = await self.evotui(url, *start, "--headless", "--workers", "1", "--runs", str(self.runs), *more)
        (log,) = set(self.runs.rglob("events.jsonl")) - before
        return code, log.parent


def facts(run: Path, kind: type[e.Event]) -> list[Any]:
    return [record.event for record in read(run / "events.jsonl") if isinstance(record.event, kind)]


def looks_right(run: Path, said: str, pieces: bool, shows: bool = True) -> None:
    """Two submissions, two edits, twelve episodes, everything told once, nothing secret, nothing left over."""
    assert facts(run, e.RunEnded) == [e.RunEnded("completed")], said
    assert check(run) == []
    assert [s.cases for s in facts(run, e.SubmissionAccepted)] == [(0, 1, 2, 3), (4, 5, 6, 7, 8, 9, 10, 11)]
    first, second = facts(run, e.SubmissionFinished)
    assert second.mean == 500.0 > first.mean
    assert [f.path for f in facts(run, e.FileEdited) if f.by == "agent"] == ["policy.py", "policy.py"]
    assert [f.text for f in facts(run, e.AgentMessage)] == [step[0] for step in PLAN]
    calls, returned = facts(run, e.ToolCalled), facts(run, e.ToolReturned)
    assert {c.call for c in calls} == {r.call for r in returned} and len(calls) == len(PLAN) - 1
    assert all(r.ok and not r.denied for r in returned), [r.text for r in returned if not r.ok]
    assert any("evotui submit 0-3" in json.dumps(dict(c.arguments)) for c in calls)
    assert any("mean return" in r.text for r in returned) or not shows  # Gemini CLI keeps its tools' output to itself
    assert facts(run, e.AgentSession)
    if pieces:
        streamed = "".join(d.text for d in facts(run, e.AgentDelta) if d.channel == "text")
        assert streamed == "".join(step[0] for step in PLAN)
    assert KEY.encode() not in (run / "events.jsonl").read_bytes()


@pytest.mark.parametrize("kind", list(SETUPS))
async def test_a_whole_run(kind: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, kind)
    async with ModelServer(Script(Author(), None)) as server:
        code, run = await bench.run(server.url)
    assert code == 0, bench.said
    looks_right(run, bench.said, pieces=True)
    used = facts(run, e.UsageReported)
    if kind in ("claude", "codex", "qwen"):
        assert (sum(u.input_tokens for u in used), sum(u.output_tokens for u in used)) == (800, 200)
        assert len(used) == len(PLAN)
    if kind == "opencode":
        assert sum(u.cost_usd or 0 for u in used) == pytest.approx(8 * (100 * 1 + 25 * 2) / 1e6)
    if kind != "opencode" and kind != "kimi":
        assert sum(u.cached_tokens for u in used) == 320


@pytest.mark.parametrize("kind", ["codex", "qwen", "opencode", "kimi"])
async def test_a_whole_run_turn_by_turn(kind: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, kind)
    bench.by_lines()
    async with ModelServer(Script(Author(), None)) as server:
        code, run = await bench.run(server.url)
    assert code == 0, bench.said
    looks_right(run, bench.said, pieces=kind == "qwen")


@pytest.mark.parametrize("kind", ["claude", "codex", "opencode"])
async def test_a_conversation_is_taken_up_by_another_process(kind: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, kind)
    author = Author([*PLAN[:4], ("I stop here.",)])
    async with ModelServer(Script(author, None)) as server:
        code, run = await bench.run(server.url)
        assert code != 0 and "2 turns without submitting" in bench.said
        session = facts(run, e.AgentSession)[-1].session
        author.plan, author.at = list(PLAN[4:]), 0
        asked = len(server.requests)
        assert await bench.evotui(server.url, "run", "--resume", str(run), "--headless") == 0, bench.said
        assert (
            "I stop here." in server.requests[asked + (kind == "opencode")].text
        )  # the model is sent all that was said
    assert facts(run, e.AgentSession)[-1].session == session
    assert not [raw for raw in facts(run, e.AgentRaw) if raw.what == "session"]
    assert facts(run, e.RunEnded) == [e.RunEnded("completed")]
    used = facts(run, e.UsageReported)
    if kind != "opencode":
        assert sum(u.output_tokens for u in used) == 25 * 11
    else:
        assert sum(u.cost_usd or 0 for u in used) == pytest.approx(11 * 150e-6)


@pytest.mark.parametrize("kind", list(SETUPS))
async def test_a_refused_key_is_one_sentence(kind: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, kind)
    async with ModelServer(Script([Turn("never", fail="401")], None)) as server:
        code, run = await bench.run(server.url)
    assert code != 0
    (ended,) = facts(run, e.AgentEnded)
    assert ended.reason == "failed" and "401" in ended.text and rows([])[kind].title in ended.text


async def test_a_limit_interrupts_claude_and_its_process_answers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "claude")
    async with ModelServer(Script(Author(), None)) as server:
        await bench.run(server.url, "--max-turns", "4")
    run = next(bench.runs.rglob("events.jsonl")).parent
    (ended,) = facts(run, e.AgentEnded)
    assert (ended.reason, ended.text) == ("limit", "the limit of 4 turns is reached")
    assert len(facts(run, e.SubmissionFinished)) == 1 and facts(run, e.UsageReported)[-1].cost_usd


async def test_a_whole_run_of_gemini(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "gemini")
    async with GoogleServer(Author()) as server:
        code, run = await bench.run(server.url, "--model", "gemini-2.5-pro")
    assert code == 0, bench.said
    looks_right(run, bench.said, pieces=True, shows=False)
    (used,) = facts(run, e.UsageReported)
    assert (used.input_tokens, used.output_tokens, used.model) == (1120, 200, "gemini-2.5-pro")


async def test_a_refused_key_of_gemini_is_one_sentence(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "gemini")
    async with GoogleServer(Author(), refuse=401) as server:
        code, run = await bench.run(server.url, "--model", "gemini-2.5-pro")
    (ended,) = facts(run, e.AgentEnded)
    assert code != 0 and ended.reason == "failed" and "GEMINI_API_KEY" in ended.text
