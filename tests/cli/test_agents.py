"""``evotui agents``: who is there, and what one tiny call says of a model."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from evotui.agents.catalog import AGENTS
from evotui.agents.llm.check import _findings, _tools
from evotui.agents.llm.client import Reply
from evotui.cli.main import run
from tests.agents.llm.conftest import call
from tests.servers.model_server import ModelServer


def test_the_list_names_every_agent_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "list", "--json"]) == 0
    rows = {row["agent"]: row for row in json.loads(capsys.readouterr().out)["agents"]}
    assert list(rows) == list(AGENTS) and rows["search"]["ready"] is True and "--model" in rows["litellm"]["why"]
    assert run(["agents"]) == 0
    assert capsys.readouterr().out.count("\n") == len(AGENTS)


WRONG = {
    "nobody": "no agent",
    "litellm --cli /bin/sh": "no option cli",
    "litellm --option price=1": "price takes two",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_question_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    assert run(["agents", "check", *arguments.split()]) == 2
    assert WRONG[arguments] in capsys.readouterr().err


def test_a_missing_key_is_said_without_a_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run(["agents", "check", "litellm", "--model", "gpt-5"]) == 1
    assert "OPENAI_API_KEY" in capsys.readouterr().out


async def test_one_tiny_call_says_what_works() -> None:
    async with ModelServer([{"text": "Right.", "calls": [call("say", word="pendulum")]}]) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "evotui", "agents", "check", "litellm", "--model", "m", "--json"),
            *("--api-base", server.url + "/v1", "--option", "price=3,15"),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0 and len(server.requests) == 1
    told = json.loads(out)
    assert told["ok"] and [f["what"] for f in told["findings"]] == ["answer", "streaming", "tools", "usage", "price"]
    assert all(f["ok"] for f in told["findings"]) and told["findings"][4]["text"].startswith("$0.000795")


def reply(**more: Any) -> Reply:
    values: dict[str, Any] = {
        "text": "", "thought": "", "calls": (), "finish": "stop", "input": 9, "cached": 0, "written": 0, "output": 3,
        "estimated": False, "cost": None, "model": "m",
    }  # fmt: skip
    return Reply(**values | more)


def test_what_does_not_work_is_said() -> None:
    assert _tools(reply(text="I say pendulum"))[1] is False
    assert _tools(reply(text='{"name": "say", "arguments": {"word": "pendulum"}}'))[1] is None
    found = {what: ok for what, ok, _ in _findings(reply(estimated=True), 0.0, 1.0)}
    assert found == {"answer": True, "streaming": False, "tools": False, "usage": None, "price": None}
