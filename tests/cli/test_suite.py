"""Suites and their leaderboard, from the command line: small ones of warm-up environments, run for real."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.terminal import Terminal
from evotui.cli.leaderboard import gather
from evotui.cli.main import run
from evotui.record.check import check
from evotui.record.rundir import scan
from evotui.record.suitedir import SuiteDir
from evotui.record.suitefile import read_plan

TINY = """\
name = "tiny"
envs = ["cartpole", "pendulum"]
profile = "core16-paper"
budget = 4
validation = 2
heldout = 3
workers = 1

[[agents]]
agent = "search"
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs folder with the tiny suite, run without a break."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "tiny.toml").write_text(TINY)
    assert run(["suite", str(folder / "tiny.toml"), "--quiet", "--runs", str(folder / "runs")]) == 0
    return folder / "runs"


def board(runs: Path, capfd: Capture, *more: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run(["leaderboard", *more, "--json", "--runs", str(runs)]) == 0
    return json.loads(capfd.readouterr().out)


def test_every_cell_is_a_run_that_holds(done: Path, capfd: Capture) -> None:
    runs = list(scan(done))
    assert sorted(path.name for path in runs) == ["tiny.search.cartpole.1", "tiny.search.pendulum.1"]
    capfd.readouterr()
    for selector in ("tiny", str(done / "tiny")):  # by its name, which is also how its runs' names begin, or its path
        assert run(["check", selector, "--runs", str(done)]) == 0
        out = capfd.readouterr().out.splitlines()
        assert len(out) == 3 and out[2] == "2 runs: 2 in order"
    assert all(check(path) == [] for path in runs)
    assert run(["ls", "--runs", str(done)]) == 0
    assert capfd.readouterr().out.count("tiny.search") == 2


def test_what_is_finished_is_not_run_again(done: Path, capfd: Capture) -> None:
    before = {path: (path / "events.jsonl").read_bytes() for path in scan(done)}
    assert run(["suite", str(done / "tiny"), "--json", "--runs", str(done)]) == 0
    out, err = capfd.readouterr()
    document = json.loads(out)
    assert document["counts"]["finished"] == 2 and [c["state"] for c in document["cells"]] == ["finished"] * 2
    assert "[2/2] pendulum" in err
    assert {path: (path / "events.jsonl").read_bytes() for path in scan(done)} == before


def test_the_leaderboard_of_a_suite_and_the_papers(done: Path, capfd: Capture) -> None:
    alone = board(done, capfd)
    (entry,) = alone["entries"]
    assert (entry["model"], entry["harness"], entry["source"]) == ("search", "search", "tiny")
    assert set(entry["scores"]) == {"cartpole", "pendulum"} and entry["core16"] is None and entry["overall"] is None
    assert entry["facts"]["pools"] == "paper" and entry["facts"]["finished"] == 2
    for path in scan(done):
        outcome = json.loads((path / "run.json").read_text())["outcome"]
        assert entry["scores"][path.name.split(".")[2]] == outcome["heldout_mean_return"]
    both = board(done, capfd, "tiny", "--paper")
    assert both["k"] == 6 and len(both["environments"]) == 18
    paper = {e["model"]: e for e in both["entries"] if e["source"] == "paper"}
    assert paper["GPT-5.5"]["paper"]["core16"] == paper["GPT-5.5"]["core16"] == 0.890625
    assert run(["leaderboard", "--paper", "--csv", "--runs", str(done)]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert len(rows) == 6 and rows[-1]["source"] == "tiny"
    assert float(rows[-1]["pendulum"]) == entry["scores"]["pendulum"] and rows[-1]["acrobot"] == ""
    assert run(["leaderboard", "--paper", "--runs", str(done)]) == 0
    text = capfd.readouterr().out
    assert re.search(r"1  GPT-5.5 .* 0\.891", text) and "(K = 5)" in text and re.search(r"\*  search", text)


def until(process: subprocess.Popen[str], there: Callable[[], bool], number: signal.Signals) -> int:
    """Send a signal as soon as something is there; the exit code."""
    try:
        while process.poll() is None and not there():
            pass
        process.send_signal(number)
        return process.wait(60)
    finally:
        process.kill()
        process.communicate()


def test_a_suite_that_was_stopped_and_killed_gives_the_same_leaderboard(here: Path, done: Path, capfd: Capture) -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "evotui", "suite", "tiny.toml"], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def evolving(env: str) -> bool:
        log = next((p / "events.jsonl" for p in scan(here / "runs") if f".{env}." in p.name), None)
        return log is not None and b"SubmissionFinished" in log.read_bytes()

    assert until(start(), lambda: evolving("cartpole"), signal.SIGINT) == 130
    assert until(start(), lambda: evolving("pendulum"), signal.SIGKILL) == -signal.SIGKILL
    first = next(p for p in scan(here / "runs") if ".cartpole." in p.name)
    log = (first / "events.jsonl").read_bytes()
    states = [s["state"] for s in document_of(here / "runs", capfd)["cells"]]
    assert states == ["finished", "finished"]
    assert (first / "events.jsonl").read_bytes() == log
    assert board(here / "runs", capfd) == board(done, capfd)
    assert all(check(path) == [] for path in scan(here / "runs"))


def document_of(runs: Path, capfd: Capture, code: int = 0) -> dict[str, Any]:
    capfd.readouterr()
    assert run(["suite", "tiny.toml", "--json", "--quiet", "--runs", str(runs)]) == code
    return json.loads(capfd.readouterr().out)


def test_a_failing_cell_is_told_and_stops_no_other(here: Path, capfd: Capture) -> None:
    folder = here / "environments" / "broken"
    folder.mkdir(parents=True)
    (folder / "task.md").write_text("# Broken\n")
    (folder / "task.toml").write_text('slug = "broken"\ngym_id = "Gone-v0"\ntitle = "Broken"\nfamily = "custom"\n')
    (here / "tiny.toml").write_text(TINY.replace('"pendulum"', '"cartpole"').replace('["cartpole", ', '["broken", '))
    runs = here / "runs"
    for _ in range(2):  # it is tried again, and fails again
        broken, fine = document_of(runs, capfd, 4)["cells"]
        assert (broken["state"], fine["state"]) == ("failed", "finished")
        assert "Gone-v0" in broken["reason"] and broken["heldout"] is None
    (entry,) = board(runs, capfd)["entries"]
    assert entry["facts"]["failed"] == 1 and not entry["complete"]
    assert list(entry["failed"]) == ["broken"] and "Gone-v0" in entry["failed"]["broken"][0]
    assert run(["suite", "tiny.toml", "--headless"]) == 4
    out, err = capfd.readouterr()
    assert re.search(r"✗ broken, search, repeat 1: .*Gone-v0", out) and "1 finished, 1 failed" in out
    assert re.search(r"\[1/2\] broken  search  repeat 1  failed: .*Gone-v0", err)
    assert run(["leaderboard"]) == 0
    out = capfd.readouterr().out
    assert re.search(r"broken +failed", out) and re.search(r"1 of 2 cells failed\n  broken: .*Gone-v0", out)
    (folder / "task.toml").write_text((folder / "task.toml").read_text().replace("Gone-v0", "CartPole-v1"))
    mended, fine = document_of(runs, capfd)["cells"]
    assert mended["state"] == fine["state"] == "finished" and mended["reason"] is None


def test_an_agent_that_failed_in_every_cell_is_there_with_its_reason(here: Path, done: Path, capfd: Capture) -> None:
    (here / "away.toml").write_text(
        TINY.replace('"tiny"', '"away"').replace(
            '"search"', '"command"\nprogram = ["python3", "-c", "import sys; sys.exit(3)"]'
        )
    )
    assert run(["suite", "away.toml", "--quiet"]) == 4
    document = board(here / "runs", capfd, "away", str(done / "tiny"), "--paper")
    gone = next(e for e in document["entries"] if e["source"] == "away")
    assert document["k"] == 6 and len(document["entries"]) == 7 and document["entries"][-1] == gone
    assert gone["scores"] == {} and gone["core16"] is None and set(gone["failed"]) == {"cartpole", "pendulum"}
    reason = gone["failed"]["cartpole"][0]
    assert reason and gone["harness"] == "command"
    assert [e["paper"]["core16"] for e in document["entries"] if e["model"] == "GPT-5.5"] == [0.890625]
    assert run(["leaderboard", "away", "--paper"]) == 0
    out = capfd.readouterr().out
    assert re.search(r"(?m)^ *✗  command", out) and f"✗ failed in every cell (2)\n  cartpole, pendulum: {reason}" in out
    assert "K = 5" in out and "as printed" not in out
    assert run(["leaderboard", "away", "--csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capfd.readouterr().out))
    assert row["failed"] == "2" and reason in row["failures"] and row["cartpole"] == "" and row["cartpole n"] == "0"


def test_a_mean_of_episodes_that_a_fault_ended_is_marked(here: Path, done: Path, capfd: Capture) -> None:
    """Such an episode counts with what it had earned, which is the most where every step costs."""
    methods = ("__init__(self, *given): pass", "reset(self, i): pass", "act(self, obs): raise ValueError")
    (here / "policy.py").write_text("class Policy:\n" + "".join(f"    def {method}\n" for method in methods))
    (here / "cheat.toml").write_text(
        TINY.replace('"tiny"', '"cheat"\nstart = "./policy.py"').replace(
            '"search"', '"command"\nprogram = ["sh", "-c", "evotui submit 0-3"]'
        )
    )
    assert run(["suite", "cheat.toml"]) == 0
    out, err = capfd.readouterr()
    assert len(re.findall(r"held-out -?[\d.]+ \(3 of 3 episodes ended by a fault\)", err)) == 2, err
    assert run(["suite", "cheat.toml", "--json"]) == 0
    assert [cell["heldout_faults"] for cell in json.loads(capfd.readouterr().out)["cells"]] == [3, 3]
    document = board(here / "runs", capfd, "cheat", str(done / "tiny"))
    faults = {e["source"]: {k: d["faults"] for k, d in e["details"].items()} for e in document["entries"]}
    assert faults == {"cheat": {"cartpole": 3, "pendulum": 3}, "tiny": {"cartpole": 0, "pendulum": 0}}
    assert run(["leaderboard", "cheat", str(done / "tiny")]) == 0
    out = capfd.readouterr().out
    assert re.search(r"(?m)^pendulum +-\d\.\d† \(1\)", out), out
    assert out.count("†") == 3 and "† with held-out episodes that a fault ended" in out
    assert "command (cheat): episodes ended by a fault: cartpole 3 of 3, pendulum 3 of 3" in out
    assert "search (tiny): episodes" not in out
    assert run(["leaderboard", "cheat", "--paper", "--csv"]) == 0
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}
    assert rows["command"]["pendulum faults"] == "3" and rows["GPT-5.5"]["pendulum faults"] == ""
    assert run(["leaderboard", "--paper"]) == run(["leaderboard", str(done / "tiny")]) == 0


def test_suites_of_one_agent_are_entries_apart_or_merged_by_cell(here: Path, done: Path, capfd: Capture) -> None:
    shutil.copytree(done / "tiny", here / "runs" / "tiny")
    (here / "more.toml").write_text(TINY.replace('"tiny"', '"more"\nrepeats = 2').replace(', "pendulum"', ""))
    (here / "other.toml").write_text(
        TINY.replace('"tiny"', '"other"').replace(', "pendulum"', "").replace("budget = 4", "budget = 3")
    )
    assert run(["suite", "more.toml", "--quiet"]) == run(["suite", "other.toml", "--quiet"]) == 0
    runs = here / "runs"
    apart = board(runs, capfd, "tiny", "more", "other")
    assert sorted(e["source"] for e in apart["entries"]) == ["more", "other", "tiny"] and apart["k"] == 3
    score = {
        path.name: json.loads((path / "run.json").read_text())["outcome"]["heldout_mean_return"] for path in scan(runs)
    }
    merged = board(runs, capfd, "tiny", "more", "other", "--merge")
    both, other = sorted(merged["entries"], key=lambda e: len(e["scores"]), reverse=True)
    assert other["source"] == "other"  # another budget is another entry
    assert both["source"] == "tiny + more" and both["facts"]["cells"] == 3  # 2 + 2, one of them twice
    assert both["scores"]["pendulum"] == score["tiny.search.pendulum.1"]
    two = [score["more.search.cartpole.1"], score["more.search.cartpole.2"]]  # seed 0 is there twice: the later one
    detail = both["details"]["cartpole"]
    assert both["scores"]["cartpole"] == pytest.approx(sum(two) / 2) and detail["n"] == 2
    assert detail["interval"] is None and detail["range"] == [min(two), max(two)]
    why = "search: tiny + more and other are not merged: they differ in budget (4 and 3)"
    assert merged["notes"] == [why] and apart["notes"] == []
    assert run(["leaderboard", "tiny", "more", "other", "--merge", "--csv"]) == 0
    out, err = capfd.readouterr()
    assert err == why + "\n" and len(out.splitlines()) == 3
    assert run(["leaderboard", "more", "tiny", "--merge"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert "[least, greatest] of two repeats" in out and f"[{min(two):.1f}, {max(two):.1f}]" in out


def test_a_cell_whose_log_is_damaged_counts_as_failed(here: Path, done: Path, capfd: Capture) -> None:
    shutil.copytree(done / "tiny", here / "runs" / "tiny")
    log = next(path for path in scan(here / "runs") if "pendulum" in path.name) / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:9], b"garbage\n", *lines[10:]]))
    (entry,) = board(here / "runs", capfd)["entries"]
    assert list(entry["scores"]) == ["cartpole"] and list(entry["failed"]) == ["pendulum"]
    assert entry["failed"]["pendulum"][0].startswith("events.jsonl, line 10: not an event")


@pytest.mark.parametrize(
    ("change", "differ"),
    [
        (("core16-paper", "full"), "profile (core16-paper and full), validation (16 and 64), heldout (32 and 256), "
                                   "pools (paper and secret), policy_lifetime (submission and episode)"),
        (("seed = 0", 'pools = "secret"'), "pools (paper and secret)"),
        (('"search"', '"search"\nname = "mine"'), "name (search and mine)"),
        (('"search"', '"search"\noptions = {zeal = 3}'), "option zeal (none and 3)"),
        (("seed = 0", "submit_max = 9"), "submit_max (0 and 9)"),
        (("seed = 0", "heldout = 32"), None),  # what the profile says anyway
        (("seed = 0", "workers = 2"), None),
        (('"search"', '"litellm"\nmodel = "a/b"'), None),  # another agent, which nobody would take for the same
    ],
)  # fmt: skip
def test_why_entries_are_not_merged_is_told(tmp_path: Path, change: tuple[str, str], differ: str | None) -> None:
    plain = 'name = "one"\nenvs = ["cartpole"]\nprofile = "core16-paper"\nseed = 0\n[[agents]]\nagent = "search"\n'
    for name, text in (("one", plain), ("two", plain.replace(*change).replace('"one"', '"two"'))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "suite.toml").write_text(text)
        agent = "mine" if "mine" in text else "litellm" if "litellm" in text else "search"
        (tmp_path / name / "failures.json").write_text(json.dumps({f"{name}.{agent}.cartpole.1": "it was away"}))
    found = gather([tmp_path / "one", tmp_path / "two"], paper=False, merge=True)
    assert found.notes == ((f"search: one and two are not merged: they differ in {differ}",) if differ else ())
    assert gather([tmp_path / "one", tmp_path / "two"], paper=False).notes == ()
    assert gather([tmp_path / "one"], False, True).notes == ("--merge has nothing to merge: there is one suite",)


def test_a_finished_cell_without_its_summary_is_ranked_all_the_same(here: Path, done: Path, capfd: Capture) -> None:
    shutil.copytree(done / "tiny", here / "runs" / "tiny")
    before = board(here / "runs", capfd)
    for path, content in zip(scan(here / "runs"), (b"", b'{"outcome": 3}'), strict=True):
        (path / "run.json").write_bytes(content)
    after = board(here / "runs", capfd)
    assert after["entries"][0]["scores"] == before["entries"][0]["scores"]
    (here / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert run(["suite", "binary.toml"]) == 2
    assert capfd.readouterr().err == "evotui: binary.toml: is no text, so it is no suite's file\n"


def test_what_a_kill_before_the_first_fact_left_is_begun_anew(here: Path, capfd: Capture) -> None:
    for env, torn in (("cartpole", None), ("pendulum", b'{"seq":0,"time"')):
        path = here / "runs" / "tiny" / "search" / "gym" / env / f"tiny.search.{env}.1"
        (path / "workspace").mkdir(parents=True)
        if torn is not None:
            (path / "events.jsonl").write_bytes(torn)
    assert [c["state"] for c in document_of(here / "runs", capfd)["cells"]] == ["finished", "finished"]


@pytest.mark.parametrize(
    ("change", "arguments", "code", "says"),
    [
        (("budget = 4", "budgte = 4"), [], 2, r"tiny\.toml, line 4: unknown key 'budgte'; did you mean 'budget'\?"),
        (("agent = ", "agnet = "), [], 2, r"line 10: agents: unknown key 'agnet'; did you mean 'agent'\?"),
        (("budget = 4", 'budget = "4"'), [], 2, r"line 4: budget: expected a whole number, not '4'"),
        (("budget = 4", "budget = 4\nrepeats = 0"), [], 2, r"repeats: 1 to 1000, not 0"),
        (("budget = 4", "budget = 4\nrepeats = 99999999"), [], 2, r"repeats: 1 to 1000, not 99999999"),
        (("", ""), ["--repeats", "99999999"], 2, r"99999999 is not in the range"),
        (("", ""), ["--workers", "99999999"], 2, r"number of workers is 0 \(one a core\) to 256, not 99999999"),
        (("budget = 4", "budget = 4\nlifetime = 3"), [], 2, r"line 5: lifetime: expected a text, not 3"),
        (("budget = 4", 'lifetime = "forever"'), [], 2, r"policy lifetime is episode or submission, not 'forever'"),
        (
            ("budget = 4", 'lifetime = "episode"\npolicy_lifetime = "episode"'),
            [],
            2,
            r"line 5: policy_lifetime: this is lifetime, which is there, too",
        ),
        (
            ('"search"', '"command"\nprogram = ["sh", 3]'),
            [],
            2,
            r"line 11: agents: program: expected texts, not \['sh', 3\]",
        ),
        (("[[agents]]", "[agents]"), [], 2, r"line 9: agents: expected tables \[\[agents\]\], in two brackets"),
        (("budget = 4", 'budget = 4\npools = ""'), [], 2, r"--pools takes secret, paper, or a folder"),
        (("budget = 4", "budget = 0"), [], 2, r"at least 1 episode, not 0"),
        (("budget = 4", "budget ="), [], 2, r"tiny\.toml: .*line 4"),
        (('"pendulum"', '"cartpole"'), [], 2, r"line 2: envs: an environment is there twice: 'cartpole'"),
        (('"pendulum"', '"pendulun"'), [], 3, r"unknown environment 'pendulun'.*pendulum"),
        (("core16-paper", "paper"), [], 2, r"no profile 'paper'"),
        (('"search"', '"serach"'), [], 2, r"no agent 'serach'"),
        (('"search"', '"human"'), [], 2, r"needs a person"),
        (('"tiny"', '"../tiny"'), [], 2, r"line 1: name: .*cannot name a suite"),
        (("", ""), ["--agent", "search", "--agent", "search"], 2, r"each agent once"),
        (("", ""), ["--max-turns", "3"], 2, r"name the agent"),
        (("", ""), ["--envs", ""], 2, r"names no environment"),
    ],
)
def test_a_mistake_in_a_suite_is_one_sentence(
    here: Path, capfd: Capture, change: tuple[str, str], arguments: list[str], code: int, says: str
) -> None:
    (here / "tiny.toml").write_text(TINY.replace(*change) if change[0] else TINY)
    assert run(["suite", "tiny.toml", *arguments]) == code
    out, err = capfd.readouterr()
    assert out == "" and "Traceback" not in err and re.search(says, err), err
    assert not (here / "runs").exists()


@pytest.mark.parametrize("key", ["lifetime", "policy_lifetime"])
def test_the_lifetime_is_called_in_a_file_as_its_option_is_or_as_it_was(tmp_path: Path, key: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f'envs = ["cartpole"]\n{key} = "submission"\n')
    plan = read_plan(file)
    assert plan.rules == {"policy_lifetime": "submission"}
    suite = SuiteDir(tmp_path / "runs" / "s")
    suite.lay_out(plan)
    assert suite.plan() == plan and '\nlifetime = "submission"' in (suite.root / "suite.toml").read_text()


def test_cases_that_are_wrong_are_told_before_anything_starts(here: Path, capfd: Capture) -> None:
    (here / "cases").mkdir()
    for split, seeds in (("train", (1, 2)), ("valid", (3,)), ("heldout", (4,))):
        document = {"env": "gym/cartpole", "split": split, "cases": [{"seed": seed} for seed in seeds]}
        (here / "cases" / f"{split}.json").write_text(json.dumps(document))
    assert run(["suite", "tiny.toml", "--pools", "cases"]) == 2
    assert "its cases are for 'gym/cartpole', not for gym/pendulum" in capfd.readouterr().err
    assert run(["suite", "tiny.toml", "--pools", "cases", "--envs", "cartpole", "--budget", "0"]) == 2
    (here / "cases" / "valid.json").write_text((here / "cases" / "train.json").read_text().replace("train", "valid"))
    assert run(["suite", "tiny.toml", "--pools", "cases", "--envs", "cartpole"]) == 2
    assert "case 0 of the validation pool has the seed of case 0 of the train pool" in capfd.readouterr().err
    assert not (here / "runs").exists()


def test_anchors_beside_the_papers_figures(capfd: Capture) -> None:
    assert run(["leaderboard", "--anchors", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    rows = {row["name"]: row for row in document["anchors"]}
    acrobot = rows["acrobot"]
    assert len(rows) == 16 and acrobot["paper_best"] == -84.6875 and acrobot["paper_best_model"] == "GPT-5.5"
    assert acrobot["random"]["n"] >= 32 and acrobot["reference"]["mean"] > -84.6875 and acrobot["beats"] is True
    assert document["beaten"] == sum(row["beats"] is True for row in rows.values())
    assert run(["leaderboard", "--anchors"]) == 0
    assert f"in {document['beaten']} of 16 environments" in capfd.readouterr().out
    assert run(["leaderboard", "--anchors", "--paper"]) == 2


def test_another_plan_under_the_same_name_is_refused(done: Path, capfd: Capture) -> None:
    assert run(["suite", str(done / "tiny"), "--repeats", "2", "--runs", str(done)]) == 2
    assert re.search(r"begun with another plan \(repeats differ\).*--name", capfd.readouterr().err)
    assert run(["suite", "nothing", "--runs", str(done)]) == 2
    assert "core16, warmup, a TOML file" in capfd.readouterr().err
    assert run(["leaderboard", "nothing", "--runs", str(done)]) == 3
    assert "there are: tiny" in capfd.readouterr().err


def test_a_missing_package_is_told_before_anything_starts(here: Path, capfd: Capture) -> None:
    folder = here / "environments" / "far"
    folder.mkdir(parents=True)
    (folder / "task.md").write_text("# Far\n")
    (folder / "task.toml").write_text(
        'slug = "far"\ngym_id = "Far-v0"\ntitle = "Far"\nfamily = "custom"\n'
        'packages = ["no_such_package_here"]\nextra = "core16"\n'
    )
    (here / "tiny.toml").write_text(TINY.replace('"pendulum"', '"far"'))
    assert run(["suite", "tiny.toml"]) == 1
    assert "pip install 'evotui[core16]'" in capfd.readouterr().err and not (here / "runs").exists()


def test_on_a_terminal_the_matrix_is_shown_and_the_suite_goes_on_without_it(here: Path, capfd: Capture) -> None:
    with Terminal([sys.executable, "-m", "evotui", "suite", "tiny.toml", "--budget", "5000"]) as terminal:
        assert terminal.until(b"[1/2]", 30.0) is not None and terminal.until(b"evolving", 30.0) is not None
        terminal.type(b"\r")  # the cell's run, read from its log while it is written
        assert terminal.until(b"rolling out", 30.0) is not None
        terminal.type(b"q")
        assert terminal.until(b"rank score", 10.0) is not None
        terminal.type(b"q")
        assert terminal.until(b"Leave a suite that is still going?", 10.0) is not None
        terminal.type(b"y")
        assert terminal.until(b"goes on with it", 30.0) is not None
        assert terminal.process.wait(10) == 0
    (path,) = scan(here / "runs")
    assert path.name == "tiny.search.cartpole.1" and check(path) == []
