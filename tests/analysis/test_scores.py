"""Scores and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis import scores
from evotui.analysis.edits import Edit, EditKind
from evotui.protocol.budget import Budget
from evotui.protocol.verdict import Verdict
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.state import RunState, Submission
from tests.golden_run import write

OK, FAILED = Verdict.OK, Verdict.INIT_ERROR


def state_of(means: Sequence[float | None], val: Sequence[float | None] = (), cost: int = 2) -> RunState:
    items = tuple(
        Submission(i, (0,) * cost, i * cost, "agent", 0.0, verdict=OK if mean is not None else FAILED, mean=mean,
                   val_score=val[i] if val else None)
        for i, mean in enumerate(means)
    )  # fmt: skip
    return RunState(budget=Budget(64, len(items) * cost), submissions=items)


def test_best_so_far() -> None:
    assert scores.best_so_far([None, 1, 3, None, 2, 3, 4]) == [None, 1, 3, 3, 3, 3, 4]
    assert scores.best_so_far([]) == []


def test_points_lie_at_consumed_episodes_and_failures_have_none() -> None:
    points = scores.train_points(state_of([5.0, None, 4.0, 5.0, 6.0]))
    assert [(p.submission, p.consumed, p.best, p.is_best) for p in points] == [
        (0, 2, 5.0, True), (2, 6, 5.0, False), (3, 8, 5.0, False), (4, 10, 6.0, True),
    ]  # fmt: skip
    negative = scores.train_points(state_of([-500.0, -400.0]))
    assert [p.is_best for p in negative] == [True, True] and negative[0].best == -500.0


def test_since_improvement() -> None:
    assert scores.since_improvement(state_of([5.0, None, 4.0, 5.0])) == 6  # a tie is no improvement
    assert scores.since_improvement(state_of([5.0, 6.0])) == 0
    assert scores.since_improvement(state_of([None, None])) == 4
    assert scores.since_improvement(state_of([])) == 0


def edit(index: int, kind: EditKind, provisional: bool = False) -> Edit:
    return Edit(index, index - 1, kind, provisional=provisional)


def test_hit_rates_use_validation_where_it_is_whole_and_say_where_it_is_not() -> None:
    state = state_of([1.0, 2.0, 3.0, 2.5], [1.0, 5.0, 2.0, 6.0])
    found = [
        edit(0, EditKind.FIRST),
        edit(1, EditKind.SYNTHESIS),
        edit(2, EditKind.PARAMETRIC),
        edit(3, EditKind.PARAMETRIC),
    ]
    synthesis, parametric = scores.hit_rates(state, found)
    assert (synthesis.hits, synthesis.n, synthesis.proxy) == (1, 1, False)
    assert (parametric.hits, parametric.n, parametric.rate) == (1, 2, 0.5)
    proxy = scores.hit_rates(state_of([1.0, 2.0, 3.0, 2.5], [1.0, 5.0, 2.0, None]), found)
    assert [(r.hits, r.n, r.proxy) for r in proxy] == [(1, 1, True), (1, 2, True)]


def test_rollbacks_retests_failures_and_the_provisional_are_not_counted() -> None:
    state = state_of([1.0, 2.0, 3.0, None, 4.0])
    found = [
        edit(1, EditKind.ROLLBACK),
        edit(2, EditKind.RETEST),
        edit(3, EditKind.FAILED),
        edit(4, EditKind.SYNTHESIS, True),
    ]
    assert [(r.hits, r.n, r.rate, r.interval) for r in scores.hit_rates(state, found)] == [(0, 0, None, (0.0, 1.0))] * 2


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 29, 0.0061, 0.1718),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_against_published_values(hits: int, n: int, low: float, high: float) -> None:
    assert scores.wilson(hits, n) == pytest.approx((low, high), abs=5e-5)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_rate_and_narrows(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = scores.wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    wider = scores.wilson(hits, n, 3.0)
    assert wider[0] <= low and high <= wider[1]
    mirrored = scores.wilson(n - hits, n)
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_wilson_needs_a_proportion() -> None:
    for hits, n in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="hits of"):
            scores.wilson(hits, n)


def test_mean_interval() -> None:
    assert scores.mean_interval([1.0]) is None and scores.mean_interval([]) is None
    # t = 2.776 at 4 degrees of freedom, sample std 1.5811
    assert scores.mean_interval([1, 2, 3, 4, 5]) == pytest.approx((3 - 1.9629, 3 + 1.9629), abs=1e-3)
    low, high = scores.mean_interval([0.0, 1.0] * 50) or (0.0, 0.0)
    assert (high - low) / 2 == pytest.approx(1.9842 * 0.50252 / 10, rel=1e-3)
    assert scores.mean_interval([4.0, 4.0]) == (4.0, 4.0)


def test_gaps(tmp_path: Path) -> None:
    state = fold_all(read(write(tmp_path).events))
    assert state.heldout is not None and state.heldout.score is not None
    held = state.heldout.score.mean
    assert scores.val_heldout_gap(state) == state.submissions[4].val_score - held  # type: ignore[operator]
    assert scores.held_out_gap(state) == max(s.mean for s in state.submissions if s.mean is not None) - held
    assert scores.val_heldout_gap(RunState()) is None and scores.held_out_gap(RunState()) is None
    assert [p.submission for p in scores.validation_points(state)] == [0, 2, 4]


def test_how_fast_a_run_learned_by_hand() -> None:
    # normalized 0.2 at 2, 0.6 at 6 (4 lay with a failure), 0.5 at 8; of a budget of 20
    course = [(2, 2.0), (6, 6.0), (8, 5.0)]
    area = 2 * 0.2 / 2 + 4 * (0.2 + 0.6) / 2 + 2 * (0.6 + 0.5) / 2
    assert scores.auc_in_loop(course, 20, 0.0, 10.0) == pytest.approx(area / 20 * 100)
    assert scores.episodes_to(course, 0.5, 0.0, 10.0) == 6 and scores.episodes_to(course, 0.8, 0.0, 10.0) is None
    assert scores.auc_in_loop([(20, 10.0)], 20, 0.0, 10.0) == 50.0  # the way up from (0, 0) costs half
    assert scores.auc_in_loop([], 20, 0.0, 10.0) is None
    assert scores.episodes_to([(4, -100.0), (8, -50.0)], 0.5, -120.0, 0.0) == 8  # negative returns need no care
    with pytest.raises(ValueError, match="anchors are equal"):
        scores.auc_in_loop(course, 20, 1.0, 1.0)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.floats(-5, 5)), min_size=1, max_size=12), st.floats(0.1, 50))
def test_the_area_is_between_its_extremes_and_scale_does_not_matter(
    steps: list[tuple[int, float]], scale: float
) -> None:
    at, course = 0, []
    for cost, mean in steps:
        at += cost
        course.append((at, mean))
    area = scores.auc_in_loop(course, at, 0.0, 1.0)
    assert area is not None
    assert min(0.0, *(y for _, y in course)) * 100 - 1e-6 <= area <= max(0.0, *(y for _, y in course)) * 100 + 1e-6
    moved = scores.auc_in_loop([(x, 3 + y * scale) for x, y in course], at, 3.0, 3.0 + scale)
    assert moved == pytest.approx(area, rel=1e-6, abs=1e-6)


def test_auxiliary_scores_of_a_run(tmp_path: Path) -> None:
    state = fold_all(read(write(tmp_path).events))
    found = scores.auxiliary_scores(state)
    low, high = state.header.anchors["random"], state.header.anchors["reference"]
    course = [(p.consumed, p.score) for p in scores.train_points(state)]
    assert found["auc_in_loop"] == scores.auc_in_loop(course, state.budget.total, low, high)
    assert found["episodes_to_50pct"] == next((x for x, y in course if (y - low) / (high - low) >= 0.5), None)
    assert found["held_out_gap"] == scores.held_out_gap(state)
    bare = scores.auxiliary_scores(RunState())
    assert set(bare) == set(found) and set(bare.values()) == {None}
