"""Listings: what a run's summary says at each stage, and that no bad run spoils the list."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from evotui.record.fold import fold_all
from evotui.record.lock import Lock
from evotui.record.log import read
from evotui.record.rundir import RunDir
from evotui.record.summary import RunSummary, summaries, summary
from tests.golden_run import rewrite_json, rewrite_log, write


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return write(tmp_path / "runs")


def cut(run: RunDir, kind: str) -> None:
    """Cut the log after the first fact of a kind."""

    def change(lines: list[dict[str, object]]) -> None:
        del lines[next(i for i, line in enumerate(lines) if line["kind"] == kind) + 1 :]

    rewrite_log(run, change)


def agrees(found: RunSummary, run: RunDir) -> None:
    """A summary says what the fold says."""
    state = fold_all(read(run.events))
    assert (found.total, found.used) == (state.budget.total, state.budget.used)
    assert found.means == tuple(s.mean for s in state.submissions) and found.submissions == len(state.submissions)
    held = state.heldout.score if state.heldout is not None else None
    best = state.selected
    assert found.best == ((best, state.submission(best).val_score) if best is not None else None)
    assert found.heldout == ((held.mean, held.std, held.n) if held is not None else None)
    assert found.final_score == (held.final_score if held is not None else None)
    assert (found.env, found.env_version, found.agent, found.model) == (
        "gym/cartpole",
        "CartPole-v1",
        "search",
        "search",
    )


def test_a_finished_run_from_its_log_and_from_its_record(run: RunDir) -> None:
    means = {str(s.index): s.mean for s in fold_all(read(run.events)).submissions}
    rewrite_json(run.run_json, lambda d: d["outcome"]["auxiliary"].update(in_loop_means=means))
    from_record = summary(run.root)
    agrees(from_record, run)
    assert from_record.status == "completed" and from_record.word == "finished"
    run.run_json.write_text("{}")
    from_log = summary(run.root)
    agrees(from_log, run)
    same = {"status", "final_score", "final_score_kind", "best", "heldout", "means", "used", "total", "model"}
    assert all(getattr(from_log, name) == getattr(from_record, name) for name in same)


def test_the_record_of_a_run_whose_end_is_not_logged_is_not_believed(run: RunDir) -> None:
    rewrite_log(run, lambda lines: lines.__delitem__(slice(-1, None)))
    found = summary(run.root)
    agrees(found, run)
    assert found.status == "interrupted"


@pytest.mark.parametrize("kind", ["RunOpened", "SubmissionAccepted", "SubmissionFinished", "CheckpointSelected"])
def test_an_unfinished_run(run: RunDir, kind: str) -> None:
    cut(run, kind)
    run.run_json.unlink()
    agrees(summary(run.root), run)
    with run.events.open("ab") as log:
        log.write(b'{"seq":99,"time":1.0,"kind":"RunEnded","sta')  # torn: not a fact
    found = summary(run.root)
    agrees(found, run)
    assert found.status == found.word == "interrupted" and not found.problem


def test_a_run_that_somebody_writes_is_running(run: RunDir) -> None:
    cut(run, "SubmissionFinished")
    lock = Lock(run)
    assert summary(run.root).status == "running"
    lock.release()
    assert summary(run.root).status == "interrupted"


def test_looking_does_not_take_the_lock(run: RunDir) -> None:
    Lock(run).release()
    cut(run, "SubmissionFinished")
    summary(run.root)
    with (run.host / "lock").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no event yet"),
        (b"garbage\n", "line 1"),
        (b'{"seq":0,"time":1.0,"kind":"AgentMessage","text":"x"}\n', "begin"),
    ],
)
def test_what_cannot_be_read_says_why(run: RunDir, content: bytes, words: str) -> None:
    run.events.write_bytes(content)
    found = summary(run.root)
    assert found.status == "unreadable" and words in found.problem


def test_a_bad_run_does_not_spoil_the_list(run: RunDir, tmp_path: Path) -> None:
    bad = run.root.with_name("aaa")
    shutil.copytree(run.root, bad)
    (bad / "events.jsonl").write_bytes(b"\xff\n")
    (bad / "run.json").unlink()
    found = list(summaries(tmp_path / "runs"))
    assert [(s.name, bool(s.problem)) for s in found] == [("aaa", True), ("g01d3n", False)]


def test_damage_further_on_is_no_ones_end(run: RunDir) -> None:
    lines = run.events.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if b'"kind":"SubmissionFinished"' in line)
    lines[place] = b'{"seq":1,"time":2.0,"kind":"SubmissionFinished"}\n'
    run.events.write_bytes(b"".join(lines[:-1]))
    assert f"line {place + 1}" in summary(run.root).problem
