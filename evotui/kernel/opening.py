"""Opening a new run: find the environment, draw the pools, lay out the folder, state ``RunOpened``."""

from __future__ import annotations

import asyncio
import json
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

import evotui
from evotui.kernel.config import ConfigError, RunConfig, WeakIsolation, with_sizes
from evotui.kernel.ground import Arena
from evotui.kernel.session import Session
from evotui.kernel.texts import agents_md
from evotui.protocol.pools import PoolKind, Pools, Split, paper_pools, pool_from_document, secret_pools
from evotui.protocol.spaces import to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.record import events as e
from evotui.record.blobs import edits_between
from evotui.record.fold import fold
from evotui.record.lock import Lock
from evotui.record.regular import text_of_regular
from evotui.record.rundir import RunDir, create, write_atomic
from evotui.record.state import RunState
from evotui.record.tree import read_tree, restore
from evotui.rollout.engine import Engine
from evotui.suite.catalog import policy_folder
from evotui.suite.errors import UnknownPolicy
from evotui.suite.probe import probe
from evotui.suite.worlds import WorldInfo

_T = TypeVar("_T")

FALLBACK = '''"""Where the agent starts: an action that the environment accepts, whatever the observation."""

import numpy as np


class Policy:
    def __init__(self, obs_space: dict, action_space: dict, env_meta: dict):
        self.action_space = action_space

    def reset(self, episode_index: int):
        pass

    def act(self, obs):
        return idle(self.action_space)


def idle(space):
    kind = space["type"]
    if kind == "Discrete":
        return space.get("start", 0)
    if kind == "Tuple":
        return tuple(idle(s) for s in space["spaces"])
    if kind == "Dict":
        return {key: idle(s) for key, s in space["spaces"].items()}
    if kind == "Text":
        return ""
    if kind == "MultiDiscrete":
        return np.zeros(np.shape(space["nvec"]), dtype=space["dtype"])
    return np.zeros(space["shape"], dtype=space["dtype"])
'''
"""The starting policy of an environment that ships none."""


async def open_run(
    config: RunConfig,
    runs: Path,
    *,
    name: str | None = None,
    background: bool = False,
    clock: Callable[[], float] = time.time,
) -> Session:
    """Lay out a new run and return its session, with ``RunOpened`` stated and the engine warm.

    ``background`` gives the workers the lowest priority, for when an interface shares the machine with them. Raises
    SuiteError, ConfigError, RunDirError, EngineError, WeakIsolation or OSError before anything is left behind that
    looks like a run.
    """
    task, info = await probe(config.env)
    config, pools = await asyncio.to_thread(draw_pools, config, task)
    start = await asyncio.to_thread(starting_policy, task, config.start)
    model = config.model or config.agent
    run = await _made(asyncio.to_thread(create, runs, model, task.slug, config.budget, name))
    engine = Engine(workers=config.workers or None, background=background, private=config.pools != "paper")
    try:
        await engine.start()
        weak = weakness(config.pools, engine.isolation.level, config.allow_weak_isolation)
        lock = Lock(run)
        arena = Arena(run, task, info, engine, pools, config.limits, config.policy_lifetime, clock)  # type: ignore[arg-type]
        session = Session(arena, lock)
        session.model_config = config.options
        fact = opened(config, run, task, info, pools, engine)
        rules = agents_md(fold(RunState(), e.Record(0, 0.0, fact)), task)
        await _whole(asyncio.to_thread(lay_out, run, config, pools, task, start, rules))
        await _whole(session.append(fact, sync=True))
        facts = await asyncio.to_thread(lambda: edits_between(run.blobs, {}, read_tree(run.system), "start"))
        await session.append(*weak, *facts)
    except BaseException as error:
        await engine.close()
        # Of a run that was called off before anybody saw it nothing is left; what failed once it was opened is kept.
        if isinstance(error, asyncio.CancelledError) or not run.events.exists():
            await asyncio.to_thread(shutil.rmtree, run.root, True)
        raise
    return session


async def _whole(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of ``work``, which is not left half done: where this is cancelled, that ends first."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _made(work: Coroutine[Any, Any, RunDir]) -> RunDir:
    """The folder that ``work`` makes; where this is cancelled meanwhile, none is left."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if task.exception() is None:
            await asyncio.to_thread(shutil.rmtree, task.result().root, True)
        raise


def weakness(pools: str, level: str, allowed: bool) -> list[e.Event]:
    """What is to be noted of a run with such pools at such a level of isolation. Raises WeakIsolation unless allowed.

    At level D a policy reads the host's files, the hidden cases among them. The paper's cases are public anyway.
    """
    if level != "D" or pools == PoolKind.PAPER:
        return []
    if not allowed:
        raise WeakIsolation(
            "isolation is only D here, so policies could read the hidden cases: `evotui doctor` says how to get more, "
            "--pools paper needs none, and --allow-weak-isolation goes on regardless and marks the run"
        )
    return [e.IncidentNoted("weak isolation was allowed: at level D policies could have read the hidden cases")]


def draw_pools(config: RunConfig, task: TaskSpec) -> tuple[RunConfig, Pools]:
    """The run's pools, and the configuration with their sizes. Raises ConfigError for pool files that are wrong."""
    if config.pools == PoolKind.PAPER:
        try:
            return config, paper_pools(config.validation, config.heldout)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if config.pools == PoolKind.FILES:
        pools = read_pools(Path(config.pools_from), task)
        return with_sizes(config, len(pools.validation), len(pools.heldout)), pools
    fresh = secret_pools(secrets.token_bytes(32), config.validation, config.heldout)
    if not config.branch_from:
        return config, fresh
    # The same cases, so that both runs' scores can be compared; but hidden ones that lie open are no longer hidden.
    parent = Path(config.branch_from)
    revealed = parent / "pools"
    pools = read_pools(revealed if revealed.exists() else parent / ".host" / "pools")
    if revealed.exists():
        return config, Pools(PoolKind.SECRET, pools.train, fresh.validation, fresh.heldout)
    sized = with_sizes(config, len(pools.validation), len(pools.heldout))
    return sized, Pools(PoolKind.SECRET, pools.train, pools.validation, pools.heldout)


def read_pools(folder: Path, task: TaskSpec | None = None) -> Pools:
    """Pools from the three files of a folder. Raises ConfigError that names the file and what is wrong in it.

    With a ``task``, a file that says that it is for another environment is wrong too.
    """
    seeds = {}
    known = (task.name, task.slug, task.gym_id, *task.aliases) if task is not None else ()
    for split in Split:
        path = folder / split.file_name
        try:
            document = json.loads(text_of_regular(path))
            seeds[split] = pool_from_document(document, split)
            if task is not None and document.get("env") not in (None, *known):
                raise ValueError(f"its cases are for {document['env']!r}, not for {task.slug}: choose that environment")
        except FileNotFoundError:
            needed = ", ".join(split.file_name for split in Split)
            raise ConfigError(f"{path} is missing; a folder of cases holds {needed}") from None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}: is not valid JSON ({error})") from None
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
    try:
        return Pools(PoolKind.FILES, seeds[Split.TRAIN], seeds[Split.VALIDATION], seeds[Split.HELDOUT])
    except ValueError as error:
        raise ConfigError(f"{folder}: {error}") from None


def starting_policy(task: TaskSpec, name: str) -> Path | None:
    """The folder of the policy to start from; None where the environment ships none (an idle policy is written).

    ``name`` may also be a path to a policy file or folder. Raises ConfigError where neither is there.
    """
    path = Path(name)
    if ("/" in name or name.endswith(".py")) and path.exists():
        return path
    try:
        return policy_folder(task, name)
    except UnknownPolicy as error:
        if name == "starter":
            return None
        raise ConfigError(str(error)) from None


def lay_out(run: RunDir, config: RunConfig, pools: Pools, task: TaskSpec, start: Path | None, rules: str) -> None:
    """Write what a run begins with: pools (host only), rules, starting policy, ``run.toml``. Blocking."""
    write_atomic(run.agents_md, rules.encode())
    for split in Split:
        write_atomic(run.host_pools / split.file_name, pools.file_bytes(split, task.slug), mode=0o600)
    if start is None:
        (run.system / "policy.py").write_text(FALLBACK, encoding="utf-8")
    elif start.is_file():
        shutil.copyfile(start, run.system / "policy.py")
    else:
        restore(read_tree(start), run.system)
    head = {"evotui": evotui.__version__, "run": run.root.name}
    write_atomic(run.run_toml, tomli_w.dumps(head | config.to_table()).encode())


def opened(
    config: RunConfig, run: RunDir, task: TaskSpec, info: WorldInfo, pools: Pools, engine: Engine
) -> e.RunOpened:
    """The opening fact. Strict JSON throughout: infinite bounds are the strings ``Inf`` and ``-Inf``."""
    limits = config.limits
    return e.RunOpened(
        schema_version=e.SCHEMA_VERSION,
        run=run.root.name,
        env=task.slug,
        env_name=task.name,
        env_version=info.env_version,
        agent=config.agent,
        model=config.model or config.agent,
        agent_seed=config.seed,
        profile=config.profile,
        pools=str(pools.kind),
        pool_hashes=pools.hashes(task.slug),
        n_train=len(pools.train),
        n_validation=len(pools.validation),
        n_heldout=len(pools.heldout),
        budget=config.budget,
        min_submit=config.submit_min,
        max_submit=config.max_submit,
        policy_lifetime=config.policy_lifetime,
        max_episode_steps=info.max_episode_steps,
        obs_space=to_jsonable(info.obs_schema),
        action_space=to_jsonable(info.action_schema),
        observation_fields=task.observation_fields,
        action_names=task.action_names,
        reward_components=task.reward_components,
        success_rule=task.success,
        anchors={name: anchor.mean for name, anchor in task.anchors.items()},
        isolation_level=engine.isolation.level,
        isolation_layers=engine.isolation.layers,
        limits={name: float(getattr(limits, name)) for name in limits.__dataclass_fields__},
        versions=info.versions | {"evotui": evotui.__version__, "python": platform.python_version()},
        branched_from=Path(config.branch_from).name,
        branched_at=config.branch_at,
    )
