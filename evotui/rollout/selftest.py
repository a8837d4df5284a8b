"""The self-test of the walls: :mod:`evotui.rollout.attacks` run through a real engine against canaries on this host."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.protocol.results import EpisodeResult
from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import FaultKind, LoadFault
from evotui.rollout import attacks
from evotui.rollout.engine import Engine, EngineError, evaluate
from evotui.rollout.guest import syscalls, wire
from evotui.rollout.limits import CaseSeed, Job, Limits

_TASK = TaskSpec("cartpole", "gym/cartpole", "CartPole-v1", "CartPole", "warm-up")
_OBSERVED = {"type": "Box", "shape": [4], "dtype": "float32", "low": float("-inf"), "high": float("inf")}
_ACTIONS = {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}
_LIMITS = Limits(reset_seconds=20.0, act_seconds=0.2)
_FORGED_RETURN = 20.0  # always pushing to one side ends CartPole after 8 to 11 steps
_SLACK = 1000  # bytes of the note that output was cut

# What an attack in ``act`` must come to: the host sees this fault in place of a result.
_EXPECTED: dict[str, frozenset[FaultKind]] = {
    "forge answers": frozenset({FaultKind.PROTOCOL}),
    "jam the lane": frozenset({FaultKind.ACT_TIMEOUT, FaultKind.PROTOCOL, FaultKind.ACT_ERROR}),
    "end the process": frozenset({FaultKind.EXITED}),
    "crash": frozenset({FaultKind.EXITED}),
    "close every file": frozenset({FaultKind.EXITED}),
    "never answer": frozenset({FaultKind.ACT_TIMEOUT}),
}


class SelfTestError(Exception):
    """The attacks could not be carried out: the message says why."""


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """One attack: what it is called, what it goes for, what it came to, whether that is a breach."""

    name: str
    group: str
    outcome: str
    got_through: bool


async def self_test(engine: Engine, seed: int | None = None) -> list[AttackOutcome]:
    """Attack this host from inside a guest of ``engine``, which has one worker; outcomes by group.

    ``seed`` is the case's, 128 random bits by default. Raises SelfTestError and EngineError. Without walls the attacks
    get through, and harm nothing but the canaries.
    """
    if engine.width != 1:
        raise ValueError("a self-test needs an engine of one worker: its episodes look for traces of each other")
    await engine.start()
    seed = secrets.randbits(128) if seed is None else seed
    n = 2 + len(attacks.IN_ACT)
    with canaries() as (places, scratch):
        told = {"worker": engine.workers[0].pid, "seed_digest": hashlib.sha256(str(seed).encode()).hexdigest()}
        job = Job(
            task=_TASK,
            snapshot=scratch / "system",
            # Each attack alone with a case of its own; none may be tried on one that another has seen.
            cases=tuple(CaseSeed(i, f"self-test {i}", seed) for i in range(n)),
            env_meta={"attack": places | told},
            obs_schema=_OBSERVED,
            action_schema=_ACTIONS,
            limits=_LIMITS,
            record=scratch / "episodes",
            names=tuple(f"ep_{i}" for i in range(n)),
        )
        results: dict[int, EpisodeResult] = {}
        async for event in evaluate(engine, job):
            if isinstance(event, LoadFault):
                raise SelfTestError(f"the attacks cannot be loaded: {event.message}")
            if isinstance(event, EpisodeResult):
                results[event.position] = event
        return _judged(results, scratch / "episodes")


def _judged(results: dict[int, EpisodeResult], episodes: Path) -> list[AttackOutcome]:
    found: dict[str, str] = {}
    for i in (0, 1):
        fault = results[i].fault
        if fault is not None:
            raise SelfTestError(f"the attacks broke off: {fault.kind}: {fault.message}")
        for line in (episodes / f"ep_{i}" / "stdout.txt").read_text().splitlines():
            found |= json.loads(line)
    for i, name in enumerate(attacks.IN_ACT, 2):
        found[name] = _judged_alone(name, results[i], episodes / f"ep_{i}")
    untried = [name for names in attacks.GROUPS.values() for name in names if name not in found]
    if untried:
        raise SelfTestError(f"attacks were not tried: {', '.join(untried)}")
    return [
        AttackOutcome(name, group, found[name], found[name] == attacks.THROUGH)
        for group, names in attacks.GROUPS.items()
        for name in names
    ]


def _judged_alone(name: str, result: EpisodeResult, folder: Path) -> str:
    fault = str(result.fault.kind) if result.fault is not None else "no fault"
    if result.return_ > _FORGED_RETURN:
        return attacks.THROUGH
    if name in _EXPECTED:
        kept = result.fault is not None and result.fault.kind in _EXPECTED[name]
    else:
        kept = (folder / "stdout.txt").stat().st_size < _LIMITS.output_bytes + _SLACK
    return fault if kept else attacks.THROUGH


@contextmanager
def canaries() -> Iterator[tuple[dict[str, Any], Path]]:
    """Things on this host that attacks go for, as ``env_meta["attack"]`` names them, and a folder for the rollout."""
    mark = f"evotui-attack-{secrets.token_hex(8)}"
    marked = [Path(folder, mark) for folder in ("/tmp", "/dev/shm", os.path.dirname(os.__file__))]
    scratch = Path(tempfile.mkdtemp(prefix=f"evotui-{os.getpid()}-"))  # what the engine sweeps up, should we be killed
    try:
        with ExitStack() as stack:
            run = scratch / "run"
            _lay_out(scratch, run)
            servers = [stack.enter_context(socket.socket(family)) for family in (socket.AF_INET, *2 * [socket.AF_UNIX])]
            abstract = f"\0{mark}" if sys.platform == "linux" else str(run / "second")
            servers[0].bind(("127.0.0.1", 0))
            servers[1].bind(str(run / "socket"))
            servers[2].bind(abstract)
            for server in servers:
                server.listen()
            yield (
                {
                    "host": os.getpid(),
                    "port": servers[0].getsockname()[1],
                    "unix": str(run / "socket"),
                    "abstract": abstract,
                    "folder": str(run),
                    "secret": str(run / "secret"),
                    "link": str(run / "link"),
                    "pool": str(run / "heldout.json"),
                    "mark": mark,
                    "act_kind": wire.ACT,
                    "calls": _numbers(),
                },
                scratch,
            )
    finally:
        for path in marked:
            path.unlink(missing_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)


def _lay_out(scratch: Path, run: Path) -> None:
    """Open to everybody, so that what stops an attack is a wall and not a file's mode."""
    run.mkdir()
    for folder in (scratch, run):
        folder.chmod(0o755)
    for name in ("secret", "moved", "heldout.json"):
        (run / name).write_text("canary")
        (run / name).chmod(0o644)
    (run / "link").symlink_to(run / "secret")
    (scratch / "system").mkdir()
    shutil.copyfile(attacks.__file__, scratch / "system" / "policy.py")


def _numbers() -> dict[str, int]:
    """Numbers of system calls on this machine; none where the tables do not fit."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64", "arm64"):
        return {}
    arm = machine != "x86_64"
    calls = syscalls.SYSCALLS | {"clone3": (435, 435), "tgkill": (234, 131)}
    return {name: number for name, numbers in calls.items() if (number := numbers[arm]) is not None}


__all__ = ["AttackOutcome", "EngineError", "SelfTestError", "canaries", "self_test"]
