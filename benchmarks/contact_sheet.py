"""One frame of every environment on one sheet, to be looked at: ``python -m benchmarks.contact_sheet OUT.png [ENV…]``.

Each frame is made as the interface makes it: the drawing process replays an episode whose actions were recorded. The
actions are the reference policy's where there is one, else random; the step is a third of the way into the episode.
Under the picture: the name, and what it took to draw it again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.anchors import load_policy
from evotui.protocol.pools import paper_pools
from evotui.protocol.spaces import action_reader
from evotui.protocol.task import TaskSpec
from evotui.rollout.recorder import save_actions
from evotui.rollout.render import FrameWorker, Scene
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task, list_policies, list_tasks, policy_folder

SIDE, LABEL, COLUMNS = 240, 18, 5
_MOST_STEPS = 300


def recorded(task: TaskSpec, folder: Path, seed: int) -> Scene:
    """An episode's actions, written as a rollout writes them."""
    info = worlds.describe(task)
    read = action_reader(info.action_schema)
    player = None
    if "reference" in list_policies(task):
        module = load_policy(policy_folder(task, "reference"))
        meta = {"env": task.slug, "max_episode_steps": info.max_episode_steps}
        player = module.Policy(info.obs_schema, info.action_schema, meta)
        player.reset(0)
    world, actions, over = worlds.make(task), [], False
    try:
        obs = world.reset(seed)
        while not over and len(actions) < _MOST_STEPS:
            actions.append(read(world.sample() if player is None else player.act(obs))[0])
            obs, _reward, terminated, truncated, _info = world.step(actions[-1])
            over = terminated or truncated
    finally:
        world.close()
    path = folder / task.name
    save_actions(path, actions)
    return Scene(task, info.obs_schema, info.action_schema, seed, path)


async def tile(frames: FrameWorker, task: TaskSpec, folder: Path, side: int) -> Image.Image:
    image = Image.new("RGB", (side, side + LABEL), "black")
    pen = ImageDraw.Draw(image)
    words = task.name
    if why := availability(task):
        pen.multiline_text((4, 4), "\n".join(why[i : i + 38] for i in range(0, len(why), 38)), fill="white")
    else:
        scene = await asyncio.to_thread(recorded, task, folder, paper_pools(16, 32).train[0])
        last = await frames.open(scene)
        first = await frames.frame(last // 3, side, side)
        began = time.perf_counter()
        await frames.frame(last // 3 + 1, side, side)
        words += f"  {1000 * (time.perf_counter() - began):.0f} ms"
        if first.pixels is None:
            pen.multiline_text((4, 4), first.text or first.why, fill="white")
        else:
            height, width = first.pixels.shape[:2]
            place = ((side - width) // 2, (side - height) // 2)
            image.paste(Image.fromarray(np.ascontiguousarray(first.pixels)), place)
    pen.text((4, side + 3), words, fill="white")
    return image


async def sheet(tasks: Sequence[TaskSpec], side: int = SIDE) -> Image.Image:
    rows = -(-len(tasks) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * (side + 4), rows * (side + LABEL + 4)), (40, 40, 40))
    frames = FrameWorker()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, task in enumerate(tasks):
                made = await tile(frames, task, Path(folder), side)
                whole.paste(made, (number % COLUMNS * (side + 4) + 2, number // COLUMNS * (side + LABEL + 4) + 2))
    finally:
        await frames.close()
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the PNG file to write")
    parser.add_argument("env", nargs="*", help="environments (default: all)")
    chosen = parser.parse_args()
    tasks = [find_task(name) for name in chosen.env] or list_tasks()
    image = asyncio.run(sheet(tasks))
    image.save(chosen.out)
    print(f"{len(tasks)} environments, {image.width}×{image.height} pixels: {chosen.out}")


if __name__ == "__main__":
    main()
