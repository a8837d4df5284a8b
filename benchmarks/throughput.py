"""How fast episodes run, as ratios to the bare Gymnasium loop, taken side by side: ``python -m benchmarks.throughput``.

Each row compares two ways of running the same policy on the same cases. They take turns, several rounds, so that a busy
machine slows both; the row shows the median of the rounds' ratios, by the clock and by processor time (worker and
guest together), which other programs disturb less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evotui.protocol.pools import paper_pools
from evotui.protocol.results import EpisodeResult
from evotui.protocol.task import TaskSpec
from evotui.rollout.clocks import cpu_seconds
from evotui.rollout.engine import Engine
from evotui.rollout.limits import ALL_WALLS, CaseSeed, Job, Mode
from evotui.suite import catalog, worlds

BALANCE = """
class Policy:
    def __init__(self, obs_space, action_space, env_meta): pass
    def reset(self, episode_index): pass
    def act(self, obs): return int(obs[2] + 0.5 * obs[3] > 0)
"""
STILL = """
import numpy as np
class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.still = np.zeros(action_space["shape"], action_space["dtype"])
    def reset(self, episode_index): pass
    def act(self, obs): return self.still
"""
LEVELS = (ALL_WALLS, ALL_WALLS - {"namespaces"}, ALL_WALLS - {"landlock"})
"""The walls of levels A, B and C, as far as this machine has them; plain is an own process with limits, level D."""
SEEDS = paper_pools(16, 32).train


@dataclass(frozen=True)
class Speed:
    steps: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class Row:
    """One comparison; ``ratio`` above 1 means that the first way is faster."""

    name: str
    at_least: float
    aim: float
    ratio: float
    cpu_ratio: float
    steps_per_second: float
    reference_steps_per_second: float


def bare(task: TaskSpec, source: str, n: int, core: int) -> Speed:
    """The loop that everybody writes, in this process, on one core."""
    space: dict[str, Any] = {}
    exec(source, space)
    info = worlds.describe(task)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    import gymnasium

    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    for case in range(n):
        env = gymnasium.make(task.gym_id)
        policy = space["Policy"](info.obs_schema, info.action_schema, {})
        policy.reset(case)
        obs, _ = env.reset(seed=SEEDS[case])
        ended = False
        while not ended:
            obs, _, terminated, truncated, _ = env.step(policy.act(obs))
            steps += 1
            ended = terminated or truncated
        env.close()
    told = Speed(steps, time.perf_counter() - wall, time.process_time() - cpu)
    os.sched_setaffinity(0, before)
    return told


async def rolled(engine: Engine, task: TaskSpec, source: str, n: int, mode: Mode) -> Speed:
    """The same through the engine, from the first episode dealt to the last result told."""
    info = worlds.describe(task)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.py").write_text(source)
        cases = tuple(CaseSeed(i, f"train {i}", SEEDS[i]) for i in range(n))
        job = Job(task, Path(folder), cases, {}, info.obs_schema, info.action_schema, mode=mode)
        async with engine.open(job) as rollout:
            failed = await rollout.compile() or await rollout.initialize()
            if failed is not None:
                raise SystemExit(f"the policy does not load: {failed.message}")
            workers = [worker.pid for worker in engine.workers]
            wall, used = time.perf_counter(), sum(map(cpu_seconds, workers))
            steps, guests = 0, 0.0
            async for event in rollout.episodes():
                if isinstance(event, EpisodeResult):
                    steps += event.length
                    guests += event.cpu_seconds
            wall = time.perf_counter() - wall
            return Speed(steps, wall, sum(map(cpu_seconds, workers)) - used + guests)


Way = Callable[[], Awaitable[Speed]]


@contextlib.asynccontextmanager
async def on_core(core: int, walls: frozenset[str] | None = None) -> AsyncIterator[Engine]:
    """An engine with one worker on this core: what is compared runs on the same one, as cores differ in speed."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        engine = Engine(workers=1, walls=walls)
        await engine.start()
    finally:
        os.sched_setaffinity(0, everywhere)
    try:
        yield engine
    finally:
        await engine.close()


async def compare(name: str, goals: tuple[float, float], rounds: int, way: Way, reference: Way) -> Row:
    ratios, cpu_ratios, speeds, references = [], [], [], []
    for _ in range(rounds):
        two, one = await reference(), await way()
        speeds.append(one.steps / one.wall)
        references.append(two.steps / two.wall)
        ratios.append(speeds[-1] / references[-1])
        cpu_ratios.append((two.cpu / two.steps) / (one.cpu / one.steps))
    middle = statistics.median
    return Row(name, *goals, middle(ratios), middle(cpu_ratios), middle(speeds), middle(references))


async def table(rounds: int, scale: float) -> tuple[list[Row], dict[str, Any]]:
    cartpole = catalog.find_task("cartpole")
    n = max(int(256 * scale), 8)
    rows = []
    core = max(os.sched_getaffinity(0))
    async with on_core(core) as one, on_core(core, frozenset()) as plain:

        def alone(task: TaskSpec, source: str, count: int) -> Way:
            async def way() -> Speed:
                return await asyncio.to_thread(bare, task, source, count, core)

            return way

        def through(engine: Engine, task: TaskSpec, source: str, count: int, mode: Mode) -> Way:
            return lambda: rolled(engine, task, source, count, mode)

        batch = through(one, cartpole, BALANCE, n, "batch")
        loop = alone(cartpole, BALANCE, n)
        rows.append(await compare("CartPole, batch / bare loop", (0.65, 0.9), rounds, batch, loop))
        episode = through(one, cartpole, BALANCE, n // 4, "episode")
        rows.append(await compare("CartPole, episode / bare loop", (0.18, 0.3), rounds, episode, loop))
        cheetah = next((t for t in catalog.list_tasks() if t.gym_id == "HalfCheetah-v5"), None)
        if cheetah is not None and catalog.availability(cheetah) is None:
            count = max(n // 8, 8)
            mujoco, mujoco_loop = through(one, cheetah, STILL, count, "batch"), alone(cheetah, STILL, count)
            rows.append(await compare("HalfCheetah, batch / bare loop", (0.75, 0.95), rounds, mujoco, mujoco_loop))
        if len(os.sched_getaffinity(0)) > 1:
            async with Engine(workers=2) as two:
                both = through(two, cartpole, BALANCE, 2 * n, "batch")
                rows.append(await compare("two workers / one, batch", (1.8, 1.95), rounds, both, batch))
        for walls in LEVELS:
            async with on_core(core, walls) as walled:
                name = f"level {walled.isolation.level} / plain, "
                modes: list[tuple[Mode, int]] = [("batch", n), ("episode", n // 4)]
                for mode, count in modes:
                    way = through(walled, cartpole, BALANCE, count, mode)
                    reference = through(plain, cartpole, BALANCE, count, mode)
                    rows.append(await compare(name + mode, (1 / 1.1, 1.0), rounds, way, reference))
        machine = {
            "isolation": one.isolation.level,
            "layers": list(one.isolation.layers),
            "walls": sorted(ALL_WALLS),
            "cores": len(os.sched_getaffinity(0)),
            "load_average": os.getloadavg(),
            "missing": [] if cheetah is not None else ["HalfCheetah-v5"],
        }
    return rows, machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of episodes")
    chosen = parser.parse_args()
    rows, machine = asyncio.run(table(chosen.rounds, chosen.scale))
    if chosen.json:
        print(json.dumps({"schema_version": 1, "rows": [asdict(row) for row in rows], "machine": machine}))
        return
    print(f"{'':34}{'ratio':>7}{'by CPU':>8}{'least':>7}{'aim':>6}{'steps/s':>10}{'reference':>11}")
    for row in rows:
        print(
            f"{row.name:34}{row.ratio:7.2f}{row.cpu_ratio:8.2f}{row.at_least:7.2f}{row.aim:6.2f}"
            f"{row.steps_per_second:10,.0f}{row.reference_steps_per_second:11,.0f}"
        )
    load = ", ".join(f"{x:.1f}" for x in machine["load_average"])
    print(f"\nisolation {machine['isolation']} ({', '.join(machine['layers'])}), {machine['cores']} cores, load {load}")


if __name__ == "__main__":
    main()
