"""Why a run ended early is told in one line."""

from __future__ import annotations

from pathlib import Path

from evotui.record import events as e
from evotui.record.fold import fold, fold_all
from evotui.record.log import read
from evotui.report.text import ended_line, show_text
from tests.golden_run import write


def test_an_early_end_says_why(tmp_path: Path) -> None:
    run = write(tmp_path)
    records = read(run.events)
    assert ended_line(fold_all(records)) == "" and "\nended " not in show_text(fold_all(records), run)
    place = next(i for i, r in enumerate(records) if isinstance(r.event, e.AgentEnded))
    state = fold_all(records[:place])
    state = fold(state, e.Record(state.seq + 1, 0.0, e.AgentEnded("limit", "3 turns were\nthe limit")))
    assert ended_line(state) == "limit: 3 turns were⏎the limit"
    state = fold(state, e.Record(state.seq + 1, 0.0, e.FinalizationStarted((0,), "limit")))
    assert "\nended        limit: 3 turns were⏎the limit\n" in show_text(state, run)
