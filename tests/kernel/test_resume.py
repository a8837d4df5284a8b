"""Resuming: from whatever the log ends in, the final record is that of the run that nobody disturbed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.kills import record_of
from evotui.cli.main import run
from evotui.cli.recorded import LogFeed
from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.fold import fold_all
from evotui.record.lock import Lock
from evotui.record.log import read
from evotui.record.rundir import RunDir, scan
from evotui.record.tree import restore
from evotui.rollout.workers import EngineError
from tests.kernel import scripts

SMALL = ["--validation", "2", "--heldout", "3", "--workers", "1", "--headless", "--quiet"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the search agent, with a submission of several cases in it."""
    folder = tmp_path_factory.mktemp("whole") / "runs"
    assert run(["run", "cartpole", "--budget", "14", "--seed", "3", *SMALL, "--name", "r", "--runs", str(folder)]) == 0
    return next(scan(folder))


def cut(whole: Path, runs: Path, after: int, torn: bool = False) -> Path:
    """A copy of the run as a kill leaves it right after fact ``after``: later files of the end are not there yet."""
    copy = runs / "search" / "gym" / "cartpole" / "r"
    shutil.copytree(whole, copy)
    lines = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
    rest = lines[after + 1][:-9] if torn and after + 1 < len(lines) else b""
    (copy / "events.jsonl").write_bytes(b"".join(lines[: after + 1]) + rest)
    (copy / "run.json").unlink()
    shutil.rmtree(copy / "pools")
    files = fold_all(read(copy / "events.jsonl")).files
    restore({path: (copy / "blobs" / sha256).read_bytes() for path, sha256 in files.items()}, RunDir(copy).system)
    return copy


@pytest.mark.timeout(900)  # about twenty whole resumes: a minute, but not on a machine that is busy with others
def test_every_kind_of_boundary(whole: Path, tmp_path: Path) -> None:
    """One cut after the last fact of each kind but the end: about twenty resumes, every second one with a torn line."""
    last = {type(r.event).__name__: r.seq for r in read(whole / "events.jsonl")}
    boundaries = sorted(seq for kind, seq in last.items() if kind not in ("RunOpened", "RunEnded", "PoolsRevealed"))
    undisturbed = record_of(whole)
    for i, seq in enumerate(boundaries):
        copy = cut(whole, tmp_path / str(seq), seq, torn=i % 2 == 0)
        assert run(["run", "--resume", str(copy), "--headless", "--quiet"]) == 0, seq
        assert check(copy) == [], seq
        assert record_of(copy) == undisturbed, seq
        shutil.rmtree(tmp_path / str(seq))


def test_finished_episodes_of_the_interrupted_submission_are_kept(whole: Path, tmp_path: Path) -> None:
    records = read(whole / "events.jsonl")
    many = max(fold_all(records).submissions, key=lambda s: s.cost).index
    half = next(r.seq for r in records if isinstance(r.event, e.EpisodeFinished) and r.event.submission == many)
    copy = cut(whole, tmp_path, half)
    used = fold_all(read(copy / "events.jsonl")).budget.used
    assert run(["run", "--resume", str(copy), "--headless", "--quiet"]) == 0
    after = [r.event for r in read(copy / "events.jsonl")[half + 1 :]]
    first = records[half].event
    assert isinstance(first, e.EpisodeFinished)
    assert not any(isinstance(x, e.EpisodeStarted) and x.episode == first.episode for x in after)
    accepted = [x for x in after if isinstance(x, e.SubmissionAccepted)]
    assert all(x.submission > many for x in accepted)
    assert fold_all(read(copy / "events.jsonl")).budget.used == used + sum(len(x.cases) for x in accepted)


def test_what_cannot_be_resumed_is_said(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--resume", str(whole), "--headless"]) == 1
    assert "has ended (completed): there is nothing to resume" in capfd.readouterr().err
    assert run(["run", "cartpole", "--resume", str(whole), "--headless"]) == 2
    assert "leave out: env" in capfd.readouterr().err
    copy = cut(whole, tmp_path, 30)
    (copy / ".host" / "pools" / "valid.json").write_bytes((copy / ".host" / "pools" / "heldout.json").read_bytes())
    assert run(["run", "--resume", str(copy), "--headless"]) == 2
    assert "heldout" in capfd.readouterr().err


def test_a_run_whose_hidden_cases_lie_open_is_not_resumed(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copy = cut(whole, tmp_path, 30)
    shutil.copytree(whole / "pools", copy / "pools")
    before = (copy / "events.jsonl").read_bytes()
    assert run(["run", "--resume", str(copy), "--headless"]) == 1
    assert "hidden cases lie open" in capfd.readouterr().err
    assert (copy / "events.jsonl").read_bytes() == before


def test_an_emptied_log_is_a_breach(whole: Path, tmp_path: Path) -> None:
    copy = cut(whole, tmp_path, 30)
    (copy / "events.jsonl").write_bytes(b"")
    assert [breach.code for breach in check(copy)] == ["orphan"]


async def test_who_watches_an_interrupted_run_sees_it_go_on(whole: Path, tmp_path: Path) -> None:
    copy = cut(whole, tmp_path, 30)
    feed = await LogFeed.open(copy)
    states = feed.updates()
    assert (await anext(states)).seq == 30 and not feed.live
    lines = (whole / "events.jsonl").read_bytes().splitlines(keepends=True)
    with (copy / "events.jsonl").open("ab") as log:
        log.write(b"".join(lines[31:]))
    assert (await anext(states)).ended is not None
    with pytest.raises(StopAsyncIteration):
        await anext(states)
    await feed.close()


def test_a_run_has_one_writer(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = cut(whole, tmp_path, 30)
    lock = Lock(RunDir(copy))
    try:
        assert run(["run", "--resume", str(copy), "--headless"]) == 5
        assert "another process is running r" in capfd.readouterr().err
    finally:
        lock.release()


async def test_a_host_that_cannot_write_breaks_the_run_off_and_it_resumes(tmp_path: Path) -> None:
    session = await open_run(resolve(env="cartpole", budget=4, validation=2, heldout=2, workers=1), tmp_path)
    root = session.run_dir.root
    blocked = session.run_dir.feedback_of(1)
    agent = scripts.Scripted([(scripts.GOOD, [0]), (None, [1, 2]), (None, [3])])
    blocked.write_text("where a folder must be")  # refuses to be written into, as a full disk would
    with pytest.raises(EngineError, match="cannot be recorded"):
        await session.run("script", "script", lambda: agent.play(session))
    await session.close()
    state = fold_all(read(root / "events.jsonl"))
    assert state.ended is None and state.finalizing is None and state.budget.used == 3
    blocked.unlink()
    session, _ = await reopen_run(root)
    try:
        rest = scripts.Scripted([(None, [3])])
        assert await session.run("script", "script", lambda: rest.play(session)) == "completed"
        assert session.state.budget.used == 4 and [s.ok for s in session.state.submissions] == [True] * 3
    finally:
        await session.close()
    assert check(root) == []


async def test_a_stop_before_finalization_is_taken_up_again_is_heard(whole: Path, tmp_path: Path) -> None:
    opened = next(r.seq for r in read(whole / "events.jsonl") if isinstance(r.event, e.FinalizationStarted))
    copy = cut(whole, tmp_path, opened)
    session, _ = await reopen_run(copy)
    try:
        session.wish("stop")
        assert await session.run("search", "search", scripts.Scripted([]).play) == "stopped"  # type: ignore[arg-type]
    finally:
        await session.close()
    assert not any(isinstance(r.event, e.HiddenEpisodeFinished) for r in read(copy / "events.jsonl"))
    assert check(copy) == [] and session.state.selected is None
