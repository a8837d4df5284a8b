"""The drawing process behind ``FrameWorker``: replays one episode at a time and draws the steps that are asked for.

Run as ``python -m evotui.rollout.render_process FD PARENT``. Holds one seed at a time, and no policy.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from evotui.protocol.spaces import to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.rollout import render
from evotui.rollout.drawing import GL_HINT, forget_gl, working_gl
from evotui.rollout.gauges import gauges
from evotui.rollout.guest.layout import Layout
from evotui.rollout.overlay import cells, controls
from evotui.rollout.recorder import load_actions, plain
from evotui.rollout.worker import settle_in
from evotui.suite import worlds

_gl_failed = ""
"""Why OpenGL failed in this process: a second attempt would abort it."""


class Replay:
    """One episode being replayed; stands before action ``at``."""

    def __init__(self, wish: render.OpenScene) -> None:
        self._wish = wish
        self.actions = load_actions(Path(wish.actions), wish.action_schema)
        self._layout = Layout(wish.obs_schema)
        self._plain = (lambda obs: None) if wish.obs_schema["type"] == "Image" else plain(wish.obs_schema)
        self._needs_gl = needs_gl(wish.task)
        self.why = "" if wish.draw else render.CRASHED
        if wish.draw and self._needs_gl:
            self.why = _gl_failed or ("" if choose_gl() else GL_HINT)
        self._world: worlds.World | None = None
        self._restart()

    def frame(self, wish: render.TakeFrame) -> render.Picture:
        """The picture before action ``wish.step``; then that action is carried out, for its reward."""
        last = len(self.actions)
        if not 0 <= wish.step <= last:
            raise ValueError(f"the episode has steps 0 to {last}, not {wish.step}")
        if wish.step < self.at:
            self._restart()
        while self.at < wish.step:
            self._step()
        pixels, text = self._draw(wish.width, wish.height)
        obs, done = self._plain(self._obs), wish.step == last
        action: Any = None
        reward, info = 0.0, dict[str, Any]()
        if not done:
            action = to_jsonable(self.actions[self.at])
            if pixels is not None:
                pixels = controls(pixels, self._wish.task.action_names, action)
            reward, info = self._step()
        return render.Picture(
            step=wish.step,
            last_step=last,
            shape=pixels.shape if pixels is not None else None,
            pixels=pixels.tobytes() if pixels is not None else b"",
            text=text,
            why="" if pixels is not None else self.why,
            obs=obs,
            action=action,
            reward=reward,
            return_=self._return,
            done=done,
            info=to_jsonable(info),
        )

    def close(self) -> None:
        if self._world is not None:
            self._world.close()

    def _restart(self) -> None:
        self.close()
        try:
            self._world = worlds.make(self._wish.task, render=not self.why)
        except Exception as error:
            # With a backend that has gone since it was tried out, mujoco cannot even be imported.
            if self.why or not self._needs_gl:
                raise
            os.environ.pop("MUJOCO_GL", None)
            self._give_up_drawing(error)
            self._world = worlds.make(self._wish.task)
        self._obs = self._layout.canonical(self._world.reset(int(self._wish.seed, 16)))
        self.at, self._return = 0, 0.0

    def _give_up_drawing(self, error: Exception) -> None:
        global _gl_failed
        self.why = f"cannot draw: {type(error).__name__}: {error}".splitlines()[0][:200]
        if self._needs_gl:
            _gl_failed = self.why
            forget_gl()

    def _step(self) -> tuple[float, dict[str, Any]]:
        assert self._world is not None
        obs, reward, _, _, info = self._world.step(self.actions[self.at])
        self._obs = self._layout.canonical(obs)
        self.at += 1
        self._return += reward
        return reward, info

    def _draw(self, width: int, height: int) -> tuple[np.ndarray | None, str]:
        assert self._world is not None
        if not self.why:
            try:
                pixels = self._world.frame(max(width, height))
            except Exception as error:  # whatever a drawing library raises: never try it again in this process
                pixels = None
                self._give_up_drawing(error)
            if pixels is not None and pixels.ndim == 3 and pixels.shape[2] == 3:
                grid, drawn = self._world.grid(), self._world.text() or ""
                if grid is not None and width >= grid.across and height >= grid.down:
                    return cells(pixels, grid, width, height), drawn
                return shrink(pixels, width, height), drawn
            self.why = self.why or "this environment draws no pictures"
        if text := self._world.text():
            return None, f"{text}\n\n{self.why}"
        # Two pixels of height are one line of characters, and one of width is one character.
        shown = self._plain(self._obs)
        return None, gauges(
            self._wish.obs_schema, self._wish.task.observation_fields, shown, width, height // 2, self.why
        )


def shrink(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """``pixels`` (H × W × 3) averaged down to fit ``width`` × ``height``, aspect kept; never enlarged."""
    h, w = pixels.shape[:2]
    scale = min(width / w, height / h)
    if scale >= 1:
        return np.ascontiguousarray(pixels)
    size = max(round(w * scale), 1), max(round(h * scale), 1)
    return np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.BOX))


def needs_gl(task: TaskSpec) -> bool:
    """Whether the environment's pictures are made by MuJoCo."""
    import gymnasium

    if {"mujoco", "gymnasium_robotics"} & {*task.packages, *task.requires}:
        return True
    spec = gymnasium.registry.get(task.gym_id)
    entry = str(spec.entry_point) if spec is not None else ""
    return "mujoco" in entry


def choose_gl() -> bool:
    """Set ``MUJOCO_GL`` to a backend that was seen to draw in another process; False where none does.

    Must come before mujoco is imported, and before the first picture: a failed one makes the next abort the process.
    """
    if "MUJOCO_GL" not in os.environ and (backend := working_gl()):
        os.environ["MUJOCO_GL"] = backend
    return "MUJOCO_GL" in os.environ


def serve(sock: socket.socket) -> None:
    replay: Replay | None = None
    while raw := _read(sock):
        request = render.request_decoder.decode(raw)
        answer: render.Picture | render.Opened | render.Failed
        try:
            if isinstance(request.wish, render.OpenScene):
                if replay is not None:
                    replay.close()
                replay = Replay(request.wish)
                answer = render.Opened(len(replay.actions), replay.why)
            elif replay is None:
                answer = render.Failed("no episode is open")
            else:
                answer = replay.frame(request.wish)
        except Exception as error:  # environments raise what they like; the person is told
            answer = render.Failed(f"cannot replay: {type(error).__name__}: {error}".splitlines()[0][:300])
        sock.sendall(render.pack(render.Answer(request.number, answer)))


def _read(sock: socket.socket) -> bytes:
    """One message; empty at the end."""
    length = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "little")
    return sock.recv(length, socket.MSG_WAITALL) if length else b""


def main() -> None:
    fd, parent = (int(argument) for argument in sys.argv[1:3])
    settle_in(parent, -1, True)
    serve(socket.socket(fileno=fd))


if __name__ == "__main__":
    main()
