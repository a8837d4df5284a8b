"""The ground that lifecycles stand on: folder, pools and engine. Seeds pass through here, to workers only."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evotui.kernel import documents
from evotui.kernel.submission import Outcome, Rollout
from evotui.kernel.texts import env_meta
from evotui.protocol.codemetrics import metrics
from evotui.protocol.imports import DENIED_IMPORTS
from evotui.protocol.pools import Pools, Split
from evotui.protocol.results import EpisodeResult
from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import LoadFault, Verdict
from evotui.record.rundir import RunDir, to_json, write_atomic
from evotui.record.state import RunState, agent_view
from evotui.record.tree import copy_system, read_tree
from evotui.rollout.engine import Engine
from evotui.rollout.limits import CaseSeed, EpisodeStarted, EpisodeStep, Job, Lifetime, Limits
from evotui.suite.worlds import WorldInfo


@dataclass(frozen=True, slots=True)
class Arena:
    """What all rollouts of a run share. Its repr shows no seed."""

    run: RunDir
    task: TaskSpec
    info: WorldInfo
    engine: Engine
    pools: Pools = field(repr=False)
    limits: Limits
    lifetime: Lifetime
    clock: Callable[[], float]

    def job(self, state: RunState, index: int, cases: tuple[CaseSeed, ...], remaining: int, **places: Any) -> Job:
        """The job of checkpoint ``index`` on ``cases``; ``places`` says what is recorded where."""
        was = state.submission(index)
        meta = env_meta(agent_view(state), index, was.cost, remaining, self.info.obs_schema, self.info.action_schema)
        return Job(
            task=self.task,
            snapshot=self.run.checkpoint(index),
            cases=cases,
            env_meta=meta,
            obs_schema=self.info.obs_schema,
            action_schema=self.info.action_schema,
            limits=self.limits,
            lifetime=self.lifetime,
            denied_imports=DENIED_IMPORTS,
            **places,
        )


class TrainGround:
    """One train submission's files and rollouts (``kernel.submission.Ground``)."""

    def __init__(
        self, arena: Arena, state: Callable[[], RunState], index: int, watch: Callable[[int, EpisodeStep | None], None]
    ) -> None:
        self._arena = arena
        self._state = state
        self._index = index
        self._watch = watch
        self._began = arena.clock()
        self.left_out: list[str] = []
        """Paths in ``system/`` that the snapshot does not take."""

    async def snapshot(self) -> tuple[str, Mapping[str, Any]]:
        run, index = self._arena.run, self._index
        was = self._state().submission(index)
        when = self._arena.clock()

        def work() -> tuple[str, Mapping[str, Any]]:
            target = run.checkpoint(index)
            shutil.rmtree(target, ignore_errors=True)  # a copy that a kill left half made
            files = copy_system(run.system, target, left_out=self.left_out)
            figures = metrics(files)
            meta = documents.meta(was, self._state().header.env, figures["tree_hash"], when)
            write_atomic(target / "_meta.json", to_json(meta))
            write_atomic(target / "metrics.json", to_json(figures))
            return figures["tree_hash"], figures

        return await asyncio.to_thread(work)

    async def sources(self) -> Mapping[str, bytes]:
        return await asyncio.to_thread(read_tree, self._arena.run.checkpoint(self._index))

    @asynccontextmanager
    async def rollout(self, kept: Collection[int]) -> AsyncIterator[Rollout]:
        arena, state = self._arena, self._state()
        run, was = arena.run, state.submission(self._index)
        seeds = arena.pools.of(Split.TRAIN)
        # One object for all episodes: what it remembers of the kept ones has to be made again.
        again = arena.lifetime == "submission"
        positions = [p for p in range(was.cost) if again or p not in kept]
        cases = tuple(CaseSeed(i, f"train {was.cases[p]}", seeds[was.cases[p]], p) for i, p in enumerate(positions))
        job = arena.job(
            state,
            self._index,
            cases,
            state.budget.remaining,
            record=run.episodes_of(self._index),
            actions=run.actions,
            names=tuple(run.episode_name(was.first_episode + p) for p in positions),
        )
        async with arena.engine.open(job) as rollout:
            yield _Placed(rollout, positions)

    def progress(self, step: EpisodeStep | None) -> None:
        self._watch(self._index, step)

    async def commit(self, outcome: Outcome) -> None:
        run, state, now = self._arena.run, self._state(), self._arena.clock()
        was = state.submission(self._index)
        document = documents.summary(state, self._index, outcome, was.accepted_at, now, now - self._began)

        def work() -> None:
            folder = run.feedback_of(self._index)
            (folder / "episodes").mkdir(parents=True, exist_ok=True)
            if outcome.verdict is not Verdict.OK:
                write_atomic(folder / "errors.txt", documents.errors(outcome, now))
            write_atomic(folder / "summary.json", to_json(document))

        await asyncio.to_thread(work)


_TELLS_APART = (b"submit_index", b"n_episodes_this_submit", b"_meta.json")
"""What two submissions of the same files differ in for a policy: two keys of ``env_meta``, and the host's own file."""


class HiddenGround:
    """Hidden rollouts of checkpoints (``kernel.finalization.HiddenGround``): nothing is written."""

    def __init__(self, arena: Arena, state: Callable[[], RunState]) -> None:
        self._arena = arena
        self._state = state
        # One Policy object for a whole submission is one process: the other workers can take the next checkpoints.
        self.abreast = arena.engine.width if arena.lifetime == "submission" else 1

    @asynccontextmanager
    async def hidden(self, checkpoint: int, split: Split, positions: Sequence[int]) -> AsyncIterator[_Hidden]:
        seeds = self._arena.pools.of(split)
        cases = tuple(CaseSeed(i, f"{split} {p}", seeds[p], p) for i, p in enumerate(positions))
        # PROTOCOL: in hidden evaluation the policy sees the submission it was part of, with nothing left to spend.
        job = self._arena.job(self._state(), checkpoint, cases, 0)
        async with self._arena.engine.open(job) as rollout:
            yield _Hidden(_Placed(rollout, positions))

    async def alike(self, one: int, other: int) -> bool:
        """Whether the checkpoints hold the same files, none of which names what tells their submissions apart.

        A policy that uses ``env_meta`` as a whole (its text, its hash) is not noticed; it is taken for one policy.
        """

        def work() -> bool:
            files = read_tree(self._arena.run.checkpoint(one))
            same = files == read_tree(self._arena.run.checkpoint(other))
            return same and not any(word in data for data in files.values() for word in _TELLS_APART)

        return await asyncio.to_thread(work)


class _Placed:
    """A rollout of some cases that tells positions among all of them."""

    def __init__(self, rollout: Rollout, positions: Sequence[int]) -> None:
        self._rollout = rollout
        self._positions = positions

    async def compile(self) -> LoadFault | None:
        return await self._rollout.compile()

    async def initialize(self) -> LoadFault | None:
        return await self._rollout.initialize()

    async def episodes(self) -> AsyncIterator[EpisodeStarted | EpisodeStep | EpisodeResult]:
        async for item in self._rollout.episodes():
            yield replace(item, position=self._positions[item.position])


class _Hidden:
    def __init__(self, rollout: _Placed) -> None:
        self._rollout = rollout

    async def load(self) -> LoadFault | None:
        return await self._rollout.compile() or await self._rollout.initialize()

    async def results(self) -> AsyncIterator[EpisodeResult]:
        async for item in self._rollout.episodes():
            if isinstance(item, EpisodeResult):
                yield item
