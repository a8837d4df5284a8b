"""The run screen under a pilot: each key of the commands, selections that reach every pane, size, hidden figures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.state import RunState
from evotui.ui.commands import RUN
from evotui.ui.feed import Progress
from evotui.ui.panes.environment import bars, lines_shown
from evotui.ui.screens.confirm import Confirm
from evotui.ui.screens.help import HelpScreen
from evotui.ui.screens.run import RunScreen
from evotui.ui.screens.submit import SubmitScreen
from evotui.ui.select import Base, Eye, Spot
from tests.golden import START
from tests.patience import PATIENCE
from tests.ui.conftest import Rig, Rigger

SIZE = (120, 40)


async def settle(pilot: Pilot[Any], until: Callable[[], bool] = lambda: True) -> None:
    """Wait until a condition holds; the clock only bounds the wait."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        await pilot.pause()
        if until():
            return
        assert asyncio.get_running_loop().time() < deadline, "it never came to that"
        await asyncio.sleep(0.01)


def screen_of(rig: Rig) -> RunScreen:
    screen = rig.app.screen_stack[0]
    assert isinstance(screen, RunScreen)
    return screen


def text_of(rig: Rig) -> str:
    """Everything on the screen as text."""
    height = rig.app.size.height
    lines = rig.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines[:height])


def header(rig: Rig) -> str:
    return screen_of(rig)._header.text


async def test_the_first_screen_is_the_run(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "s002→s003" in text_of(made) and "parametric" in text_of(made))
        shown = text_of(made)
        for words in ("CartPole-v1", "rolling out 3/8", "following", "isolation A", "00:42", "1 Policy", "5 Budget"):
            assert words in shown
        assert "case 3 t 213" in shown  # episodes under way


async def test_selecting_an_earlier_submission_changes_every_pane(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "s006→s007" in text_of(made))
        await pilot.press("left_square_bracket", "left", "left")
        await settle(pilot, lambda: "s003→s004" in text_of(made) and "failed" in text_of(made))
        screen = screen_of(made)
        assert screen.picture.view.submission == 4
        assert "s004 of 8" in header(made)
        assert screen.score.plot.cursor == 4
        assert "s004 rolled nothing out: import error" in text_of(made)
        await pilot.press("left")
        await settle(pilot, lambda: "s002→s003" in text_of(made))
        assert screen.environment.player is not None and screen.environment.player.submission == 3
        await pilot.press("right_square_bracket", "right", "right", "right", "right")
        assert screen.cursor.follow


async def test_follow_comes_back(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("left", "left")
        assert not screen_of(made).cursor.follow
        await pilot.press("f")
        assert screen_of(made).cursor.follow
        await pilot.press("f")
        assert "followed already" in screen_of(made).keybar.said


async def test_space_freezes_the_display_only_and_counts_what_is_new(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("space")
        assert screen_of(made).frozen
        made.feed.put(grown(made.feed.state, 5))
        await settle(pilot, lambda: "5 new" in header(made))
        assert "display frozen" in header(made) and len(screen_of(made).state.transcript) < 100
        assert made.feed.fake_controls.asked == []  # the run was not touched
        await pilot.press("space")
        await settle(pilot, lambda: "following" in header(made))
        assert screen_of(made).state is made.feed.state


def grown(state: RunState, n: int) -> RunState:
    for i in range(n):
        state = fold(state, e.Record(state.seq + 1, START + 60 + i, e.AgentThought(f"thought {i}")))
    return state


async def test_new_facts_reach_the_panes(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        made.feed.put(grown(made.feed.state, 3))
        await settle(pilot, lambda: "thought 2" in text_of(made))


async def test_pause_resume_and_steps_ask_the_run(rig: Rigger) -> None:
    made = rig("rolling")
    asked = made.feed.fake_controls.asked
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("p")
        await settle(pilot, lambda: asked == ["pause"])
        await settle(pilot, lambda: "pauses before s004" in header(made))
        await pilot.press("p")
        await settle(pilot, lambda: asked == ["pause", "resume"])
        await pilot.press("s")
        await settle(pilot, lambda: asked[-1] == "step_iteration")
        await pilot.press("S")
        await settle(pilot, lambda: asked[-1] == "step_phase")


async def test_a_pause_after_the_last_submission_says_what_happens(rig: Rigger) -> None:
    made = rig("rolling")
    evolving = made.feed.state
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("space")  # the display stands still in the agent's part; keys are about the run as it is
        made.feed.put(replace(evolving, finalizing=(0, 1, 2), seq=evolving.seq + 1))
        await settle(pilot, lambda: screen_of(made).newest.finalizing is not None)
        await pilot.press("p")
        assert "validation does not pause: x stops it" in screen_of(made).keybar.said
        made.feed.put(replace(evolving, finalizing=(0, 1, 2), selected=1, seq=evolving.seq + 2))
        await settle(pilot, lambda: screen_of(made).newest.selected is not None)
        await pilot.press("p")
        assert "held-out scoring does not pause" in screen_of(made).keybar.said
    assert made.feed.fake_controls.asked == []


async def test_a_run_of_another_process_cannot_be_driven(rig: Rigger) -> None:
    made = rig("rolling", drives=False)
    async with made.app.run_test(size=SIZE) as pilot:
        for key in ("p", "s", "S", "e", "u", "x"):
            await pilot.press(key)
            assert "watched" in screen_of(made).keybar.said
        assert "watching" in header(made)
        await pilot.press("q")
    assert made.feed.closed and made.app.return_code == 0


async def test_stopping_asks_and_the_first_answer_is_safe(rig: Rigger) -> None:
    made = rig("rolling")
    asked = made.feed.fake_controls.asked
    async with made.app.run_test(size=SIZE) as pilot:
        for answer in ("escape", "enter", "n", "q"):
            await pilot.press("ctrl+c")
            await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
            await pilot.press(answer)
            await settle(pilot, lambda: made.app.screen is screen_of(made))
        assert asked == []
        await pilot.press("x")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        await pilot.press("f")
        await settle(pilot, lambda: asked == ["finalize"])
        await pilot.press("x")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        await pilot.press("right", "right", "enter")
        await settle(pilot, lambda: asked == ["finalize", "stop"])
        assert made.app.is_running


async def test_a_question_about_a_run_that_ends_meanwhile_goes(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("x")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        made.feed.end()
        await settle(pilot, lambda: made.app.screen is screen_of(made) and "ended by itself" in text_of(made.app))
        assert made.feed.fake_controls.asked == [] and made.app.is_running


async def test_leaving_a_live_run_asks(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("q")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        await pilot.press("n")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
        assert made.app.is_running and not made.feed.closed
        await pilot.press("q")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        await pilot.press("y")
        await settle(pilot, lambda: made.feed.closed and made.frames.closed)
    assert made.feed.fake_controls.asked == ["stop"]


async def test_editing_records_what_changed(rig: Rigger) -> None:
    made = rig("between")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("e")
        await settle(pilot, lambda: bool(made.feed.fake_controls.asked))
        assert made.feed.fake_controls.asked == [("edited", ("policy.py",))]
        assert made.edited == [made.feed.run.system / "policy.py"]
        await settle(pilot, lambda: "u submits it" in screen_of(made).keybar.said)


async def test_submitting_by_hand(rig: Rigger) -> None:
    made = rig("between")
    asked = made.feed.fake_controls.asked
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("u")
        await settle(pilot, lambda: isinstance(made.app.screen, SubmitScreen))
        assert "costs 8 episodes; 34 of 64 would remain" in text_of(made)
        await pilot.press("ctrl+u", *"0-3,p")  # letters are text in an input, never keys
        await settle(pilot, lambda: "cannot read 'p'" in text_of(made))
        await pilot.press("enter")
        assert isinstance(made.app.screen, SubmitScreen) and asked == []
        await pilot.press("backspace", "7", "enter")
        await settle(pilot, lambda: asked == [("submit", "0-3,7")])
        await settle(pilot, lambda: "submit_004: ok" in screen_of(made).keybar.said)
        await pilot.press("u")
        await settle(pilot, lambda: isinstance(made.app.screen, SubmitScreen))
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
        assert len(asked) == 1


async def test_a_refused_submission_is_told(rig: Rigger) -> None:
    made = rig("between")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("u")
        await settle(pilot, lambda: isinstance(made.app.screen, SubmitScreen))
        await pilot.press("ctrl+u", "1", "3", "enter")
        await settle(pilot, lambda: "thirteen is refused" in screen_of(made).keybar.said)


async def test_diff_keys(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: screen_of(made).policy.view.stats.hunks == 2)
        screen = screen_of(made)
        view = screen.policy.view
        await pilot.press("d")
        assert view.mode == "side-by-side" and view.changes_only
        await pilot.press("d")
        assert view.mode == "unified" and not view.changes_only
        await pilot.press("d", "n")
        assert view.changes_only and view.stats.hunk == 1
        await pilot.press("n", "N")
        assert view.stats.hunk == 1
        await pilot.press("D")
        assert screen.cursor.base is Base.BEST
        await pilot.press("D")
        await settle(pilot, lambda: "start→s007" in text_of(made))
        await pilot.press("D")
        assert screen.cursor.base is Base.PREVIOUS


async def test_the_draft_is_shown_live_before_any_submission(rig: Rigger) -> None:
    made = rig("editing")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "start→workspace" in text_of(made))
        await settle(pilot, lambda: "theta > 0.0" in text_of(made))


async def test_a_rest_shows_the_code_itself(rig: Rigger) -> None:
    made = rig("opening")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "return self.t % self.n_actions" in text_of(made))


async def test_environment_keys(rig: Rigger) -> None:
    made = rig("finished", last_step=100_000)
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: screen.environment.player is not None)
        await pilot.press("l")
        assert screen.cursor.position is not None and not screen.cursor.follow
        at = screen.cursor.position
        await pilot.press("h")
        assert screen.cursor.position == at - 1
        await pilot.press("b")
        assert screen.cursor.spot is Spot.WORST and screen.cursor.position is None
        await pilot.press("2", "up")
        assert screen.cursor.spot is Spot.BEST
        await pilot.press("down", "down")
        assert screen.cursor.spot is Spot.FIRST
        player = screen.environment.player
        assert player is not None
        speed = player.rate
        await pilot.press("plus")
        assert player.rate == speed + 1
        await pilot.press("minus", "minus")
        assert player.rate == speed - 1
        await pilot.press("r")
        assert screen.environment.player is not player


async def test_environment_steps_while_the_display_stands_still(rig: Rigger) -> None:
    made = rig("finished", last_step=100_000)  # far from its end, however slow the machine is
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await pilot.press("full_stop")
        assert "pause the display first" in screen.keybar.said
        await settle(pilot, lambda: screen.environment.player is not None and screen.environment.player.step > 1)
        await pilot.press("space")
        player = screen.environment.player
        assert player is not None and player.held
        await settle(pilot)
        at = player.step
        await pilot.press("full_stop")
        await settle(pilot, lambda: player.step == at + 1)
        await pilot.press("comma", "comma")
        await settle(pilot, lambda: player.step == at - 1)
        assert "‖ still" in text_of(made)


async def test_a_drawing_in_characters_takes_the_place_of_the_picture_where_there_is_one(rig: Rigger) -> None:
    made = rig("rolling", frames="both")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "T as text" in text_of(made))
        assert "F H F" not in text_of(made)
        await pilot.press("T")
        await settle(pilot, lambda: "F H F" in text_of(made) and "T as picture" in text_of(made))
        assert "▀" not in text_of(made)
        pane = screen_of(made).environment
        assert pane.frame.size.width + pane.values.size.width <= pane.size.width and pane.has_class("-beside")
        await pilot.press("question_mark")
        await settle(pilot, lambda: "Its drawing in characters" in text_of(made))
        await pilot.press("escape", "T")
        await settle(pilot, lambda: "▀" in text_of(made) and "F H F" not in text_of(made))


async def test_without_a_drawing_in_characters_nothing_is_said_of_it(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "▀" in text_of(made))
        assert "as text" not in text_of(made)
        await pilot.press("question_mark")
        await settle(pilot, lambda: "Play faster" in text_of(made))
        assert "drawing in characters" not in text_of(made)
        await pilot.press("escape", "T")
        assert "no drawing in characters" in screen_of(made).keybar.said


async def test_without_colours_a_drawing_comes_before_a_picture(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    made = rig("rolling", frames="both")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "F H F" in text_of(made) and "T as picture" in text_of(made))


def test_a_tall_drawing_is_cut_around_who_moves_in_it() -> None:
    lines = ["WG" * 4] * 12 + ["WG  >>WG"] + ["WG" * 4] * 6
    assert lines_shown(lines, 19) == (0, 19)
    assert lines_shown(lines, 9) == (8, 17)
    assert lines_shown(lines[:13], 9) == (4, 13)
    assert lines_shown(["WG"] * 12, 5) == (0, 5)


@pytest.mark.parametrize(
    ("frames", "words"), [("none", "no frame: this environment has no renderer"), ("text", "F H F")]
)
async def test_without_pixels(rig: Rigger, frames: str, words: str) -> None:
    made = rig("finished", frames=frames)
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: words in text_of(made))


async def test_case_map_and_back(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("c")
        await settle(pilot, lambda: "cases × submissions" in text_of(made))
        await pilot.press("c")
        await settle(pilot, lambda: "in-loop proxy" in text_of(made) and "best so far" in text_of(made))


async def test_panes_focus_maximise_reset(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await pilot.press("tab")
        assert screen.current is screen.environment and screen.environment.has_focus
        await pilot.press("shift+tab")
        assert screen.current is screen.policy
        for key, pane in zip("12345", screen.panes, strict=True):
            await pilot.press(key)
            assert screen.current is pane and pane.has_focus
        await pilot.press("4", "m")
        await settle(pilot)
        assert screen.score.region.width == 120 and not screen.policy.region.width
        await pilot.press("tab")
        await settle(pilot)
        assert screen.budget.region.width == 120  # maximised, another pane at a time
        await pilot.press("0")
        await settle(pilot)
        assert screen.policy.region.width == 60


async def test_scrolling_keys(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=(120, 26)) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: screen.policy.view.max_scroll_y > 10)
        view = screen.policy.view
        await pilot.press("j", "j", "k")
        await settle(pilot, lambda: view.scroll_offset.y == 1)
        await pilot.press("G")
        await settle(pilot, lambda: view.scroll_offset.y == view.max_scroll_y)
        await pilot.press("ctrl+u")
        await settle(pilot, lambda: view.scroll_offset.y < view.max_scroll_y)
        await pilot.press("g")
        await settle(pilot, lambda: view.scroll_offset.y == 0)
        await pilot.press("ctrl+d")
        await settle(pilot, lambda: view.scroll_offset.y > 0)
        tail = screen.agent.tail
        await pilot.press("3", "up")
        assert not tail.following
        await pilot.press("end")
        assert tail.following


async def test_copy_takes_the_focused_panes_text(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: bool(screen_of(made).policy.plain()))
        copied = {}
        for key in "12345":
            await settle(pilot, lambda: screen_of(made).environment.plain() != "")
            await pilot.press(key, "y")
            copied[key] = made.app.clipboard
        assert "+++ s007/policy.py" in copied["1"] and "cart position" in copied["2"]
        assert "thought: " in copied["3"] and "s004\timport_error" in copied["4"]
        assert "remaining 8" in copied["5"]


async def test_help_palette_theme_and_suspend(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("question_mark")
        await settle(pilot, lambda: isinstance(made.app.screen, HelpScreen))
        shown = text_of(made)
        assert "Freeze the display only" in shown and "Copy the focused pane" in shown
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))
        theme = made.app.theme
        await pilot.press("t")
        assert made.app.theme != theme
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: made.app.screen is not screen_of(made))
        await pilot.press(*"case map")
        await settle(pilot, lambda: "Score history" in text_of(made))
        await pilot.press("enter")
        await settle(pilot, lambda: screen_of(made).score.map)
        suspended = []
        monkeypatch.setattr(made.app, "action_suspend_process", lambda: suspended.append(True))
        await pilot.press("ctrl+z")
        assert suspended == [True]


async def test_every_command_can_be_done_by_its_id(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command raises at any stage; the palette calls them by id."""
    made = rig("human")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        monkeypatch.setattr(made.app, "action_suspend_process", lambda: None)
        screen = screen_of(made)
        for command in RUN:
            if command.id in ("leave", "stop", "submit"):
                continue
            screen.action_command(command.id)
            await pilot.pause()
            while made.app.screen is not screen:
                made.app.pop_screen()
                await pilot.pause()
        assert not screen.keybar.said.endswith("Error")


# ── hidden figures ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_agents_eye_hides_every_post_hoc_figure(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "held-out 485" in text_of(made) and "◆ post-hoc" in text_of(made))
        await pilot.press("v")
        await settle(pilot, lambda: "agent's eye" in text_of(made))
        for size in ((120, 40), (80, 24), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            shown = text_of(made)
            for hidden in ("held-out", "post-hoc", "validation", "486.4", "96.9", "random 22", "reference"):
                assert hidden not in shown, (size, hidden)
        assert "validation" not in screen_of(made).score.plain()
        await pilot.press("v")
        await settle(pilot, lambda: screen_of(made).cursor.eye is Eye.OBSERVER)
        assert "held-out 485" in text_of(made) or made.app.size != (120, 40)


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_resize_from_wide_to_nothing_and_back(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=(200, 60)) as pilot:
        screen = screen_of(made)
        for width, height in ((120, 40), (80, 24), (79, 24), (40, 12), (39, 12), (20, 5), (1, 1), (40, 20), (120, 40)):
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            small = width < 40 or height < 12
            assert screen.has_class("-too-small") == small
            assert screen.has_class("-tabs") == (width < 80 or height < 20)
            if small and width > 20:
                assert "evotui needs 40 × 12" in text_of(made)
        assert screen.policy.region.width == 60 and screen.environment.region.width == 60


async def test_a_pane_below_tabs_is_not_named_twice(rig: Rigger) -> None:
    made = rig("finished")
    names = {"1": "Policy", "2": "Environment", "3": "Agent", "4": "Score", "5": "Budget"}
    async with made.app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        for key, name in names.items():
            await pilot.press(key)
            await settle(pilot)
            assert text_of(made).count(f"{key} {name}") == 1, text_of(made)
        await pilot.resize_terminal(120, 40)
        await pilot.press("m")  # no tabs: the pane says its name itself
        await settle(pilot)
        assert text_of(made).count("5 Budget") == 1


async def test_narrow_shows_one_pane_and_a_tab_line(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=(60, 24)) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "2 Environment" in text_of(made))
        assert screen.policy.region.width == 60 and not screen.score.region.width
        await pilot.press("4")
        await settle(pilot, lambda: screen.score.region.width == 60)
        assert not screen.policy.region.width
        await pilot.click("#tabs", offset=(2, 0))
        await settle(pilot, lambda: screen.policy.region.width == 60)


async def test_clicks_select(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot)
        await pilot.click("#meter", offset=(1, 0))
        await settle(pilot, lambda: screen.cursor.submission == 0)
        await pilot.click("#keys", offset=(2, 0))
        await settle(pilot, lambda: screen.frozen)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("validating", "validating s003 9/16"), ("no_ok", "ended: no submission ran"), ("error", "connection refused"),
        ("human", "assisted"), ("opening", "the first finished episode appears here"),
        ("paused", "paused before s004"),
    ],
)  # fmt: skip
async def test_each_stage_says_what_it_is(rig: Rigger, stage: str, words: str) -> None:
    made = rig(stage)
    async with made.app.run_test(size=(140, 40)) as pilot:
        await settle(pilot, lambda: words in text_of(made))


async def test_foreign_text_is_never_markup(rig: Rigger) -> None:
    made = rig("rolling")
    hostile = "[bold red]not markup[/] \x1b[31mred\x1b[0m \u202egnirts [/"
    state = made.feed.state
    state = fold(state, e.Record(state.seq + 1, START + 60, e.AgentMessage(hostile)))
    header = replace(state.header, run="[b]run[/b]", env_version="[link=x]Cart[/link]")
    made.feed.state = replace(state, opened=header, agent_name="[i]name")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "[bold red]not markup[/]" in text_of(made))
        assert "[link=x]Cart[/link]" in text_of(made) and "[i]name" in text_of(made)
        assert "\x1b" not in text_of(made)


async def test_the_feeds_end_is_shown(rig: Rigger) -> None:
    made = rig("between")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        made.feed.end()
        await settle(pilot, lambda: "interrupted" in header(made))
        await pilot.press("p")
        assert "R resumes it" in screen_of(made).keybar.said


async def test_a_resting_screen_draws_nothing(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing changes: no pane is drawn, no line is refreshed."""
    made = rig("finished", last_step=3)
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        player = lambda: screen.environment.player  # noqa: E731
        await settle(pilot, lambda: player() is not None and player().ended)  # type: ignore[union-attr]
        paced = (screen._draw_top, screen._draw_tail, screen._draw_files, screen._draw_plot, screen._rolling)
        await settle(pilot, lambda: bool(screen.edits) and not any(part._timer for part in paced))
        drawn: list[str] = []
        for pane in screen.panes:
            monkeypatch.setattr(pane, "draw", lambda picture, name=pane.label: drawn.append(name))
        monkeypatch.setattr(screen.environment.frame, "show", lambda pixels: drawn.append("frame"))
        await asyncio.sleep(0.5)
        assert drawn == []


async def test_when_the_run_ends_its_episode_is_played_to_the_end_and_rests_until_a_key(rig: Rigger) -> None:
    made = rig("between", last_step=20)
    async with made.app.run_test(size=SIZE) as pilot:
        environment = screen_of(made).environment
        rests = lambda: environment.player is not None and environment.player.ended  # noqa: E731
        await settle(pilot, lambda: environment.player is not None and environment.player.step > 3)
        assert environment.player is not None and environment.player.loops is None
        made.feed.end()
        await settle(pilot, rests)
        assert environment.player.step == 20 and "■ ended" in text_of(made)
        count = len(made.frames.played)
        for key in ("b", "plus", "r"):
            await pilot.press(key)
            count += 1
            await settle(pilot, lambda now=count: len(made.frames.played) == now)  # type: ignore[misc]
            await settle(pilot, rests)
        await pilot.resize_terminal(100, 36)
        await settle(pilot, lambda: len(made.frames.played) == count + 1)
        await settle(pilot, rests)
        assert made.frames.played[-1][2] == 20 and environment.player.step == 20  # the last frame in its new size


async def test_a_record_that_breaks_off_is_told_and_stays_on_the_screen(rig: Rigger) -> None:
    made = rig("between")

    async def broken() -> AsyncIterator[RunState]:
        yield made.feed.state
        raise ValueError("events.jsonl, line 30: not an event")

    made.feed.updates = broken  # type: ignore[method-assign]
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "line 30: not an event" in text_of(made))
        assert "s003→workspace" in text_of(made)


async def test_textuals_own_quit_asks_too(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+q")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm))
        await pilot.press("ctrl+q")
        assert made.app.is_running
        await pilot.press("ctrl+c")
        await settle(pilot, lambda: made.app.screen is screen_of(made))


async def test_without_colours_everything_is_still_said(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "held-out 485" in text_of(made))
        assert made.app.no_color


# ── runs that broke off ──────────────────────────────────────────────────────────────────────────────────────────


async def test_an_interrupted_run_goes_on_from_its_own_screen(rig: Rigger) -> None:
    made = rig("rolling")
    made.feed.end()
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "interrupted" in header(made) and "R resume" in text_of(made))
        before = screen_of(made)
        await pilot.press("R")
        await settle(pilot, lambda: "the other 5 run again" in " ".join(text_of(made).split()))
        await pilot.press("y")
        await settle(pilot, lambda: made.app.screen is not before and isinstance(made.app.screen, RunScreen))
        assert made.launcher.resumed == [made.feed.run.root]
        assert made.feed.closed and made.frames.closed  # its folder is free, its drawing process gone
        await settle(pilot, lambda: "rolling out 3/8" in text_of(made))
        made.app.screen.feed.end()  # type: ignore[attr-defined]
        await settle(pilot, lambda: "interrupted" in text_of(made))
        await pilot.press("q")  # not back to the screen that was closed
        await settle(pilot, lambda: not made.app.is_running)
    assert made.app.return_code == 0


@pytest.mark.parametrize(
    ("stage", "why"), [("rolling", "going on already"), ("finished", "only a run that was interrupted")]
)
async def test_a_run_that_goes_on_or_has_ended_is_not_resumed(rig: Rigger, stage: str, why: str) -> None:
    made = rig(stage)
    async with made.app.run_test(size=SIZE) as pilot:
        await pilot.press("R")
        assert why in screen_of(made).keybar.said
        assert made.launcher.resumed == []


@pytest.mark.parametrize("size", [SIZE, (80, 24), (40, 12)])
async def test_a_run_that_breaks_off_says_why(rig: Rigger, size: tuple[int, int]) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=size) as pilot:
        await settle(pilot, lambda: "rolling out" in header(made))
        assert "broke off" not in text_of(made)
        made.feed.end("events.jsonl: No space left\non [b]device[/b]")
        await settle(pilot, lambda: "✗ broke off: events.jsonl: No space" in text_of(made))
        assert "✗ broke off" in header(made)
        words = " ".join(text_of(made).split())
        assert "left on [b]device[/b]. What was recorded" in words.replace(" ", " ")
        await pilot.press("e")
        assert "R resumes it" in screen_of(made).keybar.said
        await pilot.resize_terminal(30, 8)
        await settle(pilot, lambda: "evotui needs" in text_of(made) and "broke off" not in text_of(made))
        await pilot.press("q")  # nothing to ask: it is over
    assert made.app.return_code == 0


async def test_a_feed_that_raises_is_told(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig("rolling")

    async def broken() -> AsyncIterator[RunState]:
        yield made.feed.state
        raise ValueError("line 7 is damaged")

    monkeypatch.setattr(made.feed, "updates", broken)
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "✗ broke off: line 7 is damaged." in text_of(made))


async def test_long_lines_are_moved_sideways(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=(80, 24)) as pilot:
        view = screen_of(made).policy.view
        await settle(pilot, lambda: bool(view.max_scroll_x))
        await pilot.press("greater_than_sign")
        await settle(pilot, lambda: view.scroll_offset.x > 0)
        await pilot.press("less_than_sign")
        await settle(pilot, lambda: view.scroll_offset.x == 0)


async def test_values_move_beside_a_square_picture_and_back_below_it(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        pane = screen_of(made).environment
        await settle(pilot, lambda: pane.player is not None and pane.player.step > 0)
        assert not pane.has_class("-beside") and pane.values.size.height == 3
        made.frames.square = True
        await pilot.press("r")
        await settle(pilot, lambda: pane.values.size.height > 8)
        assert pane.frame.size.width + pane.values.size.width < pane.size.width
        made.frames.square = False
        await pilot.press("r")
        await settle(pilot, lambda: pane.values.size.height == 3)


async def test_the_key_bar_says_how_to_leave_a_maximised_pane(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "m maximise" in text_of(made))
        await pilot.press("m")
        await settle(pilot, lambda: "m show all" in text_of(made))
        await pilot.press("m")
        await settle(pilot, lambda: "m maximise" in text_of(made))


async def test_before_an_episode_has_finished_all_that_are_under_way_are_listed(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: screen.environment.player is not None)
        state = screen.state
        first = replace(state, submissions=(replace(state.submissions[3], index=0, episodes=()),))
        picture = replace(screen.picture, state=first)
        under_way = [Progress(0, 3, 213, 213.0), Progress(0, 4, 80, 80.0)]
        lines = bars(picture, under_way)
        assert [line.split()[0] for line in lines] == ["case", "case"]
        assert "t 213/500" in lines[0] and lines[0].endswith("return 213") and "t  80/500" in lines[1]
        assert lines[0].count("━") > lines[1].count("━")
        assert max(map(len, lines)) <= 54
