"""``evotui envs check``: whether an environment is what its files and the protocol say. Decides; report words it."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from evotui.cli.envs import SCHEMA_VERSION, Tell, look
from evotui.kernel.config import ConfigError
from evotui.kernel.opening import read_pools
from evotui.kernel.submission import validate
from evotui.protocol.imports import DENIED_IMPORTS
from evotui.protocol.pools import PAPER_HELDOUT, PAPER_VALIDATION, paper_pools
from evotui.protocol.spaces import flatten_names
from evotui.protocol.task import TaskSpec
from evotui.protocol.words import counted
from evotui.record.tree import read_tree
from evotui.rollout.engine import Engine
from evotui.rollout.limits import CaseSeed, Job
from evotui.suite.catalog import availability, find_task, list_policies, policy_folder, scan_tasks
from evotui.suite.errors import BadTaskFile
from evotui.suite.worlds import WorldInfo

_CHAPTERS = ("## Observation", "## Action", "## Reward", "## End")
_PAPER_STARTS = ((1654615998, 1806341205), (1106378843, 805970311), (47113601, 1076138659))
_BLANK = 1.0

Check = tuple[str, str, str]
"""Name, state (ok, failed or skipped), what was seen."""


async def check_environments(names: Sequence[str], pools: Path | None, tell: Tell) -> dict[str, Any]:
    """The whole document. ``tell`` hears of each environment as it is done. Raises SuiteError for unknown names."""
    if names:
        tasks, broken = [find_task(name) for name in names], list[BadTaskFile]()
    else:
        tasks, broken = scan_tasks()
    found: list[dict[str, Any]] = []

    def add(name: str, checks: Sequence[Check]) -> None:
        told = [{"name": n, "state": state, "detail": detail} for n, state, detail in checks]
        found.append({"name": name, "ok": all(c["state"] != "failed" for c in told), "checks": told})
        tell(found[-1])

    for bad in broken:
        add(Path(bad.path).parent.name, [("task file", "failed", str(bad))])
    if pools is not None:
        add(str(pools), [_case_files(pools, tasks[0] if len(tasks) == 1 else None)])
    async with Engine(workers=1) as engine:
        for task in tasks:
            add(task.name, await _environment(engine, task))
    return {"schema_version": SCHEMA_VERSION, "environments": found, "ok": all(f["ok"] for f in found)}


def _case_files(folder: Path, task: TaskSpec | None) -> Check:
    try:
        pools = read_pools(folder, task)
    except ConfigError as error:
        return "pools", "failed", str(error)
    sizes = f"{len(pools.train)} train, {len(pools.validation)} validation, {len(pools.heldout)} held-out cases"
    return "pools", "ok", f"{sizes}, no duplicate"


async def _environment(engine: Engine, task: TaskSpec) -> list[Check]:
    if why := availability(task):
        return [("packages", "skipped", why)]
    parts = ["world", "trace", "resets", "frame"]
    # Twice, in two processes: what repeats itself only within one process does not repeat itself.
    first, second = await look([(task, parts, True), (task, ["trace"], False)])
    world = first.get("world", {"error": "the process ended"})
    if "error" in world:
        return [("world", "failed", world["error"])]
    info = WorldInfo(**{k: v for k, v in world.items() if k != "observation_names"})
    return [
        _text(task, info),
        _pools(first.get("resets", {})),
        _determinism(first.get("trace", {}), second.get("trace", {})),
        _rendering(first),
        *[check async for check in _policies(engine, task, info)],
    ]


def _text(task: TaskSpec, info: WorldInfo) -> Check:
    wrong = list(_wrong_words(task, info))
    return "task text", "failed" if wrong else "ok", "; ".join(wrong) or f"{len(task.text.split())} words"


def _wrong_words(task: TaskSpec, info: WorldInfo) -> Iterator[str]:
    if task.generated:
        return
    for chapter in _CHAPTERS:
        if not re.search(rf"^{re.escape(chapter)}\b", task.text, re.MULTILINE):
            yield f"task.md has no chapter {chapter!r}"
    if not re.search(rf"\b{info.max_episode_steps}\b", task.text):
        yield f"task.md does not tell the limit of {counted(info.max_episode_steps, 'step')}"
    action = info.action_schema
    count = action["n"] if action["type"] == "Discrete" else len(flatten_names(action))
    if task.action_names and len(task.action_names) != count:
        yield f"task.toml names {len(task.action_names)} actions of {count}"
    values = len(flatten_names(info.obs_schema))
    if task.observation_fields and len(task.observation_fields) != values:
        yield f"task.toml names {len(task.observation_fields)} of {values} values of the observation"


def _pools(told: dict[str, Any]) -> Check:
    pools = paper_pools(PAPER_VALIDATION, PAPER_HELDOUT)
    begins = tuple(seeds[:2] for seeds in (pools.train, pools.validation, pools.heldout))
    if begins != _PAPER_STARTS:
        return "pools", "failed", "the paper's pools do not begin with the paper's seeds"
    if "error" in told or not told:
        return "pools", "failed", told.get("error", "no case could be begun")
    seen = f"{counted(told['begun'], 'case')} of the paper's pools begun, {told['different']} of them different"
    return "pools", "ok" if told["different"] > 1 else "failed", seen


def _determinism(first: dict[str, Any], second: dict[str, Any]) -> Check:
    for told in (first, second):
        if "error" in told or not told:
            return "determinism", "failed", told.get("error", "no steps were seen")
    if first["digest"] != second["digest"]:
        return "determinism", "failed", "the same cases and actions gave other episodes in another process"
    return "determinism", "ok", f"{counted(first['steps'], 'step')}, the same in two processes"


def _rendering(told: dict[str, Any]) -> Check:
    frame = told.get("frame", {})
    if why := told.get("why_no_frame"):
        return "rendering", "failed" if "crashed" in why else "skipped", why
    if "error" in frame:
        return "rendering", "failed", frame["error"]
    if not frame.get("shape"):
        return "rendering", "skipped", "this environment draws no pictures"
    height, width, _ = frame["shape"]
    if frame["variety"] < _BLANK:
        return "rendering", "failed", f"the picture of {width}×{height} pixels is blank"
    return "rendering", "ok", f"{width}×{height} pixels in {frame['milliseconds']:g} ms"


async def _policies(engine: Engine, task: TaskSpec, info: WorldInfo) -> AsyncIterator[Check]:
    names = [n for n in list_policies(task) if not n.startswith("broken-")]
    if not names:
        yield "policies", "skipped", "none are shipped"
    for name in names:
        state, seen = await _policy(engine, task, info, policy_folder(task, name))
        yield f"policy {name}", state, seen


async def _policy(engine: Engine, task: TaskSpec, info: WorldInfo, folder: Path) -> tuple[str, str]:
    """Whether the policy would be accepted as a submission, and loads behind the walls."""
    if fault := validate(read_tree(folder), DENIED_IMPORTS):
        return "failed", f"{fault.verdict}: {fault.message}"
    meta = {"env": task.slug, "max_episode_steps": info.max_episode_steps}
    with tempfile.TemporaryDirectory(prefix="evotui-check-") as scratch:
        snapshot = Path(scratch, "system")
        await asyncio.to_thread(_copy, folder, snapshot)
        case = CaseSeed(0, "train 0", paper_pools(PAPER_VALIDATION, PAPER_HELDOUT).train[0])
        job = Job(task, snapshot, (case,), meta, info.obs_schema, info.action_schema, denied_imports=DENIED_IMPORTS)
        async with engine.open(job) as rollout:
            fault = await rollout.compile() or await rollout.initialize()
    return ("failed", f"{fault.verdict}: {fault.message}") if fault else ("ok", "loads behind the walls")


def _copy(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
