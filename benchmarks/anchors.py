"""Anchors: mean returns of the uniform random and the reference policy on the paper's held-out cases.

    python -m benchmarks.anchors [ENV…] [--write] [--cases N] [--random-cases N] [--only random|reference]

Plain gymnasium episodes through evotui's own adapter, with the policy in this process: these are our own policies. The
random policy samples the action space, seeded with case + 1. ``--write`` puts the figures into each task.toml; a figure
that is not measured (``--only``, or no reference policy yet) stays as it is there. `evotui leaderboard --anchors` sets
the task files' figures beside the paper's.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from evotui.protocol.pools import PAPER_HELDOUT, PAPER_VALIDATION, paper_pools
from evotui.protocol.spaces import Reader, action_reader
from evotui.protocol.task import Anchor, TaskSpec
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task, list_policies, list_tasks, policy_folder
from evotui.suite.taskfile import TASK_FILE

_ANCHOR_TABLES = re.compile(r"\n*^\[anchors\..*\Z", re.MULTILINE | re.DOTALL)


def load_policy(folder: Path) -> ModuleType:
    """The module of a policy folder that we trust, loaded into this process; its helpers are not left behind."""
    helpers = {path.stem for path in folder.glob("*.py")}
    for name in helpers:
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # policy folders are data: no caches there
    try:
        spec = importlib.util.spec_from_file_location("policy", folder / "policy.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"no policy.py in {folder}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name in helpers:
            sys.modules.pop(name, None)


def episode(task: TaskSpec, seed: int, choose: Callable[[worlds.World, Any], Any]) -> tuple[float, int]:
    """Return and length of one episode; ``choose(world, obs)`` gives each action."""
    world = worlds.make(task)
    try:
        obs, rewards, over = world.reset(seed), [], False
        while not over:
            obs, reward, terminated, truncated, _info = world.step(choose(world, obs))
            rewards.append(reward)
            over = terminated or truncated
        return math.fsum(rewards), len(rewards)
    finally:
        world.close()


def returns(task: TaskSpec, seeds: Sequence[int], policy: str | None) -> list[float]:
    """Returns of the named policy (a fresh object per episode), or of uniform random actions, on these cases."""
    if policy is None:
        return [episode(task, seed, lambda world, obs: world.sample())[0] for seed in seeds]
    info = worlds.describe(task)
    read = action_reader(info.action_schema)
    module = load_policy(policy_folder(task, policy))
    meta = {"env": task.slug, "max_episode_steps": info.max_episode_steps}
    found = []
    for seed in seeds:
        player = module.Policy(info.obs_schema, info.action_schema, meta)
        player.reset(0)
        choose = partial(_repaired, read, player)
        found.append(episode(task, seed, choose)[0])
    return found


def _repaired(read: Reader, player: Any, world: worlds.World, obs: Any) -> Any:
    return read(player.act(obs))[0]


def anchor(values: Sequence[float], source: str) -> Anchor:
    """Mean and standard error (of the mean, from the sample's standard deviation)."""
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / max(n - 1, 1)
    return Anchor(mean, math.sqrt(variance / n), n, source)


def with_anchors(text: str, anchors: dict[str, Anchor]) -> str:
    """A task.toml's text with these anchors in place of those it has (they are its last tables)."""
    tables = [
        f'[anchors.{name}]\nmean = {a.mean:.6g}\nse = {a.se:.2g}\nn = {a.n}\nsource = "{a.source}"\n'
        for name, a in anchors.items()
    ]
    return _ANCHOR_TABLES.sub("", text).rstrip("\n") + "\n\n" + "\n".join(tables)


def measure(task: TaskSpec, cases: int, random_cases: int, only: str = "") -> dict[str, Anchor]:
    """Both anchors of a task, or the one that ``only`` names; no reference where there is no such policy."""
    heldout = paper_pools(PAPER_VALIDATION, PAPER_HELDOUT).heldout
    versions = worlds.describe(task).versions
    day = datetime.now(UTC).date().isoformat()
    source = f"paper's held-out cases, {', '.join(f'{k} {v}' for k, v in versions.items())}, {day}"
    found = {}
    if only in ("", "random"):
        found["random"] = anchor(returns(task, heldout[:random_cases], None), f"uniform random; {source}")
    if only in ("", "reference") and "reference" in list_policies(task):
        values = returns(task, heldout[:cases], "reference")
        found["reference"] = anchor(values, f"policies/{task.name}/reference; {source}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="*", help="environments (default: all that are installed)")
    parser.add_argument("--write", action="store_true", help="write the figures into task.toml")
    parser.add_argument("--cases", type=int, default=PAPER_HELDOUT, help="held-out cases for the reference policy")
    parser.add_argument("--random-cases", type=int, default=PAPER_HELDOUT, help="held-out cases for random actions")
    parser.add_argument("--only", choices=["random", "reference"], default="", help="measure one of the two")
    options = parser.parse_args(arguments)
    tasks = [find_task(name) for name in options.env] or [t for t in list_tasks() if availability(t) is None]
    print(f"{'environment':26} {'random':>20} {'reference':>20} {'n':>9} {'s':>6}")
    for task in tasks:
        began = time.monotonic()
        found = measure(task, options.cases, options.random_cases, options.only)
        cells = [f"{found[k].mean:.4g} ± {found[k].se:.2g}" if k in found else "" for k in ("random", "reference")]
        n = "/".join(str(a.n) for a in found.values())
        print(f"{task.name:26} {cells[0]:>20} {cells[1]:>20} {n:>9} {time.monotonic() - began:6.1f}", flush=True)
        if options.write:
            path = Path(task.folder) / TASK_FILE
            kept = find_task(task.name).anchors  # as they are now: measuring took a while
            both = {k: a for k in ("random", "reference") if (a := found.get(k) or kept.get(k))}
            path.write_text(with_anchors(path.read_text("utf-8"), both), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
