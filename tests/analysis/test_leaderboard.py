"""The paper's table comes out to the last printed digit; ranks of any table keep their laws."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis.leaderboard import FAMILIES, Entry, Environment, Row, rank_scores, ranking
from evotui.analysis.paper import core16, paper_entries

GOLDEN = {
    # entry: families in order, then all sixteen; wins; top-two; normalized: synthesis, tuning
    "gpt_5_5": ("0.938 0.875 0.812 0.938 0.891", 9, 16, "0.98 0.99"),
    "claude_opus_4_7": ("0.812 0.750 0.938 0.500 0.750", 5, 12, "1.00 0.83"),
    "minimax_m3": ("0.375 0.625 0.500 0.625 0.531", 1, 3, "0.19 0.83"),
    "deepseek_v4_pro": ("0.375 0.250 0.438 0.375 0.359", 1, 1, "0.03 0.67"),
    "random_policy": ("0.000 0.000 0.375 0.062 0.109", 0, 0, "0.00 0.00"),
}


def printed(row: Row) -> tuple[str, int, int, str]:
    f = row.figures
    shares = [*(f.families[name] for name in FAMILIES), f.core16]
    return (
        " ".join(f"{x:.3f}" for x in shares), f.wins, f.top2,
        " ".join(f"{f.normalized[group]:.2f}" for group in ("synthesis", "tuning")),
    )  # fmt: skip


def test_the_papers_figures_come_out() -> None:
    rows = ranking(paper_entries(), core16())
    assert {row.entry.key: printed(row) for row in rows} == GOLDEN
    assert [row.entry.key for row in rows] == list(GOLDEN)  # the best first
    assert all(row.figures.complete and row.figures.overall == row.figures.core16 for row in rows)


def test_one_entry_more_is_ranked_among_six_and_the_five_keep_their_own() -> None:
    best = {env.key: (max(e.returns[env.key][0] for e in paper_entries()) + 1,) for env in core16()}
    rows = ranking([*paper_entries(), Entry("ours", "m", "h", best)], core16())
    assert rows[0].entry.key == "ours" and rows[0].figures.core16 == 1.0 and rows[0].figures.wins == 16
    gpt = next(row for row in rows if row.entry.key == "gpt_5_5")
    assert gpt.figures.wins == 0 and gpt.figures.top2 == 9  # K = 6: the former winners come second
    assert printed(next(r for r in ranking(paper_entries(), core16()) if r.entry.key == "gpt_5_5")) == GOLDEN["gpt_5_5"]


def test_ranks_are_shared_by_equals() -> None:
    found = rank_scores({"a": 3.0, "b": 1.0, "c": 3.0, "d": 0.0, "e": 1.0})
    assert found == {"a": 1, "c": 1, "b": 0.5, "e": 0.5, "d": 0}
    assert rank_scores({"a": -1.0, "b": -2.0}) == {"a": 1.0, "b": 0.0}
    with pytest.raises(ValueError, match="two entries"):
        rank_scores({"a": 1.0})
    with pytest.raises(ValueError, match="NaN"):
        rank_scores({"a": 1.0, "b": math.nan})


def test_repeats_are_averaged_and_a_lone_or_missing_score_has_no_rank() -> None:
    envs = [Environment("x", family="f", group="tuning", random=0.0), Environment("y"), Environment("z")]
    rows = ranking(
        [Entry("a", "A", "h", {"x": (1.0, 3.0), "y": (5.0,)}), Entry("b", "B", "h", {"x": (4.0,), "z": ()})], envs
    )
    by = {row.entry.key: row for row in rows}
    assert by["a"].means == {"x": 2.0, "y": 5.0} and by["b"].means == {"x": 4.0}
    assert by["a"].ranges == {"x": (1.0, 3.0)} and by["a"].intervals == {}
    assert by["a"].rank_scores == {"x": 0.0} and by["b"].rank_scores == {"x": 1.0}
    assert by["a"].ranks == {"x": 2, "y": 1} and by["a"].figures.wins == 0  # alone on y: no win
    assert by["a"].normalized["x"] == 0.5 and by["a"].figures.normalized == {"synthesis": None, "tuning": 0.5}
    assert by["a"].figures.core16 is None and by["b"].figures.overall == 1.0
    assert not by["a"].figures.complete and by["a"].figures.environments == 2


def test_repeats_spread_the_mean_rank_score() -> None:
    envs = [Environment("x"), Environment("y")]
    fixed = Entry("b", "B", "h", {"x": (2.0,), "y": (2.0,)})
    split = ranking([Entry("a", "A", "h", {"x": (1.0, 3.0, 3.0), "y": (1.0, 1.0, 3.0)}), fixed], envs)
    row = next(r for r in split if r.entry.key == "a")  # its repeats score 0, 0.5 and 1
    assert row.spread == pytest.approx((0.5 - 4.303 * 0.5 / 3**0.5, 0.5 + 4.303 * 0.5 / 3**0.5))
    assert next(r for r in split if r.entry.key == "b").spread is None
    uneven = ranking([Entry("a", "A", "h", {"x": (1.0, 3.0), "y": (1.0,)}), fixed], envs)
    assert all(r.spread is None for r in uneven)


def test_an_interval_takes_three_repeats_and_a_range_two() -> None:
    envs = [Environment("x")]
    for n, interval in ((1, None), (2, None), (3, (3.0 - 4.303 / 3**0.5, 3.0 + 4.303 / 3**0.5))):
        values = (3.0, 2.0, 4.0)[:n]
        (row, _) = ranking([Entry("a", "A", "h", {"x": values}), Entry("b", "B", "h", {"x": (0.0,)})], envs)
        assert row.intervals.get("x") == (pytest.approx(interval) if interval else None)
        assert row.ranges == ({"x": (min(values), max(values))} if n > 1 else {})
        assert (row.spread is None) == (n < 3)


def test_an_entry_that_failed_everywhere_comes_last_and_changes_no_rank() -> None:
    failed = Entry("gone", "G", "h", {}, failed={env.key: ("the key was refused",) for env in core16()})
    rows = ranking([failed, *paper_entries()], core16())
    assert {row.entry.key: printed(row) for row in rows[:-1]} == GOLDEN
    last = rows[-1]
    assert last.entry is failed and last.means == {} and last.figures.core16 is None
    assert (last.figures.wins, last.figures.top2, last.figures.complete) == (0, 0, False)


TABLES = st.integers(2, 7).flatmap(
    lambda k: st.lists(
        st.lists(st.one_of(st.none(), st.integers(-3, 3).map(float)), min_size=k, max_size=k), min_size=1, max_size=6
    )
)


@settings(derandomize=True, deadline=None)
@given(TABLES, st.randoms(use_true_random=False))
def test_the_laws_of_ranks(table: list[list[float | None]], order: object) -> None:
    envs = [Environment(f"e{i}", family="f", group="tuning") for i in range(len(table))]
    entries = [
        Entry(
            f"n{j}",
            "m",
            "h",
            {env.key: () if row[j] is None else (row[j],) for env, row in zip(envs, table, strict=True)},
        )
        for j in range(len(table[0]))
    ]
    rows = {row.entry.key: row for row in ranking(entries, envs)}
    for env, line in zip(envs, table, strict=True):
        have = [v for v in line if v is not None]
        for entry, value in zip(entries, line, strict=True):
            row = rows[entry.key]
            if value is None:
                assert env.key not in row.ranks and env.key not in row.rank_scores
                continue
            assert row.ranks[env.key] == 1 + sum(v > value for v in have)
            if len(have) >= 2:
                assert row.rank_scores[env.key] == (len(have) - row.ranks[env.key]) / (len(have) - 1)
        if len(have) >= 2:  # somebody wins; without ties the scores are spread evenly
            assert max(r.rank_scores[env.key] for r in rows.values() if env.key in r.rank_scores) == 1.0
            if len(set(have)) == len(have):
                total = sum(r.rank_scores.get(env.key, 0.0) for r in rows.values())
                assert total == pytest.approx(len(have) / 2)
    shuffled = list(entries)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [r.entry.key for r in ranking(shuffled, envs)] == list(rows)
    raised = [replace(e, returns={k: tuple(x * 2 + 7 for x in v) for k, v in e.returns.items()}) for e in entries]
    assert {r.entry.key: r.figures for r in ranking(raised, envs)} == {k: r.figures for k, r in rows.items()}
