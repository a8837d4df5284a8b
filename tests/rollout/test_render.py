"""Frames: replayed in a process of their own, lined up with the trajectory, and never a reason to crash."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

from evotui.protocol.task import TaskSpec
from evotui.rollout.render import FrameError, FrameWorker, Scene
from evotui.rollout.render_process import shrink

from .conftest import CARTPOLE, GOOD, SEEDS, make_job, run_job

on_session_loop = pytest.mark.asyncio(loop_scope="session")
MINIGRID = TaskSpec("empty", "x/empty", "MiniGrid-Empty-5x5-v0", "Empty", "MiniGrid", packages=("minigrid",))


async def recorded(engine, tmp_path, source=GOOD, task=CARTPOLE) -> Scene:
    job = make_job(tmp_path, source, 1, task)
    await run_job(engine, job)
    return Scene(task, job.obs_schema, job.action_schema, SEEDS[0], tmp_path / "actions" / "ep_000")


@on_session_loop
async def test_frames_line_up_with_the_trajectory(engine, tmp_path):
    scene = await recorded(engine, tmp_path)
    rows = [json.loads(x) for x in (tmp_path / "episodes" / "ep_000" / "trajectory.jsonl").read_text().splitlines()]
    frames = FrameWorker()
    try:
        assert await frames.open(scene) == 500
        for step in (0, 1, 60, 3, 499):  # forwards, and back
            frame = await frames.frame(step, 60, 80)
            assert frame.step == step and frame.last_step == 500 and not frame.done
            assert (frame.obs, frame.action, frame.reward) == (rows[step]["obs"], rows[step]["action"], 1.0)
            assert frame.return_ == step + 1
            assert frame.pixels is not None and frame.pixels.shape == (40, 60, 3) and frame.pixels.std() > 5
            assert frame.text == ""
        end = await frames.frame(500, 600, 400)
        assert end.done and end.action is None and end.return_ == 500.0 and end.pixels.shape == (400, 600, 3)
        steps = [frame.step async for frame in frames.play(30, 20, start=497)]
        assert steps == [497, 498, 499, 500]
        with pytest.raises(FrameError, match="0 to 500"):
            await frames.frame(501, 10, 10)
        assert str(SEEDS[0]) not in repr(scene)
    finally:
        await frames.close()


@on_session_loop
async def test_a_dead_drawing_process_leaves_the_values(engine, tmp_path):
    walk = "class Policy:\n    def __init__(self, *g): pass\n    def act(self, obs): return 2\n"
    scene = await recorded(engine, tmp_path, walk, MINIGRID)
    frames = FrameWorker()
    try:
        await frames.open(scene)
        first = await frames.frame(0, 64, 64)
        assert first.pixels is not None and first.text.splitlines()[1].startswith("WG>>")  # beside the picture
        os.kill(frames._process.pid, signal.SIGKILL)
        frame = await frames.frame(1, 64, 64)
        assert frame.pixels is None and "crashed" in frame.why and "WG" in frame.text
        assert frame.obs["mission"] == "get to the green goal square"
    finally:
        await frames.close()
    assert frames._process is None


@on_session_loop
async def test_what_cannot_be_replayed_is_told(engine, tmp_path):
    scene = await recorded(engine, tmp_path)
    frames = FrameWorker()
    try:
        with pytest.raises(FrameError, match="no episode"):
            await frames.frame(0, 10, 10)
        with pytest.raises(FrameError, match="cannot replay"):
            await frames.open(Scene(CARTPOLE, scene.obs_schema, scene.action_schema, 1, tmp_path / "nothing"))
        assert await frames.open(scene) == 500
    finally:
        await frames.close()


def test_shrink_keeps_the_aspect_and_averages():
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, ::2] = 200
    small = shrink(pixels, 50, 50)
    assert small.shape == (25, 50, 3) and abs(int(small.mean()) - 100) <= 1
    assert shrink(pixels, 400, 400).shape == (100, 200, 3)
