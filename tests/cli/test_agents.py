"""``evotui agents``: who is there, and what one tiny call says of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evotui.agents.catalog import AGENTS
from evotui.agents.llm.check import _findings, _tools
from evotui.agents.llm.client import Reply
from evotui.cli import agents
from evotui.cli.main import run


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


def test_findings_are_told_and_decide_the_exit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(options: Any) -> list[tuple[str, bool | None, str]]:
        return [("answer", True, str(options["price"])), ("tools", None, "so-so"), ("price", options["good"], "last")]

    def read(kind: str, given: dict[str, str]) -> dict[str, Any]:
        return {"price": given["price"], "good": given["model"] == "good"}

    monkeypatch.setitem(agents.CHECKS, "litellm", lambda: check)
    monkeypatch.setattr(agents, "_read", read)
    for model, code in (("good", 0), ("bad", 1)):
        assert run(["agents", "check", "litellm", "--model", model, "--option", "price=3,15", "--json"]) == code
        told = json.loads(capsys.readouterr().out)
        assert told["ok"] is (code == 0) and [f["text"] for f in told["findings"]] == ["3,15", "so-so", "last"]
    run(["agents", "check", "litellm", "--model", "bad", "--option", "price=1,1"])
    assert capsys.readouterr().out.split("\n")[1:3] == ["--  tools   so-so", "no  price   last"]


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
