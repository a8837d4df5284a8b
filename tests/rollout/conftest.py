"""One engine for all tests of the rollout room, and a short way to run a policy's text on some cases."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from evotui.protocol.pools import paper_pools
from evotui.protocol.results import EpisodeResult
from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import LoadFault
from evotui.rollout.engine import Engine, evaluate
from evotui.rollout.limits import CaseSeed, EpisodeStep, Job, Limits
from evotui.suite import worlds

CARTPOLE = TaskSpec("cartpole", "gym/cartpole", "CartPole-v1", "CartPole", "warm-up", success="return >= 475")
DENIED = ("subprocess", "multiprocessing", "gymnasium", "requests")
SHORT = Limits(load_seconds=1.5, reset_seconds=0.4, act_seconds=0.3, episode_cpu_seconds=5.0)
SEEDS = paper_pools(16, 32).train

GOOD = """
class Policy:
    def __init__(self, obs_space, action_space, env_meta): pass
    def reset(self, episode_index): pass
    def act(self, obs):
        return int(obs[2] + 0.5 * obs[3] > 0)
"""


@dataclass
class Outcome:
    """Everything that a rollout told."""

    load_fault: LoadFault | None = None
    results: dict[int, EpisodeResult] = field(default_factory=dict)
    steps: list[EpisodeStep] = field(default_factory=list)

    @property
    def kinds(self) -> list[str | None]:
        return [str(r.fault.kind) if r.fault else None for _, r in sorted(self.results.items())]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine() -> AsyncIterator[Engine]:
    async with Engine(workers=1) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def pair() -> AsyncIterator[Engine]:
    async with Engine(workers=2, background=True) as made:
        yield made


def make_job(
    folder: Path, source: str, n: int = 1, task: TaskSpec = CARTPOLE, files: bool = True, **changes: Any
) -> Job:
    snapshot = folder / "snapshot"
    snapshot.mkdir(exist_ok=True)
    (snapshot / "policy.py").write_text(textwrap.dedent(source))
    info = worlds.describe(task)
    given: dict[str, Any] = {
        "env_meta": {"env": task.slug, "max_episode_steps": info.max_episode_steps},
        "limits": SHORT,
        "denied_imports": DENIED,
    }
    if files:
        given |= {"record": folder / "episodes", "actions": folder / "actions"}
    seeds = changes.pop("seeds", SEEDS)
    return Job(
        task=task,
        snapshot=snapshot,
        cases=tuple(CaseSeed(i, f"train {i}", seeds[i]) for i in range(n)),
        obs_schema=info.obs_schema,
        action_schema=info.action_schema,
        names=tuple(f"ep_{i:03}" for i in range(n)),
        **{**given, **changes},
    )


async def run_job(engine: Engine, job: Job) -> Outcome:
    outcome = Outcome()
    async for told in evaluate(engine, job):
        if isinstance(told, LoadFault):
            outcome.load_fault = told
        elif isinstance(told, EpisodeResult):
            outcome.results[told.position] = told
        elif isinstance(told, EpisodeStep):
            outcome.steps.append(told)
    return outcome


Roll = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def roll(engine: Engine, tmp_path: Path) -> Roll:
    async def run(source: str, n: int = 1, **changes: Any) -> Outcome:
        return await run_job(engine, make_job(tmp_path, source, n, **changes))

    return run
