"""Counts in sentences: the noun goes with its number, in every text that a person reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evotui
from evotui.agents.llm.faults import ModelFault
from evotui.agents.llm.patience import sentence
from evotui.protocol.words import counted

MENDED = ("agents", "analysis", "cli", "protocol", "record", "report", "suite")
BARE = re.compile(r"\{[^{}]+\} (tries|submissions|runs|calls|faults)\b(?! backwards)")
"""Nouns that a sentence counted by itself. Of others some are never one: `9 of 128 episodes`, `at least 2 cases`."""


@pytest.mark.parametrize(
    ("n", "one", "told"),
    [(0, "try", "0 tries"), (1, "try", "1 try"), (2, "try", "2 tries"), (1, "episode", "1 episode"),
     (2, "day", "2 days"), (3, "breach", "3 breaches")],
)  # fmt: skip
def test_a_noun_goes_with_its_number(n: int, one: str, told: str) -> None:
    assert counted(n, one, "breaches" if one == "breach" else "") == told


@pytest.mark.parametrize("kind", ["connection", "timeout"])
def test_one_try_is_one_try(kind: str) -> None:
    told = sentence(ModelFault(kind, "refused"), "m", "http://127.0.0.1:1", 1)
    assert "after 1 try" in told and "tries" not in told
    assert "after 6 tries" in sentence(ModelFault(kind, "refused"), "m", "", 6)


def test_no_text_counts_tries_submissions_runs_calls_or_faults_by_itself() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for room in MENDED
        for path in sorted((Path(evotui.__file__).parent / room).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if BARE.search(line)
    ]
    assert found == []
