"""Our own policies: starters are valid, references are good, broken ones are broken in the way they say."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from evotui.protocol.pools import paper_pools
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task, list_policies, list_tasks, policy_folder, policy_folders
from tests.suite.stepping import load, policy, steps

GOOD = {  # mean return over the first train cases that each reference policy must reach
    "cartpole": 500.0,
    "pendulum": -190.0,
    "acrobot": -80.0,
    "continuouscar": 98.0,
    "taxi": 6.0,
    "minigrid_doorkey": 0.98,
    "minigrid_fourrooms": 0.6,
    "minigrid_keycorridor": 0.92,
    "minigrid_obstructedmaze": 0.91,
    "lunarlander": 240.0,
    "bipedal": 280.0,
    "racing": 890.0,
    "reacher5": -3.6,
    "halfcheetah5": 3500.0,
    "ant5": 3000.0,
    "pusher5": -36.0,
    "parking": -10.0,
    "roundabout": 10.2,
    "fetch_push": -14.0,
    "fetch_pickandplace": -10.0,
}
CASES = {
    "cartpole": 8, "taxi": 32, "pendulum": 12, "lunarlander": 16, "bipedal": 2, "reacher5": 3, "halfcheetah5": 2,
    "ant5": 1, "parking": 2, "roundabout": 3, "racing": 1,
}  # fmt: skip
STARTER_CASES = {"roundabout": 4, "racing": 1, "parking": 2}
ROOM = {"reacher5": 0.95, "pusher5": 0.95}
"""How near a starter may come to the reference, on the way from random actions: there random torques cost most."""
BROKEN = {
    "syntax", "import", "init", "reset", "act", "nan", "shape", "loop", "flood", "denied", "exit", "memory",
}  # fmt: skip


def mean_return(env: str, name: str, n: int) -> float:
    task = find_task(env)
    if missing := availability(task):
        pytest.skip(missing)
    total = 0.0
    for seed in paper_pools(16, 32).train[:n]:
        player = policy(task, name)
        player.reset(0)
        for step in steps(task, seed, player.act):
            assert not step.invalid
            total += step.reward
    return total / n


@pytest.mark.parametrize("env", GOOD)
def test_references_are_good(env: str) -> None:
    assert mean_return(env, "reference", CASES.get(env, 6)) >= GOOD[env]


@pytest.mark.parametrize("env", GOOD)
def test_starters_are_valid_and_leave_room(env: str) -> None:
    task = find_task(env)
    mean = mean_return(env, "starter", STARTER_CASES.get(env, 2))
    anchors = task.anchors
    assert mean < anchors["random"].mean + ROOM.get(env, 0.75) * (anchors["reference"].mean - anchors["random"].mean)


@pytest.mark.parametrize("env", GOOD)
def test_anchors_are_measured(env: str) -> None:
    anchors = find_task(env).anchors
    assert set(anchors) == {"random", "reference"}
    assert anchors["reference"].mean > anchors["random"].mean + 3 * anchors["random"].se
    for anchor in anchors.values():
        assert anchor.n >= 32
        assert "gymnasium" in anchor.source


def test_one_object_may_play_several_episodes() -> None:
    """With the paper's policy lifetime an object sees one episode after another: reset must start over."""
    for env in ("acrobot", "continuouscar", "minigrid_keycorridor", "minigrid_obstructedmaze"):
        task = find_task(env)
        seeds = paper_pools(16, 32).train[:2]
        kept = policy(task, "reference")

        def play(player: object, seed: int) -> list[float]:
            player.reset(0)  # type: ignore[attr-defined]
            return [s.reward for s in steps(task, seed, player.act)]  # type: ignore[attr-defined]  # noqa: B023

        play(kept, seeds[0])
        assert play(kept, seeds[1]) == play(policy(task, "reference"), seeds[1])


def policy_files() -> list[Path]:
    root = policy_folders()[-1]
    return sorted(p for p in root.rglob("*.py") if not p.parent.name.startswith("broken-"))


@pytest.mark.parametrize("path", policy_files(), ids=lambda p: "/".join(p.parts[-3:]))
def test_policies_import_only_the_standard_library_and_numpy(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree)
    allowed = {"numpy", *sys.stdlib_module_names, *(p.stem for p in path.parent.glob("*.py"))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {a.name.partition(".")[0] for a in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] in allowed


def test_the_map_module_is_the_same_in_each_folder() -> None:
    """Policy folders are complete by themselves, so the module is copied; the copies must not drift apart."""
    copies = {p.read_bytes() for p in policy_folders()[-1].glob("minigrid_*/reference/gridmap.py")}
    assert len(copies) == 1


def test_every_shipped_environment_has_its_policies() -> None:
    for task in list_tasks():
        assert {"starter", "reference"} <= set(list_policies(task))


def test_broken_policies_break_as_named() -> None:
    task = find_task("cartpole")
    assert {n.removeprefix("broken-") for n in list_policies(task) if n.startswith("broken-")} == BROKEN
    info = worlds.describe(task)

    def make(name: str) -> object:
        return load(policy_folder(task, f"broken-{name}")).Policy(info.obs_schema, info.action_schema, {})

    with pytest.raises(SyntaxError):
        make("syntax")
    with pytest.raises(ModuleNotFoundError):
        make("import")
    with pytest.raises(RuntimeError, match="no policy today"):
        make("init")
    with pytest.raises(ValueError, match="cannot start over"):
        make("reset").reset(0)  # type: ignore[attr-defined]
    player = make("act")
    player.reset(0)  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        list(steps(task, 1, player.act))  # type: ignore[attr-defined]
    for name in ("nan", "shape"):
        player = make(name)
        assert all(s.invalid for s in steps(task, 1, player.act))  # type: ignore[attr-defined]
