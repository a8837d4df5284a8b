"""Scores, intervals, ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis import scores
from evotui.analysis.edits import Edit, EditKind
from evotui.protocol.budget import Budget
from evotui.protocol.verdict import Verdict
from evotui.record.log import read
from evotui.record.state import RunState, Submission, fold_all
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


def test_ranks_are_shared_by_equals() -> None:
    assert scores.rank_scores({"a": 3.0, "b": 1.0, "c": 3.0, "d": 0.0, "e": 1.0}) == {
        "a": 1,
        "c": 1,
        "b": 0.5,
        "e": 0.5,
        "d": 0,
    }
    assert scores.rank_scores({"a": -1.0, "b": -2.0}) == {"a": 1.0, "b": 0.0}
    with pytest.raises(ValueError, match="two entries"):
        scores.rank_scores({"a": 1.0})
    with pytest.raises(ValueError, match="NaN"):
        scores.rank_scores({"a": 1.0, "b": math.nan})


TABLE = json.loads((Path(__file__).parents[1] / "data" / "core16.json").read_text())["scores"]
FAMILIES = {
    "Gym/Box2D": ("acrobot", "continuouscar", "bipedal", "racing"),
    "MuJoCo": ("reacher5", "halfcheetah5", "ant5", "pusher5"),
}
PAPER = {
    # entry: Gym/Box2D, MuJoCo, all sixteen
    "gpt_5_5": (0.938, 0.875, 0.891),
    "claude_opus_4_7": (0.812, 0.750, 0.750),
    "minimax_m3": (0.375, 0.625, 0.531),
    "deepseek_v4_pro": (0.375, 0.250, 0.359),
    "random_policy": (0.000, 0.000, 0.109),
}


def test_the_papers_rank_scores_come_out() -> None:
    parts = [{env: TABLE[env] for env in envs} for envs in FAMILIES.values()]
    found = [scores.mean_rank_scores(part) for part in [*parts, TABLE]]
    for entry, expected in PAPER.items():
        assert tuple(part[entry] for part in found) == pytest.approx(expected, abs=5.1e-4)


def test_mean_rank_scores_need_equal_entries() -> None:
    table = {"x": {"a": 1.0, "b": 2.0}, "y": {"a": 1.0, "b": 0.0}}
    assert scores.mean_rank_scores(table) == {"a": 0.5, "b": 0.5}
    with pytest.raises(ValueError, match="every environment"):
        scores.mean_rank_scores({"x": {"a": 1.0, "b": 2.0}, "y": {"a": 1.0, "c": 0.0}})
    with pytest.raises(ValueError, match="no environment"):
        scores.mean_rank_scores({})
