"""Evidence rows of a scripted transcript; whatever is read is a part of what there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.golden_model  # noqa: F401  (its stages)
from evotui.analysis.evidence import evidence, evidence_of, feedback_files, matching, never_read
from evotui.record import events as e
from evotui.record.grown import Grown
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.report.jsondoc import run_document
from tests.golden import build, state_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return build(Path(tmp_path_factory.mktemp("evidence")), "model")


@pytest.fixture(scope="module")
def state(run: RunDir) -> RunState:
    return state_of(run)


def test_the_scripted_agents_rows(run: RunDir, state: RunState) -> None:
    files = feedback_files(run, state)
    assert len(files[0]) == 1 + 3 * 4 and "submit_000/summary.json" in files[0]
    rows = evidence(state, files, constants={2: 4})
    assert [row.submission for row in rows] == [0, 1, 2]
    first, second, third = rows
    assert (first.read, first.there, first.share_never) == ((), 0, None)
    assert first.said.startswith("The starter alternates")
    assert second.read == ("submit_000/summary.json", "submit_000/episodes/ep_001/trajectory.jsonl")
    assert (second.there, second.never) == (13, 11)
    assert second.said == "The pole oscillates with growing amplitude; I add the velocities with small gains."
    assert second.mean is not None and first.mean is not None
    assert second.gain == pytest.approx(second.mean - first.mean) and first.gain is None
    # A denied write reads nothing, and what is read after the last edit did not lead to the submission.
    assert (third.read, third.there, third.never, third.constants) == ((), 26, 24, 4)
    assert never_read(rows) == pytest.approx(24 / 26) and never_read(rows[:1]) is None


def test_the_rows_of_a_run_on_the_disk_are_told_as_json(run: RunDir, state: RunState) -> None:
    found = run_document(state, rows=evidence_of(run, state))
    assert [row["edit"] for row in found["evidence"]] == ["first", "synthesis", "parametric"]
    assert found["evidence"][2]["constants"] == 4 and found["never_read"] == pytest.approx(24 / 26)
    usage = found["usage"]
    assert sum(part["calls"] for part in usage["by_submission"]) == usage["calls"] == 6
    assert [part["submission"] for part in usage["by_improvement"]] == [0, 1, 2]
    assert usage["by_submission"][-1]["submission"] == 3 and usage["by_submission"][-1]["cost_usd"] is None


def test_reading_after_the_edit_does_not_count_for_it(run: RunDir, state: RunState) -> None:
    records = list(state.transcript)
    at = next(i for i, r in enumerate(records) if isinstance(r.event, e.SubmissionAccepted) and r.event.submission == 2)
    late = e.Record(0, 0.0, e.ToolCalled("z", "Bash", {"command": "cat feedback/submit_001/summary.json"}))
    changed = replace(state, transcript=Grown([*records[:at], late, *records[at:]]))
    assert evidence(changed, feedback_files(run, state))[2].read == ()


@pytest.mark.parametrize(
    ("pattern", "count"),
    [(".", 13), ("submit_000", 13), ("submit_000/", 13), ("submit_000/summary.json", 1), ("submit_000/episodes/*", 12),
     ("*/summary.json", 1), ("submit_000/episodes/ep_00[12]/stdout.txt", 2), ("submit_001", 0), ("", 0)],
)  # fmt: skip
def test_paths_as_agents_write_them(run: RunDir, state: RunState, pattern: str, count: int) -> None:
    assert len(matching(pattern, feedback_files(run, state)[0])) == count


COMMANDS = st.sampled_from([
    "cat feedback/submit_000/summary.json", "grep -r x feedback", "ls feedback/submit_000",
    "cd feedback/submit_001 && cat */*/stdout.txt", "cat feedback/submit_002/episodes/*/trajectory.jsonl", "true",
])  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=50)
@given(calls=st.lists(st.tuples(st.integers(0, 200), COMMANDS), max_size=10))
def test_what_was_read_was_there_and_nothing_is_read_and_never_read(
    run: RunDir, state: RunState, calls: list[tuple[int, str]]
) -> None:
    files = feedback_files(run, state)
    records = list(state.transcript)
    for place, command in calls:
        records.insert(place % (len(records) + 1), e.Record(0, 0.0, e.ToolCalled("z", "Bash", {"command": command})))
    rows = evidence(replace(state, transcript=Grown(records)), files)
    before = evidence(state, files)
    there = 0
    for row, plain in zip(rows, before, strict=True):
        assert row.there == plain.there >= there and row.mean == plain.mean
        there = row.there
        assert len(row.read) == len(set(row.read)) <= row.there
        assert set(row.read) <= {path for paths in files.values() for path in paths}
        assert 0 <= row.never <= plain.never and row.never + len(row.read) <= row.there
