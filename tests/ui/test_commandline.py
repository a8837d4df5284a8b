"""The command line behind ``:``."""

from __future__ import annotations

import pytest
from textual import events

from evotui.ui.commandline import match, names
from evotui.ui.commands import HOME, RUN
from tests.ui.conftest import Rigger
from tests.ui.test_run_screen import SIZE, screen_of, settle, text_of


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("step_phase", "step_phase"), ("Step-Phase", "step_phase"), ("step", "step_iteration"),
        ("agai", "diff_against"),
        ("case map", "case_map"), (" theme ", "theme"), ("q", "leave"), ("quit", "leave"), ("^d", "half_down"),
    ],
)  # fmt: skip
def test_what_a_line_means(text: str, id: str) -> None:
    commands = HOME if text == "quit" else RUN
    found, why = match(commands, text)
    assert found is not None and found.id == id and why == ""


def test_what_a_line_does_not_mean() -> None:
    assert match(RUN, "zzz") == (None, "there is no action 'zzz'")
    assert "near: " in match(RUN, "freze")[1] and "freeze" in match(RUN, "freze")[1]
    assert "next pane" in match(RUN, "next")[1] and "next hunk" in match(RUN, "next")[1]


def test_every_action_can_be_typed() -> None:
    for commands in (RUN, HOME):
        for command in commands:
            assert match(commands, command.id)[0] is command
        assert all(match(commands, name)[0] is not None for name in names(commands))


async def test_the_line_completes_runs_and_gives_the_focus_back(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "s006→s007" in text_of(made))
        await pilot.press("3", "colon", *"case")
        await settle(pilot, lambda: ":case map" in text_of(made))
        assert not screen.score.map and "help" not in text_of(made).splitlines()[-1]
        await pilot.press("tab", "enter")
        await settle(pilot, lambda: screen.score.map)
        assert screen.focused is screen.agent and "help" in text_of(made).splitlines()[-1]
        await pilot.press("colon", "q", "escape")  # letters are text, and nothing was done
        await settle(pilot, lambda: screen.focused is screen.agent)
        assert made.app.is_running
        await pilot.press("colon", *"nothing", "enter")
        await settle(pilot, lambda: "there is no action 'nothing'" in screen.keybar.said)
        await pilot.press("colon", "up")
        await settle(pilot, lambda: ":nothing" in text_of(made))
        await pilot.press("ctrl+c", "colon", *"pause run", "enter")
        await settle(pilot, lambda: "the run has ended" in screen.keybar.said)


async def test_a_number_selects_a_submission(rig: Rigger) -> None:
    made = rig("finished")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await pilot.press("colon", "2", "enter")
        await settle(pilot, lambda: screen.picture.view.submission == 2)
        await pilot.press("colon", *"s005", "enter")
        await settle(pilot, lambda: screen.picture.view.submission == 5)
        await pilot.press("colon", *"99", "enter")
        await settle(pilot, lambda: "there is no submission 99: there are 8" in screen.keybar.said)


async def test_home_has_it_too(rig: Rigger) -> None:
    from evotui.ui.app import EvotuiApp

    made = rig("finished")
    app = EvotuiApp(made.launcher)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("colon", *"qu", "enter")
        await settle(pilot, lambda: not app.is_running)
    assert app.return_code == 0


async def test_letters_typed_ahead_of_the_line_never_fire(rig: Rigger) -> None:
    """Keys that were queued in one burst: the line opens at the first, the others are text or nothing."""
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        await settle(pilot, lambda: "s002→s003" in text_of(made))
        theme = made.app.theme
        screen.action_command("line")
        for letter in "test":
            made.app.post_message(events.Key(letter, letter))
        await settle(pilot, lambda: screen._line is not None and screen._line.has_focus)
        assert screen._line is not None and screen._line.value == "test"
        await pilot.press("escape")
        await settle(pilot, lambda: screen._typing is None and screen.focused is screen.policy)
        for key, letter in (("colon", ":"), ("t", "t"), ("u", "u"), ("space", " "), ("e", "e"), ("q", "q")):
            made.app.post_message(events.Key(key, letter))
        await settle(pilot, lambda: screen._line is not None and screen._line.has_focus)
        assert made.app.theme == theme and not screen.frozen and made.edited == [] and made.app.screen is screen
