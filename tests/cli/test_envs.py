"""``evotui envs``: the list, one environment, the checks; what is broken is told and hides nothing else."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.cli.main import run
from evotui.protocol.pools import Split, paper_pools

GOOD = 'slug = "my/{0}"\ngym_id = "CartPole-v1"\ntitle = "{0}"\nfamily = "custom"\n'


def add(name: str, toml: str | None = None, text: str = "# Mine\n") -> None:
    folder = Path.cwd() / "environments" / name
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(GOOD.format(name) if toml is None else toml)
    (folder / "task.md").write_text(text)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert run([*arguments, "--json"]) == code
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["schema_version"] == 1
    return found


@pytest.mark.parametrize("arguments", [("envs",), ("envs", "list")])
def test_the_list_has_what_programs_read(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    found = {env["name"]: env for env in document(capsys, *arguments)["environments"]}
    assert len(found) >= 20
    racing = found["racing"]
    assert (racing["slug"], racing["gym_id"], racing["family"]) == ("gym/racing", "CarRacing-v3", "Gym/Box2D")
    for env in found.values():
        assert set(env) == {"name", "slug", "gym_id", "family", "available", "why_not", "anchors"}
        assert env["available"] == (env["why_not"] is None)
    assert run(list(arguments)) == 0
    assert "racing" in capsys.readouterr().out


def test_a_bad_task_file_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    add("mine")
    add("broken", "slug = 3\n")
    found = document(capsys, "envs", "list", code=1)
    names = {env["name"] for env in found["environments"]}
    assert {"mine", "cartpole"} <= names
    assert "broken" not in names
    assert run(["envs"]) == 1
    told = capsys.readouterr()
    assert "mine" in told.out
    assert "slug: expected" in told.err


def test_the_list_is_quick_and_imports_nothing_heavy() -> None:
    code = "import sys; from evotui.cli.main import run; run(['envs', 'list']); print([m for m in sys.modules if m in "
    code += "('gymnasium', 'numpy', 'mujoco', 'textual', 'litellm', 'msgspec', 'PIL')], file=sys.stderr)"
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stderr.strip() == "[]"
    assert min(took) < 1.0  # it takes 0.3 s, nearly all of it on a core


def test_what_is_missing_is_told_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    add("other", GOOD.format("other") + 'requires = ["no_such_module"]\nextra = "core16"\n')
    for arguments in (["envs", "show", "other"], ["run", "other", "--headless"], ["evaluate", "x", "--env", "other"]):
        assert run(arguments) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.strip().endswith("needs no_such_module, which is not installed: pip install 'evotui[core16]'")
    assert run(["envs", "check", "other"]) == 0
    assert "pip install 'evotui[core16]'" in capsys.readouterr().out


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["envs", "show", "CartPole-v1"]) == 0
    told = capsys.readouterr().out
    for words in ("CartPole", "cart position", "push left, push right", "500 steps", "steps a second", "starter"):
        assert words in told
    assert any(line.count("@") + line.count("#") > 3 for line in told.splitlines())  # the picture, in characters
    assert run(["envs", "show", "cartpol"]) == 3
    assert "did you mean cartpole" in capsys.readouterr().err


def test_show_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    env = document(capsys, "envs", "show", "taxi")["environment"]
    assert env["world"]["obs_schema"]["n"] == 500
    assert env["speed"]["steps_per_second"] > 100
    assert env["frame"]["shape"][2] == 3
    assert "|" in env["frame"]["text"]
    assert env["anchors"]["random"]["n"] >= 32
    inf = document(capsys, "envs", "show", "cartpole", "--no-frame")["environment"]
    assert inf["world"]["obs_schema"]["high"][1] == "Inf"
    assert "frame" not in inf


def test_a_drawing_library_that_is_missing_stops_no_rollout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not next(e for e in document(capsys, "envs")["environments"] if e["name"] == "reacher5")["available"]:
        pytest.skip("the extra core16 is not installed")
    monkeypatch.setenv("XDG_STATE_HOME", str(Path.cwd()))
    monkeypatch.setenv("MUJOCO_GL", "egl")
    monkeypatch.setenv("PYOPENGL_PLATFORM", "none")  # as if the library were not there
    asked = ["evaluate", "starter", "--env", "reacher5", "--pools", "paper", "--cases", "0-1"]
    assert document(capsys, *asked)["n"] == 2
    env = document(capsys, "envs", "show", "reacher5")["environment"]
    assert env["world"]["max_episode_steps"] == 50
    assert "install libosmesa6" in env["why_no_frame"]
    rendering = checks(document(capsys, "envs", "check", "reacher5")["environments"][0])["rendering"]
    assert rendering[0] == "skipped"


def checks(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {check["name"]: (check["state"], check["detail"]) for check in found["checks"]}


def test_check_finds_all_well(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "envs", "check", "cartpole", "doorkey")
    assert found["ok"]
    assert [env["name"] for env in found["environments"]] == ["cartpole", "minigrid_doorkey"]
    for env in found["environments"]:
        assert {state for state, _ in checks(env).values()} == {"ok"}
        assert {"task text", "pools", "determinism", "rendering", "policy starter"} <= set(checks(env))


UNSTEADY = """
import gymnasium, os
from gymnasium.envs.classic_control import CartPoleEnv


class Unsteady(CartPoleEnv):
    def step(self, action):
        obs, *rest = super().step(action)
        return obs + os.getpid() % 1000 * 1e-3, *rest


gymnasium.register("Unsteady-v0", entry_point=Unsteady, max_episode_steps=100)
"""


def test_check_finds_what_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("unsteady.py").write_text(UNSTEADY)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    toml = GOOD.format("odd").replace("CartPole-v1", "Unsteady-v0") + 'packages = ["unsteady"]\n'
    add("odd", toml + 'observation_fields = ["a", "b"]\naction_names = ["left"]\n', "# Odd\n\n## Action\n")
    policy = Path("policies/odd/starter")
    policy.mkdir(parents=True)
    (policy / "policy.py").write_text("import requests\nclass Policy: ...\n")
    found = document(capsys, "envs", "check", "odd", code=1)
    told = checks(found["environments"][0])
    assert told["task text"][0] == "failed"
    for words in ("'## Reward'", "limit of 100 steps", "1 actions of 2", "2 of 4 values"):
        assert words in told["task text"][1]
    assert told["determinism"] == ("failed", "the same cases and actions gave other episodes in another process")
    assert told["policy starter"][0] == "failed"
    assert "requests" in told["policy starter"][1]
    assert told["pools"][0] == "ok"
    assert run(["envs", "check", "odd"]) == 1
    assert "FAILED  determinism" in capsys.readouterr().out


def _overlap(cases: dict[str, Any]) -> None:
    cases["heldout"]["cases"][0] = cases["train"]["cases"][5]


def _duplicate(cases: dict[str, Any]) -> None:
    cases["valid"]["cases"][1] = cases["valid"]["cases"][0]


def _string(cases: dict[str, Any]) -> None:
    cases["train"]["cases"][7] = {"seed": "12"}


def _other(cases: dict[str, Any]) -> None:
    cases["heldout"]["env"] = "gym/taxi"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            _overlap,
            "case 0 of the heldout pool has the seed of case 5 of the train pool; the three pools share no seed",
        ),
        (_duplicate, "case 1 of the validation pool has the seed of case 0; a pool has each seed once"),
        (_string, "train.json: case 7: its seed is a text; write a number without quotes"),
        (_other, "heldout.json: its cases are for 'gym/taxi', not for gym/cartpole"),
    ],
)
def test_case_files_that_are_wrong(
    capsys: pytest.CaptureFixture[str], spoil: Callable[[dict[str, Any]], None], says: str
) -> None:
    pools = paper_pools(4, 4)
    cases = {split.file_name[:-5]: json.loads(pools.file_bytes(split, "gym/cartpole")) for split in Split}
    folder = Path("cases")
    folder.mkdir()

    def write() -> None:
        for name, content in cases.items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    write()
    found = document(capsys, "envs", "check", "cartpole", "--pools", "cases")
    assert checks(found["environments"][0])["pools"][0] == "ok"
    spoil(cases)
    write()
    found = document(capsys, "envs", "check", "cartpole", "--pools", "cases", code=1)
    state, detail = checks(found["environments"][0])["pools"]
    assert state == "failed"
    assert says in detail
    assert run(["run", "cartpole", "--headless", "--pools", "cases", "--runs", "runs"]) == 2
    assert says in capsys.readouterr().err
    assert not list(Path("runs").rglob("events.jsonl"))
