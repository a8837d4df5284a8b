"""How a world's frame is drawn: MuJoCo at the size that is asked for and without what costs time, the rest as they do.

Drawing must not change the episode that is drawn. The Fetch tasks move their goal's marker and run the dynamics forward
when they draw, which changes the bits of later steps; here the simulation is put back as it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_SIDES = (120, 240, 480)
"""Sizes in which MuJoCo draws, in pixels; a smaller picture is shrunk from one of these."""
_SHADOW_PIXELS = 256


class Painter:
    """Draws one environment, made with ``render_mode="rgb_array"``."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._renderer = getattr(env.unwrapped, "mujoco_renderer", None)
        self._side = 0

    def draw(self, side: int) -> np.ndarray | None:
        """The present picture, uint8 of height × width × 3, with at least ``side`` pixels on its longer side where the
        environment can be asked for that. None where it draws none."""
        pixels = self._env.render() if self._renderer is None else self._draw_mujoco(side)
        return np.asarray(pixels, dtype=np.uint8) if isinstance(pixels, np.ndarray) else None

    def close(self) -> None:
        """Let go of the drawing context, where there is one."""
        if self._renderer is not None and self._side:
            self._renderer.close()
            self._renderer._viewers.clear()
            self._side = 0

    def _draw_mujoco(self, side: int) -> Any:
        import mujoco

        bare = self._env.unwrapped
        model, data = bare.model, bare.data
        self._choose_size(next((s for s in _SIDES if s >= side), _SIDES[-1]), mujoco)
        if not hasattr(bare, "_render_callback"):
            return self._env.render()
        before, markers = mujoco.MjData(model), model.site_pos.copy()
        mujoco.mj_copyData(before, model, data)
        try:
            return self._env.render()
        finally:
            mujoco.mj_copyData(data, model, before)
            model.site_pos[:] = markers

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
        scene = renderer._get_viewer("rgb_array").scn
        for flag in (
            mujoco.mjtRndFlag.mjRND_SHADOW,
            mujoco.mjtRndFlag.mjRND_REFLECTION,
            mujoco.mjtRndFlag.mjRND_SKYBOX,
        ):
            scene.flags[flag] = 0
