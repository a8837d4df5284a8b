"""Taking a run up where its log ends: after a crash, a kill, a stop. Spent stays spent, finished stays finished."""

from __future__ import annotations

import asyncio
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import evotui
from evotui.kernel.config import ConfigError, RunConfig
from evotui.kernel.ground import Arena
from evotui.kernel.opening import read_pools, weakness
from evotui.kernel.session import Session
from evotui.protocol.pools import PoolKind, Pools
from evotui.record import events as e
from evotui.record.fold import fold_all
from evotui.record.lock import Lock
from evotui.record.log import LogError, cut_torn_tail, read
from evotui.record.regular import text_of_regular
from evotui.record.rundir import RunDir, RunDirError, sweep, width_of
from evotui.record.state import RunState
from evotui.rollout.engine import Engine
from evotui.rollout.limits import Limits
from evotui.suite.probe import probe


async def reopen_run(
    root: Path, *, background: bool = False, clock: Callable[[], float] = time.time, allow_weak_isolation: bool = False
) -> tuple[Session, RunConfig]:
    """The session of an unfinished run, ready for :meth:`Session.run`, and the configuration it was opened with.

    Raises Locked where another process runs it, RunDirError where it has ended, ConfigError where its pools or its
    ``run.toml`` are not what they were, LogError or FoldError where its log is damaged, WeakIsolation where it may not
    go on here unless that is allowed, now or when it began.
    """
    lock = await asyncio.to_thread(Lock, RunDir(root))
    try:
        await asyncio.to_thread(sweep, RunDir(root))
        state, config, pools = await asyncio.to_thread(_read, root)
        head = state.header
        task, info = await probe(head.env_name)
        engine = Engine(workers=config.workers or None, background=background, private=head.pools != "paper")
    except BaseException:
        lock.release()
        raise
    try:
        await engine.start()
        allowed = allow_weak_isolation or config.allow_weak_isolation
        weak = weakness(head.pools, engine.isolation.level, allowed)
    except BaseException:
        await engine.close()
        lock.release()
        raise
    run = RunDir(root, width_of(state.budget.total))
    arena = Arena(run, task, info, engine, pools, config.limits, config.policy_lifetime, clock)  # type: ignore[arg-type]
    session = Session(arena, lock, state)
    session.model_config = config.options
    try:
        facts = [*_gate_opens(state), *_changed(state, info.versions, engine.isolation.level), *weak]
        await session.append(e.RunResumed(evotui.__version__), *facts)
    except BaseException:
        await session.close()
        raise
    return session, config


def _read(root: Path) -> tuple[RunState, RunConfig, Pools]:
    log = root / "events.jsonl"
    cut_torn_tail(log)
    state = fold_all(read(log))
    if state.opened is None:
        raise LogError(f"{root.name} was killed before it began: there is nothing to resume; delete {root}")
    if state.ended is not None:
        raise RunDirError(f"{root.name} has ended ({state.ended.status}): there is nothing to resume")
    if state.finalizing is None and (root / "pools").exists():
        raise RunDirError(
            f"{root.name} cannot be resumed: its hidden cases lie open in {root / 'pools'}, and its log says that it "
            "still evolves; `evotui check` tells what is wrong"
        )
    config = read_config(root / "run.toml")
    pools = read_pools(root / ".host" / "pools")
    head = state.header
    pools = Pools(PoolKind(head.pools), pools.train, pools.validation, pools.heldout)
    if pools.hashes(head.env) != dict(head.pool_hashes):
        raise ConfigError(f"{root / '.host' / 'pools'}: these are not the cases that the run began with")
    return state, config, pools


def read_config(path: Path) -> RunConfig:
    """The configuration of a ``run.toml``. Raises ConfigError that names the file."""
    try:
        table = tomllib.loads(text_of_regular(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        limits, options = Limits(**table.pop("limits")), table.pop("agent_options")
        known = {key: value for key, value in table.items() if key in RunConfig.__dataclass_fields__}
        return RunConfig(**known, limits=limits, options=options)
    except (TypeError, KeyError) as error:
        raise ConfigError(f"{path}: not the configuration of a run ({error})") from None


def _gate_opens(state: RunState) -> list[e.Event]:
    facts: list[e.Event] = []
    if state.held:
        facts.append(e.GateHeld(""))
    if state.gate != "run":
        facts.append(e.GateMoved("run", "resume"))
    return facts


def _changed(state: RunState, versions: dict[str, str], level: str) -> list[e.Event]:
    """Incidents where packages or isolation changed since the run began: its episodes are then not all alike."""
    head = state.header
    changed = [f"{n} {head.versions[n]} → {now}" for n, now in versions.items() if head.versions.get(n, now) != now]
    facts: list[e.Event] = []
    if changed:
        facts.append(e.IncidentNoted(f"resumed with other packages: {', '.join(sorted(changed))}"))
    if level != head.isolation_level:
        facts.append(e.IncidentNoted(f"resumed at isolation {level}; the run began at {head.isolation_level}"))
    return facts
