"""How long the engine takes to start, to begin an episode and to end a faulty one: ``python -m benchmarks.latency``.

Medians of several rounds, in milliseconds of the clock; the machine's load is told beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.throughput import BALANCE, SEEDS
from evotui.protocol.results import EpisodeResult
from evotui.rollout.engine import Engine
from evotui.rollout.limits import CaseSeed, Job, Limits
from evotui.suite import catalog, worlds

LIMITS = Limits(act_seconds=0.5, reset_seconds=0.5)
FAULTS = {
    "endless loop in act": (BALANCE.replace("return int", "\n            while True: pass\n            int"), 0.5),
    "sleep in act": (BALANCE.replace("return int", "\n            __import__('time').sleep(99); int"), 0.5),
    "exit in act": (BALANCE.replace("return int", "\n            __import__('os')._exit(1); int"), 0.0),
    "exception in act": (BALANCE.replace("return int", "\n            raise ValueError; int"), 0.0),
}


@dataclass(frozen=True)
class Row:
    name: str
    milliseconds: float
    at_most: float | None
    aim: float | None


async def cold(workers: int) -> float:
    began = time.perf_counter()
    engine = Engine(workers=workers)
    await engine.start()
    took = time.perf_counter() - began
    await engine.close()
    return took


async def closing() -> float:
    engine = Engine()
    await engine.start()
    began = time.perf_counter()
    await engine.close()
    return time.perf_counter() - began


async def run(engine: Engine, source: str, n: int) -> tuple[float, float, list[EpisodeResult]]:
    """Seconds to load, seconds for ``n`` episodes one after another, their results."""
    task = catalog.find_task("cartpole")
    info = worlds.describe(task)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.py").write_text(source)
        cases = tuple(CaseSeed(i, f"train {i}", SEEDS[i]) for i in range(n))
        job = Job(task, Path(folder), cases, {}, info.obs_schema, info.action_schema, LIMITS)
        async with engine.open(job) as rollout:
            began = time.perf_counter()
            failed = await rollout.compile() or await rollout.initialize()
            if failed is not None:
                raise SystemExit(f"the policy does not load: {failed.message}")
            loaded = time.perf_counter()
            results = [event async for event in rollout.episodes() if isinstance(event, EpisodeResult)]
            return loaded - began, time.perf_counter() - loaded, results


async def table(rounds: int) -> tuple[list[Row], dict[str, Any]]:
    def milliseconds(values: list[float]) -> float:
        return 1e3 * statistics.median(values)

    cores = len(os.sched_getaffinity(0))
    rows = [
        Row("worker pool ready from cold", milliseconds([await cold(cores) for _ in range(rounds)]),
            1000.0, 400.0),
        Row("engine closed", milliseconds([await closing() for _ in range(rounds)]), None, None),
    ]  # fmt: skip
    async with Engine(workers=1) as engine:
        loads, extra = [], []
        for _ in range(rounds):
            load, took, results = await run(engine, BALANCE, 8)
            loads.append(load)
            extra.append((took - sum(r.wall_seconds for r in results)) / len(results))
        rows.append(Row("policy loaded in a new guest", milliseconds(loads), None, None))
        rows.append(Row("between two episodes (fork, load, construct)", milliseconds(extra), None, None))
        for name, (source, limit) in FAULTS.items():
            beyond = []
            for _ in range(rounds):
                _, took, results = await run(engine, source, 2)
                assert all(result.fault is not None for result in results), results
                beyond.append((took - 2 * limit) / 2)
            rows.append(Row(f"{name}: time beyond its limit", milliseconds(beyond), 100.0, 20.0))
        isolation = engine.isolation
    return rows, {"isolation": isolation.level, "layers": isolation.layers, "load_average": os.getloadavg()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    rows, machine = asyncio.run(table(chosen.rounds))
    if chosen.json:
        print(json.dumps({"schema_version": 1, "rows": [asdict(row) for row in rows], "machine": machine}))
        return
    print(f"{'':48}{'ms':>8}{'at most':>9}{'aim':>6}")
    for row in rows:
        goals = "" if row.at_most is None or row.aim is None else f"{row.at_most:9.0f}{row.aim:6.0f}"
        print(f"{row.name:48}{row.milliseconds:8.1f}{goals}")
    load = ", ".join(f"{x:.1f}" for x in machine["load_average"])
    print(f"\nisolation {machine['isolation']} ({', '.join(machine['layers'])}), load {load}")


if __name__ == "__main__":
    main()
