"""The one list of commands: every command has its method, no key means two things, help and bar read the same list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evotui.ui.commands import HOME, PLACES, RUN, SUITE, Command, Situation, bar, find, groups, key_name
from evotui.ui.screens.base import bindings
from evotui.ui.screens.help import balanced, page
from evotui.ui.screens.home import HomeScreen
from evotui.ui.screens.run import RunScreen
from evotui.ui.screens.suite import SuiteScreen

SCREENS = {"run": RunScreen, "home": HomeScreen, "suite": SuiteScreen}
ABLE = Situation(
    controls=True, submissions=3, episode=True, display_paused=True, following=False, runs=2, status="interrupted",
    hears=True, asked=True, left=True, checkpoint=True, drawn=True,
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_each_command_has_its_method(place: str) -> None:
    for command in PLACES[place]:
        assert callable(getattr(SCREENS[place], command.method, None)), command.method


@pytest.mark.parametrize("place", PLACES)
def test_each_method_is_a_command(place: str) -> None:
    methods = {name for name in dir(SCREENS[place]) if name.startswith("do_")}
    assert methods == {command.method for command in PLACES[place]}


@pytest.mark.parametrize("place", PLACES)
def test_no_key_and_no_id_twice(place: str) -> None:
    keys = [key for command in PLACES[place] for key in command.keys]
    assert len(keys) == len(set(keys))
    ids = [command.id for command in PLACES[place]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("place", PLACES)
def test_keys_of_the_screen_are_the_commands_keys(place: str) -> None:
    found = {b.action: b.key for b in SCREENS[place].BINDINGS}  # type: ignore[union-attr]
    assert found == {f"command('{c.id}')": ",".join(c.keys) for c in PLACES[place]}
    assert len(bindings(PLACES[place])) == len(PLACES[place])


@pytest.mark.parametrize("command", [*RUN, *HOME, *SUITE], ids=lambda c: c.id)
def test_each_command_can_do_something_somewhen_and_is_explained(command: Command) -> None:
    assert command.why_not(ABLE) == ""
    assert command.label and command.help and command.key_text


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (Situation(controls=True, stage="validating"), "validation does not pause: x stops it, to be resumed"),
        (Situation(controls=True, stage="held-out"), "held-out scoring does not pause: x stops it, to be resumed"),
        (Situation(controls=True, spent=True), "the budget is spent: no submission follows"),
        (Situation(controls=True, spent=True, gate="pause"), ""),  # what was held must be let go
        (Situation(controls=True, ended=True, stage="ended", spent=True), "the agent's part is over"),
    ],
)
def test_a_pause_that_would_hold_nothing_is_refused_with_what_happens(now: Situation, said: str) -> None:
    assert find(RUN, "pause").why_not(now) == find(RUN, "step_iteration").why_not(now) == said
    if now.spent and not now.ended:
        assert find(RUN, "submit").why_not(now) == "the budget is spent"
    # The last submission has phases still.
    assert find(RUN, "step_phase").why_not(now) == ("" if now.spent and not now.ended else said)


@pytest.mark.parametrize("id", ["edit", "code", "submit", "approval", "hand_over"])
def test_what_leads_to_a_submission_is_offered_while_one_can_be_paid_for(id: str) -> None:
    assert find(RUN, id).why_not(Situation(controls=True)) == ""
    assert find(RUN, id).why_not(Situation(controls=True, spent=True)) == "the budget is spent"
    assert id not in [c.id for c in bar(RUN, Situation(controls=True, spent=True))]


def test_a_watched_run_cannot_be_driven_and_says_so() -> None:
    assert "watched" in find(RUN, "pause").why_not(Situation(controls=False))
    assert find(RUN, "pause").why_not(Situation(ended=True, status="ended")) == "the run has ended"
    assert (
        find(RUN, "pause").why_not(Situation(ended=True, status="interrupted"))
        == "the run was interrupted: R resumes it"
    )
    assert "over" in find(RUN, "submit").why_not(Situation(controls=True, stage="validating"))
    assert "ended" in find(RUN, "stop").why_not(Situation(controls=True, ended=True))
    with pytest.raises(KeyError):
        find(RUN, "fly")


def test_the_bar_shows_only_what_can_be_done_most_needed_first() -> None:
    shown = [c.id for c in bar(RUN, Situation(controls=False, submissions=1))]
    assert shown[:2] == ["leave", "help"] and "pause" not in shown and "older" in shown
    assert "pause" in [c.id for c in bar(RUN, ABLE)]


def test_keys_that_turn_something_off_again_say_so() -> None:
    turned = {c.id: c.label for c in bar(RUN, replace(ABLE, gate="pause", maximised=True))}
    assert (turned["display"], turned["pause"], turned["maximise"]) == ("unfreeze", "resume run", "show all")


def test_help_holds_every_command_once_within_the_width() -> None:
    found = groups(RUN)
    assert sum(len(commands) for commands in found.values()) == len(RUN)
    left, right = balanced(found, 2)
    assert [*left, *right] == list(found)
    for name, commands in found.items():
        text = page(name, commands, ABLE, 50).plain
        assert max(map(len, text.splitlines())) <= 52
        assert len(text.splitlines()) >= len(commands) + 1


def test_keys_as_people_write_them() -> None:
    assert [key_name(k) for k in ("ctrl+d", "left_square_bracket", "left", "space", "S")] == [
        "^d",
        "[",
        "←",
        "space",
        "S",
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_columns_of_the_help_hold_every_group_once_in_order(count: int) -> None:
    found = groups(PLACES["run"])
    columns = balanced(found, count)
    assert [name for column in columns for name in column] == list(found)
    assert len(columns) == count
