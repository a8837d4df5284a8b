"""Only regular files are opened: nothing that lies in a record's place makes a listing or a check wait for ever."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from evotui.record.check import examine
from evotui.record.lock import Lock, is_held
from evotui.record.log import LONGEST, LogError, Reader
from evotui.record.regular import open_regular, read_regular, text_of_regular
from evotui.record.rundir import RunDir, RunDirError, read_json
from evotui.record.suitedir import SuiteDir
from evotui.record.suitefile import SuiteFileError, read_plan
from evotui.record.summary import summary
from evotui.suite.errors import BadTaskFile
from evotui.suite.taskfile import read_task
from evotui.ui.costs import Limits, read_limits
from tests.golden_run import write
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(round(PATIENCE))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def piped(path: Path) -> Path:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def test_what_is_no_regular_file_says_so_and_a_link_to_one_is_followed(tmp_path: Path) -> None:
    for path in (piped(tmp_path / "pipe"), Path("/dev/zero")):
        with pytest.raises(OSError) as caught:
            open_regular(path)
        assert caught.value.strerror == "Not a regular file" and caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "file").write_bytes(b"a\r\nb\n")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"a\r\nb\n" and text_of_regular(tmp_path / "link") == "a\nb\n"
    with pytest.raises(OSError, match="too large"):
        read_regular(tmp_path / "file", 4)


@pytest.mark.parametrize("images", [False, True])
def test_a_pipe_in_place_of_any_file_of_a_record_is_a_breach_and_stops_nothing(tmp_path: Path, images: bool) -> None:
    run = write(tmp_path / "runs", images=images)
    names = [path.relative_to(run.root) for path in sorted(run.root.rglob("*")) if path.is_file()]
    seen: dict[str, str] = {}
    for name in names:
        if name.name in seen and name.name.startswith(("std", "error", "trajectory", "observations", "_meta")):
            continue  # one of each kind of them
        shutil.copy2(run.root / name, tmp_path / "kept")
        piped(run.root / name)
        found = summary(run.root)
        assert found.name == run.root.name
        if name.name == "events.jsonl":
            assert found.problem == "events.jsonl: cannot be read (Not a regular file)"
        else:
            seen[name.name] = " ".join(b.sentence for b in examine(run.root).breaches)
        (run.root / name).unlink()
        shutil.copy2(tmp_path / "kept", run.root / name)
    read = {"run.json", "run.toml", "trajectory.jsonl", "summary.json", "_meta.json", "metrics.json", "AGENTS.md"}
    for name in read | ({"observations.npz"} if images else set()):
        assert "cannot be read (" in seen[name] and "Not a regular file" in seen[name], name
    assert examine(run.root).breaches == ()


def test_other_files_that_commands_open(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.host.mkdir(parents=True)
    piped(run.host / "lock")
    assert not is_held(run)
    with pytest.raises(OSError, match="Not a regular file"):
        Lock(run)
    piped(run.run_toml)
    assert read_limits(run) == Limits()
    with pytest.raises(RunDirError, match="Not a regular file"):
        read_json(piped(tmp_path / "document.json"))
    with pytest.raises(SuiteFileError, match="Not a regular file"):
        read_plan(piped(tmp_path / "suite.toml"))
    piped(tmp_path / "failures.json")
    with pytest.raises(RunDirError, match="Not a regular file"):
        SuiteDir.open(tmp_path)
    piped(tmp_path / "task.toml")
    with pytest.raises(BadTaskFile, match="Not a regular file"):
        read_task(tmp_path)


@pytest.mark.parametrize("whole", [False, True])
def test_a_log_with_a_hole_is_damaged_where_the_hole_begins(tmp_path: Path, whole: bool) -> None:
    """Three gigabytes that are not there, after the facts or in place of them."""
    run = write(tmp_path / "runs")
    lines = 0 if whole else run.events.read_bytes().count(b"\n")
    if whole:
        run.events.write_bytes(b"")
    os.truncate(run.events, 3 << 30)
    says = f"line {lines + 1}: longer than 64 MB, which no event is"
    assert [b.where for b in examine(run.root).breaches] == [f"events.jsonl, line {lines + 1}"]
    found = summary(run.root)
    assert says in found.problem and found.word == ("unreadable" if whole else "damaged")
    assert found.env == ("" if whole else "gym/cartpole")


def test_a_long_line_is_read_whole_however_the_reads_fall(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    text = "x" * 100_000
    line = b'{"seq":%d,"time":1.0,"kind":"AgentMessage","text":"' + text.encode() + b'"}\n'
    log.write_bytes(line % 0 + line % 1 + b'{"seq":2')
    for chunk in (1000, 1 << 20, len(line % 0)):
        reader = Reader(log)
        records = list(reader.poll(chunk))
        assert [getattr(record.event, "text", "") for record in records] == [text, text] and reader.torn
        assert reader.offset == 2 * len(line % 0)
        reader.close()
    os.truncate(log, LONGEST + (8 << 20))
    reader = Reader(log)
    with pytest.raises(LogError, match="line 3: longer than"):
        list(reader.poll())
    reader.close()
