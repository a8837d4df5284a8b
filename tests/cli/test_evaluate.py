"""``evotui evaluate``: documents, faults as results, and the sentences for what cannot be run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evotui.cli.main import run
from tests.kernel import scripts


def document(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["evaluate", *arguments, "--quiet", "--json"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    found: dict[str, object] = json.loads(out)
    return found


def test_a_file_of_ones_own_on_paper_cases(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(scripts.GOOD)
    found = document(capfd, str(policy), "--env", "CartPole-v1", "--pools", "paper", "--cases", "0-3,9")
    assert found["cases"] == [0, 1, 2, 3, 9] and found["returns"] == [500.0] * 5 and found["lengths"] == [500] * 5
    assert (found["mean"], found["std"], found["n"], found["steps"]) == (500.0, 0.0, 5, 2500)
    assert found["env"] == "gym/cartpole" and found["pool"] == "heldout" and found["faults"] == []
    isolation = found["isolation"]
    assert isinstance(isolation, dict) and isolation["seed_bits"] == 31 and isolation["mode"] == "episode"
    assert isolation["level"] in "ABCD" and "rlimits" in isolation["layers"]


@pytest.mark.parametrize("mode", ["episode", "auto", "batch"])
def test_modes_agree(capfd: pytest.CaptureFixture[str], mode: str) -> None:
    found = document(capfd, "starter", "--env", "cartpole", "--pools", "paper", "--cases", "0-39", "--mode", mode)
    again = document(capfd, "starter", "--env", "cartpole", "--pools", "paper", "--cases", "0-39", "--workers", "1")
    assert found["returns"] == again["returns"] and found["lengths"] == again["lengths"]


def test_why_episodes_ran_one_by_one_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(scripts.GOOD + "seen = []\n")
    arguments = (str(policy), "--env", "cartpole", "--pools", "paper", "--cases", "0-3", "--mode", "auto")
    isolation = document(capfd, *arguments)["isolation"]
    assert isinstance(isolation, dict) and isolation["mode"] == "episode"
    assert isolation["alone_because"] == ["its source names what policies in one process would share"]
    assert run(["evaluate", *arguments]) == 0
    assert "\n              one by one: its source names" in capfd.readouterr().out


def test_a_fault_is_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "broken-act", "--env", "cartpole", "--cases", "4,5")
    faults = found["faults"]
    assert isinstance(faults, list) and [f["case"] for f in faults] == [4, 5]
    assert faults[0]["kind"] == "act_error" and faults[0]["step"] == 3 and "policy.py" in faults[0]["traceback"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["broken-syntax", "--env", "cartpole"], 1, r"import_error: policy.py, line \d+"),
        (["broken-import", "--env", "cartpole"], 1, r"import_error: .*No module"),
        (["broken-init", "--env", "cartpole"], 1, r"init_error: "),
        (["broken-denied", "--env", "cartpole"], 1, r"denied_import: "),
        (["nobody", "--env", "cartpole"], 1, r"nobody"),
        (["starter", "--env", "cartpol"], 3, r"did you mean cartpole"),
        (["", "--env", "cartpole"], 2, r"name a policy: a file, a folder, or one of starter"),
        (["/dev/null", "--env", "cartpole"], 2, r"/dev/null is neither a file nor a folder"),
        ([str(Path(__file__).parent), "--env", "cartpole"], 1, r"missing_policy: \S+/policy\.py does not exist"),
        (["starter", "--env", ""], 3, r"unknown environment ''; `evotui envs` lists them"),
        (["starter", "--env", "cartpole", "--pools", ""], 2, r"--pools takes secret, paper, or a folder"),
        (["starter", "--env", "cartpole", "--cases", "0-9999"], 2, r"--cases: case 256 does not exist"),
        (
            ["starter", "--env", "cartpole", "--cases", "0-999999999999"],
            2,
            r"--cases: case 256 does not exist: the heldout cases are 0 to 255",
        ),
        (
            ["starter", "--env", "cartpole", "--cases", "5" * 9999],
            2,
            r"--cases: case 5{18}… does not exist: the heldout",
        ),
        (["starter", "--env", "cartpole", "--cases", "x"], 2, r"--cases: cannot read 'x'"),
        (["starter", "--env", "cartpole", "--workers", "99999999"], 2, r"99999999 is not in the range"),
    ],
)
def test_what_cannot_be_run_is_said(
    capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    assert run(["evaluate", *arguments, "--quiet"]) == code
    out, err = capfd.readouterr()
    assert out == "" and re.search(says, err), err
