"""The anchors script: its figures replace the old ones in a task.toml and leave the rest alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks.anchors import anchor, main, returns, with_anchors
from evotui.protocol.pools import paper_pools
from evotui.protocol.task import Anchor
from evotui.suite.catalog import find_task


def test_anchors_are_replaced_not_added() -> None:
    text = 'slug = "a"\nsuccess = "return >= 3"\n'
    one = with_anchors(text, {"random": Anchor(1.23456789, 0.111, 5, "first")})
    two = with_anchors(one, {"random": Anchor(-2.0, 0.5, 6, "second"), "reference": Anchor(1e-7, 0.0, 7, "")})
    assert one.startswith(text)
    assert two.startswith(text)
    assert two.count("[anchors.random]") == 1
    document = tomllib.loads(two)
    assert document["anchors"]["random"] == {"mean": -2.0, "se": 0.5, "n": 6, "source": "second"}
    assert document["anchors"]["reference"]["mean"] == 1e-7


def test_mean_and_standard_error() -> None:
    found = anchor([1.0, 2.0, 3.0, 4.0], "")
    assert (found.mean, found.n) == (2.5, 4)
    assert found.se == pytest.approx((5 / 3 / 4) ** 0.5)


def test_random_returns_agree_with_the_shipped_anchor() -> None:
    task = find_task("cartpole")
    values = returns(task, paper_pools(16, 64).heldout, None)
    found, shipped = anchor(values, ""), task.anchors["random"]
    assert abs(found.mean - shipped.mean) < 4 * found.se


def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(find_task("taxi").folder, "task.toml").read_bytes()
    assert main(["taxi", "--cases", "2", "--random-cases", "2"]) == 0
    assert "taxi" in capsys.readouterr().out
    assert Path(find_task("taxi").folder, "task.toml").read_bytes() == before
