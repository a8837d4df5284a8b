"""Run folders: making, naming, finding; JSON files written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evotui.record.rundir import (
    NotFound,
    RunDirError,
    create,
    find,
    read_json,
    safe,
    scan,
    to_json,
    width_of,
    write_atomic,
)


def made(runs: Path, env: str, name: str) -> Path:
    run = create(runs, "search", env, 8, name)
    run.events.write_bytes(b"")
    return run.root


def test_a_new_run_has_its_folders_and_a_closed_one_for_the_host(tmp_path: Path) -> None:
    run = create(tmp_path, "openai/gpt 5", "gym/cartpole", 1500)
    assert run.root.relative_to(tmp_path).parts[:-1] == ("openai-gpt-5", "gym", "cartpole") and len(run.root.name) == 6
    assert run.submit_name(7) == "submit_0007" and run.episode(7, 12).name == "ep_0012" and run.width == width_of(1500)
    assert stat.S_IMODE(run.host.stat().st_mode) == stat.S_IMODE(run.host_pools.stat().st_mode) == 0o700
    assert all(p.is_dir() for p in (run.system, run.feedback, run.checkpoints, run.logs, run.blobs, run.actions))


def test_names_are_one_segment_and_not_taken_twice(tmp_path: Path) -> None:
    create(tmp_path, "search", "cartpole", 8, "mine")
    with pytest.raises(RunDirError, match=r"exists already"):
        create(tmp_path, "search", "cartpole", 8, "mine")
    for bad in ("", "../up", "a/b", ".hidden", "a b", "-x"):
        with pytest.raises(RunDirError, match=r"cannot name a run"):
            create(tmp_path, "search", "cartpole", 8, bad)


@pytest.mark.parametrize("hostile", ["..", "../../etc", ".ssh", "", "/", "-rf", "a/../../b"])
def test_no_name_leaves_the_runs_folder(tmp_path: Path, hostile: str) -> None:
    run = create(tmp_path / "runs", hostile, hostile, 8)
    assert run.root.resolve().is_relative_to((tmp_path / "runs").resolve())
    assert "/" not in safe(hostile) and not safe(hostile).startswith((".", "-")) and safe(hostile)


def test_where_nothing_can_be_written_one_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(RunDirError, match=r"cannot write runs into .*--runs"):
        create(tmp_path / "runs", "search", "cartpole", 8)


def test_scan_yields_runs_in_order_and_looks_into_none_of_them(tmp_path: Path) -> None:
    b, a = made(tmp_path, "gym/b", "x2"), made(tmp_path, "gym/a", "x1")
    (a / "workspace" / "events.jsonl").write_bytes(b"")
    (tmp_path / ".trash" / "old").mkdir(parents=True)
    (tmp_path / ".trash" / "old" / "events.jsonl").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert list(scan(tmp_path)) == [a, b]
    assert list(scan(tmp_path / "nowhere")) == []


def test_find_takes_paths_names_and_unique_prefixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, six = made(tmp_path, "gym/a", "abc1"), made(tmp_path, "gym/b", "abd2"), made(tmp_path, "gym/b", "abc12")
    monkeypatch.chdir(tmp_path)
    assert find(str(one), tmp_path) == one
    assert find("abd", tmp_path) == two
    assert find("abc1", tmp_path) == one  # the whole name beats a longer one
    assert find("search/gym/b/abc", tmp_path) == six
    assert find(str(tmp_path / "search" / "gym" / "a"), tmp_path) == one  # a folder that holds one run
    with pytest.raises(NotFound, match=r"ambiguous: .*gym/a/abc1.*gym/b/abc12"):
        find("abc", tmp_path)
    with pytest.raises(NotFound, match=r"no run 'zz'.*evotui ls"):
        find("zz", tmp_path)
    with pytest.raises(NotFound, match=r"search is no run but a folder of 3: name one"):
        find("search", tmp_path)


def test_a_folder_or_file_of_the_same_name_does_not_hide_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "runs", "gym/a", "demo")
    (tmp_path / "demo").mkdir()
    (tmp_path / "dem").write_text("")
    monkeypatch.chdir(tmp_path)
    assert find("demo", tmp_path / "runs") == run == find("dem", tmp_path / "runs")
    with pytest.raises(NotFound, match=r"is a file"):
        find("./dem", tmp_path / "runs")


def test_many_candidates_are_not_all_listed(tmp_path: Path) -> None:
    for i in range(9):
        made(tmp_path, "gym/a", f"x{i}")
    with pytest.raises(NotFound, match=r"ambiguous: .* …$"):
        find("x", tmp_path)


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_atomic(path, to_json({"b": 1, "a": "ü"}), mode=0o600)
    assert path.read_text() == '{\n  "a": "ü",\n  "b": 1\n}\n' and stat.S_IMODE(path.stat().st_mode) == 0o600

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space"):
        write_atomic(path, b"{}")
    assert read_json(path) == {"a": "ü", "b": 1} and list(tmp_path.iterdir()) == [path]


def test_unreadable_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match=r"gone.json: cannot be read"):
        read_json(tmp_path / "gone.json")
    (tmp_path / "bad.json").write_text('{\n"a": }')
    with pytest.raises(RunDirError, match=r"bad.json: is not valid JSON .*line 2"):
        read_json(tmp_path / "bad.json")
    with pytest.raises(ValueError, match=r"JSON compliant"):
        to_json({"a": float("nan")})


def test_the_collection_of_a_suites_run_is_what_the_suite_lies_in(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = create(runs / "suite", "m", "gym/x", 8, "a")
    assert run.collection("gym/x") == runs / "suite"
    (runs / "suite" / "suite.toml").write_text("")
    assert run.collection("gym/x") == runs
