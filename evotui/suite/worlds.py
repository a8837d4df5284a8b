"""The one Gymnasium adapter: environments are made, stepped, drawn and described here and nowhere else.

Each world is a fresh ``gymnasium.make(id)`` for one episode, without arguments or wrappers of ours, as in the paper.
Gymnasium is imported inside functions, so that importing this module costs nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import os
import re
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evotui.protocol.spaces import Schema
from evotui.protocol.task import DEFAULT_MAX_STEPS, TaskSpec, succeeded
from evotui.suite.catalog import check_packages, distribution, install_command
from evotui.suite.describe import generated_text
from evotui.suite.errors import MissingExtra, SuiteError, UnknownEnvironment, near_names
from evotui.suite.pictures import Grid, Painter

_CORE16 = ("Box2D", "mujoco", "highway_env", "gymnasium_robotics")
_PLUGINS = {  # packages that register more ids, and how those ids begin
    "minigrid": r"MiniGrid-|BabyAI-",
    "highway_env": r"(highway|merge|roundabout|parking|intersection|racetrack|exit|two-way|u-turn|lane-keeping)\b",
    "gymnasium_robotics": r"(Fetch|HandReach|HandManipulate|AntMaze|PointMaze|Adroit|FrankaKitchen)",
}
_COLLAPSE = 1024
_IMAGE_SIDE = 16
_MISSION_LENGTH = 256


@dataclass(frozen=True)
class WorldInfo:
    """What one made environment told: spaces as schemas, the step limit that binds, versions."""

    obs_schema: Schema
    action_schema: Schema
    max_episode_steps: int
    env_version: str
    versions: dict[str, str]
    render_modes: tuple[str, ...]


class World:
    """One environment instance, used for one episode: :meth:`reset` once, then :meth:`step` until an end."""

    def __init__(self, env: Any, task: TaskSpec) -> None:
        self._env = env
        self._task = task
        self._steps = 0
        self._painter = Painter(env) if env.render_mode == "rgb_array" else None
        self.max_episode_steps: int = _step_limit(task, env)

    def reset(self, seed: int) -> Any:
        """Start the episode of this case: ``reset(seed=seed)``, action space seeded with ``seed + 1``.

        Returns the observation; the reset's info is dropped (highway-env puts unseeded noise there).
        """
        self._steps = 0
        obs, _info = self._env.reset(seed=seed)
        self._env.action_space.seed(seed + 1)
        return obs

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """``(obs, reward, terminated, truncated, info)``; truncated also when the step limit is reached."""
        obs, reward, terminated, truncated, info = self._env.step(action)
        self._steps += 1
        return obs, float(reward), bool(terminated), bool(truncated) or self._steps >= self.max_episode_steps, info

    def sample(self) -> Any:
        """A random action from the seeded action space."""
        return self._env.action_space.sample()

    def success(
        self, reward: float, terminated: bool, truncated: bool, info: dict[str, Any], return_: float
    ) -> bool | None:
        """Whether the episode that ended with this step succeeded; None where the task has no rule."""
        return succeeded(
            self._task.success, reward=reward, terminated=terminated, truncated=truncated, info=info, return_=return_
        )

    def frame(self, side: int = 480) -> np.ndarray | None:
        """The current picture, uint8 of height × width × 3; None where the environment draws none.

        ``side``: the pixels that are needed on its longer side, a hint that saves time (MuJoCo draws in any size).
        Drawing does not change the episode.
        """
        return self._painter.draw(side) if self._painter is not None else None

    def grid(self) -> Grid | None:
        """The cells of the picture, where it shows a grid world; None elsewhere."""
        return self._painter.grid() if self._painter is not None else None

    def text(self) -> str | None:
        """A drawing in characters of grid worlds (MiniGrid, Taxi); None elsewhere."""
        bare = self._env.unwrapped
        if hasattr(bare, "pprint_grid"):
            return str(bare.pprint_grid())
        if hasattr(bare, "desc") and hasattr(bare, "decode") and hasattr(bare, "locs"):
            return _draw_taxi(bare)
        return None

    def close(self) -> None:
        if self._painter is not None:
            self._painter.close()
        self._env.close()


def make(task: TaskSpec, render: bool = False) -> World:
    """A fresh world; with ``render`` one that can draw frames (never opens a window).

    Raises MissingExtra or UnknownEnvironment.
    """
    if render:
        os.environ.setdefault("SDL_VIDEODRIVER", "offscreen")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    return World(_make(task, {"render_mode": "rgb_array"} if render else {}), task)


def describe(task: TaskSpec) -> WorldInfo:
    """Spaces, limit and versions, from an environment made for this and closed again.

    Raises as :func:`make`, and WrongVersion before anything is made.
    """
    check_packages(task)
    env = _make(task, {})
    try:
        return WorldInfo(
            obs_schema=space_schema(env.observation_space),
            action_schema=space_schema(env.action_space),
            max_episode_steps=_step_limit(task, env),
            env_version=task.gym_id,
            versions=_versions(("numpy", "gymnasium", *task.packages, *task.requires)),
            render_modes=tuple(env.metadata.get("render_modes") or ()),
        )
    finally:
        env.close()


def generated_task(gym_id: str) -> TaskSpec:
    """The task of a registered id that has no folder of ours: its text is made from what the environment tells.

    ``module:ID`` imports the module first. Raises UnknownEnvironment with near ids, or MissingExtra.
    """
    module, _, bare_id = gym_id.rpartition(":")
    packages = (module,) if module else _plugin_of(bare_id)
    task = TaskSpec(
        name=f"gymnasium:{gym_id}",
        slug="gymnasium/" + re.sub(r"[^A-Za-z0-9_.-]+", "-", bare_id).lstrip(".-"),
        gym_id=bare_id,
        title=bare_id,
        family="custom",
        packages=packages,
        extra="core16" if any(p in _CORE16 for p in packages) else "",
        generated=True,
    )
    info = describe(task)
    return replace(task, text=generated_text(bare_id, info.obs_schema, info.action_schema, info.max_episode_steps))


def space_schema(space: Any) -> Schema:
    """The schema dictionary of a Gymnasium space. Raises SuiteError for spaces that a policy cannot be told of."""
    kind = type(space).__name__
    if kind == "Box":
        return _box_schema(space)
    if kind == "Discrete":
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if kind == "MultiDiscrete":
        schema = {"type": "MultiDiscrete", "nvec": space.nvec.tolist(), "dtype": str(space.dtype)}
        return {**schema, "start": space.start.tolist()} if np.any(space.start) else schema
    if kind == "MultiBinary":
        return {"type": "MultiBinary", "shape": list(space.shape), "dtype": str(space.dtype)}
    if kind == "Tuple":
        return {"type": "Tuple", "spaces": [space_schema(s) for s in space.spaces]}
    if kind == "Dict":
        return {"type": "Dict", "spaces": {str(k): space_schema(s) for k, s in space.spaces.items()}}
    if kind == "Text":
        return {"type": "Text", "max_length": int(space.max_length)}
    if kind == "MissionSpace":  # MiniGrid's own: a sentence
        return {"type": "Text", "max_length": _MISSION_LENGTH}
    raise SuiteError(f"a space of type {kind} is not supported: no policy can be told of it")


def _box_schema(space: Any) -> Schema:
    shape = list(space.shape)
    low, high = _bound(space.low), _bound(space.high)
    picture = (
        space.dtype == np.uint8
        and len(shape) == 3
        and shape[2] in (1, 3, 4)
        and min(shape[:2]) >= _IMAGE_SIDE  # MiniGrid's 7×7×3 grid of codes is no picture
        and bool((space.low == 0).all() and (space.high == 255).all())
    )
    if picture:
        return {"type": "Image", "shape": shape, "dtype": "uint8", "low": 0, "high": 255}
    return {"type": "Box", "shape": shape, "dtype": str(space.dtype), "low": low, "high": high}


def _bound(bound: np.ndarray) -> Any:
    if bound.size > _COLLAPSE and bool((bound == bound.flat[0]).all()):
        return bound.flat[0].item()
    return bound.tolist()


def _step_limit(task: TaskSpec, env: Any) -> int:
    limit = task.max_episode_steps or getattr(env.spec, "max_episode_steps", None)
    if limit:
        return int(limit)
    inner = getattr(env.unwrapped, "max_steps", None)  # MiniGrid counts by itself and registers no limit
    return min(inner, DEFAULT_MAX_STEPS) if isinstance(inner, int) and inner > 0 else DEFAULT_MAX_STEPS


def _make(task: TaskSpec, arguments: dict[str, Any]) -> Any:
    import gymnasium

    _register(task)
    # The paper's ids are meant: that roundabout-v0 has a successor is no news, and workers repeat it for each episode.
    warnings.filterwarnings("ignore", r".*environment \S+ is out of date", DeprecationWarning)
    if task.gym_id not in gymnasium.registry:
        near = near_names(task.gym_id, gymnasium.registry)
        prefix = "gymnasium:" if task.generated else ""
        raise UnknownEnvironment(prefix + task.gym_id, [prefix + n for n in near])
    try:
        return gymnasium.make(task.gym_id, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise _missing(task, _module_of(gymnasium.registry[task.gym_id], error), error) from error
    except ModuleNotFoundError as error:
        raise _missing(task, error.name or "a package", error) from error
    except gymnasium.error.DeprecatedEnv as error:
        raise UnknownEnvironment(task.gym_id, near_names(task.gym_id, gymnasium.registry), str(error)) from error


def _register(task: TaskSpec) -> None:
    import gymnasium

    for module in task.packages:
        if module in sys.modules:
            continue
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # gymnasium_robotics advertises its versions there
                gymnasium.register_envs(importlib.import_module(module))
        except ModuleNotFoundError as error:
            raise _missing(task, error.name or module, error) from error


def _plugin_of(gym_id: str) -> tuple[str, ...]:
    # By name alone: whether the package was registered in this process already says nothing about a worker's.
    return tuple(module for module, start in _PLUGINS.items() if re.match(start, gym_id))


def _missing(task: TaskSpec, module: str, error: Exception) -> MissingExtra:
    extra = task.extra or ("core16" if module in _CORE16 else "")
    command = install_command(extra, module)
    if not extra and (told := re.search(r"pip install [^`]+", str(error))):
        command = told[0].strip()
    return MissingExtra(task.gym_id, module, command)


def _module_of(spec: Any, error: Exception) -> str:
    entry = str(spec.entry_point)
    for part, module in {"envs.box2d": "Box2D", "envs.mujoco": "mujoco", "gymnasium_robotics": "mujoco"}.items():
        if part in entry:
            return module
    return str(error).split(" ", 1)[0] or "a package"


def _versions(modules: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for module in dict.fromkeys(modules):
        name = distribution(module)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a module without a distribution
            found[name] = importlib.metadata.version(name)
    return found


def _draw_taxi(bare: Any) -> str:
    """Taxi's map: T the taxi (with its passenger: @), p the waiting passenger, the destination in brackets below."""
    rows = [[cell.decode() for cell in row] for row in bare.desc]
    row, col, passenger, destination = bare.decode(bare.s)
    if passenger < len(bare.locs):
        there = bare.locs[passenger]
        rows[there[0] + 1][2 * there[1] + 1] = "p"
    rows[row + 1][2 * col + 1] = "T" if passenger < len(bare.locs) else "@"
    return "\n".join("".join(r) for r in rows) + f"\nto {'RGYB'[destination]}"
