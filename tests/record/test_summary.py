"""Listings: what a run's summary says at each stage, and that no bad run spoils the list."""

from __future__ import annotations

import fcntl
import re
import shutil
from pathlib import Path

import pytest

from evotui.record.fold import fold_all
from evotui.record.lock import Lock
from evotui.record.log import LogError, encode, read
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
    found = summary(run.root)
    assert f"line {place + 1}" in found.problem and found.status == "damaged"


DAMAGES = {
    "garbage over a line": lambda lines, n: [*lines[:n], b"\xff\xfe garbage\n", *lines[n + 1 :]],
    "a byte within a line": lambda lines, n: [*lines[:n], lines[n].replace(b'"', b"\0", 1), *lines[n + 1 :]],
    "a line is missing": lambda lines, n: lines[:n] + lines[n + 1 :],
    "a line is there twice": lambda lines, n: [*lines[:n], lines[n], *lines[n:]],
    "two lines ran together": lambda lines, n: [*lines[:n], lines[n][:-1], *lines[n + 1 :]],
    "zeros as after a power cut": lambda lines, n: [*lines[:n], b"\0" * 200 + b"\n", *lines[n + 1 :]],
    "an empty line": lambda lines, n: [*lines[:n], b"\n", *lines[n:]],
}


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("what", DAMAGES)
def test_a_log_that_is_damaged_in_the_middle_is_called_so(
    run: RunDir, what: str, large: bool, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing of the listing needs that line, and run.json says that all is well."""
    if large:
        monkeypatch.setattr("evotui.record.summary._PARSED", 100)
    # As evotui writes it: what is laid out in another way is read through, and found whole.
    whole = [encode(record) for record in read(run.events)]
    kind = (
        b'"kind":"AgentMessage"' if any(b'"kind":"AgentMessage"' in line for line in whole) else b'"kind":"FileEdited"'
    )
    place = next(i for i, line in enumerate(whole) if kind in line)
    lines = whole if ended else whole[:-1]
    run.events.write_bytes(b"".join(lines))
    assert summary(run.root).status == ("completed" if ended else "interrupted")
    run.events.write_bytes(b"".join(DAMAGES[what](lines, place)))
    found = summary(run.root)
    assert found.status == found.word == "damaged" and found.env_version == "CartPole-v1"
    assert re.match(rf"events\.jsonl, line {place + 1}|events\.jsonl, line {place + 2}", found.problem)
    with pytest.raises(LogError, match=re.escape(found.problem)):  # the sentence of show, check and open
        read(run.events)
    assert found.heldout is None and found.final_score is None and found.best is None  # figures of no record


def test_a_log_that_is_laid_out_in_another_way_is_none_the_worse(run: RunDir) -> None:
    rewrite_log(run, lambda lines: None)
    spaced = b"".join(line.replace(b'"seq":', b'"seq" : ', 1) for line in run.events.read_bytes().splitlines(True))
    run.events.write_bytes(spaced)
    assert summary(run.root).status == "completed"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_heldout_mean_that_its_episodes_contradict_is_damage(run: RunDir, recorded: bool) -> None:
    assert summary(run.root).word == "finished"
    whole = run.events.read_bytes()
    if not recorded:
        run.run_json.unlink()
    assert summary(run.root).word == "finished"
    run.events.write_bytes(whole.replace(b'"heldout"', b'"x"'))
    found = summary(run.root)
    assert found.word == "damaged" and found.heldout is None and found.env == "gym/cartpole"
    assert "held-out mean 7 over 4 cases, by the episodes none; `evotui check`" in found.problem
    hidden = re.compile(rb'("split":"heldout","submission":4,"position":2,"return_":)[^,]+')
    assert len(hidden.findall(whole)) == 1
    run.events.write_bytes(hidden.sub(rb"\g<1>99.5", whole))
    assert "by the episodes 29.95 over 4 cases" in summary(run.root).problem
    run.events.write_bytes(whole)
    assert summary(run.root).word == "finished"
    if recorded:
        rewrite_json(run.run_json, lambda d: d["outcome"].update(heldout_mean_return=500.0))
        assert "held-out mean 500 over 4 cases, by the episodes 7 over 4 cases" in summary(run.root).problem
