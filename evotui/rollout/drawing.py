"""Whether pictures can be drawn here, tried out in throw-away processes.

A drawing library that fails once aborts its process at the second attempt, so no process that is needed tries it first.
What was seen to work is remembered for this machine; what did not is tried again, since somebody may have installed it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import platformdirs

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
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light pos='0 0 3'/><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 16, 16)
renderer.update_scene(data)
assert renderer.render().any()
"""


def gl_backends() -> tuple[str, ...]:
    """What MuJoCo may be able to draw with here, best first: a window system's only where there is a display."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return ("egl", "osmesa", "glfw") if shown else ("egl", "osmesa")


def has_mujoco() -> bool:
    return importlib.util.find_spec("mujoco") is not None


def working_gl() -> str:
    """The backend that MuJoCo draws with on this machine; empty where none does. Blocking.

    Remembered in the user's state folder once it was found. Call :func:`forget_gl` where it fails after all.
    """
    key, kept = _machine(), _remembered()
    if kept.get(key) in gl_backends():
        return kept[key]
    if has_mujoco():
        for backend in gl_backends():
            if not why_no_gl(backend):
                _remember(kept | {key: backend})
                return backend
    return ""


def forget_gl() -> None:
    """What was remembered of this machine is not true any more."""
    kept = _remembered()
    if kept.pop(_machine(), None) is not None:
        _remember(kept)


def why_no_gl(backend: str) -> str:
    """Empty where MuJoCo draws with this backend, else the last thing that was said. Blocking."""
    return _try(_GL, MUJOCO_GL=backend)


def why_no_sdl() -> str:
    """Empty where classic environments draw without a display, else the last thing that was said. Blocking."""
    return _try(_SDL, SDL_VIDEODRIVER="offscreen", PYGAME_HIDE_SUPPORT_PROMPT="1")


def _machine() -> str:
    return f"{platform.node()} {sys.executable} mujoco {importlib.metadata.version('mujoco') if has_mujoco() else '-'}"


def _memory() -> Path:
    return platformdirs.user_state_path("evotui", appauthor=False) / "drawing.json"


def _remembered() -> dict[str, str]:
    try:
        kept = json.loads(_memory().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in kept.items() if isinstance(v, str)} if isinstance(kept, dict) else {}


def _remember(kept: dict[str, str]) -> None:
    with suppress(OSError):  # without a state folder it is tried out each time
        _memory().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=_memory().parent, prefix=".drawing-", delete=False) as file:
            json.dump(kept, file)
        os.replace(file.name, _memory())


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
