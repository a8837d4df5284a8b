"""Recorded episodes as moving pictures: finds an episode's seed and actions, and has the drawing process replay it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

from evotui.protocol.pools import Split, pool_from_document
from evotui.record.rundir import RunDirError, read_json
from evotui.ui.feed import Feed, Shot

if TYPE_CHECKING:
    from evotui.protocol.task import TaskSpec
    from evotui.rollout.render import FrameWorker
    from evotui.suite.worlds import WorldInfo


class Frames:
    """``ui.feed.FrameSource`` of one run. Seeds come from its own pool files and go to the drawing process only."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._worker: FrameWorker | None = None
        self._world: tuple[TaskSpec, WorldInfo] | None = None
        self._why = ""
        self._seeds: tuple[int, ...] = ()
        self._turn = asyncio.Lock()
        self._playing = 0

    async def play(
        self, submission: int, position: int, width: int, height: int, start: int = 0
    ) -> AsyncIterator[Shot]:
        """See ``ui.feed.FrameSource``. Where nothing can be replayed: one shot that says why."""
        from evotui.rollout.render import FrameError, Scene
        from evotui.suite.errors import SuiteError

        blank = Shot(0, 0, None, "", "", None, None, 0.0, 0.0, True)
        self._playing += 1  # the drawing process holds one scene: whoever comes later takes it over
        mine = self._playing
        state, run = self._feed.state, self._feed.run
        was = state.submission(submission)
        try:
            task, info = await self._describe(state.header.env_name)
            seed = (await self._train_seeds())[was.cases[position]]
            actions = run.actions / run.episode_name(was.first_episode + position)
            worker = self._drawing()
            async with self._turn:
                last = await worker.open(Scene(task, info.obs_schema, info.action_schema, seed, actions))
        except (FrameError, SuiteError, RunDirError, ValueError, IndexError) as error:
            yield replace(blank, why=str(error))
            return
        for step in range(min(start, last), last + 1):
            async with self._turn:
                if mine != self._playing:
                    return
                try:
                    frame = await worker.frame(step, width, height)
                except FrameError as error:
                    yield replace(blank, step=step, last_step=last, why=str(error))
                    return
            yield Shot(
                frame.step, frame.last_step, frame.pixels, frame.text, frame.why, frame.obs, frame.action,
                frame.reward, frame.return_, frame.done, frame.info,
            )  # fmt: skip

    async def _describe(self, name: str) -> tuple[TaskSpec, WorldInfo]:
        if self._world is None:
            from evotui.suite.probe import probe

            self._world = await probe(name)
        return self._world

    async def _train_seeds(self) -> tuple[int, ...]:
        if not self._seeds:
            path = self._feed.run.pool_file(Split.TRAIN)
            self._seeds = await asyncio.to_thread(lambda: pool_from_document(read_json(path), Split.TRAIN))
        return self._seeds

    def _drawing(self) -> FrameWorker:
        if self._worker is None:
            from evotui.rollout.render import FrameWorker

            self._worker = FrameWorker()
        return self._worker

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()
            self._worker = None
