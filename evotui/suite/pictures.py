"""How a world's frame is drawn: no larger than it is asked for, and without what costs time.

MuJoCo's cameras are put nearer than their makers put them, since a pane of a terminal has few pixels, and they follow
whatever walks. Drawing must not change the episode that is drawn. The Fetch tasks move their goal's marker and run the
dynamics forward when they draw, which changes the bits of later steps; here the simulation is put back as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

_SIDES = (120, 240, 480)
"""Sizes in which MuJoCo draws, in pixels; a smaller picture is shrunk from one of these."""
_SHADOW_PIXELS = 256
_LEAST_TILE, _MOST_TILE = 8, 32
"""MiniGrid's tiles, in pixels."""


@dataclass(frozen=True, slots=True)
class _Camera:
    """Where it stands (metres, degrees) and what it looks at: a place, or the torso that it follows."""

    distance: float
    azimuth: float
    elevation: float
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    follows: bool = False


_TORSO = "torso"
_CAMERAS = {
    "Ant": _Camera(3.6, 90, -30, follows=True),
    "HalfCheetah": _Camera(2.8, 90, -12, follows=True),
    "Reacher": _Camera(0.75, 90, -85),
    "Pusher": _Camera(2.1, 90, -50, (0.4, -0.25, -0.2)),
    "FetchPush": _Camera(1.4, 180, -45, (1.3, 0.75, 0.45)),
    "FetchPickAndPlace": _Camera(1.8, 160, -25, (1.3, 0.75, 0.6)),
}


_MARKERS = {
    "Reacher": ("geom", "target", 3.0),
    "FetchPush": ("site", "target0", 1.8),
    "FetchPickAndPlace": ("site", "target0", 1.8),
}
"""The goal's marker of a task, a ball, and how many times larger it is drawn: else a pane's few pixels lose it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid world's cells as they are drawn, the agent among them; ``heading`` is 0 to 3: right, down, left, up."""

    across: int
    down: int
    agent: tuple[int, int]
    heading: int


class Painter:
    """Draws one environment, made with ``render_mode="rgb_array"``."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._renderer = getattr(env.unwrapped, "mujoco_renderer", None)
        kind = str(env.spec.id).partition("-")[0] if env.spec is not None else ""
        self._camera = _CAMERAS.get(kind)
        self._marker = _MARKERS.get(kind)
        self._side = 0
        cells = getattr(env.unwrapped, "width", 0), getattr(env.unwrapped, "height", 0)
        self._tiles = max(cells) if hasattr(env.unwrapped, "tile_size") else 0

    def draw(self, side: int) -> np.ndarray | None:
        """The present picture, uint8 of height × width × 3, with at least ``side`` pixels on its longer side where the
        environment can be asked for that. None where it draws none."""
        if self._tiles:  # a tile that was not drawn before is made pixel by pixel, in Python
            self._env.unwrapped.tile_size = min(max(-(-side // self._tiles), _LEAST_TILE), _MOST_TILE)
        pixels = self._env.render() if self._renderer is None else self._draw_mujoco(side)
        if hasattr(self._env.unwrapped, "enable_auto_render"):  # highway-env: else it draws within each later step too
            self._env.unwrapped.enable_auto_render = False
        return np.asarray(pixels, dtype=np.uint8) if isinstance(pixels, np.ndarray) else None

    def grid(self) -> Grid | None:
        """The cells of MiniGrid's picture; None elsewhere, and before the first episode."""
        bare = self._env.unwrapped
        if not self._tiles or getattr(bare, "agent_pos", None) is None:
            return None
        x, y = (int(v) for v in bare.agent_pos)
        return Grid(bare.width, bare.height, (x, y), int(bare.agent_dir))

    def close(self) -> None:
        """Let go of the drawing context, where there is one."""
        if self._renderer is not None and self._side:
            for viewer in self._renderer._viewers.values():
                # Its GL objects go while its own context is current: freed later, by the garbage collector, they would
                # take those of the same number in another environment's context, which then draws black.
                viewer.make_context_current()
                viewer.con.free()
            self._renderer.close()
            self._renderer._viewers.clear()
            self._renderer.viewer = None
            self._side = 0

    def _draw_mujoco(self, side: int) -> Any:
        import mujoco

        assert self._renderer is not None
        bare = self._env.unwrapped
        model, data = bare.model, bare.data
        self._choose_size(next((s for s in _SIDES if s >= side), _SIDES[-1]), mujoco)
        self._renderer.viewer.make_context_current()
        if self._camera is not None and not self._camera.follows:
            self._renderer.viewer.cam.lookat[:] = self._camera.place
        elif (torso := mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, _TORSO)) >= 0:
            self._renderer.viewer.cam.lookat[:] = data.xpos[torso]
        before = mujoco.MjData(model) if hasattr(bare, "_render_callback") else None
        markers = model.site_pos.copy()
        if before is not None:
            mujoco.mj_copyData(before, model, data)
        try:
            with self._larger_marker(model, mujoco):
                return self._env.render()
        finally:
            if before is not None:
                mujoco.mj_copyData(data, model, before)
            model.site_pos[:] = markers

    @contextmanager
    def _larger_marker(self, model: Any, mujoco: Any) -> Iterator[None]:
        """The goal's marker is larger meanwhile, where the task has one."""
        kind, name, times = self._marker or ("site", "", 1.0)
        at = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM if kind == "geom" else mujoco.mjtObj.mjOBJ_SITE, name)
        if at < 0:
            yield
            return
        sizes = (model.geom_size if kind == "geom" else model.site_size)[at]
        as_made = sizes.copy()
        sizes *= times
        try:
            yield
        finally:
            sizes[:] = as_made

    def _choose_size(self, side: int, mujoco: Any) -> None:
        """A context of this size, or of the larger one that is there: made anew when it has to grow."""
        if side <= self._side:
            return
        self.close()
        renderer, quality = self._renderer, self._env.unwrapped.model.vis.quality
        assert renderer is not None
        # Both must be set before the context is made: multisampling and shadow maps take most of a frame's time.
        quality.offsamples, quality.shadowsize = 0, _SHADOW_PIXELS
        renderer.width = renderer.height = self._side = side
        viewer = renderer._get_viewer("rgb_array")
        scene = viewer.scn
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
        ):
            scene.flags[flag] = 0
        if self._camera is not None:
            viewer.cam.distance, viewer.cam.azimuth = self._camera.distance, self._camera.azimuth
            viewer.cam.elevation = self._camera.elevation
