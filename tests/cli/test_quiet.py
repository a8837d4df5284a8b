"""``--quiet``: no progress, but the result, in a line that a log or a script can be left with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evotui.cli.main import run

SMALL = ["--validation", "2", "--heldout", "3", "--workers", "1", "--allow-weak-isolation"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_quiet_run_tells_its_result_and_nothing_else(here: Path, capfd: Capture) -> None:
    start = here / "policy.py"
    start.write_text("import there_is_no_such_module\n")
    given = ["run", "cartpole", "--headless", "--quiet", *SMALL]
    assert run([*given, "--budget", "4", "--name", "well"]) == 0
    out, err = capfd.readouterr()
    assert err == "" and re.fullmatch(
        r"runs/search/gym/cartpole/well: finished, 4 of 4 episodes used, s\d{3} of \d submissions, "
        r"held-out mean [\d.]+ over 3 cases, final score -?[\d.]+\n",
        out,
    )
    program = ["--agent", "command", "--start", "./policy.py", "--", "sh", "-c", "evotui submit 0-1"]
    assert run([*given, "--budget", "2", "--name", "ill", *program]) == 4
    out, err = capfd.readouterr()
    assert err == "" and re.fullmatch(
        r"runs/[\w.-]+/gym/cartpole/ill: failed: no submission ended ok, 2 of 2 episodes used\n", out
    )


def test_episodes_that_a_fault_ended_are_told_with_the_score(here: Path, capfd: Capture) -> None:
    """They count with what they had earned, which is the most where every step costs: nobody must miss that."""
    start = here / "policy.py"
    start.write_text("class Policy:\n    def __init__(self, *given): pass\n    def reset(self, i): pass\n"
                     "    def act(self, obs): raise ValueError\n")  # fmt: skip
    program = ["--agent", "command", "--start", "./policy.py", "--", "sh", "-c", "evotui submit 0-1"]
    assert run(["run", "acrobot", "--headless", "--quiet", *SMALL, "--budget", "2", "--name", "cheat", *program]) == 0
    assert capfd.readouterr().out.endswith(", 3 of 3 held-out episodes ended by a fault (act_error)\n")
    assert run(["show", "runs/command/gym/acrobot/cheat"]) == 0
    shown = capfd.readouterr().out
    assert "ok, 2 by a fault" in shown and "; 3 of 3 episodes ended by a fault (act_error)" in shown
    assert run(["show", "runs/command/gym/acrobot/cheat", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["faults"] == {"train": 2, "heldout": 3}


@pytest.mark.parametrize("more", [["--quiet"], [], ["--json"], ["--json", "--quiet"]])
def test_a_run_whose_agent_failed_says_so_once(here: Path, capfd: Capture, more: list[str]) -> None:
    """A terminal shows both streams: errors and the way on are on stderr, the result on stdout, nothing on both."""
    given = ["run", "cartpole", "--headless", *SMALL, "--budget", "2", "--name", "ill", "--agent", "command", *more]
    assert run([*given, "--", "sh", "-c", "exit 3"]) == 4
    out, err = capfd.readouterr()
    assert err.count("evotui: exit 3 ended with exit code 3") == 1
    assert not set(out.splitlines()) & set(err.splitlines())
    stopped = [line for line in (out + err).splitlines() if "ill: stopped, " in line]
    assert len(stopped) == (0 if more == ["--json", "--quiet"] else 1)
    if "--json" in more:
        assert json.loads(out)["status"] == "interrupted"
    elif more:
        assert out == stopped[0] + "\n" and "evotui run --resume runs/command/gym/cartpole/ill" in out


def test_a_quiet_suite_tells_what_failed_and_how_many(here: Path, capfd: Capture) -> None:
    folder = here / "environments" / "broken"
    folder.mkdir(parents=True)
    (folder / "task.md").write_text("# Broken\n")
    (folder / "task.toml").write_text('slug = "broken"\ngym_id = "Gone-v0"\ntitle = "Broken"\nfamily = "custom"\n')
    (here / "two.toml").write_text('envs = ["broken", "cartpole"]\nprofile = "core16-paper"\nbudget = 2\n')
    assert run(["suite", "two.toml", "--quiet", *SMALL]) == 4
    out, err = capfd.readouterr()
    assert err == "" and re.fullmatch(r"✗ broken, search, repeat 1: .*Gone-v0.*\n2 cells: 1 finished, 1 failed\n", out)
