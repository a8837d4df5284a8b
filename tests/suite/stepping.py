"""Episodes in this process, for tests of the environments and of our own policies."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from evotui.protocol.spaces import action_reader
from evotui.protocol.task import TaskSpec
from evotui.suite import worlds
from evotui.suite.catalog import policy_folder


@dataclass(frozen=True)
class Step:
    """One environment step: what was seen before it, what was done, what came of it."""

    t: int
    before: Any
    action: Any
    obs: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    invalid: bool


def steps(task: TaskSpec, seed: int, act: Callable[[Any], Any] | None = None) -> Iterator[Step]:
    """The steps of one episode, actions from ``act(obs)``, or sampled where there is none."""
    read = action_reader(worlds.describe(task).action_schema)
    world = worlds.make(task)
    try:
        obs, t, over = world.reset(seed), 0, False
        while not over:
            action, invalid = read(world.sample() if act is None else act(obs))
            after, reward, terminated, truncated, info = world.step(action)
            yield Step(t, obs, action, after, reward, terminated, truncated, info, invalid)
            obs, t, over = after, t + 1, terminated or truncated
    finally:
        world.close()


def policy(task: TaskSpec, name: str) -> Any:
    """A policy object of ours, loaded as a guest would: its folder first on the path."""
    folder = policy_folder(task, name)
    info = worlds.describe(task)
    return load(folder).Policy(info.obs_schema, info.action_schema, {"max_episode_steps": info.max_episode_steps})


def load(folder: Path) -> ModuleType:
    helpers = {path.stem for path in folder.glob("*.py")}
    sys.path.insert(0, str(folder))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # policy folders are data: no caches there
    try:
        spec = importlib.util.spec_from_file_location("policy", folder / "policy.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name in helpers:
            sys.modules.pop(name, None)
