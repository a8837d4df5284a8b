"""Tokens and money: sums agree whichever way they are cut, and money is said only as far as it is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis.usage import Ledger, Spent, by_improvement, by_submission, improvements, total, turns
from evotui.record import events as e
from evotui.record.fold import fold_all
from evotui.record.state import RunState
from tests.golden import build, state_of

USAGE = st.builds(
    e.UsageReported,
    input_tokens=st.integers(0, 10_000),
    cached_tokens=st.integers(0, 100_000),
    cache_write_tokens=st.integers(0, 1000),
    output_tokens=st.integers(0, 5000),
    cost_usd=st.none() | st.floats(0, 2),
    estimated=st.booleans(),
    model=st.sampled_from(["", "a", "b"]),
)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> RunState:
    return state_of(build(Path(tmp_path_factory.mktemp("usage")), "finished"))


def _with(state: RunState, told: list[tuple[int, e.UsageReported]]) -> RunState:
    """The state with usage told at places of its transcript."""
    events = list(state.transcript)
    for place, usage in sorted(told, key=lambda item: -item[0]):
        at = place % (len(events) + 1)
        events.insert(at, e.Record(0, state.started_at, usage))
    from dataclasses import replace

    from evotui.record.grown import Grown

    return replace(state, transcript=Grown(events))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(told=st.lists(st.tuples(st.integers(0, 400), USAGE), max_size=12))
def test_sums_agree_however_they_are_cut(golden: RunState, told: list[tuple[int, e.UsageReported]]) -> None:
    state = _with(golden, told)
    ledger = Ledger().of(state)
    assert len(turns(state)) == len(told) == ledger.total.turns
    assert ledger.total.tokens == sum(
        u.input_tokens + u.cached_tokens + u.cache_write_tokens + u.output_tokens for _, u in told
    )
    parts = by_submission(state)
    assert sum(s.turns for s in parts.values()) == len(told)
    assert sum(s.tokens for s in parts.values()) == ledger.total.tokens
    last = improvements(state)[-1]
    upto = [spent for _, spent in by_improvement(state)]
    assert sum(s.turns for s in upto) + ledger.since(last).turns == len(told)
    costs = [u.cost_usd for _, u in told if u.cost_usd is not None]
    assert ledger.total.cost_usd == (pytest.approx(sum(costs)) if costs else None)
    assert ledger.total.about == (any(u.estimated for _, u in told) or len(costs) < len(told))


def test_a_ledger_that_grows_equals_one_made_at_once(golden: RunState) -> None:
    state = _with(golden, [(i * 7, e.UsageReported(10, 20, 0, 5, 0.01)) for i in range(9)])
    from dataclasses import replace

    from evotui.record.grown import Grown

    grown = Ledger()
    records = list(state.transcript)
    for upto in range(0, len(records) + 1, 5):
        grown.of(replace(state, transcript=Grown(records[:upto])))
    assert grown.of(state).turns == Ledger().of(state).turns
    assert grown.by_submission == by_submission(state)
    assert (
        grown.of(replace(state, transcript=Grown(records[:3]))).total
        == Ledger().of(replace(state, transcript=Grown(records[:3]))).total
    )  # an older state starts anew


def test_money_is_unknown_where_no_price_is() -> None:
    assert total([]) == Spent() and Spent().cost_usd is None
    state = fold_all([])
    assert turns(state) == () and by_submission(state) == {} and by_improvement(state) == ()


def test_improvements_are_those_that_beat_all_before(golden: RunState) -> None:
    best = float("-inf")
    expected = []
    for s in golden.submissions:
        if s.mean is not None and s.mean > best:
            best = s.mean
            expected.append(s.index)
    assert list(improvements(golden)) == expected and len(expected) >= 4
