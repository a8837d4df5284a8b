"""A headless run killed in each of its stages leaves a record that holds. (`benchmarks.kills` does it 200 times.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kills import Tally, killed, start


@pytest.mark.parametrize("size", [1_000, 4_000, 9_000, 16_000])
def test_sigkill(tmp_path: Path, size: int) -> None:
    tally = Tally()
    killed(start(tmp_path, size), tmp_path, size, 0.01, size, tally)
    assert tally.breaches == [] and tally.survivors == 0
