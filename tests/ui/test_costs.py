"""Tokens and money in words: cached apart, money only where it is known, "~" where it is not exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evotui.analysis.usage import Ledger, Spent
from evotui.record.rundir import RunDir
from evotui.ui import costs
from evotui.ui.costs import Limits
from tests.golden import START, state_of


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(2, 1200, 0, 0, 300), ("1.2k in → 300", "")),
        (Spent(2, 1200, 45_100, 100, 2100, 0.12, 2), ("1.3k in + 45.1k cached → 2.1k", "$0.12")),
        (Spent(2, 5, 0, 0, 1, 0.004, 1), ("5 in → 1", "~$0.004")),
        (Spent(1, 5_200_000, 0, 0, 1, 12.0, 1, True), ("~5.20M in → 1", "~$12.00")),
        (Spent(1, 0, 0, 0, 0, 0.0, 1), ("0 in → 0", "$0.00")),
    ],
)
def test_words(spent: Spent, words: tuple[str, str]) -> None:
    assert (costs.tokens(spent), costs.money(spent)) == words


def test_limits_are_read_from_the_runs_folder(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert costs.read_limits(run) == Limits()
    run.run_toml.write_text("x = [")
    assert costs.read_limits(run) == Limits()
    run.run_toml.write_text('[agent_options]\nmodel = "m"\nmax_cost = 2\nmax_turns = 60\nmax_wall = "soon"\n')
    limits = costs.read_limits(run)
    assert (limits.cost, limits.turns, limits.wall, limits.options["model"]) == (2.0, 60, None, "m")


def test_the_foot_says_all_and_what_led_to_the_selected_submission(golden: Callable[[str], RunDir]) -> None:
    state = state_of(golden("model"))
    ledger = Ledger().of(state)
    left, right = costs.foot(ledger, state, 1, Limits(cost=2.0, turns=60))
    assert [p.text for p in left] == ["9.1k in + 28.7k cached → 2.8k", "~$0.050 of $2", "6/60 turns"]
    assert right[0].text == "s001: 12.8k → 1.3k  $0.020" and right[1].text == "★ 3 × 10.4k $0.017"
    beside = [p.text for p in costs.beside(ledger, state, Limits(wall=1800.0), START + 42)]
    assert beside[:3] == ["wall 00:42 of 30:00", "40.6k tokens", "~$0.050"] and beside[3].startswith("since best")
    assert costs.foot(Ledger(), state, None, Limits()) == ([], []) and costs.beside(Ledger(), state, Limits(), 0) == []
