"""The fold: incremental equals whole, impossible facts are refused, the agent's view holds nothing hidden."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.fold import fold, fold_all
from evotui.record.grown import Grown
from evotui.record.log import Reader, encode, read
from evotui.record.state import FoldError, RunState, agent_view
from tests.golden_run import write


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[e.Record]:
    return read(write(tmp_path_factory.mktemp("golden")).events)


def until(records: list[e.Record], kind: type[e.Event], nth: int = 0) -> list[e.Record]:
    """The records up to and including the nth fact of a kind."""
    places = [i for i, r in enumerate(records) if isinstance(r.event, kind)]
    return records[: places[nth] + 1]


def refuse(records: list[e.Record], event: e.Event, words: str) -> None:
    state = fold_all(records)
    with pytest.raises(FoldError, match=words):
        fold(state, e.Record(state.seq + 1, 1.0, event))
    assert state == fold_all(records)  # the refused fact left nothing behind


def test_what_the_golden_run_says(records: list[e.Record]) -> None:
    state = fold_all(records)
    assert [str(s.verdict) for s in state.submissions] == ["ok", "denied_import", "ok", "rollout_timeout", "ok"]
    assert (state.budget.total, state.budget.used, state.budget.remaining) == (8, 8, 0)
    assert [s.consumed_after for s in state.submissions] == [2, 3, 5, 6, 8]
    assert [ep.position for ep in state.submissions[0].episodes] == [1, 0]
    assert [ep.position for ep in state.submissions[0].in_order] == [0, 1]
    assert state.best_in_loop is not None and state.best_in_loop.index == 4
    assert state.selected == 4 and state.stage == "ended" and state.assisted and state.pools_revealed
    assert state.heldout is not None and state.heldout.score is not None and len(state.heldout.episodes) == 4
    assert set(state.files) == {"policy.py", "control.py"} and len(state.rejected) == 1


def test_stages_in_order(records: list[e.Record]) -> None:
    stages = [RunState().stage]
    state = RunState()
    for record in records:
        state = fold(state, record)
        if state.stage != stages[-1]:
            stages.append(state.stage)
    assert stages == ["opening", "evolving", "validating", "held-out", "ended"]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.data())
def test_folding_in_pieces_is_folding_whole(records: list[e.Record], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(records)))
    early = fold_all(records[:cut])
    whole = fold_all(records[cut:], early)
    assert whole == fold_all(records)
    assert early == fold_all(records[:cut])  # going on did not change the earlier state


def test_two_futures_of_one_state_do_not_meet(records: list[e.Record]) -> None:
    state = fold_all(until(records, e.SubmissionAccepted))
    seq = state.seq + 1
    one = fold(state, e.Record(seq, 1.0, e.AgentMessage("one")))
    two = fold(state, e.Record(seq, 1.0, e.AgentMessage("two")))
    assert [r.event for r in one.transcript][-1] == e.AgentMessage("one")
    assert [r.event for r in two.transcript][-1] == e.AgentMessage("two")


def test_impossible_facts_are_refused(records: list[e.Record]) -> None:
    opened = records[0].event
    assert isinstance(opened, e.RunOpened)
    with pytest.raises(FoldError, match="begins with AgentMessage"):
        fold(RunState(), e.Record(0, 1.0, e.AgentMessage("x")))
    with pytest.raises(FoldError, match="event 5 follows event -1"):
        fold(RunState(), e.Record(5, 1.0, opened))
    with pytest.raises(FoldError, match="at least 1"):
        fold(RunState(), e.Record(0, 1.0, dataclasses.replace(opened, budget=0)))
    start = until(records, e.AgentStarted)
    refuse(start, opened, "opened twice")
    refuse(start, e.SubmissionAccepted(1, (0,), 0), "1 is accepted where 0 was due")
    refuse(start, e.SubmissionAccepted(0, (0,), 3), "begins at episode 3")
    refuse(start, e.SubmissionAccepted(0, (), 0), "0 cases, where 1 to 8")
    refuse(start, e.SubmissionAccepted(0, tuple(range(9)), 0), "9 cases, where 1 to 8")
    refuse(start, e.SubmissionAccepted(0, (1024,), 0), "does not exist")
    refuse(start, e.PhaseEntered(0, Phase.SNAPSHOT), "no submission 0")
    refuse(start, e.FinalizationStarted(()), "while the agent lives")
    refuse(start, e.HiddenEpisodeFinished("validation", 0, 0, 1.0, 1), "before finalization")
    refuse(start, e.PoolsRevealed("secret"), "before finalization")
    refuse(start, e.CheckpointValidated(0, 1.0, 0.0, 3), "not among those")
    refuse(start, e.CheckpointSelected(0, 1.0), "no submission|before it was validated")


def test_impossible_facts_of_a_submission(records: list[e.Record]) -> None:
    rolling = until(records, e.EpisodeFinished)  # position 1 of submission 0
    refuse(rolling, e.SubmissionAccepted(1, (0,), 2), "while 0 is on its way")
    refuse(rolling, e.EpisodeStarted(0, 1, 1, 1), "starts after it finished")
    refuse(rolling, e.EpisodeStarted(0, -1, 1, 1), "no case 1 at position -1")
    refuse(rolling, e.EpisodeStarted(0, 2, 2, 1), "no case 1 at position 2")
    done = rolling[-1].event
    assert isinstance(done, e.EpisodeFinished)
    refuse(rolling, done, "finishes twice")
    refuse(rolling, dataclasses.replace(done, position=0, episode=0), "no case 1 at position 0")
    refuse(rolling, dataclasses.replace(done, position=0, case=0, episode=5), "episode 5 at position 0")
    refuse(rolling, e.SubmissionFinished(0, Verdict.OK, Phase.COMMIT), "ok with 1 of 2 episodes")
    ended = until(records, e.SubmissionFinished)
    refuse(ended, e.SubmissionFinished(0, Verdict.OK, Phase.COMMIT), "finishes twice")
    refuse(ended, dataclasses.replace(done, position=0, case=0, episode=0), "after it finished")
    refuse(ended, e.PhaseEntered(0, Phase.COMMIT), "after it finished")
    refuse(ended, e.SnapshotTaken(0, "sha256:0", {}), "after it finished")


def test_impossible_facts_after_the_agent(records: list[e.Record]) -> None:
    closing = until(records, e.FinalizationStarted)
    refuse(closing, e.FinalizationStarted(()), "begins twice")
    refuse(closing, e.AgentStarted("search", "search"), "after finalization")
    refuse(closing, e.SubmissionAccepted(5, (0,), 8), "after finalization")
    refuse(closing, e.HiddenEpisodeFinished("train", 0, 0, 1.0, 1), "of the train cases")
    refuse(closing, e.HiddenEpisodeFinished("validation", 1, 0, 1.0, 1), "not among those to validate")
    refuse(closing, e.HiddenEpisodeFinished("heldout", 0, 0, 1.0, 1), "not the selected one")
    refuse(closing, e.CheckpointSelected(0, 1.0), "before it was validated")
    refuse(closing, e.HeldoutScored(0, 1.0, 0.0, 4, 1.0, "raw"), "without held-out episodes")
    hidden = until(records, e.HiddenEpisodeFinished)
    refuse(hidden, hidden[-1].event, "finishes twice")
    before = until(records, e.AgentEnded)
    refuse(before, e.FinalizationStarted((0, 1)), "1 is validated but not ok")
    refuse(records, e.RunEnded("completed"), "ends twice")


def test_the_agents_view_holds_nothing_hidden(records: list[e.Record]) -> None:
    evolving, whole = agent_view(fold_all(until(records, e.AgentEnded))), agent_view(fold_all(records))
    assert whole == dataclasses.replace(evolving, finalized=True)
    names = {f.name for f in dataclasses.fields(whole)}
    assert not [n for n in names if "val" in n or "held" in n or "seed" in n or "pool" in n or "anchor" in n]


# ── Grown ────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers())))
def test_grown_is_an_immutable_list(steps: list[tuple[int, int]]) -> None:
    """Adding to any earlier view never shows in another one."""
    views: list[tuple[Grown[int], list[int]]] = [(Grown(), [])]
    for which, item in steps:
        grown, model = views[which % len(views)]
        views.append((grown.add(item), [*model, item]))
    for grown, model in views:
        assert list(grown) == model and len(grown) == len(model)
        assert grown[:] == model and grown[-2:] == model[-2:] and grown[::2] == model[::2]
        assert [grown[i] for i in range(-len(model), len(model))] == model * 2
        assert grown == Grown(list(model)) and (not model or grown != Grown(model[:-1]))
        with pytest.raises(IndexError):
            grown[len(model)]
        with pytest.raises(IndexError):
            grown[-len(model) - 1]
    assert Grown([1]) != [1]


def test_a_record_of_unknown_kind_is_shown_and_changes_nothing(records: list[e.Record], tmp_path: Path) -> None:
    state = fold_all(records[:5])
    record = e.Record(5, 9.0, e.Unknown("Later", {"x": 1}))
    after = fold(state, record)
    assert list(after.transcript)[-1] == record
    assert dataclasses.replace(after, seq=4, last_at=state.last_at, transcript=state.transcript) == state


# ── many facts at once ───────────────────────────────────────────────────────────────────────────────────────────

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SAID = st.one_of(
    st.builds(e.AgentDelta, st.sampled_from(["text", "thought", "tool"]), WORDS),
    st.builds(e.AgentMessage, WORDS),
    st.builds(e.AgentThought, WORDS),
    st.builds(e.ToolCalled, st.just("c"), st.just("Bash")),
    st.just(e.AgentRetried("429", 1.0, 1)),
    st.just(e.AgentEnded("done")),
    st.builds(e.Intervened, st.just("message"), WORDS),
    st.builds(e.Unknown, st.just("Newer")),
)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(facts=st.lists(SAID, max_size=30), cut=st.integers(0, 30))
def test_folding_many_at_once_equals_folding_each(records: list[e.Record], facts: list[e.Event], cut: int) -> None:
    start = fold_all(until(records, e.AgentStarted))
    told = [e.Record(start.seq + 1 + i, start.last_at + i, fact) for i, fact in enumerate(facts)]
    each = start
    for record in told:
        each = fold(each, record)
    assert fold_all(told, start) == each
    assert fold_all(told[cut:], fold_all(told[:cut], start)) == each
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(map(encode, [*until(records, e.AgentStarted), *told[:cut]])))
        reader = Reader(path)
        skimmed = fold_all(reader.poll(skim=True), skimmed=True)
        with path.open("ab") as file:
            file.write(b"".join(map(encode, told[cut:])))
        skimmed = fold_all(reader.poll(skim=True), skimmed, skimmed=True)
        reader.close()
    assert dataclasses.replace(skimmed, streaming={}) == dataclasses.replace(each, streaming={})
    said = {channel: "".join(pieces) for channel, pieces in skimmed.streaming.items()}
    assert said == {channel: "".join(pieces) for channel, pieces in each.streaming.items()}
    with pytest.raises(FoldError, match="follows event"):
        fold_all([*told, e.Record(each.seq + 2, 1.0, e.AgentDelta("text", "x"))], start)
