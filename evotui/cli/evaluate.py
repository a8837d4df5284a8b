"""``evotui evaluate``: any policy on any environment, outside a run, through the one way episodes are run."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evotui.cli.ending import to_its_end, write
from evotui.cli.errors import FAILURE, NOT_FOUND, USAGE, Told
from evotui.kernel.config import resolve
from evotui.kernel.opening import draw_pools
from evotui.kernel.submission import validate
from evotui.kernel.texts import env_meta
from evotui.protocol.budget import Budget, Rejected, parse_cases
from evotui.protocol.imports import DENIED_IMPORTS
from evotui.protocol.pools import PAPER_HELDOUT, PAPER_VALIDATION, PoolKind, Pools, Split
from evotui.protocol.results import EpisodeResult, sound, stats
from evotui.protocol.spaces import to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.protocol.words import counted
from evotui.record.regular import read_regular
from evotui.record.state import AgentView
from evotui.record.tree import MAX_BYTES, SnapshotError, copy_system, read_tree
from evotui.report.text import duration, number
from evotui.rollout.engine import Engine, EngineError, Rollout
from evotui.rollout.limits import CaseSeed, Isolation, Job, Lifetime, Mode
from evotui.suite.catalog import list_policies, policy_folder
from evotui.suite.probe import probe
from evotui.suite.worlds import WorldInfo

SCHEMA_VERSION = 1
DEFAULT_CASES = 32


async def evaluate(
    policy: str,
    env: str,
    *,
    pool: str,
    cases: str | None,
    pools: str,
    mode: Mode,
    policy_lifetime: Lifetime,
    workers: int | None,
    quiet: bool,
) -> dict[str, Any]:
    """Roll out and return the document. Raises Told where nothing could be run, and what finding things raises.

    An interrupt, a SIGTERM or a closed terminal ends it with nothing left over.
    """
    return await to_its_end(_evaluate(policy, env, pool, cases, pools, mode, policy_lifetime, workers, quiet))


async def _evaluate(
    policy: str, env: str, pool: str, cases: str | None, pools: str, mode: Mode, policy_lifetime: Lifetime,
    workers: int | None, quiet: bool,
) -> dict[str, Any]:  # fmt: skip
    task, info = await probe(env)
    config = resolve(env=env, pools=pools, validation=PAPER_VALIDATION, heldout=PAPER_HELDOUT)
    _, drawn = await asyncio.to_thread(draw_pools, config, task)
    positions = _positions(cases, drawn, Split(pool))
    with tempfile.TemporaryDirectory(prefix="evotui-evaluate-") as scratch:
        snapshot = Path(scratch) / "system"
        await asyncio.to_thread(_snapshot, policy, task, snapshot)
        job = _job(task, info, snapshot, drawn, Split(pool), positions, mode, policy_lifetime)
        async with Engine(workers=workers) as engine:
            began = time.monotonic()
            async with engine.open(job) as rollout:
                results, isolation = await _results(rollout, job, quiet)
            seconds = time.monotonic() - began
    document = _document(task, policy, pool, positions, results, isolation, drawn, seconds)
    document["isolation"]["alone_because"] = list(rollout.notes)
    return document


def _positions(cases: str | None, pools: Pools, split: Split) -> tuple[int, ...]:
    n = len(pools.of(split))
    if cases is None:
        return tuple(range(min(n, DEFAULT_CASES)))
    try:
        return parse_cases(cases, n)
    except Rejected as wrong:
        raise Told(f"--cases: {wrong.message.replace('train cases', f'the {split} cases')}", USAGE) from None


def _snapshot(policy: str, task: TaskSpec, target: Path) -> None:
    path = Path(policy)
    if not policy:
        raise Told(f"name a policy: a file, a folder, or one of {', '.join(list_policies(task))}", USAGE)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise Told(f"{policy} is neither a file nor a folder", USAGE)
    if not path.exists():
        if path.suffix == ".py" or len(path.parts) > 1:
            raise Told(f"{policy} does not exist", NOT_FOUND)
        path = policy_folder(task, policy)
    if path.is_file():
        target.mkdir()
        try:
            (target / "policy.py").write_bytes(read_regular(path, MAX_BYTES))
        except OSError as error:
            raise Told(f"{policy}: cannot be read ({error.strerror or error})", FAILURE) from None
    else:
        try:
            copy_system(path, target)
        except SnapshotError as error:
            raise Told(str(error).replace("system/", str(path)), FAILURE) from None
    fault = validate(read_tree(target), DENIED_IMPORTS)
    if fault is not None:
        said = fault.message.replace("system/", f"{path}/") if path.is_dir() else fault.message
        raise Told(f"{policy}: {fault.verdict}: {said}", FAILURE)


def _job(
    task: TaskSpec, info: WorldInfo, snapshot: Path, pools: Pools, split: Split, positions: Sequence[int], mode: Mode,
    lifetime: Lifetime,
) -> Job:  # fmt: skip
    seeds = pools.of(split)
    view = AgentView(
        env=task.slug, env_version=info.env_version, budget=Budget(max(len(positions), 1)), n_train=len(pools.train),
        max_episode_steps=info.max_episode_steps, obs_space=info.obs_schema, action_space=info.action_schema,
        reward_components=task.reward_components, observation_fields=task.observation_fields,
        action_names=task.action_names, finalized=True, verdicts=(), returns=(),
    )  # fmt: skip
    return Job(
        task=task,
        snapshot=snapshot,
        cases=tuple(CaseSeed(i, f"{split} {p}", seeds[p]) for i, p in enumerate(positions)),
        env_meta=env_meta(view, 0, len(positions), 0, info.obs_schema, info.action_schema),
        obs_schema=info.obs_schema,
        action_schema=info.action_schema,
        lifetime=lifetime,
        denied_imports=DENIED_IMPORTS,
        mode=mode,
    )


async def _results(rollout: Rollout, job: Job, quiet: bool) -> tuple[list[EpisodeResult], Isolation]:
    done: dict[int, EpisodeResult] = {}
    began, shown = time.monotonic(), 0.0
    try:
        failed = await rollout.compile() or await rollout.initialize()
        if failed is None:
            async for event in rollout.episodes():
                if isinstance(event, EpisodeResult):
                    done[event.position] = sound(event)
                    if not quiet and (time.monotonic() - shown > 0.1 or len(done) == len(job.cases)):
                        shown = time.monotonic()
                        _progress(len(done), len(job.cases), shown - began)
    except EngineError as error:
        raise Told(str(error), FAILURE) from error
    finally:
        if not quiet and done:
            write("\n")
    if failed is not None:
        trace = f"\n{failed.traceback.rstrip()}" if failed.traceback.strip() not in ("", failed.message) else ""
        raise Told(f"{failed.verdict}: {failed.message}{trace}", FAILURE)
    return [done[i] for i in sorted(done)], rollout.isolation


def _progress(done: int, n: int, seconds: float) -> None:
    rate = done / max(seconds, 1e-9)
    bar = "█" * (20 * done // n) + "░" * (20 - 20 * done // n)
    end = "\r" if sys.stderr.isatty() else ""
    line = f"{bar} {done}/{n} episodes  {rate:.1f}/s  {duration((n - done) / max(rate, 1e-9))} left"
    if end or done == n:
        write(f"{line}   {end}")


def _document(
    task: TaskSpec, policy: str, pool: str, positions: Sequence[int], results: Sequence[EpisodeResult],
    isolation: Isolation, pools: Pools, seconds: float,
) -> dict[str, Any]:  # fmt: skip
    scored = stats([r.return_ for r in results])
    assert scored is not None, "a pool is never empty"
    success = [r.success for r in results if r.success is not None]
    document = {
        "schema_version": SCHEMA_VERSION,
        "env": task.slug,
        "policy": policy,
        "pool": pool,
        "pools": str(pools.kind),
        "cases": list(positions),
        "returns": [r.return_ for r in results],
        "lengths": [r.length for r in results],
        "mean": scored.mean,
        "std": scored.std,
        "n": scored.n,
        "success_rate": sum(success) / len(success) if success else None,
        "invalid_actions": sum(r.invalid_actions for r in results),
        "faults": [
            {"case": positions[r.position], "kind": str(r.fault.kind), "step": r.fault.step, "message": r.fault.message,
             "traceback": r.fault.traceback}
            for r in results
            if r.fault is not None
        ],
        "isolation": {
            "level": isolation.level,
            "layers": list(isolation.layers),
            "mode": isolation.mode,
            "width": isolation.width,
            "seed_bits": pools.seed_bits if pools.kind is not PoolKind.SECRET else 128,
        },
        "wall_seconds": round(seconds, 3),
        "steps": sum(r.length for r in results),
    }  # fmt: skip
    strict: dict[str, Any] = to_jsonable(document)
    return strict


def text(document: dict[str, Any]) -> str:
    """The document for a person."""
    isolation = document["isolation"]
    rows = [
        f"{document['env']}  {document['policy']}  {document['n']} {document['pool']} cases, {document['pools']} pools",
        f"mean return   {number(document['mean'])}   std {number(document['std'])}",
        f"returns       {number(min(document['returns']))} … {number(max(document['returns']))}",
        f"steps         {document['steps']} in {document['wall_seconds']:.2f} s, "
        f"{document['steps'] / max(document['wall_seconds'], 1e-9):,.0f}/s",
        f"isolation     {isolation['level']}: {', '.join(isolation['layers'])}; mode {isolation['mode']}, "
        f"width {isolation['width']}; seeds {isolation['seed_bits']} bits",
    ]
    rows += [f"              one by one: {reason}" for reason in isolation["alone_because"]]
    if document["pools"] == PoolKind.SECRET:
        rows.append("note          secret cases are drawn anew each time; to compare policies use --pools paper")
    if document["success_rate"] is not None:
        rows.insert(3, f"success       {document['success_rate']:.0%}")
    if document["invalid_actions"]:
        rows.append(f"invalid       {counted(document['invalid_actions'], 'action')} had to be repaired")
    rows += [
        f"fault         case {fault['case']}, step {fault['step']}: {fault['kind']}: {fault['message']}"
        for fault in document["faults"][:10]
    ]
    if len(document["faults"]) > 10:
        rows.append(f"              … {len(document['faults']) - 10} more episodes ended with a fault")
    return "\n".join(rows)
