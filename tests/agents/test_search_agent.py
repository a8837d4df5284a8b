"""The search agent against a door in this process: what it submits, says, survives and learns."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from evotui.agents.search import SearchAgent
from evotui.protocol.budget import Budget
from evotui.record.events import AgentMessage, AgentThought, FileEdited, ToolCalled, ToolReturned
from evotui.suite.catalog import list_tasks
from tests.agents.fakes import FakeDoor, SpaceWorld, Transcript, load, workspace

BOX4 = {"type": "Box", "shape": [4], "dtype": "float32", "low": [-9.0] * 4, "high": [9.0] * 4}
TWO = {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}
TORQUES = {"type": "Box", "shape": [3], "dtype": "float32", "low": [-1.0] * 3, "high": [1.0] * 3}
PICTURE = {"type": "Image", "shape": [24, 24, 3], "dtype": "uint8", "low": 0, "high": 255}
GRID = {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8", "low": 0, "high": 255}
SPACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flat, two actions": (BOX4, TWO),
    "flat, five actions from −2": (BOX4, {"type": "Discrete", "n": 5, "start": -2, "dtype": "int64"}),
    "flat, one torque": (BOX4, {"type": "Box", "shape": [1], "dtype": "float32", "low": [-2.0], "high": [2.0]}),
    "flat, a scalar torque": (BOX4, {"type": "Box", "shape": [], "dtype": "float32", "low": -2.0, "high": 2.0}),
    "flat, a matrix of torques": (
        BOX4, {"type": "Box", "shape": [2, 2], "dtype": "float32", "low": [[0.0] * 2] * 2, "high": [[1.0] * 2] * 2},
    ),
    "unbounded action": (
        BOX4, {"type": "Box", "shape": [2], "dtype": "float64", "low": [-np.inf] * 2, "high": [np.inf] * 2},
    ),
    "one action only": (BOX4, {"type": "Discrete", "n": 1, "start": 0, "dtype": "int64"}),
    "table": ({"type": "Discrete", "n": 9, "start": 0, "dtype": "int64"}, TWO),
    "tuple table": ({"type": "Tuple", "spaces": [TWO, {"type": "Discrete", "n": 4, "start": 1}]}, TWO),
    "table, torques": ({"type": "Discrete", "n": 9, "start": 0, "dtype": "int64"}, TORQUES),
    "goal dictionary": ({"type": "Dict", "spaces": {"observation": BOX4, "desired_goal": BOX4}}, TORQUES),
    "mixed tuple": ({"type": "Tuple", "spaces": [BOX4, TWO]}, TORQUES),
    "picture": (PICTURE, TORQUES),
    "picture, two actions": (PICTURE, TWO),
    "grid": (
        {"type": "Dict", "spaces": {"direction": {"type": "Discrete", "n": 4, "start": 0}, "image": GRID,
                                    "mission": {"type": "Text", "max_length": 40}}},
        {"type": "Discrete", "n": 7, "start": 0, "dtype": "int64"},
    ),
    "bare grid": (GRID, TORQUES),
    "text": ({"type": "Text", "max_length": 20}, TWO),
    "multidiscrete action": (BOX4, {"type": "MultiDiscrete", "nvec": [3, 2], "dtype": "int64"}),
    "multibinary both": ({"type": "MultiBinary", "shape": [5]}, {"type": "MultiBinary", "shape": [2], "dtype": "int8"}),
    "tuple action": (BOX4, {"type": "Tuple", "spaces": [TWO, TORQUES]}),
    "dictionary action": (BOX4, {"type": "Dict", "spaces": {"a": TWO, "b": TORQUES}}),
    "huge box": ({"type": "Box", "shape": [40, 40], "dtype": "float32", "low": -1.0, "high": 1.0}, TORQUES),
    "wide flat": ({"type": "Box", "shape": [60], "dtype": "float64", "low": -9.0, "high": 9.0}, TORQUES),
}  # fmt: skip


class CartPole:
    """Gymnasium's task behind the fake door's interface."""

    obs_space: ClassVar[dict[str, Any]] = {
        **BOX4,
        "low": [-4.8, -np.inf, -0.42, -np.inf],
        "high": [4.8, np.inf, 0.42, np.inf],
    }
    action_space: ClassVar[dict[str, Any]] = TWO

    def __init__(self, limit: int = 500) -> None:
        self.limit = limit

    def reset(self, seed: int) -> Any:
        import gymnasium

        self._env, self._t = gymnasium.make("CartPole-v1"), 0
        return self._env.reset(seed=seed)[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        obs, reward, terminated, truncated, _ = self._env.step(int(action))
        self._t += 1
        return obs, float(reward), bool(terminated), bool(truncated or self._t >= self.limit)


async def evolve(
    root: Path,
    world: Callable[[], Any],
    budget: Budget,
    seed: int = 0,
    prepare: Callable[[FakeDoor], None] | None = None,
    **door: Any,
) -> tuple[FakeDoor, Transcript, str]:
    told = Transcript()
    desk = workspace(root, told)
    made = FakeDoor(root, world, budget, **door)
    if prepare is not None:
        prepare(made)
    reason = await SearchAgent(seed=seed).run(desk, made, told)
    return made, told, reason


async def test_learns_to_balance_a_pole(tmp_path: Path) -> None:
    door, _, reason = await evolve(tmp_path, lambda: CartPole(200), Budget(24), meta={"max_episode_steps": 200})
    assert door.budget.remaining == 0
    policy = load(door.codes[-1])(CartPole.obs_space, TWO, {})
    lengths = []
    for seed in range(900, 908):
        world, steps = CartPole(500), 0
        obs, over = world.reset(seed), False
        policy.reset(0)
        while not over:
            obs, _, terminated, truncated = world.step(policy.act(obs))
            steps, over = steps + 1, terminated or truncated
        lengths.append(steps)
    assert np.mean(lengths) >= 475, lengths
    assert "weighted sum" in reason


async def test_same_seed_and_feedback_give_the_same_edits(tmp_path: Path) -> None:
    np.random.seed(1)
    first, said, _ = await evolve(tmp_path / "a", lambda: CartPole(60), Budget(40), meta={"max_episode_steps": 60})
    np.random.seed(2)  # the global generator is not its source
    again, said_again, _ = await evolve(
        tmp_path / "b", lambda: CartPole(60), Budget(40), meta={"max_episode_steps": 60}
    )
    other, _, _ = await evolve(tmp_path / "c", lambda: CartPole(60), Budget(40), 1, meta={"max_episode_steps": 60})
    assert first.codes == again.codes
    assert first.requests == again.requests
    assert said == said_again
    assert first.codes != other.codes


@pytest.mark.parametrize("name", SPACES)
async def test_any_space_is_survived_with_valid_actions(tmp_path: Path, name: str) -> None:
    obs_space, action_space = SPACES[name]
    door, told, _ = await evolve(tmp_path, lambda: SpaceWorld(obs_space, action_space), Budget(20))
    assert door.budget.remaining == 0
    assert any(isinstance(fact, AgentMessage) for fact in told)


@pytest.mark.parametrize(
    ("total", "least", "most"),
    [(1, 1, 128), (2, 1, 128), (3, 2, 2), (5, 1, 1), (7, 3, 3), (30, 8, 8), (33, 4, 6), (9, 9, 9)],
)
async def test_the_budget_is_used_up_within_the_bounds(tmp_path: Path, total: int, least: int, most: int) -> None:
    budget = Budget(total, 0, least, most)
    door, told, _ = await evolve(tmp_path, lambda: SpaceWorld(BOX4, TORQUES), budget)
    assert door.budget.spent
    assert all(least <= len(cases) <= most for cases in door.requests)
    assert sum(map(len, door.requests)) == door.budget.used
    refused = [fact for fact in told if isinstance(fact, ToolReturned) and not fact.ok]
    assert not refused


@pytest.mark.parametrize("verdict", ["init_error", "rollout_timeout", "oom", "import_error"])
async def test_failed_submissions_are_not_kept(tmp_path: Path, verdict: str) -> None:
    def meddle(submission: int, cases: Sequence[int]) -> str | None:
        return verdict if submission % 2 else None

    door, told, _ = await evolve(tmp_path, lambda: SpaceWorld(BOX4, TWO), Budget(40), meddle=meddle)
    assert door.budget.remaining == 0
    assert any(isinstance(fact, AgentMessage) and verdict in fact.text for fact in told)


async def test_a_run_where_everything_fails_ends(tmp_path: Path) -> None:
    door, _, reason = await evolve(tmp_path, lambda: SpaceWorld(BOX4, TWO), Budget(16), meddle=lambda i, c: "oom")
    assert door.budget.remaining == 0
    assert "without a policy" in reason


async def test_a_refusal_is_read_and_survived(tmp_path: Path) -> None:
    door, told, _ = await evolve(
        tmp_path, lambda: SpaceWorld(BOX4, TWO), Budget(16), meddle=lambda i, c: "reject" if i == 3 else None
    )
    assert door.budget.remaining == 0
    assert any(isinstance(fact, ToolReturned) and "not now" in fact.text for fact in told)


async def test_a_closed_door_ends_it_quietly(tmp_path: Path) -> None:
    def close_soon(door: FakeDoor) -> None:
        door.closed_after = 4

    door, _, reason = await evolve(tmp_path, lambda: SpaceWorld(BOX4, TWO), Budget(40), prepare=close_soon)
    assert len(door.codes) == 4
    assert "no more submissions" in reason


async def test_torn_feedback_is_survived(tmp_path: Path) -> None:
    def tear() -> None:
        for path in sorted((tmp_path / "feedback").glob("*/episodes/*/trajectory.jsonl")):
            text = path.read_text()
            path.write_text(text[: len(text) // 2])

    class Forgetful(FakeDoor):
        """Tears each trajectory before the agent can read it."""

        async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
            answer = await super().submit(cases)
            tear()
            return answer

    told = Transcript()
    desk = workspace(tmp_path, told)
    door = Forgetful(tmp_path, lambda: SpaceWorld(BOX4, TWO), Budget(20))
    await SearchAgent().run(desk, door, told)
    assert door.budget.remaining == 0


async def test_every_edit_is_explained_and_every_result_judged(tmp_path: Path) -> None:
    _, told, _ = await evolve(tmp_path, lambda: CartPole(60), Budget(40), meta={"max_episode_steps": 60})
    edits = [i for i, fact in enumerate(told) if isinstance(fact, FileEdited)]
    assert len(edits) > 8
    for i in edits:
        assert isinstance(told[i - 1], AgentThought)
        assert isinstance(told[i + 1], ToolCalled)
    calls = [fact.call for fact in told if isinstance(fact, ToolCalled)]
    returns = [fact.call for fact in told if isinstance(fact, ToolReturned)]
    assert calls == returns
    assert len(set(calls)) == len(calls)
    judged = [f for f in told if isinstance(f, AgentMessage) and ("kept" in f.text or "Kept" in f.text)]
    assert len(judged) >= len(edits) // 2
    assert max(len(f.text) for f in told if isinstance(f, (AgentMessage, AgentThought))) < 600


async def test_parametric_edits_change_constants_only(tmp_path: Path) -> None:
    door, _, _ = await evolve(tmp_path, lambda: CartPole(60), Budget(40), meta={"max_episode_steps": 60})
    shapes = [re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "0", code) for code in door.codes]
    assert len(set(shapes)) <= 9  # as many as forms, whatever the number of candidates
    assert len(set(door.codes)) > len(set(shapes))


async def test_policies_use_numpy_and_the_standard_library_only(tmp_path: Path) -> None:
    for number, name in enumerate(("flat, two actions", "flat, one torque", "goal dictionary", "grid", "tuple table")):
        obs_space, action_space = SPACES[name]
        door, _, _ = await evolve(tmp_path / str(number), partial(SpaceWorld, obs_space, action_space), Budget(16))
        for code in door.codes:
            tree = ast.parse(code)
            imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
            imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
            tops = {module.split(".")[0] for module in imported}
            assert tops <= {"numpy"} | set(sys.stdlib_module_names)
            assert not tops & {"subprocess", "multiprocessing", "socket", "os"}
            policy = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Policy")
            assert ast.get_docstring(policy)
            assert {n.name for n in policy.body if isinstance(n, ast.FunctionDef)} >= {"__init__", "reset", "act"}


async def test_field_names_come_from_the_task(tmp_path: Path) -> None:
    fields = ["cart position", "cart velocity", "pole angle", "pole angular velocity"]
    table = "# Task\n\n## Observation\n\n| index | value |\n|---|---|\n"
    table += "\n".join(f"| {i} | {name}, some remark | m |" for i, name in enumerate(fields))
    text = table + "\n\n## Action\n\nOne of two: `0` pushes left, `1` pushes right.\n"
    door, told, _ = await evolve(tmp_path, lambda: CartPole(60), Budget(24), task=text, meta={"max_episode_steps": 60})
    assert any("W_POLE_ANGULAR_VELOCITY = " in code for code in door.codes)
    assert any("pushes right" in code for code in door.codes)
    assert any(isinstance(f, AgentMessage) and "cart velocity is the velocity of cart position" in f.text for f in told)


def test_no_environment_is_known_by_name() -> None:
    names = set()
    for task in list_tasks():
        names |= {task.name, task.slug, task.gym_id, task.title, *task.aliases}
    names |= {"halfcheetah", "bipedal", "lunarlander", "minigrid", "pusher", "reacher", "fetch", "carracing", "doorkey"}
    folder = Path(sys.modules["evotui.agents.search"].__file__ or "").parent
    for path in sorted(folder.glob("*.py")):
        words = set(re.findall(r"[a-z0-9_/-]+", path.read_text("utf-8").lower()))
        # what a controller may do, whatever the environment is called
        found = {name.lower() for name in names if name.lower() in words} - {"fetch", "push", "pick", "walker", "maze"}
        assert not found, f"{path.name} names {found}"
        assert not re.search(
            r"""\[["']env(_version|_name)?["']\]|get\(["']env(_version|_name)?["']""", path.read_text()
        )


def test_cma_is_imported_where_it_is_used_only() -> None:
    import subprocess

    code = "import sys, evotui.agents.search; sys.exit('cma' in sys.modules or 'gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
