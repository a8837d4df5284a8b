"""What the rollout engine takes of memory, and whether it grows: ``python -m benchmarks.memory``.

CartPole with one worker. 10,000 episodes in each mode: in lockstep with a policy that balances, one by one with a
policy that falls at once (what may leak is what an episode begins and ends: a process, an environment, files). Memory
is PSS: pages that processes share are counted once. "worker" is the worker with everything that it started: the warm
interpreter, the guest, the policy process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.throughput import BALANCE
from evotui.protocol.pools import paper_pools
from evotui.protocol.results import EpisodeResult
from evotui.rollout.engine import Engine
from evotui.rollout.limits import CaseSeed, Job, Mode
from evotui.suite import catalog, worlds

FALL = """
class Policy:
    def __init__(self, obs_space, action_space, env_meta): pass
    def reset(self, episode_index): pass
    def act(self, obs): return 1
"""
SEEDS = paper_pools(16, 32).train


@dataclass(frozen=True)
class Level:
    """Megabytes after so many episodes; descriptors are this process's."""

    mode: str
    episodes: int
    worker: float
    here: float
    descriptors: int


def descendants(pid: int) -> list[int]:
    """``pid`` and every process below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += descendants(int(child))
    return found


def megabytes(pids: list[int]) -> float:
    """PSS of these processes together; one that ends meanwhile counts nothing."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


async def grow(engine: Engine, mode: Mode, source: str, episodes: int, looks: int) -> list[Level]:
    """Run ``episodes`` episodes of one job; what memory was at ``looks`` moments, evenly apart."""
    task = catalog.find_task("cartpole")
    info = worlds.describe(task)
    levels = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.py").write_text(source)
        cases = tuple(CaseSeed(i, f"train {i}", SEEDS[i % len(SEEDS)]) for i in range(episodes))
        job = Job(task, Path(folder), cases, {}, info.obs_schema, info.action_schema, mode=mode)
        async with engine.open(job) as rollout:
            if (failed := await rollout.compile() or await rollout.initialize()) is not None:
                raise SystemExit(f"the policy does not load: {failed.message}")
            done = 0
            async for event in rollout.episodes():
                if isinstance(event, EpisodeResult):
                    done += 1
                    if done % (episodes // looks) == 0:
                        worker = megabytes([p for w in engine.workers for p in descendants(w.pid)])
                        here = megabytes([os.getpid()])
                        levels.append(Level(mode, done, worker, here, len(os.listdir("/proc/self/fd"))))
    return levels


async def measure(episodes: int, looks: int) -> list[Level]:
    async with Engine(workers=1) as engine:
        return [
            *await grow(engine, "batch", BALANCE, episodes, looks),
            *await grow(engine, "episode", FALL, episodes, looks),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("-n", type=int, default=10_000, help="episodes in each mode")
    parser.add_argument("--looks", type=int, default=5)
    chosen = parser.parse_args()
    levels = asyncio.run(measure(chosen.n, chosen.looks))
    if chosen.json:
        print(json.dumps({"schema_version": 1, "levels": [asdict(level) for level in levels]}))
        return
    print(f"{'mode':10}{'episodes':>10}{'worker MB':>12}{'here MB':>10}{'descriptors':>13}")
    for level in levels:
        print(f"{level.mode:10}{level.episodes:10,}{level.worker:12.1f}{level.here:10.1f}{level.descriptors:13}")
    print("\na worker and its guests: at most 160 MB")


if __name__ == "__main__":
    main()
