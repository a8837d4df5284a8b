"""Looking at an environment in a process of its own: its world, whether it repeats itself, its speed, one picture.

Run as ``python -m evotui.suite.examine NAME PART…``; each part that was found out is one line of JSON on stdout. What
can take a process down (drawing) is asked for last, so that the lines before it are there.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from evotui.protocol.pools import PAPER_HELDOUT, PAPER_VALIDATION, paper_pools
from evotui.protocol.spaces import flatten_names, to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.suite import worlds
from evotui.suite.catalog import find_task

PARTS = ("world", "trace", "resets", "speed", "frame")
FRAME_SIDE = 240

_TRACE_STEPS = 40
_SPEED_SECONDS = 1.0
_FRAME_STEPS = 60
_RESETS = 3


def world(task: TaskSpec) -> dict[str, Any]:
    """Spaces, limit, versions, and the names of the observation's values."""
    info = worlds.describe(task)
    names = flatten_names(info.obs_schema, task.observation_fields)
    return asdict(info) | {"observation_names": names}


def trace(task: TaskSpec) -> dict[str, Any]:
    """A digest of the first steps of two cases under random actions: equal wherever the environment is the same."""
    digest, steps = hashlib.sha256(), 0
    for seed in paper_pools(PAPER_VALIDATION, PAPER_HELDOUT).train[:2]:
        for told in itertools.islice(_random_steps(task, seed), _TRACE_STEPS):
            digest.update(json.dumps(told, sort_keys=True).encode())
            steps += 1
    return {"digest": digest.hexdigest(), "steps": steps}


def resets(task: TaskSpec) -> dict[str, Any]:
    """How many cases of the paper's pools were begun, and how many of their first observations differ."""
    pools, seen = paper_pools(PAPER_VALIDATION, PAPER_HELDOUT), set()
    seeds = [*pools.train[:_RESETS], *pools.validation[:_RESETS], *pools.heldout[:_RESETS]]
    for seed in seeds:
        made = worlds.make(task)
        try:
            # A single number (Taxi's state) can be the same in two cases; what follows from it is compared too.
            obs = [made.reset(seed), *(made.step(made.sample())[0] for _ in range(2))]
            seen.add(json.dumps(to_jsonable(obs), sort_keys=True))
        finally:
            made.close()
    return {"begun": len(seeds), "different": len(seen)}


def speed(task: TaskSpec) -> dict[str, Any]:
    """Steps a second of a plain loop with random actions on one core, making the environments not counted."""
    made, steps, spent = worlds.make(task), 0, 0.0
    made.reset(0)
    for seed in itertools.count(1):
        began, over = time.perf_counter(), False
        while not over and spent + time.perf_counter() - began < _SPEED_SECONDS:
            over = any(made.step(made.sample())[2:4])
            steps += 1
        spent += time.perf_counter() - began
        made.close()
        if spent >= _SPEED_SECONDS:
            break
        made = worlds.make(task)
        made.reset(seed)
    return {"steps_per_second": round(steps / spent), "steps": steps}


def frame(task: TaskSpec, steps: int = _FRAME_STEPS, seed: int = 2026) -> dict[str, Any]:
    """A picture (RGB, deflated, base64) and a text drawing from a random episode; None where there is none.

    ``variety`` is the standard deviation of its values: 0 is a blank picture. ``milliseconds`` is the time of another.
    """
    made = worlds.make(task, render=True)
    try:
        made.reset(seed)
        for _ in range(min(steps, made.max_episode_steps // 2)):
            if any(made.step(made.sample())[2:4]):
                made.close()
                made = worlds.make(task, render=True)
                made.reset(seed)
                break
        pixels = made.frame(FRAME_SIDE)
        began = time.perf_counter()
        made.frame(FRAME_SIDE)
        told = {"shape": None, "variety": 0.0, "pixels": "", "text": made.text() or ""}
        if pixels is None:
            return told
        taken = round(1000 * (time.perf_counter() - began), 1)
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(pixels).tobytes(), 1)).decode()
        return told | {
            "shape": list(pixels.shape), "variety": round(float(pixels.std()), 2), "pixels": packed,
            "milliseconds": taken,
        }  # fmt: skip
    finally:
        made.close()


def pixels_of(told: dict[str, Any]) -> np.ndarray | None:
    """The picture that :func:`frame` packed."""
    if not told.get("shape"):
        return None
    return np.frombuffer(zlib.decompress(base64.b64decode(told["pixels"])), np.uint8).reshape(told["shape"])


def _random_steps(task: TaskSpec, seed: int) -> Iterator[list[Any]]:
    made = worlds.make(task)
    try:
        yield [to_jsonable(made.reset(seed))]
        over = False
        while not over:
            action = made.sample()
            obs, reward, terminated, truncated, _info = made.step(action)
            over = terminated or truncated
            yield [to_jsonable(action), to_jsonable(obs), reward, terminated, truncated]
    finally:
        made.close()


def main() -> None:
    name, *parts = sys.argv[1:]
    ways: dict[str, Callable[[TaskSpec], dict[str, Any]]] = {
        "world": world, "trace": trace, "resets": resets, "speed": speed, "frame": frame,
    }  # fmt: skip
    task = find_task(name)
    for part in parts:
        try:
            told = ways[part](task)
        except Exception as error:  # environments and drawing libraries raise what they like; the person is told
            told = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps({part: told}, default=to_jsonable), flush=True)


if __name__ == "__main__":
    main()
