"""The cursor and what it selects, as pure functions over golden states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.ui import header, select
from evotui.ui import words as figures
from evotui.ui.chrome import fit
from evotui.ui.select import Base, Cursor, Eye, Spot, View
from tests.golden import STAGES, START, state_of

Golden = Callable[[str], RunDir]
FOLLOW = Cursor()


def test_following_selects_the_newest_or_the_workspace(golden: Golden) -> None:
    assert select.resolve(state_of(golden("rolling")), FOLLOW) == View(3, False)


@pytest.mark.parametrize(
    ("stage", "view"),
    [
        ("opening", View(None, True)), ("editing", View(None, True)), ("between", View(None, True)),
        ("failed", View(4, False)), ("validating", View(7, False)), ("finished", View(7, False)),
        ("no_ok", View(1, False)),
    ],
)  # fmt: skip
def test_what_following_selects_at_each_stage(golden: Golden, stage: str, view: View) -> None:
    assert select.resolve(state_of(golden(stage)), FOLLOW) == view


def test_the_cursor_moves_and_follows_again_past_the_newest(golden: Golden) -> None:
    state = state_of(golden("finished"))
    cursor = select.older(state, FOLLOW)
    assert (cursor.follow, cursor.submission) == (False, 6)
    for _ in range(20):
        cursor = select.older(state, cursor)
    assert cursor.submission == 0
    for _ in range(7):
        cursor = select.newer(state, cursor)
    assert cursor == replace(FOLLOW, follow=False, submission=7)
    assert select.newer(state, cursor).follow
    assert select.follow(cursor).follow


def test_from_the_workspace_older_is_the_newest_submission(golden: Golden) -> None:
    state = state_of(golden("between"))
    assert select.older(state, FOLLOW).submission == 3


def test_nothing_to_move_over_before_the_first_submission(golden: Golden) -> None:
    state = state_of(golden("opening"))
    assert select.older(state, FOLLOW) == FOLLOW
    assert select.newer(state, FOLLOW).follow


def test_a_selection_survives_newer_submissions(golden: Golden) -> None:
    state = state_of(golden("finished"))
    assert select.resolve(state, select.pick(FOLLOW, 2)) == View(2, False)


def test_spotlight_rules(golden: Golden) -> None:
    state = state_of(golden("finished"))
    returns = {ep.position: ep.return_ for ep in state.submissions[3].episodes}
    cursor = select.pick(FOLLOW, 3)

    def shown(spot: Spot) -> e.EpisodeFinished:
        found = select.spotlit(state, replace(cursor, spot=spot), 3)
        assert found is not None
        return found[0]

    assert shown(Spot.BEST).return_ == max(returns.values()) == shown(Spot.AUTO).return_
    assert shown(Spot.WORST).return_ == min(returns.values())
    assert shown(Spot.FIRST).position == 0
    assert shown(Spot.NEWEST) == state.submissions[3].episodes[-1]
    seen = {select.spotlit(state, c, 3)[1] for c in _around(state, cursor)}  # type: ignore[index]
    assert len(seen) == 4


def _around(state: RunState, cursor: Cursor) -> list[Cursor]:
    found = []
    for _ in range(4):
        cursor = select.next_spot(state, cursor, 3)
        found.append(cursor)
    return found


def test_episodes_are_walked_by_position_and_pinned(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    cursor = select.next_episode(state, FOLLOW, 3, -1)
    assert not cursor.follow and cursor.submission == 3 and cursor.position == 1
    assert select.next_episode(state, cursor, 3, 99).position == 2
    assert select.next_episode(state, cursor, 3, -99).position == 0


def test_while_following_the_pane_keeps_the_last_episode(golden: Golden) -> None:
    state = state_of(golden("failed"))
    found = select.spotlit_view(state, FOLLOW)
    assert found is not None and found[0] == 3
    assert select.spotlit_view(state, select.pick(FOLLOW, 4)) is None
    assert select.spotlit_view(RunState(), FOLLOW) is None


def test_sides_of_the_diff(golden: Golden) -> None:
    state = state_of(golden("between"))
    before, after = select.sides(state, FOLLOW)
    assert (before.label, before.checkpoint, after.label, after.checkpoint) == ("s003", 3, "workspace", None)
    assert dict(after.files) == dict(state.files)
    start, first = select.sides(state, select.pick(FOLLOW, 0))
    assert start.label == "start" and len(start.files) == 1 and first.checkpoint == 0
    assert select.sides(state, replace(select.pick(FOLLOW, 2), base=Base.START))[0] == start
    assert select.sides(state, replace(select.pick(FOLLOW, 1), base=Base.BEST))[0].checkpoint == 3


def test_a_submission_without_snapshot_is_the_workspace_as_it_is(golden: Golden) -> None:
    state = state_of(golden("between"))
    event = e.SubmissionAccepted(4, (0, 1), state.budget.used)
    state = fold(state, e.Record(state.seq + 1, START + 60, event))
    assert select.sides(state, FOLLOW)[1] == select.Ref("s004", None, tuple(sorted(state.files.items())))


def test_a_draft_is_found_among_many_thoughts_and_forgotten_at_acceptance(golden: Golden) -> None:
    state = state_of(golden("between"))
    for _ in range(50):
        state = fold(state, e.Record(state.seq + 1, START + 60, e.AgentThought("hm")))
        assert select.has_draft(state)
    older = state
    state = fold(state, e.Record(state.seq + 1, START + 61, e.SubmissionAccepted(4, (0,), state.budget.used)))
    state = fold(state, e.Record(state.seq + 1, START + 62, e.AgentThought("hm")))
    assert not select.has_draft(state)
    assert select.has_draft(older)


@pytest.mark.parametrize(
    ("stage", "glyph", "words"),
    [
        ("opening", "●", "thinking"), ("editing", "●", "editing"), ("rolling", "●", "rolling out 3/8"),
        ("validating", "◇", "validating s003 9/16 · 3/7 done"), ("finished", "✓", "completed"),
        ("no_ok", "✗", "ended: no submission ran"), ("error", "✗", "ended: the agent failed: connection refused"),
    ],
)  # fmt: skip
def test_stage_words(golden: Golden, stage: str, glyph: str, words: str) -> None:
    assert select.stage_words(state_of(golden(stage))) == (glyph, words)


def test_gate_words(golden: Golden) -> None:
    state = state_of(golden("paused"))
    assert select.gate_words(state) == "paused before s004"
    assert select.gate_words(replace(state, held="")) == "pauses before s004"
    assert select.gate_words(replace(state, held="", gate="run")) == ""
    spent = replace(state.budget, used=state.budget.total)
    assert select.gate_words(replace(state, held="", budget=spent)) == ""  # nothing follows that could be held
    assert select.gate_words(replace(state, held="", gate="phase", budget=spent)) == "one phase"


def _header(state: RunState, cursor: Cursor = FOLLOW, newest: RunState | None = None, live: bool = True) -> str:
    left, right = header.parts(state, newest or state, cursor, newest is not None, live, True, START + 100)
    return "  ".join(p.text for p in (*left, *right))


def test_the_header_says_how_display_and_gate_stand(golden: Golden) -> None:
    state = state_of(golden("paused"))
    assert "paused before s004" in _header(state) and "▸ following" in _header(state)
    assert "isolation A" in _header(state) and "01:40" in _header(state)
    newer = replace(state, seq=state.seq + 12)
    assert "display frozen  workspace  12 new" in _header(state, newest=newer)
    assert "s001 of 4" in _header(state, select.pick(FOLLOW, 1))
    assert "interrupted" in _header(state, live=False)


def test_the_header_marks_assisted_and_post_hoc(golden: Golden) -> None:
    assert "assisted" in _header(state_of(golden("human")))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_a_header_of_120_columns_keeps_isolation_and_both_states(golden: Golden, stage: str, frozen: bool) -> None:
    state = state_of(golden(stage))
    state = replace(state, opened=replace(state.header, env_version="MiniGrid-ObstructedMaze-1Q-v0"), interventions=1)
    if state.ended is not None and state.ended.error:
        state = replace(state, ended=replace(state.ended, error="a worker could not be started " * 5))
    live = state.ended is None
    parts = header.parts(state, replace(state, seq=state.seq + 1200), FOLLOW, frozen, live, False, START + 100_000)
    line = fit(*parts, 118).plain
    waits = state.held or state.asked is not None
    stage_word = select.gate_words(state) if waits else select.stage_words(state)[1][:20]
    for words in ("isolation A", "MiniGrid-ObstructedMaze-1Q-v0", stage_word.split(" · ")[0]):
        assert words in line
    assert ("display frozen" if frozen else "▸" if state.submissions or live else "") in line


def test_post_hoc_mark_is_the_observers(golden: Golden) -> None:
    state = state_of(golden("finished"))
    assert "post-hoc" in _header(state, live=False)
    assert "post-hoc" not in _header(state, replace(FOLLOW, eye=Eye.AGENT), live=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (500.0, "500"),
        (22.1, "22.10"),
        (-0.03125, "-0.0312"),
        (413.625, "413.6"),
        (1234567.0, "1.23e+06"),
        (float("nan"), "nan"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert figures.number(value) == text


def test_elapsed() -> None:
    assert [figures.elapsed(s) for s in (0, 42.9, 3725, 190000, -5)] == [
        "00:00",
        "00:42",
        "1:02:05",
        "2d 04:46",
        "00:00",
    ]
