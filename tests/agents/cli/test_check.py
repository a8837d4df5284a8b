"""``evotui agents check`` of a coding agent: what one tiny turn says."""

from __future__ import annotations

from typing import Any

import pytest

from evotui.agents.cli.check import PROMPT, check
from tests.agents.cli.conftest import Fakes


async def findings(fakes: Fakes, kind: str, **options: Any) -> dict[str, tuple[bool | None, str]]:
    found = await check(kind, {"cli": str(fakes.program), **options})
    return {what: (ok, text) for what, ok, text in found}


@pytest.mark.parametrize("kind", ["claude", "opencode", "mine"])
async def test_one_tiny_turn_says_what_works(fakes: Fakes, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret-indeed")
    fakes.plan([["say", "ready"]])
    found = await findings(fakes, kind)
    assert list(found) == ["program", "version", "login", "answer", "usage", "price"]
    assert found["version"][1].startswith("9.9.9") and found["answer"][0] and "'ready' after" in found["answer"][1]
    assert found["usage"][0] and "tokens in" in found["usage"][1]
    assert found["login"] == ((True, "ANTHROPIC_API_KEY") if kind != "mine" else (None, "nothing is known of it"))
    assert found["price"][0] is (True if kind != "opencode" else None)
    assert fakes.prompts == [PROMPT]


async def test_what_does_not_work_is_said(fakes: Fakes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    fakes.plan([["error", 401, "401 invalid api key"]])
    found = await findings(fakes, "claude")
    assert found["login"][0] is None and "no login was found" in found["login"][1]
    assert found["answer"] == (False, "401 invalid api key")
    fakes.plan([["die", 4]])
    found = await findings(fakes, "claude")
    assert found["answer"][0] is False and "code 4" in found["answer"][1] and "very wrong" in found["answer"][1]
    found = await findings(fakes, "claude", cli="/nowhere/claude")
    assert list(found) == ["program"] and found["program"][0] is False and "/nowhere/claude" in found["program"][1]
