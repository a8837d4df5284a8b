"""Whether pictures can be drawn here, tried out in throw-away processes.

A drawing library that fails once aborts its process at the second attempt, so no process that is needed tries it first.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

GL_BACKENDS = ("egl", "osmesa")
"""What MuJoCo can draw with where there is no display, best first."""

GL_HINT = "no OpenGL without a display here: install libosmesa6, or libegl1 with libgl1"

_SECONDS = 20.0
_SDL = """
import gymnasium
env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().any()
"""
_GL = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
renderer = mujoco.Renderer(model, 16, 16)
renderer.update_scene(mujoco.MjData(model))
renderer.render()
"""


def has_mujoco() -> bool:
    return importlib.util.find_spec("mujoco") is not None


def why_no_gl(backend: str) -> str:
    """Empty where MuJoCo draws with this backend, else the last thing that was said. Blocking."""
    return _try(_GL, MUJOCO_GL=backend)


def why_no_sdl() -> str:
    """Empty where classic environments draw without a display, else the last thing that was said. Blocking."""
    return _try(_SDL, SDL_VIDEODRIVER="offscreen", PYGAME_HIDE_SUPPORT_PROMPT="1")


def _try(script: str, **settings: str) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", script],
            env=os.environ | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"nothing was drawn in {_SECONDS:g} s"
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    wrong = [line for line in said if line[:1].isalpha() and "Error" in line]  # the tail may be noise of a destructor
    return (wrong or said or [f"it ended with status {done.returncode}"])[-1].strip()[:200]
