"""States as the values that widgets draw; nothing hidden in the agent's eye."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.protocol.results import stats
from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.ui import figures, select, transcript, words
from evotui.ui.feed import Shot
from evotui.ui.panes.policy import file_parts, fitted
from evotui.ui.select import Eye
from evotui.ui.values import Naming
from evotui.ui.widgets.diff import ConstantRow, DiffInput, FilePair
from evotui.ui.widgets.plot import Mark
from evotui.ui.widgets.tail import Kind
from tests.golden import START, state_of

Golden = Callable[[str], RunDir]


def test_marks_and_best_line(golden: Golden) -> None:
    state = state_of(golden("finished"))
    kinds = {5: "rollback", 6: "retest"}
    assert figures.marks(state, kinds) == [
        Mark.BEST, Mark.BEST, Mark.BEST, Mark.BEST, Mark.FAILED, Mark.ROLLBACK, Mark.RETEST, Mark.BEST,
    ]  # fmt: skip
    series = figures.score_series(state, Eye.OBSERVER, figures.EpisodeRows().of(state), kinds)
    means = [y for _, y in series.best]
    assert means == sorted(means) and means[-1] == state.submissions[7].mean
    assert series.budget == 64 and len(series.submissions) == 8


def test_a_running_submission_is_marked_and_has_its_mean_so_far(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    assert figures.marks(state)[3] is Mark.RUNNING
    point = figures.score_series(state, Eye.OBSERVER, figures.EpisodeRows().of(state)).submissions[3]
    known = stats([ep.return_ for ep in state.submissions[3].episodes])
    assert known is not None and point.mean == known.mean and point.low is None


def test_episode_rows_grow_with_the_run(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    rows = figures.EpisodeRows()
    assert rows.of(state).shape == (17, 3)
    shorter = replace(state, submissions=state.submissions[:2])
    assert rows.of(shorter).shape == (8, 3)
    assert rows.of(RunState()).shape == (0, 3)
    assert list(rows.of(state)[:4, 0]) == [1, 2, 3, 4]


def test_intervals_are_standard_errors(golden: Golden) -> None:
    state = state_of(golden("finished"))
    sub = state.submissions[3]
    assert sub.std is not None and sub.mean is not None
    point = figures.score_series(state, Eye.OBSERVER, figures.EpisodeRows().of(state)).submissions[3]
    assert point.high == pytest.approx(sub.mean + sub.std / 7**0.5)
    assert figures.standard_error(3.0, 1) == 0.0


@pytest.mark.parametrize("stage", ["validating", "finished"])
def test_the_agents_eye_sees_no_hidden_figure(golden: Golden, stage: str) -> None:
    state = state_of(golden(stage))
    rows = figures.EpisodeRows().of(state)
    observer, agent = (figures.score_series(state, eye, rows) for eye in (Eye.OBSERVER, Eye.AGENT))
    assert observer.post_hoc and observer.post_hoc_best and observer.references
    assert not agent.post_hoc and not agent.post_hoc_best and not agent.references
    assert figures.verdict(state, Eye.AGENT) == []
    hidden = {f"{s.val_score:.1f}" for s in state.submissions if s.val_score is not None}
    said = " ".join(entry.text for entry in transcript.Entries(hide=True).of(state))
    assert not any(figure in said for figure in hidden) and "held-out" not in said


def test_the_verdict_is_said_post_hoc(golden: Golden) -> None:
    text = "  ".join(words for words, _ in figures.verdict(state_of(golden("finished")), Eye.OBSERVER))
    assert text == "◆ post-hoc  s007  held-out 485.0 ± 2.4 n 32  final 96.9"
    assert figures.verdict(RunState(), Eye.OBSERVER) == []


def test_budget_figures_conserve_the_budget(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    made = figures.budget_figures(state, 3)
    assert (made.total, made.used, made.reserved, made.remaining) == (64, 14, 8, 42)
    assert made.charges[3].running and made.charges[3].done == 3
    assert "4 submissions" in made.facts and "8 since best" in made.facts


def test_failed_charges_are_marked_and_rejections_counted(golden: Golden) -> None:
    state = state_of(golden("failed"))
    assert figures.budget_figures(state, None).charges[4].failed


def test_case_columns_leave_out_faulty_returns(golden: Golden) -> None:
    column = figures.case_columns(state_of(golden("human")))[4]
    assert dict(column.returns)[2] is None and len(column.returns) == 8


def test_entries_grow_and_name_the_submission_they_lead_to(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    entries = transcript.Entries()
    found = entries.of(state)
    edits = [entry for entry in found if entry.kind is Kind.EDIT]
    assert [entry.submission for entry in edits[1:]] == [0, 1, 2, 3] and edits[0].text == "15 lines to start from"
    before = len(found)
    more = replace(state, transcript=state.transcript.add(e.Record(state.seq + 1, START + 50, e.AgentMessage("done"))))
    assert len(entries.of(more)) == before + 1 and entries.of(more)[-1].time == pytest.approx(50.0)
    assert len(entries.of(state)) == before  # an older state starts anew


def _told(state: RunState, *facts: e.Event) -> RunState:
    for fact in facts:
        state = fold(state, e.Record(state.seq + 1, state.last_at + 1.0, fact))
    return state


CALL = e.ToolCalled("c9", "submit", {"cases": "0-1"})


def test_a_submission_is_one_entry_that_stands_last_until_it_is_finished(golden: Golden) -> None:
    state = state_of(golden("between"))
    entries = transcript.Entries()
    before = len(entries.of(state))
    called = _told(state, CALL)
    assert len(entries.of(called)) == before
    (pending,) = entries.pending(called, True)
    assert (pending.kind, pending.title, pending.text) == (Kind.TOOL_CALL, "submit", "0-1")

    index, first = len(state.submissions), state.budget.used
    accepted = _told(called, e.SubmissionAccepted(index, (0, 1), first, "agent"))
    assert len(entries.of(accepted)) == before
    (pending,) = entries.pending(accepted, True)
    assert pending.kind is Kind.UNDER_WAY and pending.title == "s004"
    assert pending.text == "taking the snapshot · cases 0-1"
    (broken,) = entries.pending(accepted, False)
    assert "unfinished, 0/2 episodes" in broken.text

    failed = e.SubmissionFinished(index, Verdict.IMPORT_ERROR, Phase.COMPILE, "SyntaxError: line 3")
    done = _told(accepted, failed, e.ToolReturned("c9", False, "verdict import_error, 2 episodes charged"))
    assert len(entries.of(done)) == before + 1 and entries.pending(done, True) == ()
    assert entries.of(done)[-1].text == "import error · cases 0-1: SyntaxError: line 3" and not entries.of(done)[-1].ok


def test_a_finished_submission_shows_its_returns(golden: Golden) -> None:
    state = state_of(golden("finished"))
    found = [entry for entry in transcript.Entries().of(state) if entry.kind is Kind.SUBMISSION]
    assert [entry.submission for entry in found] == list(range(len(state.submissions)))
    assert found[0].text == "mean 42.0 ± 4.7 · cases 0-3" and "mean 492.8 ± " in found[-1].text
    assert not found[4].ok


def test_what_an_answer_says_beyond_the_figures_is_kept(golden: Golden) -> None:
    state = state_of(golden("between"))
    index, first = len(state.submissions), state.budget.used
    accepted = e.SubmissionAccepted(index, (0, 1), first, "agent")
    failed = e.SubmissionFinished(index, Verdict.IMPORT_ERROR, Phase.COMPILE, "")

    def added(*facts: e.Event) -> list[tuple[Kind, str]]:
        entries, before = transcript.Entries(), len(transcript.Entries().of(state))
        return [(entry.kind, entry.text) for entry in list(entries.of(_told(state, *facts)))[before:]]

    long = "feedback: " + "x" * 200
    assert added(CALL, accepted, failed, e.ToolReturned("c9", True, long))[-1] == (Kind.TOOL_RESULT, long)
    refused = e.SubmissionRejected(Verdict.BUDGET_INVALID, "too many", "0-999")
    kinds = [kind for kind, _ in added(CALL, refused, e.ToolReturned("c9", False, "refused: too many"))]
    assert kinds == [Kind.ERROR]
    # Nothing came of the call: it and its answer stand for themselves.
    kinds = [kind for kind, _ in added(CALL, e.ToolReturned("c9", False, "the door is closed"))]
    assert kinds == [Kind.TOOL_CALL, Kind.TOOL_RESULT]
    assert [kind for kind, _ in added(CALL, e.AgentEnded("stopped", ""))] == [Kind.TOOL_CALL, Kind.NOTE]
    # A person's submission is not the agent's: its call waits for its own.
    by_hand = e.SubmissionAccepted(index, (0, 1), first, "human")
    assert [kind for kind, _ in added(CALL, by_hand, failed)] == [Kind.SUBMISSION]


def test_a_long_transcript_costs_what_is_new(golden: Golden) -> None:
    state = state_of(golden("between"))
    grown = state.transcript
    for i in range(50_000):
        grown = grown.add(e.Record(i, START + i, e.AgentThought("hm")))
    state = replace(state, transcript=grown)
    entries = transcript.Entries()
    entries.of(state)
    taken: list[e.Record] = []
    entries._take = lambda record, state: taken.append(record)  # type: ignore[method-assign]
    entries.of(replace(state, transcript=grown.add(e.Record(50_001, START, e.AgentThought("now")))))
    assert len(taken) == 1


def test_every_kind_of_fact_in_the_transcript_has_words(golden: Golden) -> None:
    facts = [
        e.SubmissionRejected(e.Verdict.BUDGET_INVALID, "too many", "0-999"), e.Intervened("steer", "more"),
        e.IncidentNoted("worker died"), e.AgentEnded("failed", "no"), e.RunResumed("0.2"), e.Unknown("NewThing", {}),
        e.ToolCalled("1", "bash", {"command": "ls", "n": 2}), e.ToolReturned("1", False, "no such file"),
        e.FileEdited("a.py", "", 0, 0, 3), e.RunEnded("error", "broken"),
    ]  # fmt: skip
    for fact in facts:
        made = transcript.entry(e.Record(0, START, fact), START, 0)
        assert made is not None and made.text
    assert transcript.entry(e.Record(0, START, e.UsageReported(1)), START, 0) is None
    text = transcript.plain([made])
    assert "broken" in text


def test_files_of_one_side_only_are_named_in_the_title() -> None:
    both, new, gone = FilePair("policy.py", "a", "b"), FilePair("net.py", None, "b"), FilePair("old.py", "a", None)

    def said(*files: FilePair) -> list[str]:
        return [part.text for part in file_parts(DiffInput(files, (), "s001", "s002"))]

    assert said(both) == [] and said(both, new) == ["new net.py"] and said(gone, both) == ["gone old.py"]
    assert said(new, replace(new, path="data/x.py"), gone) == ["new 2 files", "gone old.py"]


def test_whole_values_are_shown_whole(golden: Golden) -> None:
    space = {
        "type": "Dict",
        "spaces": {
            "at": {"type": "Box", "shape": [2], "dtype": "float32", "low": 0.0, "high": 1.0},
            "direction": {"type": "Discrete", "n": 4, "start": 0, "dtype": "int64"},
            "mission": {"type": "Text", "max_length": 99},
            "two": {"type": "MultiDiscrete", "nvec": [2, 2], "dtype": "int64"},
        },
    }
    opened = replace(state_of(golden("rolling")).header, obs_space=space, observation_fields=())
    obs = {"at": [0.5, 1], "direction": 3, "mission": "use the key", "two": [1, 0]}
    step = Naming(opened).step(Shot(0, 9, None, "", "", obs, 1, 0.0, 0.0, False))
    assert [repr(reading.value) for reading in step.observation] == ["0.5", "1.0", "3", "'use the key'", "1", "0"]


def test_values_are_named_and_bounded(golden: Golden) -> None:
    naming = Naming(state_of(golden("rolling")).header)
    shot = Shot(7, 30, None, "", "", [0.5, -1.0, 0.1, 2.0], 1, 1.0, 8.0, False)
    step = naming.step(shot)
    assert [r.name for r in step.observation][:2] == ["cart position", "cart velocity"]
    assert step.observation[0].low == -4.8 and step.observation[1].low is None
    assert step.action_name == "1 push right" and step.t == 7 and step.return_ == 8.0
    last = naming.step(replace(shot, action=None, done=True, last_step=500, step=500))
    assert last.ended == "truncated" and last.action_name == "–"
    assert naming.step(replace(shot, done=True)).ended == "terminated"
    assert naming.step(replace(shot, action="left", obs=None)).action_name == "left"


def test_values_of_a_box_action(golden: Golden) -> None:
    opened = replace(
        state_of(golden("rolling")).header,
        action_space={"type": "Box", "shape": [2], "dtype": "float32", "low": -1.0, "high": 1.0},
        action_names=("torque",),
    )
    step = Naming(opened).step(Shot(0, 1, None, "", "", [0, 0, 0, 0], [0.5, "NaN"], 0.0, 0.0, False))
    assert [(r.name, r.low, r.high) for r in step.action] == [("action[0]", -1.0, 1.0), ("action[1]", -1.0, 1.0)]


def test_of_a_grid_only_the_plain_values_are_named(golden: Golden) -> None:
    grid = {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8", "low": 0, "high": 255}
    direction = {"type": "Discrete", "n": 4, "start": 0, "dtype": "int64"}
    space = {"type": "Dict", "spaces": {"direction": direction, "image": grid, "mission": {"type": "Text"}}}
    opened = replace(state_of(golden("rolling")).header, obs_space=space, observation_fields=())
    obs = {"direction": 2, "image": [[[0, 1, 2]] * 7] * 7, "mission": "open the door"}
    step = Naming(opened).step(Shot(0, 1, None, "", "", obs, 1, 0.0, 0.0, False))
    assert [(r.name, r.value) for r in step.observation] == [("direction", 2), ("mission", "open the door")]


def test_constants_make_room_for_the_code() -> None:
    rows = tuple(ConstantRow(f"K{i}", 1.0 if i < 3 else None, 2.0) for i in range(6))
    diff = DiffInput((), rows)
    assert fitted(diff, 40) is diff
    assert len(fitted(diff, 10).constants) == 3
    assert len(fitted(replace(diff, constants=(*rows, *rows[3:])), 40).constants) == 3


# ── a language model's transcript ────────────────────────────────────────────────────────────────────────────────


def _after(golden: Golden, *facts: e.Event) -> tuple[list[Any], RunState, transcript.Entries]:
    state = state_of(golden("between"))
    known = transcript.Entries()
    before = len(known.of(state))
    state = _told(state, *facts)
    return list(known.of(state))[before:], state, known


def test_each_fact_of_an_agent_of_its_own_has_its_entry(golden: Golden) -> None:
    made, _, _ = _after(
        golden,
        e.AgentSession("3f2a", "claude-x", "2.1"),
        e.AgentThought("  "),
        e.ToolCalled("t1", "Bash", {"command": "rm -rf feedback"}),
        e.ToolReturned("t1", False, "not allowed", denied=True),
        e.AgentRetried("429 Too Many Requests", 12.0, 2),
        e.AgentRaw("stream/what", '{"a": 1}' + "x" * 300),
        e.WriteReverted("AGENTS.md", "put back"),
        e.Intervened("message", "try damping"),
        e.MessageDelivered(("try damping",), "at once"),
        e.ApprovalAsked("0-7"),
        e.ApprovalGiven(False, "too many cases"),
        e.Intervened("refusal", "too many cases"),
        e.SubmissionRejected(Verdict.REFUSED, "the operator refused", "0-7"),
        e.UsageReported(10, 0, 0, 5),
    )
    assert [(m.kind, m.title, m.text[:44]) for m in made] == [
        (Kind.ASIDE, "", "claude-x · 2.1 · session 3f2a"),
        (Kind.TOOL_CALL, "Bash", "rm -rf feedback"),
        (Kind.TOOL_RESULT, "denied", "not allowed"),
        (Kind.ASIDE, "retry 2, in 12 s", "429 Too Many Requests"),
        (Kind.ASIDE, "raw: stream/what", made[4].text[:44]),
        (Kind.ERROR, "write undone", "AGENTS.md: put back"),
        (Kind.PERSON, "you", "try damping"),
        (Kind.NOTE, "", "your message reached the agent at once"),
        (Kind.PERSON, "asks", "may it submit cases 0-7? It waits for you"),
        (Kind.PERSON, "you", "refused: too many cases"),
    ]
    assert not made[2].ok and made[4].detail.endswith("x" * 300) and len(made[4].text) <= 200


def test_what_is_being_said_stands_last_and_becomes_the_whole(golden: Golden) -> None:
    pieces = [e.AgentDelta("thought", f"word{i} ") for i in range(5)]
    made, state, known = _after(golden, *pieces, e.AgentDelta("tool", '{"cases"'))
    assert made == []
    thought, tool = known.pending(state, True)
    assert (thought.kind, thought.text, thought.growing) == (Kind.THOUGHT, "word0 word1 word2 word3 word4 ", True)
    assert (tool.kind, tool.title) == (Kind.TOOL_CALL, "calls a tool")
    written = _told(state, e.AgentDelta("tool", ': "0-3", "text": "a\\nb \\"c'))
    assert known.pending(written, True)[1].text == '{"cases": "0-3", "text": "a\nb "c'
    assert known.pending(state, False) == ()
    state = _told(state, e.AgentThought("word0 … word4"))
    assert known.of(state)[-1].text == "word0 … word4"
    assert [p.kind for p in known.pending(state, True)] == [Kind.TOOL_CALL]
    state = _told(state, e.AgentRetried("cut off", 4.0, 1))
    known.of(state)
    (waits,) = known.pending(state, True, state.last_at + 1.5)
    assert "again in 2 s" in waits.text  # whatever was streamed is void
    assert known.pending(state, True, state.last_at + 5.0) == ()


@settings(derandomize=True, deadline=None, max_examples=80)
@given(cuts=st.lists(st.integers(1, 900), min_size=1, max_size=60), looks=st.integers(1, 7))
def test_speech_holds_the_end_of_what_was_said(cuts: list[int], looks: int) -> None:
    text = "".join(f"{i} lorem ipsum{chr(10) if i % 9 == 0 else ' '}" for i in range(4000))
    pieces: list[str] = []
    at = 0
    for size in cuts:
        pieces.append(text[at : at + size])
        at += size
    speech = transcript.Speech()
    for upto in range(looks, len(pieces) + 1, looks):
        shown, said = speech.of(pieces[:upto]), "".join(pieces[:upto])
        assert said.endswith(shown) and (len(shown) > 1900 or len(said) < 4000)
    assert "".join(pieces).endswith(speech.of(pieces)) and speech.of(pieces)
    assert speech.of(["anew"]) == "anew" and speech.of([]) == ""


def test_a_long_transcript_is_copied_from_its_end(golden: Golden) -> None:
    state = state_of(golden("between"))
    for i in range(300):
        state = _told(state, e.AgentMessage(f"message {i} " + "x" * 3000))
    text = transcript.plain(transcript.Entries().of(state))
    assert len(text) < 420_000 and text.startswith("… ") and "message 299" in text and "message 0 " not in text


@pytest.mark.parametrize(
    ("mean", "std", "n", "text"),
    [
        (0.977, 0.0149, 32, "0.9770 ± 0.0027"), (485.0, 13.4, 32, "485.0 ± 2.4"), (4647.2, 480.0, 32, "4647 ± 86"),
        (-121.7, 45.0, 4, "-122 ± 26"), (500.0, 0.0, 32, "500 ± 0"), (990.9, 0.0, 1, "990.9"),
        (math.nan, 1.0, 4, "nan"), (1.0, math.inf, 4, "1"), (2e6, 1e5, 5, "2e+06 ± 50000"),
    ],
)  # fmt: skip
def test_a_mean_is_said_to_the_place_of_its_error(mean: float, std: float, n: int, text: str) -> None:
    assert words.mean_of(mean, std, n) == text


def test_nothing_counts_since_a_best_that_is_not_there(golden: Golden) -> None:
    state = state_of(golden("rolling"))
    first = replace(state, submissions=(replace(state.submissions[3], index=0),))
    assert "since best" not in " ".join(figures.budget_figures(first, 0).facts)


def test_after_the_last_action_there_is_no_reward(golden: Golden) -> None:
    naming = Naming(state_of(golden("rolling")).header)
    shot = Shot(9, 9, None, "", "", [0.0] * 4, None, 0.0, 9.0, True)
    assert naming.step(shot).reward is None and naming.step(shot).return_ == 9.0


def test_cases_are_written_one_way() -> None:
    assert select.plain_cases("[4, 7, 8]") == "4,7-8" == select.plain_cases("4,7-8")
    assert select.plain_cases("4 and 5") == "4 and 5"
