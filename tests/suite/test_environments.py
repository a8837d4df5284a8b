"""What each task.toml and task.md claims, held against real steps."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evotui.protocol.spaces import Schema, flatten_names, flatten_values, to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task
from tests.suite.stepping import Step, policy, steps

ENVIRONMENTS = {  # name: (step limit, observation type, its shape, action type, number of actions or dimensions)
    "cartpole": (500, "Box", [4], "Discrete", 2),
    "pendulum": (200, "Box", [3], "Box", 1),
    "acrobot": (500, "Box", [6], "Discrete", 3),
    "continuouscar": (999, "Box", [2], "Box", 1),
    "taxi": (200, "Discrete", None, "Discrete", 6),
    "minigrid_doorkey": (1000, "Dict", None, "Discrete", 7),
    "minigrid_fourrooms": (100, "Dict", None, "Discrete", 7),
    "minigrid_keycorridor": (480, "Dict", None, "Discrete", 7),
    "minigrid_obstructedmaze": (720, "Dict", None, "Discrete", 7),
    "lunarlander": (1000, "Box", [8], "Discrete", 4),
    "bipedal": (1600, "Box", [24], "Box", 4),
    "racing": (1000, "Image", [96, 96, 3], "Box", 3),
    "reacher5": (50, "Box", [10], "Box", 2),
    "halfcheetah5": (1000, "Box", [17], "Box", 6),
    "ant5": (1000, "Box", [105], "Box", 8),
    "pusher5": (100, "Box", [23], "Box", 7),
    "parking": (500, "Dict", None, "Box", 2),
    "roundabout": (11, "Box", [5, 5], "Discrete", 5),
    "fetch_push": (50, "Dict", None, "Box", 4),
    "fetch_pickandplace": (50, "Dict", None, "Box", 4),
}
MINIGRID = dict(zip(list(ENVIRONMENTS)[5:9], (2560, 100, 480, 720), strict=True))  # what rewards are scaled by
SLOW = {"racing": 60, "parking": 100}  # steps that are enough of an episode whose simulation is slow
SEEDS = (11, 12, 13)


@pytest.fixture(autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    """Skip where the packages of the environment that is tested are not there."""
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name and (missing := availability(find_task(name))):
        pytest.skip(missing)


def always(action: int) -> Callable[[Any], int]:
    return lambda obs: action


def within(value: Any, schema: Schema) -> bool:
    kind = schema["type"]
    if kind == "Dict":
        return set(value) == set(schema["spaces"]) and all(within(value[k], s) for k, s in schema["spaces"].items())
    if kind == "Discrete":
        return schema["start"] <= int(value) < schema["start"] + schema["n"]
    if kind == "Text":
        return isinstance(value, str) and len(value) <= schema["max_length"]
    array = np.asarray(value)
    low, high = np.asarray(schema["low"], schema["dtype"]), np.asarray(schema["high"], schema["dtype"])
    shaped = list(array.shape) == schema["shape"] and str(array.dtype) == schema["dtype"]
    return shaped and bool(((low <= array) & (array <= high)).all())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_spaces_names_and_limits(name: str) -> None:
    limit, obs_type, obs_shape, action_type, n_actions = ENVIRONMENTS[name]
    task = find_task(name)
    info = worlds.describe(task)
    assert info.obs_schema["type"] == obs_type
    assert info.obs_schema.get("shape") == obs_shape
    assert info.action_schema["type"] == action_type
    assert (info.action_schema["n"] if action_type == "Discrete" else info.action_schema["shape"][0]) == n_actions
    assert info.max_episode_steps == limit
    assert len(task.action_names) == n_actions
    if task.observation_fields:
        assert flatten_names(info.obs_schema, task.observation_fields) == list(task.observation_fields)
    else:
        assert obs_type in ("Dict", "Image")
    assert f"after {limit} steps" in task.text
    assert task.text.startswith("# ")
    for chapter in ("## Observation", "## Action", "## Reward", "## End", "## Traps"):
        assert chapter in task.text


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_random_steps_stay_in_the_declared_spaces(name: str) -> None:
    task = find_task(name)
    info = worlds.describe(task)
    names = flatten_names(info.obs_schema, task.observation_fields)
    for seed in SEEDS[:1] if name in SLOW else SEEDS:
        last = None
        for last in itertools.islice(steps(task, seed), SLOW.get(name)):
            assert within(last.obs, info.obs_schema)
            assert not last.invalid
            if last.t < 3 and info.obs_schema["type"] != "Image":
                assert len(flatten_values(to_jsonable(last.obs))) == len(names)
        assert last is not None
        assert name in SLOW or last.terminated or last.t + 1 == info.max_episode_steps


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_same_case_gives_the_same_episode(name: str) -> None:
    task = find_task(name)

    def trace() -> list[Any]:
        episode = itertools.islice(steps(task, 2**100 + 7), 50)
        return [(to_jsonable(s.obs), s.reward, to_jsonable(s.action)) for s in episode]

    assert trace() == trace()


@pytest.mark.parametrize("name", [n for n in ENVIRONMENTS if n != "taxi"])
def test_declared_reward_components_are_in_info(name: str) -> None:
    task = find_task(name)
    step = next(steps(task, 1))
    assert set(task.reward_components) <= set(step.info)


# ------------------------------------------------------------------------------------------------ one by one


def test_cartpole() -> None:
    task = find_task("cartpole")
    for seed in SEEDS:
        episode = list(steps(task, seed))
        assert np.abs(episode[0].before).max() <= 0.05
        assert {s.reward for s in episode} == {1.0}
        for step in episode:
            position, _, angle, _ = step.obs
            assert step.terminated == (abs(position) > 2.4 or abs(angle) > math.radians(12))
    left = next(steps(task, 1, lambda obs: 0))
    right = next(steps(task, 1, lambda obs: 1))
    assert left.obs[1] < left.before[1] < right.obs[1]  # 0 pushes left, 1 right
    assert left.obs[3] > left.before[3] > right.obs[3]  # the pole leans the other way


def test_pendulum() -> None:
    task = find_task("pendulum")
    for seed in SEEDS:
        for step in steps(task, seed):
            cosine, sine, speed = (float(v) for v in step.before)
            angle, torque = math.atan2(sine, cosine), float(step.action[0])
            assert step.reward == pytest.approx(-(angle**2 + 0.1 * speed**2 + 0.001 * torque**2), abs=1e-4)
            after = min(max(speed + (15 * sine + 3 * torque) * 0.05, -8), 8)
            assert float(step.obs[2]) == pytest.approx(after, abs=1e-4)
            turned = angle + after * 0.05
            assert float(step.obs[0]) == pytest.approx(math.cos(turned), abs=1e-4)
            assert float(step.obs[1]) == pytest.approx(math.sin(turned), abs=1e-4)
            assert not step.terminated


def test_acrobot() -> None:
    task = find_task("acrobot")
    player = policy(task, "reference")
    player.reset(0)
    for act in (None, player.act):
        for step in steps(task, 5, act):
            cos1, sin1, cos2, sin2, _, _ = (float(v) for v in step.obs)
            height = -cos1 - (cos1 * cos2 - sin1 * sin2)
            if abs(height - 1) > 1e-5:
                assert step.terminated == (height > 1)
            assert step.reward == (0.0 if step.terminated else -1.0)
            if step.t == 0:
                assert np.abs(step.before[[1, 3, 4, 5]]).max() <= 0.1
    assert step.terminated
    torques = [next(steps(task, 5, always(a))).obs[5] for a in range(3)]
    assert torques[0] < torques[1] < torques[2]


def test_continuouscar() -> None:
    task = find_task("continuouscar")
    player = policy(task, "reference")
    player.reset(0)
    for act in (None, player.act):
        for step in steps(task, 5, act):
            position, velocity = (float(v) for v in step.before)
            push = float(step.action[0])
            assert step.reward == pytest.approx(-0.1 * push**2 + (100.0 if step.terminated else 0.0), abs=1e-6)
            after = min(max(velocity + 0.0015 * push - 0.0025 * math.cos(3 * position), -0.07), 0.07)
            if step.obs[0] > -1.2:
                assert float(step.obs[1]) == pytest.approx(after, abs=1e-6)
            assert float(step.obs[0]) == pytest.approx(max(position + after, -1.2), abs=1e-6)
            assert step.terminated == (float(step.obs[0]) >= 0.45)
            if step.t == 0:
                assert -0.6 <= position <= -0.4
                assert velocity == 0
    assert step.terminated


def _taxi(state: int) -> tuple[int, int, int, int]:
    rest, destination = divmod(state, 4)
    rest, passenger = divmod(rest, 5)
    row, column = divmod(rest, 5)
    return row, column, passenger, destination


def test_taxi() -> None:
    task = find_task("taxi")
    stands = [(0, 0), (0, 4), (4, 0), (4, 3)]
    drawn = task.text.split("```")[1].strip().splitlines()
    player = policy(task, "reference")
    rng = random.Random(1)
    seen = set()
    for seed in range(30):
        for step in steps(task, seed, lambda obs: player.act(obs) if rng.random() < 0.6 else rng.randrange(6)):
            row, column, passenger, destination = _taxi(int(step.before))
            if step.t == 0:
                assert passenger < 4
                assert passenger != destination
            after = _taxi(int(step.obs))
            action = int(step.action)
            expected: tuple[float, tuple[int, int, int, int]]
            here = (row, column)
            if action < 4:
                wall_east = drawn[row + 1][2 * column + 2] == "|"
                wall_west = drawn[row + 1][2 * column] == "|"
                row += {0: row < 4, 1: -(row > 0)}.get(action, 0)
                column += {2: not wall_east, 3: -(not wall_west)}.get(action, 0)
                expected = -1.0, (row, column, passenger, destination)
            elif action == 4:
                fine = passenger < 4 and here == stands[passenger]
                expected = (-1.0 if fine else -10.0), (row, column, 4 if fine else passenger, destination)
            elif passenger == 4 and here in stands:
                expected = (20.0 if here == stands[destination] else -1.0), (*here, stands.index(here), destination)
            else:
                expected = -10.0, (row, column, passenger, destination)
            assert (step.reward, after) == expected
            assert step.terminated == (step.reward == 20.0)
            assert set(step.info) >= {"prob", "action_mask"}
            assert step.info["prob"] == 1.0
            seen.add((action, step.reward))
    assert len(seen) == 9  # every row of the reward table was met: moves, and both ends of picking up and dropping


@pytest.mark.parametrize("name", MINIGRID)
def test_minigrid_rewards_and_observations(name: str) -> None:
    task = find_task(name)
    for seed in SEEDS:
        player = policy(task, "reference")
        player.reset(0)
        world = worlds.make(task)
        obs, total, t, over = world.reset(seed), 0.0, 0, False
        bare = world._env.unwrapped
        assert obs["mission"] in task.text.replace("‹colour›", str(obs["mission"]).split()[-2])
        while not over:
            _check_view(obs, bare)
            obs, reward, terminated, truncated, info = world.step(player.act(obs))
            t += 1
            total += reward
            over = terminated or truncated
            assert info == {}
            expected = 1 - 0.9 * t / MINIGRID[name] if terminated else 0.0
            assert reward == pytest.approx(expected, abs=1e-12)
        assert terminated
        assert world.success(reward, terminated, truncated, info, total) is True
        world.close()
    assert f"0.9·t/{MINIGRID[name]}" in task.text


def _check_view(obs: dict[str, Any], bare: Any) -> None:
    """The cells before and beside the agent, as the text says where they are in the image."""
    x, y = bare.agent_pos
    east, south = [(1, 0), (0, 1), (-1, 0), (0, -1)][obs["direction"]]
    assert obs["direction"] == bare.agent_dir
    for (i, j), (dx, dy) in {(3, 5): (east, south), (2, 6): (south, -east), (4, 6): (-south, east)}.items():
        cell = bare.grid.get(x + dx, y + dy)
        expected = (1, 0, 0) if cell is None else cell.encode()
        assert tuple(int(v) for v in obs["image"][i][j]) == tuple(expected)
    carried = (1, 0, 0) if bare.carrying is None else bare.carrying.encode()
    assert tuple(int(v) for v in obs["image"][3][6]) == tuple(carried)


def test_minigrid_actions_and_codes() -> None:
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

    task: TaskSpec = find_task("doorkey")
    for codes in (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX):
        for word, code in codes.items():
            shown = {"unseen": "not visible"}.get(word, word)
            assert word == "agent" or f"{code} {shown}" in task.text
    world = worlds.make(task)
    names = [a.name for a in world._env.unwrapped.actions]
    world.close()
    assert names == ["left", "right", "forward", "pickup", "drop", "toggle", "done"]
    turned: list[Step] = [next(steps(task, 3, always(a))) for a in (0, 1)]
    start = turned[0].before["direction"]
    assert [s.obs["direction"] for s in turned] == [(start - 1) % 4, (start + 1) % 4]
