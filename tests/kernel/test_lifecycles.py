"""The lifecycles as generators of facts, on a ground made of values: no clock, no file, no process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from evotui.kernel.finalization import HiddenFailure, finalization, score_of, select
from evotui.kernel.submission import Outcome, result_of, submission, validate
from evotui.protocol.pools import Split
from evotui.protocol.results import EpisodeResult
from evotui.protocol.verdict import Fault, FaultKind, LoadFault, Phase, Verdict
from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.state import RunState
from evotui.record.tree import SnapshotError
from evotui.rollout.limits import EpisodeStarted, EpisodeStep
from tests.kernel import scripts


@dataclass
class Ground:
    files: dict[str, bytes] = field(default_factory=lambda: {"policy.py": scripts.GOOD.encode()})
    snapshot_error: str = ""
    compile_fault: LoadFault | None = None
    init_fault: LoadFault | None = None
    faults: Mapping[int, Fault] = field(default_factory=dict)
    order: Sequence[int] = (1, 0)
    committed: list[Outcome] = field(default_factory=list)
    closed: int = 0
    steps: list[EpisodeStep | None] = field(default_factory=list)
    kept: tuple[int, ...] = ()

    async def snapshot(self) -> tuple[str, Mapping[str, Any]]:
        if self.snapshot_error:
            raise SnapshotError(self.snapshot_error)
        return "sha256:1", {"files": 1}

    async def sources(self) -> Mapping[str, bytes]:
        return self.files

    @asynccontextmanager
    async def rollout(self, kept: Collection[int]) -> AsyncIterator[Ground]:
        self.kept = tuple(kept)
        try:
            yield self
        finally:
            self.closed += 1

    async def compile(self) -> LoadFault | None:
        return self.compile_fault

    async def initialize(self) -> LoadFault | None:
        return self.init_fault

    async def episodes(self) -> AsyncIterator[EpisodeStarted | EpisodeStep | EpisodeResult]:
        for position in self.order:
            yield EpisodeStarted(position)
            yield EpisodeStep(position, 1, 1.0)
            yield EpisodeResult(position, float(position), 3, True, False, fault=self.faults.get(position))

    def progress(self, step: EpisodeStep | None) -> None:
        self.steps.append(step)

    async def commit(self, outcome: Outcome) -> None:
        self.committed.append(outcome)


async def play(ground: Ground, cases: Sequence[int] = (7, 9)) -> tuple[list[e.Event], list[Phase]]:
    gated: list[Phase] = []

    async def gate(phase: Phase) -> None:
        gated.append(phase)

    return [fact async for fact in submission(0, cases, 0, ground, ("gymnasium",), gate)], gated


ALL = [p for p in Phase if p is not Phase.REQUEST]


async def test_a_good_submission_goes_through_all_phases_in_order() -> None:
    ground = Ground()
    facts, gated = await play(ground)
    assert gated == ALL
    assert [f.phase for f in facts if isinstance(f, e.PhaseEntered)] == ALL
    assert [f.case for f in facts if isinstance(f, e.EpisodeFinished)] == [9, 7]
    assert facts[-1] == e.SubmissionFinished(0, Verdict.OK, Phase.COMMIT, "", 0.5, 0.5)
    assert [ep.position for ep in ground.committed[0].episodes] == [0, 1]
    assert ground.closed == 1 and ground.steps[-1] is None


@pytest.mark.parametrize(
    ("ground", "verdict", "phase"),
    [
        (Ground(snapshot_error="too large"), Verdict.MISSING_POLICY, Phase.SNAPSHOT),
        (Ground(files={"other.py": b""}), Verdict.MISSING_POLICY, Phase.VALIDATE),
        (Ground(files={"policy.py": scripts.SYNTAX.encode()}), Verdict.IMPORT_ERROR, Phase.VALIDATE),
        (Ground(files={"policy.py": b"x = '\0'"}), Verdict.IMPORT_ERROR, Phase.VALIDATE),
        (Ground(files={"policy.py": scripts.DENIED.encode()}), Verdict.DENIED_IMPORT, Phase.VALIDATE),
        (
            Ground(files={"policy.py": b"import helper", "helper.py": b"from gymnasium import make"}),
            Verdict.DENIED_IMPORT,
            Phase.VALIDATE,
        ),
        (
            Ground(compile_fault=LoadFault(Phase.COMPILE, Verdict.IMPORT_ERROR, "no")),
            Verdict.IMPORT_ERROR,
            Phase.COMPILE,
        ),
        (
            Ground(init_fault=LoadFault(Phase.INITIALIZE, Verdict.INIT_ERROR, "no")),
            Verdict.INIT_ERROR,
            Phase.INITIALIZE,
        ),
    ],
)
async def test_a_failure_ends_the_submission_where_the_protocol_says(
    ground: Ground, verdict: Verdict, phase: Phase
) -> None:
    facts, gated = await play(ground)
    last = facts[-1]
    assert isinstance(last, e.SubmissionFinished)
    assert (last.verdict, last.phase, last.mean) == (verdict, phase, None)
    assert gated[-1] == phase and Phase.COMMIT not in gated
    assert last.message and ground.committed[0].episodes == ()


async def test_raised_errors_leave_the_submission_ok() -> None:
    fault = Fault(FaultKind.ACT_ERROR, 2, "ValueError: x")
    facts, _ = await play(Ground(faults={0: fault, 1: fault}))
    assert facts[-1].verdict is Verdict.OK  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "verdict"), [(FaultKind.ACT_TIMEOUT, Verdict.ROLLOUT_TIMEOUT), (FaultKind.OOM, Verdict.OOM)]
)
async def test_limits_hit_by_every_episode_are_the_submissions(kind: FaultKind, verdict: Verdict) -> None:
    ground = Ground(faults={0: Fault(kind, 2, "slow"), 1: Fault(kind, 2, "slow")})
    facts, _ = await play(ground)
    last = facts[-1]
    assert isinstance(last, e.SubmissionFinished)
    assert (last.verdict, last.phase, last.mean, last.message) == (verdict, Phase.EXECUTE, None, "slow")
    assert len(ground.committed[0].episodes) == 2  # finished episodes are kept


async def test_closing_early_leaves_no_rollout_and_no_last_fact() -> None:
    ground = Ground()
    facts = submission(0, (7, 9), 0, ground, (), _free)
    async for fact in facts:
        if isinstance(fact, e.EpisodeFinished):
            break
    await facts.aclose()
    assert ground.closed == 1 and ground.committed == []


async def _free(phase: Phase) -> None:
    return None


async def test_a_submission_taken_up_again_keeps_what_had_finished() -> None:
    ground = Ground()
    first = [fact async for fact in submission(0, (7, 9), 0, Ground(), (), _free)]
    kept = {f.position: result_of(f) for f in first if isinstance(f, e.EpisodeFinished) and f.position == 1}
    again = [f async for f in submission(0, (7, 9), 0, ground, (), _free, kept, snapshot_taken=True)]
    assert ground.kept == (1,) and not any(isinstance(f, e.SnapshotTaken) for f in again)
    assert [f.position for f in again if isinstance(f, e.EpisodeFinished)] == [0]
    assert again[-1] == first[-1] and ground.committed[0].episodes[1] == kept[1]


def test_the_request_is_not_validated_twice() -> None:
    assert validate({"policy.py": scripts.GOOD.encode()}, ("gymnasium",)) is None


# ── finalization ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Hidden:
    """Returns by (checkpoint, split, position); ``asked`` records what was run, ``different`` is alike to nothing."""

    returns: Mapping[tuple[int, str], Sequence[float]]
    broken: tuple[int, ...] = ()
    failures: dict[int, int] = field(default_factory=dict)
    asked: list[tuple[int, str, tuple[int, ...]]] = field(default_factory=list)
    different: tuple[int, ...] = ()
    abreast: int = 1
    under_way: int = 0
    most: int = 0

    async def alike(self, one: int, other: int) -> bool:
        return not {one, other} & set(self.different)

    @asynccontextmanager
    async def hidden(self, checkpoint: int, split: Split, positions: Sequence[int]) -> AsyncIterator[_OneHidden]:
        self.asked.append((checkpoint, str(split), tuple(positions)))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            yield _OneHidden(self, checkpoint, split, positions)
        finally:
            self.under_way -= 1


@dataclass
class _OneHidden:
    ground: Hidden
    checkpoint: int
    split: Split
    positions: Sequence[int]

    async def load(self) -> LoadFault | None:
        left = self.ground.failures.get(self.checkpoint, 0)
        self.ground.failures[self.checkpoint] = left - 1
        if self.checkpoint in self.ground.broken or left > 0:
            return LoadFault(Phase.COMPILE, Verdict.IMPORT_ERROR, "gone")
        return None

    async def results(self) -> AsyncIterator[EpisodeResult]:
        for p in reversed(self.positions):
            await asyncio.sleep(0)  # others may go on meanwhile
            yield EpisodeResult(p, self.ground.returns[self.checkpoint, str(self.split)][p], 1, True, False)


def state_with(*verdicts: Verdict, trees: str = "") -> RunState:
    """A run whose submissions ended so; ``trees`` gives each a tree hash of one letter."""
    head = e.RunOpened(
        1, "r", "gym/x", "x", "X-v1", "search", "search", 0, "default", "secret", {}, 1024, 2, 2, 8, 1, 8, "episode", 9,
        {}, {}, anchors={"random": 0.0, "reference": 10.0},
    )  # fmt: skip
    facts: list[e.Event] = [head]
    for index, verdict in enumerate(verdicts):
        facts += [
            e.SubmissionAccepted(index, (0,), index),
            *([e.SnapshotTaken(index, trees[index])] if trees else []),
            e.EpisodeFinished(index, 0, index, 0, 1.0, 1, True, False),
            e.SubmissionFinished(index, verdict, Phase.COMMIT, "", 1.0, 0.0),
        ]
    state = RunState()
    for seq, fact in enumerate(facts):
        state = fold(state, e.Record(seq, float(seq), fact))
    return state


async def finish(state: RunState, ground: Hidden, stop_after: int = 10**9) -> tuple[RunState, list[e.Event]]:
    facts: list[e.Event] = []
    generator = finalization(state, 2, 2, ground, "spent")
    async for fact in generator:
        state = fold(state, e.Record(state.seq + 1, 0.0, fact))
        facts.append(fact)
        if len(facts) == stop_after:
            await generator.aclose()
            break
    return state, facts


RETURNS = {
    (0, "validation"): (1.0, 3.0),
    (2, "validation"): (3.0, 1.0),
    (0, "heldout"): (4.0, 4.0),
    (2, "heldout"): (5.0, 6.0),
}


async def test_best_is_the_argmax_and_ties_go_to_the_latest() -> None:
    state, _ = await finish(state_with(Verdict.OK, Verdict.INIT_ERROR, Verdict.OK), Hidden(RETURNS))
    assert state.finalizing == (0, 2) and state.selected == 2
    assert state.heldout is not None and state.heldout.score is not None
    assert state.heldout.score.mean == 5.5 and state.heldout.score.final_score == pytest.approx(55.0)


@pytest.mark.parametrize("stop_after", range(1, 12))
async def test_interrupted_finalization_goes_on_where_it_ended(stop_after: int) -> None:
    whole, _ = await finish(state_with(Verdict.OK, Verdict.INIT_ERROR, Verdict.OK), Hidden(RETURNS))
    half, facts = await finish(state_with(Verdict.OK, Verdict.INIT_ERROR, Verdict.OK), Hidden(RETURNS), stop_after)
    again = Hidden(RETURNS)
    end, _ = await finish(half, again)
    assert (end.selected, end.heldout, end.seq) == (whole.selected, whole.heldout, whole.seq)
    done = {(f.submission, f.split, f.position) for f in facts if isinstance(f, e.HiddenEpisodeFinished)}
    assert not any((c, s, p) in done for c, s, positions in again.asked for p in positions)


OK = Verdict.OK
DICE = {
    (0, "validation"): (1.0, 3.0),
    (1, "validation"): (1.5, 1.5),
    (2, "validation"): (9.0, 9.0),
    (3, "validation"): (9.0, 9.0),
    (3, "heldout"): (5.0, 6.0),
    (2, "heldout"): (5.0, 6.0),
}
"""Were they run, 2 and 3 would outdo 0, which has the same files."""


def validation_run(ground: Hidden) -> list[int]:
    return [checkpoint for checkpoint, split, _ in ground.asked if split == "validation"]


async def test_files_submitted_again_are_validated_once_and_stated_for_each() -> None:
    ground = Hidden(DICE)
    state, facts = await finish(state_with(OK, OK, OK, OK, trees="abaa"), ground)
    assert validation_run(ground) == [0, 1]
    assert [[ep.return_ for ep in s.validation] for s in state.submissions] == [[3, 1], [1.5, 1.5], [1, 3], [1, 3]]
    assert [(f.submission, f.mean, f.same_as) for f in facts if isinstance(f, e.CheckpointValidated)] == [
        (0, 2.0, None), (1, 1.5, None), (2, 2.0, 0), (3, 2.0, 0),
    ]  # fmt: skip
    assert state.selected == 3  # ties still go to the latest


async def test_files_that_can_tell_their_submissions_apart_are_validated_each() -> None:
    ground = Hidden(DICE, different=(0,))
    state, _ = await finish(state_with(OK, OK, OK, OK, trees="abaa"), ground)
    assert validation_run(ground) == [0, 1, 2]
    assert state.submission(2).val_score == state.submission(3).val_score == 9.0


@pytest.mark.parametrize("abreast", [1, 3])
@pytest.mark.parametrize("stop_after", range(1, 15))
async def test_interrupted_statements_of_what_was_measured_go_on(stop_after: int, abreast: int) -> None:
    whole, _ = await finish(state_with(OK, OK, OK, OK, trees="abaa"), Hidden(DICE, abreast=abreast))
    broken_off = Hidden(DICE, abreast=abreast)
    half, _ = await finish(state_with(OK, OK, OK, OK, trees="abaa"), broken_off, stop_after)
    assert broken_off.under_way == 0
    again = Hidden(DICE, abreast=abreast)
    end, _ = await finish(half, again)
    assert not {2, 3} & set(validation_run(again))
    assert [s.val_score for s in end.submissions] == [s.val_score for s in whole.submissions]
    assert (end.selected, end.seq) == (whole.selected, whole.seq)


MANY = {(i, "validation"): (float(i), 2.0 * i) for i in range(6)} | {(5, "heldout"): (1.0, 1.0)}


async def test_checkpoints_side_by_side_are_told_as_one_after_the_other() -> None:
    alone, abreast = Hidden(MANY), Hidden(MANY, abreast=3)
    _, expected = await finish(state_with(*[OK] * 6, trees="abcdef"), alone)
    _, facts = await finish(state_with(*[OK] * 6, trees="abcdef"), abreast)
    assert facts == expected
    assert (alone.most, abreast.most) == (1, 3)
    assert validation_run(abreast) == [0, 1, 2, 3, 4, 5]


async def test_a_checkpoint_that_fails_ahead_fails_in_its_turn() -> None:
    ground = Hidden(MANY, abreast=3, broken=(1,))
    told = []
    with pytest.raises(HiddenFailure, match="checkpoint 1 "):
        async for fact in finalization(state_with(*[OK] * 6, trees="abcdef"), 2, 2, ground, "spent"):
            told.append(fact)  # noqa: PERF401 (what was told before it raised)
    assert [f.submission for f in told if isinstance(f, e.CheckpointValidated)] == [0]
    assert ground.under_way == 0


async def test_what_an_older_evotui_had_begun_to_run_for_itself_is_not_mixed() -> None:
    state = state_with(OK, OK, trees="aa")
    for fact in (e.FinalizationStarted((0, 1)), e.HiddenEpisodeFinished("validation", 1, 0, 9.0, 1)):
        state = fold(state, e.Record(state.seq + 1, 0.0, fact))
    ground = Hidden({(0, "validation"): (1.0, 3.0), (1, "validation"): (9.0, 7.0), (1, "heldout"): (0.0, 0.0)})
    end, _ = await finish(state, ground)
    assert (1, "validation", (1,)) in ground.asked and end.submission(1).val_score == 8.0


async def test_without_an_ok_checkpoint_nothing_hidden_is_run() -> None:
    ground = Hidden(RETURNS)
    state, facts = await finish(state_with(Verdict.INIT_ERROR), ground)
    assert [type(f) for f in facts] == [e.FinalizationStarted] and ground.asked == [] and state.selected is None


async def test_a_checkpoint_that_cannot_be_loaded_any_more_is_named() -> None:
    with pytest.raises(HiddenFailure, match="checkpoint 2"):
        await finish(state_with(Verdict.OK, Verdict.INIT_ERROR, Verdict.OK), Hidden(RETURNS, broken=(2,)))


async def test_a_checkpoint_that_fails_to_load_once_is_tried_again() -> None:
    state, _ = await finish(state_with(Verdict.OK, Verdict.INIT_ERROR, Verdict.OK), Hidden(RETURNS, failures={2: 1}))
    assert state.selected == 2 and len(state.submission(2).validation) == 2


def test_selection_and_score() -> None:
    assert select({0: 1.0, 4: 2.0, 3: 2.0}) == 4
    assert score_of(12.5, {}) == (12.5, "raw")
    assert score_of(12.5, {"random": 5.0, "reference": 5.0}) == (12.5, "raw")
    assert score_of(100.0, {"random": 0.0, "reference": 10.0}) == (120.0, "normalized")
    assert score_of(-5.0, {"random": 0.0, "reference": 10.0}) == (0.0, "normalized")
