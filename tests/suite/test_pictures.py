"""Drawing an episode does not change it, in any environment; each in a process that may die of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evotui.suite.catalog import availability, find_task, list_tasks

SCRIPT = """
import json, sys
from evotui.protocol.spaces import to_jsonable
from evotui.suite import worlds
from evotui.suite.catalog import find_task

def trace(task, draws):
    world, told, shapes = worlds.make(task, render=draws), [], set()
    told.append(to_jsonable(world.reset(5)))
    for t in range(STEPS):
        if draws and t % 3 == 0:
            frame = world.frame(SIDES[t % 2])
            shapes.add((frame.shape, str(frame.dtype), bool(frame.std() > 1)))
        step = world.step(world.sample())
        told.append(to_jsonable(step[:4]))
        if step[2] or step[3]:
            break
    world.close()
    return told, shapes

STEPS, SIDES = 24, (100, 200)
for name in sys.argv[1:]:
    bare, (drawn, shapes) = trace(find_task(name), False)[0], trace(find_task(name), True)
    print(json.dumps({"name": name, "same": bare == drawn, "shapes": sorted(shapes)}), flush=True)
"""


def drawn(names: list[str], **settings: str) -> dict[str, dict]:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *names],
        env=os.environ | {"SDL_VIDEODRIVER": "offscreen", "PYTHONPATH": str(root)} | settings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {told["name"]: told for told in map(json.loads, done.stdout.splitlines())}


def holds(told: dict[str, dict], names: list[str]) -> None:
    assert list(told) == names
    for name, found in told.items():
        assert found["same"], f"drawing {name} changed the episode"
        for shape, dtype, varied in found["shapes"]:
            assert (len(shape), shape[2], dtype, varied) == (3, 3, "uint8", True)
            assert max(shape) >= 100


def test_two_dimensions() -> None:
    names = [t.name for t in list_tasks() if "mujoco" not in t.requires and not availability(t)]
    holds(drawn(names), names)


def test_mujoco() -> None:
    from evotui.rollout.drawing import working_gl

    if missing := availability(find_task("ant5")):
        pytest.skip(missing)
    if not (backend := working_gl()):
        pytest.skip("nothing here draws OpenGL")
    names = [t.name for t in list_tasks() if "mujoco" in t.requires]
    told = drawn(names, MUJOCO_GL=backend)
    holds(told, names)
    for found in told.values():  # as large as asked for, and never smaller afterwards
        assert {tuple(shape[:2]) for shape, _, _ in found["shapes"]} <= {(120, 120), (240, 240)}
