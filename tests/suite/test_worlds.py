"""The adapter: one fresh environment per episode, seeded as the protocol says, limits, frames, drawings."""

from __future__ import annotations

import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from evotui.suite import worlds
from evotui.suite.catalog import MissingExtra, SuiteError, UnknownEnvironment, find_task
from tests.suite.stepping import steps

CARTPOLE = find_task("cartpole")


def test_describe() -> None:
    info = worlds.describe(CARTPOLE)
    assert info.action_schema == {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}
    assert (info.obs_schema["type"], info.obs_schema["shape"], info.obs_schema["dtype"]) == ("Box", [4], "float32")
    assert info.obs_schema["high"][1] == math.inf
    assert info.max_episode_steps == 500
    assert info.env_version == "CartPole-v1"
    assert info.versions["gymnasium"] == gymnasium.__version__
    assert "rgb_array" in info.render_modes


def test_an_episode_is_plain_gymnasium() -> None:
    """Same observations, rewards and samples as ``gymnasium.make`` with reset(seed) and an action space of seed + 1."""
    plain = gymnasium.make("CartPole-v1")
    seed = 2**127 + 11  # hidden seeds have 128 bits
    expected, _ = plain.reset(seed=seed)
    plain.action_space.seed(seed + 1)
    for step in steps(CARTPOLE, seed):
        assert np.array_equal(step.before, expected)
        assert step.action == plain.action_space.sample()
        expected, reward, terminated, truncated, _ = plain.step(step.action)
        assert (step.reward, step.terminated, step.truncated) == (reward, terminated, truncated)
    assert step.terminated or step.truncated


def test_values_are_plain_python() -> None:
    step = next(steps(find_task("pendulum"), 3))
    assert type(step.reward) is float
    assert type(step.terminated) is bool
    assert type(step.truncated) is bool


def test_the_tasks_limit_truncates() -> None:
    short = replace(CARTPOLE, max_episode_steps=5)
    assert worlds.describe(short).max_episode_steps == 5
    episode = list(steps(short, 1))
    assert [s.truncated for s in episode] == [False] * 4 + [True]


def test_without_any_limit_it_is_a_thousand() -> None:
    doorkey = replace(find_task("doorkey"), max_episode_steps=None)
    assert worlds.describe(doorkey).max_episode_steps == 1000


def test_success() -> None:
    world = worlds.make(CARTPOLE)
    assert world.success(1.0, False, True, {}, 500.0) is True
    assert world.success(1.0, True, False, {}, 30.0) is False
    world.close()
    world = worlds.make(find_task("pendulum"))
    assert world.success(0.0, False, True, {}, -100.0) is None
    world.close()


@pytest.mark.parametrize("name", ["cartpole", "doorkey", "taxi"])
def test_frames_without_a_display(name: str) -> None:
    world = worlds.make(find_task(name), render=True)
    world.reset(1)
    frame = world.frame()
    world.close()
    assert frame is not None
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.shape[2] == 3
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 2  # something is drawn


def test_a_world_that_does_not_render_has_no_frame() -> None:
    world = worlds.make(CARTPOLE)
    world.reset(1)
    assert world.frame() is None
    assert world.text() is None
    world.close()


def test_drawings_in_characters() -> None:
    world = worlds.make(find_task("doorkey"))
    world.reset(1)
    text = world.text()
    assert text is not None
    assert len(text.splitlines()) == 16
    assert "LY" in text  # a locked yellow door
    assert "KY" in text  # its key
    world.close()
    world = worlds.make(find_task("taxi"))
    world.reset(1)
    text = world.text()
    assert text is not None
    assert text.count("T") == 1
    assert text.splitlines()[-1] in {"to R", "to G", "to Y", "to B"}
    world.close()


def test_a_missing_package_and_an_unknown_id() -> None:
    with pytest.raises(MissingExtra, match="pip install 'evotui\\[core16\\]'"):
        worlds.make(replace(CARTPOLE, packages=("no_such_package",), extra="core16"))
    with pytest.raises(UnknownEnvironment, match="did you mean CartPole-v1"):
        worlds.make(replace(CARTPOLE, gym_id="CartPole-v77"))


def test_schemas_of_spaces() -> None:
    schema = worlds.space_schema
    picture = spaces.Box(0, 255, (96, 96, 3), np.uint8)
    assert schema(picture) == {"type": "Image", "shape": [96, 96, 3], "dtype": "uint8", "low": 0, "high": 255}
    assert schema(spaces.Box(0, 255, (7, 7, 3), np.uint8))["type"] == "Box"
    assert schema(spaces.Box(0, 200, (96, 96, 3), np.uint8))["type"] == "Box"
    assert schema(spaces.Box(0, 255, (96, 96, 2), np.uint8))["type"] == "Box"
    large = schema(spaces.Box(-1, 1, (2000,), np.float32))
    assert (large["low"], large["high"]) == (-1.0, 1.0)
    uneven = schema(spaces.Box(np.array([-1, -math.inf]), np.array([1, 2]), dtype=np.float64))
    assert (uneven["low"], uneven["high"]) == ([-1.0, -math.inf], [1.0, 2.0])
    assert schema(spaces.Discrete(3, start=5)) == {"type": "Discrete", "n": 3, "start": 5, "dtype": "int64"}
    assert schema(spaces.MultiDiscrete([2, 3])) == {"type": "MultiDiscrete", "nvec": [2, 3], "dtype": "int64"}
    assert schema(spaces.MultiBinary(4)) == {"type": "MultiBinary", "shape": [4], "dtype": "int8"}
    assert schema(spaces.Text(9)) == {"type": "Text", "max_length": 9}
    both = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Tuple([spaces.Text(2)])})
    assert schema(both)["spaces"]["b"] == {"type": "Tuple", "spaces": [{"type": "Text", "max_length": 2}]}
    with pytest.raises(SuiteError, match="type Graph is not supported"):
        schema(spaces.Graph(spaces.Discrete(2), spaces.Discrete(2)))
