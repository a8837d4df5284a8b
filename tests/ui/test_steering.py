"""Steering under a pilot: messages, approval, handing over, what next, branches; keys typed ahead of a dialog."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from evotui.protocol.budget import parse_cases
from evotui.ui.screens.approve import ApproveScreen
from evotui.ui.screens.code import CodeScreen
from evotui.ui.screens.confirm import Confirm
from evotui.ui.screens.handover import HandOverScreen
from evotui.ui.screens.newrun import NewRunScreen
from evotui.ui.screens.run import RunScreen
from evotui.ui.screens.submit import SubmitScreen
from evotui.ui.steering import banner, delivery
from tests.ui.conftest import Rig, Rigger
from tests.ui.test_run_screen import SIZE, header, screen_of, settle, text_of


def asked(rig: Rig) -> list[object]:
    return rig.feed.fake_controls.asked


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_is_written_and_sent(rig: Rigger) -> None:
    made = rig("model")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "message" in text_of(made))
        await pilot.press("i", "q", "u", "i", "t")  # letters that mean something below
        await settle(pilot, lambda: "» quit" in text_of(made))
        assert "reaches the agent at once if it can be interrupted, else with its next turn" in text_of(made)
        await pilot.press("enter")
        await settle(pilot, lambda: asked(made) == [("say", "quit")])
        assert not screen.has_class("-saying") and screen.keybar.said.startswith("sent")
        await pilot.press("i")
        await settle(pilot, lambda: screen.has_class("-saying"))
        await pilot.press("h", "m", "escape")
        await settle(pilot, lambda: not screen.has_class("-saying"))
        await pilot.press("i", "!", "enter")  # what was left standing is still there
        await settle(pilot, lambda: asked(made)[-1] == ("say", "hm!"))
        await pilot.press("i", "enter")  # nothing written, nothing sent
        await settle(pilot, lambda: not screen.has_class("-saying"))
        assert len(asked(made)) == 2


async def test_an_agent_that_left_is_told_what_to_do_before_it_goes_on(rig: Rigger) -> None:
    made = rig("left")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: screen_of(made).has_class("-asking"))
        await pilot.press("i", "x")
        await settle(pilot, lambda: "reaches the agent as soon as it goes on" in text_of(made))
        await pilot.press("enter")
        await settle(pilot, lambda: asked(made) == [("say", "x")])


@pytest.mark.parametrize(
    ("stage", "why"), [("rolling", "no agent here that listens"), ("finished", "the run has ended")]
)
async def test_who_cannot_be_written_to_takes_no_letter_for_a_command(rig: Rigger, stage: str, why: str) -> None:
    made = rig(stage)  # of the search agent
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot)
        await pilot.press("i", *"stop x q")  # each of them does something below
        await settle(pilot, lambda: "» stop x q" in text_of(made))
        assert "! cannot be sent: " in text_of(made) and why in text_of(made)
        await pilot.press("enter")
        await settle(pilot, lambda: not screen.has_class("-saying"))
        assert screen.keybar.said.startswith("the message was not sent, it is kept") and why in screen.keybar.said
        assert asked(made) == [] and made.app.screen is screen and made.app.is_running
        await pilot.press("i")
        await settle(pilot, lambda: "» stop x q" in text_of(made))
        await pilot.press("escape")
        await settle(pilot, lambda: not screen.has_class("-saying"))
    assert delivery("command") == "with the answer to its next submission"


async def test_a_message_whose_agent_leaves_meanwhile_is_kept(rig: Rigger) -> None:
    made = rig("model")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("i", "h", "m")
        await settle(pilot, lambda: "reaches the agent" in text_of(made))
        made.feed.put(replace(made.feed.state, agent="search", seq=made.feed.state.seq + 1))
        await settle(pilot, lambda: "cannot be sent: there is no agent here that listens" in text_of(made))
        await pilot.press("enter")
        await settle(pilot, lambda: "not sent" in screen_of(made).keybar.said)
    assert asked(made) == []


# ── approval ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_approval_is_turned_on_and_off_and_stands_in_the_header(rig: Rigger) -> None:
    made = rig("model")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("A")
        await settle(pilot, lambda: "asks before each" in header(made))
        await pilot.press("A")
        await settle(pilot, lambda: "asks before each" not in header(made))
    assert asked(made) == [("approve_each", True), ("approve_each", False)]


@pytest.mark.parametrize("size", [SIZE, (80, 24), (40, 20)])
async def test_a_submission_that_waits_is_said_and_answered(rig: Rigger, size: tuple[int, int]) -> None:
    made = rig("asked")
    async with made.app.run_test(size=size) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: screen.has_class("-asking") and "a  answers" in text_of(made))
        assert "submit cases 0-7?" in text_of(made)
        if size == SIZE:
            assert "submit cases 0-7?  8 of the 50 episodes left" in text_of(made)
            assert "waits for your approval" in header(made) and "s002→workspace" in text_of(made)
        await pilot.press("a")
        await settle(pilot, lambda: isinstance(made.app.screen, ApproveScreen))
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen)
        assert asked(made) == []
        await pilot.press("a", "y")
        await settle(pilot, lambda: asked(made) == [("decide", True, "")])
        await settle(pilot, lambda: not screen.has_class("-asking"))
        await pilot.press("a")
        assert "nothing waits" in screen.keybar.said


async def test_a_refusal_says_why(rig: Rigger) -> None:
    made = rig("asked")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: screen_of(made).has_class("-asking"))
        await pilot.press("a")
        await settle(pilot, lambda: isinstance(made.app.screen, ApproveScreen))
        await pilot.press("n")
        await settle(pilot, lambda: made.app.screen.focused is not None)
        await pilot.press("y", "n", "space", "d", "enter")  # letters of the reason, no answers
        await settle(pilot, lambda: asked(made) == [("decide", False, "yn d")])


# ── handing over ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_handing_over_to_a_model_shows_its_fields_and_its_refusals(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("H")
        await settle(pilot, lambda: isinstance(made.app.screen, HandOverScreen))
        dialog = made.app.screen
        assert isinstance(dialog, HandOverScreen)
        await settle(pilot, lambda: dialog.fields.choice is not None and dialog.fields.choice.about != "")
        assert "search stops" in text_of(made) and "you edit and submit" in text_of(made)
        dialog.query_one("#agent").value = "litellm"  # type: ignore[attr-defined]
        await settle(pilot, lambda: "api base" in text_of(made) and "model: this agent needs it" in text_of(made))
        await pilot.press("ctrl+s")
        assert asked(made) == []
        dialog.query_one("#option-model").value = "refused"  # type: ignore[attr-defined]
        await settle(pilot, lambda: "any provider" in text_of(made))
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: "401: the key was refused" in text_of(made))
        dialog.query_one("#option-model").value = "openai/x"  # type: ignore[attr-defined]
        dialog.query_one("#option-max_cost").value = "1.5"  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
        assert asked(made) == [("hand_over", "litellm", {"model": "openai/x", "max_cost": "1.5"}, ())]
        assert "litellm goes on" in screen_of(made).keybar.said


async def test_who_cannot_be_run_says_why(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("H")
        await settle(pilot, lambda: isinstance(made.app.screen, HandOverScreen))
        dialog = made.app.screen
        await settle(pilot, lambda: "you edit and submit" in text_of(made))
        dialog.query_one("#agent").value = "gemini"  # type: ignore[attr-defined]
        await settle(pilot, lambda: "Gemini CLI is not there; install it" in text_of(made))
        await pilot.press("ctrl+s", "escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
    assert asked(made) == []


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("c", ("hand_over", "litellm", {"model": "anthropic/claude-sonnet-4-5", "max_cost": "2", "max_turns": "60",
                                        "max_wall": "1800"}, ())),
        ("t", ("hand_over", "human", {}, ())), ("f", "finalize"), ("x", "stop"),
    ],
)  # fmt: skip
async def test_an_agent_that_left_early_can_be_followed_by_whoever(rig: Rigger, key: str, what: object) -> None:
    made = rig("left")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "the agent has left  with 50 episodes to spend" in text_of(made))
        await settle(pilot, lambda: screen.limits.cost == 2.0)
        assert "waits: what next?" in header(made)
        await pilot.press("w")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        assert "has ended (limit)" in " ".join(text_of(made).split())
        await pilot.press("n")
        await settle(pilot, lambda: made.app.screen is screen)
        assert asked(made) == []
        await pilot.press("w", key)
        await settle(pilot, lambda: asked(made) == [what])


async def test_another_agent_goes_on(rig: Rigger) -> None:
    made = rig("left")
    async with made.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: screen_of(made).has_class("-asking"))
        await pilot.press("w", "h")
        await settle(pilot, lambda: isinstance(made.app.screen, HandOverScreen))
        await settle(pilot, lambda: "you edit and submit" in text_of(made))
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: asked(made) == [("hand_over", "human", {}, ())])


# ── branches ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_branch_starts_from_the_selected_checkpoint_with_what_was_left(rig: Rigger) -> None:
    made = rig("modelled")
    made.launcher.to_start = made.feed.run
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: screen_of(made).limits.cost == 2.0)
        await pilot.press("left_square_bracket", "B")
        await settle(pilot, lambda: isinstance(made.app.screen, NewRunScreen))
        assert f"Branch of {made.feed.run.root.name} s001" in text_of(made)
        assert "56 of 64 episodes were left" in text_of(made) and "max cost" in text_of(made)
        await settle(pilot, lambda: "goes on from the policy of s001" in " ".join(text_of(made).split()))
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: len(made.launcher.wishes) == 1)
        new = made.launcher.wishes[0]
        assert (new.branch, new.budget, new.agent) == ((made.feed.run.root, 1), 56, "litellm")
        assert new.options["max_cost"] == "2" and new.env == "gym/cartpole"
        await settle(pilot, lambda: isinstance(made.app.screen, RunScreen) and len(made.app.screen_stack) == 2)


async def test_the_header_names_what_a_run_branched_from(rig: Rigger) -> None:
    made = rig("model")
    state = made.feed.state
    head = replace(state.header, branched_from="runs/x/gym/cartpole/b3f2a1", branched_at=3)
    made.feed.state = replace(state, opened=head)
    async with made.app.run_test(size=(200, 60)) as pilot:
        await settle(pilot, lambda: "branch of b3f2a1 s003" in text_of(made))


async def test_without_a_checkpoint_there_is_no_branch(rig: Rigger) -> None:
    made = rig("opening")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("B")
        assert "select a submission" in screen_of(made).keybar.said


# ── choosing cases ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_cases_are_chosen_by_cell(rig: Rigger) -> None:
    made = rig("human")
    async with made.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot, lambda: isinstance(made.app.screen, SubmitScreen) and "● 0 · " in text_of(made))
        assert "● 2 · fault" in text_of(made)
        field = made.app.screen.query_one("#cases", Input)
        await pilot.press("tab", "a", "a")  # all are chosen already: none, then all again
        await settle(pilot, lambda: field.value == "0-7")
        await pilot.press("space", "right", "right", "space", "down", "space")
        await settle(pilot, lambda: field.value == "1,3-5,7")
        await pilot.press("w")
        await settle(pilot, lambda: "2" in field.value and len(parse_cases(field.value, 1024)) == 4)
        await pilot.click("#picker", offset=(2, 0))
        await settle(pilot, lambda: len(parse_cases(field.value, 1024)) in (3, 5))
        chosen = field.value
        await pilot.press("enter")
        await settle(pilot, lambda: asked(made) == [("submit", chosen)])


# ── the built-in editor ──────────────────────────────────────────────────────────────────────────────────────────


async def test_the_built_in_editor_saves_what_was_typed_and_names_what_is_wrong(rig: Rigger) -> None:
    made = rig("human")
    made.feed.live = True
    path = made.feed.run.system / "policy.py"
    before = path.read_text()
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("C")
        await settle(pilot, lambda: isinstance(made.app.screen, CodeScreen))
        await pilot.press("q", "(", "enter")  # letters that mean something below
        await settle(pilot, lambda: "✗ line 1" in text_of(made))
        await pilot.press("escape")
        await settle(pilot, lambda: "esc again drops" in text_of(made))
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
        assert path.read_text() == before and asked(made) == []
        await pilot.press("C")
        await settle(pilot, lambda: isinstance(made.app.screen, CodeScreen))
        await pilot.press("#", "enter", "ctrl+s")
        await settle(pilot, lambda: asked(made) == [("edited", ("policy.py",))])
        assert path.read_text() == f"#\n{before}" and "u submits it" in screen_of(made).keybar.said


async def test_without_an_editor_the_built_in_one_takes_its_place(
    rig: Rigger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = rig("human")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    async with made.app.run_test(size=(80, 24)) as pilot:
        screen_of(made)._edit_file = None
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot, lambda: isinstance(made.app.screen, CodeScreen))
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))


# ── evidence and folds ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [SIZE, (80, 24), (40, 12)])
async def test_evidence_stands_beside_the_diff(rig: Rigger, size: tuple[int, int]) -> None:
    made = rig("model")
    async with made.app.run_test(size=size) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: len(screen.evidence) == 3)
        assert "summary.json, ep_001" not in text_of(made)
        await pilot.press("E", "left_square_bracket")
        await settle(pilot, lambda: screen.cursor.submission == 1 and "summary.json, ep_001" in text_of(made))
        if size == SIZE:
            assert "11 of 13 feedback files, 85%" in text_of(made)
            assert "synthesis +10 −2, 4 constants moved" in text_of(made) and "+116.5 against the best" in text_of(made)
        assert "The pole oscillates" in screen.policy.plain()
        await pilot.press("E")
        await settle(pilot, lambda: "summary.json, ep_001" not in text_of(made))


async def test_long_entries_unfold_and_fold_again(rig: Rigger) -> None:
    made = rig("model")
    async with made.app.run_test(size=(120, 60)) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "str_replace  system/policy.py  +2 −2 ⋯" in text_of(made))
        await pilot.press("3", "o")
        await settle(pilot, lambda: screen.agent.tail.unfolded and "+ K_V = 0.22" in text_of(made).split("3 Agent")[1])
        assert "unfolded" in text_of(made)
        await pilot.press("o")
        await settle(pilot, lambda: "+ K_V = 0.22" not in text_of(made).split("3 Agent")[1])


# ── what broke off, what ended badly ─────────────────────────────────────────────────────────────────────────────


async def test_of_an_interrupted_run_nothing_is_said_to_be_running(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "8 running" in text_of(made))
        made.feed.end()
        await settle(pilot, lambda: "8 unfinished" in text_of(made) and "running" not in text_of(made))
        assert "unfinished" in screen_of(made).score.plain() and " unfinished" in screen_of(made).budget.plain()


@pytest.mark.parametrize(("command", "told"), [("false", "false ended with exit code 1; nothing"), ("true", "nothing")])
async def test_an_editor_that_ends_badly_is_told(
    rig: Rigger, monkeypatch: pytest.MonkeyPatch, command: str, told: str
) -> None:
    made = rig("human")
    monkeypatch.setenv("VISUAL", command)
    async with made.app.run_test(size=SIZE) as pilot:
        monkeypatch.setattr(made.app, "suspend", nullcontext)
        screen = screen_of(made)
        screen._edit_file = None
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot, lambda: screen.keybar.said.startswith(told))


@pytest.mark.parametrize("stage", ["human", "asked", "left", "model"])
async def test_a_small_header_still_says_assisted(rig: Rigger, stage: str) -> None:
    made = rig(stage)
    async with made.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: "assisted" in text_of(made).splitlines()[0])


# ── typing ahead ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_typed_ahead_of_a_dialog_belongs_to_it(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot)
        for key in ("x", "n"):  # into the queue at once, as fast hands do
            made.app.simulate_key(key)
        await settle(pilot, lambda: made.app.screen is screen and made.app.ahead is None)
        assert not screen.frozen and asked(made) == []
        for key in ("u", "comma", "5", "enter"):
            made.app.post_message(events.Key(key, "," if key == "comma" else key if len(key) == 1 else None))
        await settle(pilot, lambda: asked(made) == [("submit", "0-7,5")])


async def test_ctrl_c_again_stops_but_not_when_it_is_held_down(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+c")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        monkeypatch.setattr(Confirm, "HELD", 1e9)
        await pilot.press("ctrl+c", "ctrl+c", "ctrl+c")
        assert asked(made) == [] and isinstance(made.app.screen, Confirm)
        monkeypatch.setattr(Confirm, "HELD", 0.0)
        await pilot.press("ctrl+c")
        await settle(pilot, lambda: asked(made) == ["stop"])


def test_the_banner_speaks_only_when_somebody_is_needed(golden: object, tmp_path: Path) -> None:
    from tests.golden import build, state_of

    assert banner(state_of(build(tmp_path, "model", "aaa111"))) == []
    left = state_of(build(tmp_path, "left", "bbb222"))
    assert "50 episodes" in banner(left)[2].text
    assert "cases 'what?'" in banner(replace(left, asked="what?"))[1].text
