"""Who tries: what is wrong is said by field, options are typed as recorded, the dialog wishes what was typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evotui.ui.agentfields import Who, program_of, texts, wrong
from evotui.ui.app import EvotuiApp
from evotui.ui.feed import AgentChoice
from evotui.ui.screens.newrun import Form, NewRunScreen, preflight, problems, wish
from tests.golden import START, build
from tests.ui.fakes import AGENTS, CHOICES, FakeLauncher
from tests.ui.test_run_screen import settle

BY_NAME = {choice.name: choice for choice in AGENTS}


@pytest.mark.parametrize(
    ("who", "found"),
    [
        (Who("search"), {}),
        (Who("litellm"), {"model": "this agent needs it"}),
        (Who("litellm", {"model": "openai/x"}), {}),
        (Who("gemini"), {"agent": "Gemini CLI is not there; install it with `npm install -g it`"}),
        (Who("command"), {"program": "which program? Such as python agent.py"}),
        (Who("command", {}, "python 'a b'.py"), {}),
        (Who("command", {}, "python 'a"), {"program": "no closing quotation"}),
        (Who("nobody"), {"agent": "there is no agent 'nobody'"}),
    ],
)
def test_what_is_wrong(who: Who, found: dict[str, str]) -> None:
    assert wrong(who, BY_NAME.get(who.agent)) == found


def test_recorded_options_are_typed_again() -> None:
    options = {"model": "m", "models": ["a", "b"], "max_cost": 2.0, "max_turns": 60, "price": [3.0, 15.5],
               "approve": True, "program": ["python", "a b.py"], "max_wall": 90.5}  # fmt: skip
    assert texts(options) == {
        "model": "m", "models": "a,b", "max_cost": "2", "max_turns": "60", "price": "3.0,15.5", "max_wall": "90.5",
    }  # fmt: skip
    assert program_of(options) == ("python", "a b.py") and program_of({"program": "x"}) == ()


def test_a_form_becomes_a_wish_with_its_agents_options() -> None:
    form = Form("cartpole", "command", "12", program="python 'my agent.py' -v", options={"max_turns": "3"})
    assert problems(form, BY_NAME["command"]) == {}
    new = wish(form)
    assert (new.program, new.options, new.branch) == (("python", "my agent.py", "-v"), {"max_turns": "3"}, None)
    assert "command evolves" in preflight(form, CHOICES[0])


async def test_the_dialog_shows_an_agents_fields_and_wishes_what_stands_in_them(tmp_path: Path) -> None:
    launcher = FakeLauncher(tmp_path / "runs", build(tmp_path / "other", "opening"))
    app = EvotuiApp(launcher, clock=lambda: START)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.screen._known)
        dialog = app.screen
        assert isinstance(dialog, NewRunScreen)
        await settle(pilot, lambda: bool(dialog._choices))
        assert not dialog.query_one("#row-model").display or dialog.query_one("#row-model").has_class("-unused")
        dialog.query_one("#agent").value = "litellm"  # type: ignore[attr-defined]
        await settle(pilot, lambda: not dialog.query_one("#row-model").has_class("-unused"))
        assert dialog.query_one("#row-program").has_class("-unused")
        assert dialog.query_one("#start").disabled
        dialog.query_one("#option-model").value = "openai/x"  # type: ignore[attr-defined]
        dialog.query_one("#option-max_wall").value = "30m"  # type: ignore[attr-defined]
        await settle(pilot, lambda: not dialog.query_one("#start").disabled)
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: len(launcher.wishes) == 1)
        assert launcher.wishes[0].agent == "litellm"
        assert launcher.wishes[0].options == {"model": "openai/x", "max_wall": "30m"}


def test_the_real_launcher_knows_every_agent_and_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evotui.agents.catalog import AGENTS as KINDS
    from evotui.cli.launcher import RunLauncher

    monkeypatch.setenv("PATH", str(tmp_path))  # no coding agent is installed there
    found = {choice.name: choice for choice in RunLauncher(tmp_path).agents()}
    assert set(found) == set(KINDS)
    assert found["litellm"].needs == ("model",) and {"model", "api_base", "max_cost"} <= set(found["litellm"].options)
    assert found["command"].needs == ("program",) and "program" in found["command"].options
    assert found["search"] == AgentChoice("search", KINDS["search"].about)
    assert found["claude"].why_not and not found["litellm"].why_not
