"""Documents and text: what they say at each stage of a run, and that foreign text cannot harm a terminal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.breach import Breach
from evotui.record.check import Findings
from evotui.record.fold import fold, fold_all
from evotui.record.lock import Lock
from evotui.record.log import read
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.record.suitedir import Cell, CellState
from evotui.record.suitefile import AgentRow
from evotui.record.summary import RunSummary, summary
from evotui.report import jsondoc, text
from evotui.report.suite import cell_line, suite_text
from tests.golden_run import START, rewrite_log, write


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return write(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def records(golden: RunDir) -> list[e.Record]:
    return read(golden.events)


def at(records: list[e.Record], kind: type[e.Event], nth: int = 0) -> RunState:
    """The state just after the nth fact of a kind."""
    return fold_all(records[: [i for i, r in enumerate(records) if isinstance(r.event, kind)][nth] + 1])


def test_the_document_of_a_finished_run(records: list[e.Record]) -> None:
    found = jsondoc.run_document(fold_all(records))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["schema_version"] == 1 and found["run"] == "g01d3n" and found["env"] == "gym/cartpole"
    assert found["agent"] == "search" and found["status"] == "completed" and found["submissions"] == 5
    assert found["budget"] == {"total": 8, "used": 8, "remaining": 0}
    assert found["best"] == {"submission": 4, "val_score": pytest.approx(7.2)}
    assert found["heldout"]["mean"] == pytest.approx(7.0) and found["heldout"]["n"] == 4 and found["heldout"]["std"] > 0
    assert found["final_score"] == pytest.approx(50.0) and found["final_score_kind"] == "normalized"
    assert [s["status"] for s in found["history"]] == ["ok", "denied_import", "ok", "rollout_timeout", "ok"]


def test_the_document_of_a_run_under_way_holds_nothing_hidden(records: list[e.Record]) -> None:
    for nth in range(5):
        found = jsondoc.run_document(at(records, e.SubmissionFinished, nth), live=True)
        assert found["status"] == "running" and found["best"] is None and found["heldout"] is None
        assert found["final_score"] is None and all(s["val_score"] is None for s in found["history"])
    assert jsondoc.run_document(at(records, e.SubmissionFinished))["status"] == "interrupted"
    assert jsondoc.run_document(at(records, e.SubmissionAccepted))["history"][0]["status"] is None


def test_no_ok_submission_scores_zero(records: list[e.Record]) -> None:
    state = at(records, e.AgentStarted)
    for event in (e.AgentEnded("done"), e.FinalizationStarted(()), e.RunEnded("no_ok_submit")):
        state = fold(state, e.Record(state.seq + 1, START + 60, event))
    found = jsondoc.run_document(state)
    assert (found["status"], found["final_score"], found["best"], found["heldout"]) == ("no_ok_submit", 0.0, None, None)


def test_the_list_document(golden: RunDir) -> None:
    found = jsondoc.list_document([summary(golden.root), RunSummary(Path("x"), "x", problem="no event yet")])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    good, bad = found["runs"]
    assert (good["run"], good["status"], good["budget"]) == (
        "g01d3n",
        "completed",
        {"total": 8, "used": 8, "remaining": 0},
    )
    assert good["best"]["submission"] == 4 and good["heldout"]["n"] == 4 and good["problem"] is None
    assert bad["status"] == "unreadable" and bad["problem"] == "no event yet" and bad["heldout"] is None


def test_the_check_document_and_text() -> None:
    breach = Breach("tree-hash", "checkpoints/submit_000", "its files hash to\x1b[31m something")
    found = jsondoc.check_document(Path("/r/abc"), Findings((breach,)))
    assert found["ok"] is False and found["breaches"][0]["code"] == "tree-hash"
    assert jsondoc.check_document(Path("/r/abc"), Findings(()))["ok"] is True
    assert text.check_text(Path("/r/abc"), Findings(())) == "abc: the record holds"
    told = text.check_text(Path("/r/abc"), Findings((breach,)))
    assert "1 breach\n" in told and "tree-hash" in told and "\x1b" not in told
    assert "2 breaches\n" in text.check_text(Path("/r/abc"), Findings((breach, breach)))


def test_list_text_is_aligned_and_in_order_of_time(golden: RunDir) -> None:
    one = summary(golden.root)
    later = replace(one, name="later", started_at=one.started_at + 60, best=None, heldout=None, status="running")
    lines = text.list_text([later, RunSummary(Path("x"), "x", problem="torn\x1b"), one]).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["run", "x", "g01d3n", "later"]
    assert lines[4:] == ["", "x: torn\\x1b"]
    column = lines[0].index("state")
    assert lines[2][column:].startswith("finished") and lines[3][column:].startswith("running")
    assert "8/8" in lines[2] and "7.20" in lines[2] and "7.00" in lines[2] and "\x1b" not in lines[1]
    end = lines[0].index("held-out") + len("held-out")
    assert lines[2][:end].endswith("7.00") and lines[3][:end].endswith("–")


def test_a_heldout_mean_with_faults_is_marked_wherever_runs_are_listed(tmp_path: Path) -> None:
    run = write(tmp_path)
    fault = {"kind": "act_error", "step": 0, "message": "crashed", "traceback": ""}

    def crash(lines: list[dict[str, Any]]) -> None:
        hidden = [line for line in lines if line["kind"] == "HiddenEpisodeFinished"]
        for line in [line for line in hidden if line["split"] == "heldout"][:3] + hidden[:1]:  # one in validation
            line["fault"] = fault

    whole = text.list_text([summary(run.root)])
    assert "†" not in whole
    rewrite_log(run, crash)
    one = summary(run.root)
    told = text.list_text([one]).splitlines()
    assert one.faults == 3 and re.search(r" 7\.00†  20", told[1])
    assert told[2:] == ["", f"{text.HURT_NOTE} (g01d3n 3 of 4)"]
    assert jsondoc.list_document([one])["runs"][0]["faults"] == {"heldout": 3}
    cell = CellState(Cell("s", "cartpole", AgentRow("search", "search"), 1), "finished", "", one)
    table = suite_text([cell])
    assert "7.00†" in table and text.HURT_NOTE in table.splitlines()
    assert "held-out 7.00 (3 of 4 episodes ended by a fault)" in cell_line(cell)
    assert text.HURT not in suite_text([replace(cell, run=replace(one, faults=0))])
    state = fold_all(read(run.events))
    assert "3 of 4 held-out episodes ended by a fault (act_error)" in text.result_line(state, run)
    assert jsondoc.run_document(state)["faults"]["heldout"] == 3
    run.run_json.unlink()
    assert summary(run.root).faults == 3
    kinds = [type(record.event) for record in read(run.events)]
    rewrite_log(run, lambda lines: lines.__delitem__(slice(kinds.index(e.HeldoutScored), None)))  # nothing to mark yet
    assert summary(run.root).heldout is None and summary(run.root).faults == 0


def test_show_text(golden: RunDir, records: list[e.Record]) -> None:
    told = text.show_text(fold_all(records), golden)
    assert "finished" in told and "8 of 8 episodes used, 0 since the last improvement" in told and "assisted" in told
    assert "s004*" in told and "denied_import: ended with denied_import" in told and "rollout_timeout" in told
    assert "held-out: mean 7.00" in told and "final score: 50.0 (0 random … 100 reference)" in told
    assert not any(line != line.rstrip() for line in told.splitlines())


def test_show_text_before_the_end_tells_the_state(golden: RunDir, records: list[e.Record]) -> None:
    state = at(records, e.EpisodeFinished)
    assert "interrupted while evolving" in text.show_text(state, golden)
    assert "unfinished (execute)" in text.show_text(state, golden)
    lock = Lock(golden)
    assert "running: evolving" in text.show_text(state, golden)
    lock.release()
    assert "selected" not in text.show_text(at(records, e.SubmissionFinished, 4), golden)


def test_foreign_text_cannot_drive_the_terminal(records: list[e.Record], golden: RunDir) -> None:
    state = at(records, e.SubmissionAccepted)
    hostile = "\x1b]0;owned\x07\x1b[2J\r\nsecond \u202e line " + "x" * 500
    state = fold(
        state, e.Record(state.seq + 1, START, e.SubmissionFinished(0, Verdict.INIT_ERROR, Phase.INITIALIZE, hostile))
    )
    told = text.show_text(state, golden)
    assert all(c.isprintable() or c == "\n" for c in told) and "…" in told and "second" in told
    assert len(told.splitlines()) == len(text.show_text(at(records, e.SubmissionAccepted), golden).splitlines())


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_progress_while_evolving(records: list[e.Record]) -> None:
    assert text.progress_line(RunState(), START) == "opening"
    state = at(records, e.RunOpened)
    assert text.progress_line(state, state.started_at) == "CartPole-v1  evolving  0/8 episodes"
    state = at(records, e.SubmissionFinished)
    line = text.progress_line(state, state.started_at + 10)
    assert line == "CartPole-v1  evolving  2/8 episodes  12.0/min  about 30s left  best train mean 1.55 (s000)"
    assert "2.0/s  about 3s left" in text.progress_line(state, state.started_at + 1)


def test_a_failed_submissions_episodes_are_done(records: list[e.Record]) -> None:
    assert "3/8 episodes" in text.progress_line(at(records, e.SubmissionFinished, 1), START + 10)
    assert "1/8 episodes" in text.progress_line(at(records, e.EpisodeFinished), START + 10)


def test_progress_of_the_hidden_stages_counts_from_their_begin(records: list[e.Record]) -> None:
    begin = at(records, e.FinalizationStarted).last_at
    line = text.progress_line(at(records, e.HiddenEpisodeFinished, 2), begin + 3)
    assert "validating  3/9 episodes  1.0/s  about 6s left" in line
    begin = at(records, e.CheckpointSelected).last_at
    line = text.progress_line(at(records, e.HiddenEpisodeFinished, 9), begin + 2)
    assert "held-out  1/4 episodes  30.0/min  about 6s left" in line


def test_progress_at_the_gate_and_at_the_end(records: list[e.Record]) -> None:
    state = at(records, e.SubmissionFinished)
    state = fold(state, e.Record(state.seq + 1, START, e.GateHeld("submission 1")))
    assert "held at the gate before submission 1" in text.progress_line(state, START + 9)
    line = text.progress_line(fold_all(records), START + 99)
    assert line.startswith("CartPole-v1  finished  best train mean") and line.endswith("held-out 7.00")


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "–"),
        (0.0, "0"),
        (500.0, "500.0"),
        (-1234.567, "-1234.6"),
        (9.996, "10.00"),
        (0.12345, "0.12"),
        (float("nan"), "nan"),
    ],
)
def test_numbers(value: Any, told: str) -> None:
    assert text.number(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-3, "0s"), (0.4, "0s"), (59.4, "59s"), (59.6, "1m00s"), (245, "4m05s"), (3599.7, "1h00m"), (11_220, "3h07m")],
)
def test_durations(seconds: float, told: str) -> None:
    assert text.duration(seconds) == told


def test_a_table_without_rows_is_its_head() -> None:
    assert text.table(["a", "bb"], []) == "a  bb"
