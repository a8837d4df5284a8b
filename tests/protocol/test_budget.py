"""Budget: conservation, what a submission may ask for, reading and writing case ids."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.protocol.budget import Budget, Rejected, format_cases, parse_cases
from evotui.protocol.verdict import Verdict

thorough = settings(derandomize=True, max_examples=200, deadline=None)


@thorough
@given(st.lists(st.integers(0, 1023), max_size=60))
def test_cases_round_trip_with_order_and_repeats(cases: list[int]) -> None:
    if cases:
        assert parse_cases(format_cases(cases), 1024) == tuple(cases)
    assert parse_cases(cases, 1024) == tuple(cases)


def test_ranges_are_inclusive() -> None:
    assert parse_cases("7-10,16", 1024) == (7, 8, 9, 10, 16)
    assert parse_cases(" 3 - 4 , 3,3", 1024) == (3, 4, 3, 3)
    assert format_cases([7, 8, 9, 10, 16, 3, 2, 2]) == "7-10,16,3,2,2"
    assert format_cases([]) == ""


@pytest.mark.parametrize(
    "request_",
    ["", "1,,2", "a", "1.5", "5-3", "-1", "1024", "0-1024", "1e3", "0-999999999", [1, "2"], [True], [1.0], [-1], [1024],
     None, 7, {"cases": [1]}],
)  # fmt: skip
def test_unreadable_cases_are_an_invalid_instance(request_: object) -> None:
    with pytest.raises(Rejected) as caught:
        parse_cases(request_, 1024)
    assert caught.value.verdict is Verdict.INVALID_ENV_INSTANCE
    assert caught.value.message


@thorough
@given(st.text(max_size=30))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        cases = parse_cases(text, 1024, limit=10_000)
    except Rejected:
        return
    assert cases
    assert all(0 <= case < 1024 for case in cases)


@thorough
@given(st.integers(1, 500), st.integers(1, 10), st.integers(0, 200), st.lists(st.integers(0, 200), max_size=30))
def test_what_is_accepted_and_charged_is_conserved(total: int, least: int, more: int, sizes: list[int]) -> None:
    budget = Budget(total, min_submit=least, max_submit=least + more)
    charged = 0
    for size in sizes:
        try:
            budget.check([0] * size)
        except Rejected as rejected:
            assert rejected.verdict is Verdict.BUDGET_INVALID
            assert budget.spent or not least <= size <= min(least + more, budget.remaining)
            continue
        budget = budget.charge(size)
        charged += size
        assert least <= size <= least + more
    assert budget.used == charged
    assert budget.used + budget.remaining == budget.total == total
    assert budget.remaining >= 0


def test_a_charge_never_exceeds_what_remains() -> None:
    budget = Budget(10, used=8)
    for episodes in (0, -1, 3):
        with pytest.raises(ValueError, match="cannot charge"):
            budget.charge(episodes)
    assert budget.charge(2).spent
    assert not budget.spent


@pytest.mark.parametrize("arguments", [(0,), (-5,), (10, 11), (10, -1), (10, 0, 0, 5), (10, 0, 6, 5)])
def test_impossible_budgets_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"budget|submission|used"):
        Budget(*arguments)


def test_a_spent_budget_says_so() -> None:
    with pytest.raises(Rejected, match="the budget is spent"):
        Budget(10, used=9, min_submit=2).check([0, 1])
