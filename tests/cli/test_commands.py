"""The command line as its users meet it: one sentence for a mistake, exit codes, JSON, and what is imported when."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evotui.cli.main import run
from evotui.record import events as e
from evotui.record.fold import fold_all
from evotui.record.lock import Lock
from evotui.record.log import encode, read
from evotui.record.rundir import RunDir, scan
from tests.patience import PATIENCE, wait_until

SMALL = ["--validation", "2", "--heldout", "3", "--workers", "1", "--headless"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs folder with one small finished run in it."""
    folder = tmp_path_factory.mktemp("finished") / "runs"
    assert run(["run", "cartpole", "--budget", "6", *SMALL, "--quiet", "--name", "abc123", "--runs", str(folder)]) == 0
    return folder


def copy_of(finished: Path, runs: Path) -> Path:
    shutil.copytree(finished, runs)
    return next(scan(runs))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", "cartpol", *SMALL], 3, r"unknown environment 'cartpol'.*cartpole"),
        (["run", "gymnasium:CartPol-v1", *SMALL], 3, r"CartPol-v1.*CartPole-v1"),
        (["run", "cartpole", "--budget", "0", *SMALL], 2, r"at least 1 episode, not 0"),
        (["run", "cartpole", "--budget", "-3", *SMALL], 2, r"at least 1 episode, not -3"),
        (["run", "cartpole", "--seed", "-1", *SMALL], 2, r"seed is 0 or more"),
        (["run", "cartpole", "--pools", "nowhere", *SMALL], 2, r"--pools takes secret, paper, or a folder"),
        (["run", "cartpole", "--agent", "nobody", *SMALL], 2, r"no agent 'nobody'; there are search"),
        (["run", "cartpole", "--approve", *SMALL], 2, r"needs the screen"),
        (["run", "cartpole", "--agent", "litellm", *SMALL], 2, r"needs --model"),
        (["run", "cartpole", "--agent", "command", *SMALL], 2, r"needs the program"),
        (["run", "cartpole", "-o", "zeal=1", *SMALL], 2, r"no option 'zeal'"),
        (["run", "cartpole", "--max-cost", "1", *SMALL], 2, r"'search' has no option max_cost"),
        (["run", "cartpole", "--agent", "command", "--max-wall", "soon", *SMALL, "--", "true"], 2, r"90s, 30m or 2h"),
        (["run", "cartpole", "--at", "3", *SMALL], 2, r"--at goes with --branch"),
        (["run", "--branch", "zzz", *SMALL], 3, r"no run 'zzz'"),
        (["run", "cartpole", "--profile", "huge", *SMALL], 2, r"no profile 'huge'"),
        (["run", "cartpole", "--start", "nobody", *SMALL], 2, r"nobody"),
        (["run", "cartpole", "--name", "../x", *SMALL], 2, r"cannot name a run"),
        (["run", "cartpole", *SMALL, "--runs", "/proc/none"], 1, r"cannot write runs into /proc/none"),
        (["show", "zzz"], 3, r"no run 'zzz' below runs"),
        (["check", "/etc"], 3, r"is no run"),
        (["open", "zzz"], 3, r"no run 'zzz'"),
        (["watch", "zzz"], 3, r"no run 'zzz'"),
        ([], 2, r"needs a terminal"),
    ],
)
def test_a_mistake_is_one_sentence_and_a_code(
    runs: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    assert run(arguments) == code
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "Traceback" not in err
    assert re.search(says, err), err
    assert not runs.exists() or not list(scan(runs))


def test_a_wrong_field_in_a_task_file_is_named_with_file_and_line(
    runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = Path("environments/mine")
    folder.mkdir(parents=True)
    (folder / "task.md").write_text("# Mine\n")
    (folder / "task.toml").write_text(
        'slug = "mine"\ngym_id = "CartPole-v1"\ntitle = "Mine"\nfamily = "custom"\nsucess = "terminated"\n'
    )
    assert run(["run", "mine", *SMALL]) == 2
    err = capfd.readouterr().err
    assert "task.toml" in err and "line 5" in err and "sucess" in err and "success" in err


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = Path("environments/far")
    folder.mkdir(parents=True)
    (folder / "task.md").write_text("# Far\n")
    (folder / "task.toml").write_text(
        'slug = "far"\ngym_id = "Far-v0"\ntitle = "Far"\nfamily = "custom"\n'
        'packages = ["no_such_package_here"]\nextra = "core16"\n'
    )
    assert run(["run", "far", *SMALL]) == 1
    assert "pip install 'evotui[core16]'" in capfd.readouterr().err


def test_headless_json_is_one_document(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "cartpole", "--budget", "5", "--seed", "3", *SMALL, "--json", "--runs", str(runs)]) == 0
    out, err = capfd.readouterr()
    document = json.loads(out)
    assert document["schema_version"] == 1 and document["status"] == "completed" and document["agent"] == "search"
    assert document["budget"] == {"total": 5, "used": 5, "remaining": 0}
    assert document["heldout"]["n"] == 3 and set(document["best"]) == {"submission", "val_score"}
    assert isinstance(document["submissions"], int) and document["env"] == "gym/cartpole"
    assert "5/5" in err or "finished" in err


def test_ls_show_check(finished: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ["--runs", str(finished)]
    assert run(["ls", *where]) == 0
    assert "abc123" in capfd.readouterr().out
    assert run(["show", "abc", *where]) == 0
    assert "CartPole" in capfd.readouterr().out
    assert run(["check", "abc", *where]) == 0
    capfd.readouterr()
    for command in (["ls"], ["show", "abc"], ["check", "abc"]):
        assert run([*command, *where, "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["schema_version"] == 1


def test_check_names_the_breach(finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = copy_of(finished, runs)
    record = json.loads((path / "run.json").read_text())
    record["outcome"]["heldout_mean_return"] = 500.5
    (path / "run.json").write_text(json.dumps(record))
    assert run(["check", "abc", "--runs", str(runs)]) == 1
    assert "heldout_mean_return" in capfd.readouterr().out


@pytest.mark.parametrize("command", ["ls", "ls --json", "leaderboard", "leaderboard --json", "leaderboard --paper"])
def test_a_folder_that_was_named_must_be_there_the_default_need_not(
    runs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for arguments in ([*command.split(), "--runs", "nowhere"], ["--runs", "nowhere", *command.split()]):
        assert run(arguments) == 2
        assert capfd.readouterr() == ("", "evotui: --runs: there is no folder nowhere\n")
    assert run(command.split()) == 0
    assert "there is no folder" not in capfd.readouterr().err
    monkeypatch.setenv("EVOTUI_RUNS", "later")  # as the default: set once, before the first run
    assert run(["ls"]) == 0
    assert capfd.readouterr().err == "no runs yet below later; `evotui demo` makes one\n"
    Path("afile").touch()
    assert run([*command.split(), "--runs", "afile"]) == 2 and "is a file" in capfd.readouterr().err

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    Path("closed").mkdir()
    monkeypatch.setattr("evotui.cli.folders.os.scandir", refused)
    assert run([*command.split(), "--runs", "closed"]) == 1
    assert capfd.readouterr().err == "evotui: closed: Permission denied\n"


def test_check_takes_a_folder_of_runs(finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A line for each of its runs; a breach, or a run that cannot be checked, hides no other, and sets the code."""
    path = copy_of(finished, runs)
    assert run(["check", "runs"]) == 0
    assert capfd.readouterr().out == "search/gym/cartpole/abc123: the record holds\n1 run: 1 in order\n"
    hurt, newer = path.with_name("hurt"), path.with_name("newer")
    for other in (hurt, newer):
        shutil.copytree(path, other)
    log = newer / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"schema_version":1', b'"schema_version":99', 1))
    shutil.move(hurt, here := runs.parent / "hurt")
    assert run(["check", "runs"]) == 3  # as for this one alone
    out = capfd.readouterr().out
    assert re.search(r"newer: not checked: .*upgrade evotui.*\n2 runs: 1 in order, 1 not checked\n", out)
    shutil.move(here, hurt)
    lines = (hurt / "events.jsonl").read_bytes().splitlines(keepends=True)
    (hurt / "events.jsonl").write_bytes(b"".join([*lines[:9], b"garbage\n", *lines[10:]]))
    assert run(["check", str(runs / "search")]) == 1
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "gym/cartpole/abc123: the record holds" and len(out) == 4
    assert out[1].startswith("gym/cartpole/hurt: 1 breach: events.jsonl, line 10: not an event")
    assert out[3] == "3 runs: 1 in order, 1 with breaches, 1 not checked"
    assert run(["check", "runs", "--json"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert document["schema_version"] == 1 and document["ok"] is False
    assert {r["run"]: r["ok"] for r in document["runs"]} == {"abc123": True, "hurt": False, "newer": False}
    assert document["runs"][1]["breaches"][0]["where"] == "events.jsonl, line 10" and document["runs"][2]["problem"]
    Path("nothing").mkdir()
    assert run(["check", "nothing"]) == 3 and "is no run" in capfd.readouterr().err


def test_a_torn_last_line_is_no_breach_and_is_told(
    finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = copy_of(finished, runs)
    log = path / "events.jsonl"
    whole = read(log)
    log.write_bytes(log.read_bytes()[:-20])
    (path / "run.json").unlink()
    assert len(read(log)) == len(whole) - 1
    assert run(["check", "abc", "--runs", str(runs)]) == 0
    torn = "the last line of the log is torn, as a crash leaves it: it counts for nothing, and resuming cuts it off"
    assert capfd.readouterr().out == f"abc123: the record holds\nnote: {torn}\n"
    assert run(["check", "runs"]) == 0
    assert f"abc123: the record holds; {torn}\n" in capfd.readouterr().out
    assert run(["check", "abc", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["ok"] is True and document["notes"] == [torn]
    lock = Lock(RunDir(path))  # somebody is just writing that line
    assert run(["check", "abc"]) == 0
    lock.release()
    assert capfd.readouterr().out == "abc123: the record holds\n"


def test_a_log_of_a_newer_schema_is_refused_with_the_way_out(
    finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = copy_of(finished, runs)
    log = path / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"schema_version":1', b'"schema_version":99', 1))
    for command in ("show", "open", "check"):
        code = run([command, "abc", "--runs", str(runs)])
        text = "".join(capfd.readouterr())
        assert code in (1, 3) and "99" in text and "upgrade" in text and "Traceback" not in text


@pytest.mark.parametrize(
    "what", ["a folder", "a link to nothing", "a link to itself", "not allowed", "a pipe", "a socket", "a device"]
)
def test_a_log_that_cannot_be_read_is_worded_in_one_way(
    finished: Path, runs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    log = copy_of(finished, runs) / "events.jsonl"
    log.unlink()
    match what:
        case "a folder":
            log.mkdir()
        case "a link to nothing":
            log.symlink_to("nothing")
        case "a link to itself":
            log.symlink_to(log)
        case "a pipe":
            os.mkfifo(log)
        case "a socket":
            with monkeypatch.context() as there, socket.socket(socket.AF_UNIX) as listener:
                there.chdir(log.parent)  # a socket's path is short
                listener.bind(log.name)
        case "a device":
            log.symlink_to("/dev/zero")
        case _:
            log.touch()
            really = os.open

            def refused(path: Any, *arguments: Any, **more: Any) -> int:
                if str(path).endswith(log.name):
                    raise PermissionError(13, "Permission denied", str(path))
                return really(path, *arguments, **more)

            monkeypatch.setattr(os, "open", refused)
    reasons = {"a folder": "Is a directory", "not allowed": "Permission denied", "a pipe": "Not a regular file"}
    reason = reasons.get(what, "Not a regular file" if what in ("a socket", "a device") else "")
    said = []
    for arguments in (["show", "abc"], ["check", "abc"], ["open", "abc"], ["watch", "abc"], ["run", "--resume", "abc"],
                      ["run", "--branch", "abc"]):  # fmt: skip
        assert run([*arguments, *(["--headless"] if "run" in arguments else [])]) == 3
        out, err = capfd.readouterr()
        assert out == ""
        said.append(err.replace("evotui: no terminal here, so this run goes headless\n", ""))
    assert len(set(said)) == 1 and said[0].startswith("evotui: events.jsonl: cannot be read (") and reason in said[0]
    for selector in ("abc", str(log.parent)):
        assert run(["check", selector, "--json"]) == 3
        out, err = capfd.readouterr()
        document = json.loads(out)
        assert err == "" and document["run"] == "abc123" and document["ok"] is False and document["breaches"] == []
        assert f"evotui: {document['problem']}\n" == said[0]
        assert run(["check", selector]) == 3
        assert capfd.readouterr() == ("", said[0])
    assert run(["ls"]) == 0
    assert said[0].replace("evotui", "abc123", 1) in capfd.readouterr().out


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "no event yet"), (b"\x00\xff" * 500 + b"\n", "events.jsonl, line 1: not an event")]
)
def test_a_run_that_never_began_or_is_garbage_is_a_sentence(
    runs: Path, capfd: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    (runs / "search" / "abc").mkdir(parents=True)
    (runs / "search" / "abc" / "events.jsonl").write_bytes(content)
    for arguments in (["show", "abc"], ["open", "abc"], ["run", "--resume", "abc", "--headless"]):
        assert run(arguments) == 3
        out, err = capfd.readouterr()
        assert out == "" and says in err and err.count("\n") == 1 and "contradicts" not in err
    assert run(["ls"]) == 0 and says in capfd.readouterr().out


def test_what_names_no_single_run_says_what_to_name(
    finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = copy_of(finished, runs)
    shutil.copytree(path, path.with_name("other"))
    for selector, says in (("", "name a run"), ("runs", "runs is no run but a folder of 2: name one of them")):
        assert run(["show", selector]) == 3
        assert says in capfd.readouterr().err


def test_an_ambiguous_prefix_lists_the_candidates(
    finished: Path, runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = copy_of(finished, runs)
    shutil.copytree(path, path.with_name("abc999"))
    assert run(["show", "abc", "--runs", str(runs)]) == 3
    err = capfd.readouterr().err
    assert "abc123" in err and "abc999" in err


def test_an_unknown_fact_is_kept_and_passed_over(finished: Path, runs: Path) -> None:
    path = copy_of(finished, runs)
    log = path / "events.jsonl"
    n = len(read(log))
    with log.open("ab") as file:
        file.write(encode(e.Record(n, 0.0, e.Unknown("FromTheFuture", {"x": 1}))))
    assert read(log)[-1].event == e.Unknown("FromTheFuture", {"x": 1})
    assert run(["show", "abc", "--runs", str(runs)]) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_a_whole_record_and_no_process(runs: Path, number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "evotui", "run", "cartpole", "--budget", "10000", *SMALL, "--runs", str(runs)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"EVOTUI_TEST_MARK": str(runs)},
    )  # fmt: skip
    try:
        assert wait_until(lambda: any(b"SubmissionFinished" in (r / "events.jsonl").read_bytes() for r in scan(runs)))
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
    finally:
        process.kill()
        process.communicate()
    state = fold_all(read(next(scan(runs)) / "events.jsonl"))
    assert state.ended is None and state.agent_ended == "stopped" and not state.agent_live
    assert run(["check", str(next(scan(runs)))]) == 0
    mark = f"EVOTUI_TEST_MARK={runs}".encode()
    assert not [p for p in Path("/proc").iterdir() if p.name.isdigit() and mark in environ_of(p)]


def environ_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


HEAVY = ("gymnasium", "minigrid", "litellm", "cma", "pygame", "textual", "rich")


@pytest.mark.parametrize(
    ("code", "denied"),
    [
        ("import evotui.kernel.session, evotui.kernel.opening", HEAVY),
        ("import evotui.cli.main", (*HEAVY, "numpy", "msgspec")),
        ("import evotui.agents.catalog, evotui.agents.search", HEAVY),
        ("import evotui.ui.app, evotui.cli.launcher, evotui.cli.screen", HEAVY[:5]),
        ("import evotui.suite.catalog; evotui.suite.catalog.list_tasks()", (*HEAVY, "numpy")),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str, denied: tuple[str, ...]) -> None:
    script = f"{code}\nimport sys\nprint(*sorted(set({denied!r}) & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.split() == []


@pytest.mark.parametrize(
    "words", [[], ["evaluate", "reference", "--env", "cartpole"], ["run", "cartpole"], ["envs"], ["ls"]]
)
def test_an_agent_inside_a_run_has_only_its_door(
    words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOTUI_AGENT", "tag.1")
    assert run(words) == 5
    assert "`evotui submit`, `info` and `task`" in capfd.readouterr().err
