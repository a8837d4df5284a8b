"""The submission under way: rolled out in a task of its own, from its charge to its commit, one at a time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any

from evotui.kernel.gate import Gate
from evotui.kernel.ground import Arena, TrainGround
from evotui.kernel.ledger import Ledger
from evotui.kernel.submission import result_of, submission
from evotui.protocol.imports import DENIED_IMPORTS
from evotui.protocol.verdict import Phase
from evotui.record import events as e
from evotui.record.rundir import read_json
from evotui.rollout.limits import EpisodeStep


class Rollouts:
    """Rolls accepted submissions out. What it has charged it brings to its end, unless :meth:`abandon` stops it."""

    def __init__(self, arena: Arena, ledger: Ledger, gate: Gate) -> None:
        self.steps: dict[tuple[int, int], EpisodeStep] = {}
        """Episodes under way: (submission, position) → the newest step. Never a fact."""
        self.active: asyncio.Task[dict[str, Any]] | None = None
        """The submission under way, or the last one."""
        self.spent = asyncio.Event()
        """Set when the budget has been used up."""
        self.broken = asyncio.Event()
        """Set when the host could not carry a submission through: that ends the run here, its agent cannot help it."""
        self._arena, self._ledger, self._gate = arena, ledger, gate

    @property
    def under_way(self) -> bool:
        return self.active is not None and not self.active.done()

    async def roll(self, cases: tuple[int, ...], by: str) -> dict[str, Any]:
        """Charge a submission on the current ``system/`` and roll it out; its answer. One must not be under way.

        From the charge on it is a task of its own: a caller that goes away cannot leave it half done.
        """
        index = len(self._ledger.state.submissions)
        self.active = asyncio.create_task(self._roll(index, cases, by), name=f"submission {index}")
        self.active.add_done_callback(self._rolled)
        return await asyncio.shield(self.active)

    def take_up(self) -> asyncio.Task[dict[str, Any]] | None:
        """Go on with the submission that an earlier process left unfinished, if any. Nothing is charged."""
        left = self._ledger.state.active
        if left is None or self.active is not None:
            return None
        self.active = asyncio.create_task(self._roll_on(left.index), name=f"submission {left.index}")
        return self.active

    async def finish(self) -> None:
        """Wait until no submission is under way."""
        if self.active is not None and not self.active.done():
            await asyncio.wait({self.active})

    async def abandon(self) -> None:
        """Stop rolling out; the submission stays unfinished in the record, its episodes charged."""
        if self.active is not None and not self.active.done():
            await drop(self.active)
        self.steps.clear()

    def answer(self, index: int) -> dict[str, Any]:
        """What a submission's request is answered with, from its committed summary, and why it went wrong. Blocking."""
        run = self._arena.run
        summary = read_json(run.feedback_of(index) / "summary.json")
        answer = {"submit_id": run.submit_name(index), "status": summary["status"], "summary": summary}
        message = self._ledger.state.submission(index).message
        return answer | {"message": message} if message else answer

    def _rolled(self, task: asyncio.Task[dict[str, Any]]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.broken.set()

    async def _roll(self, index: int, cases: tuple[int, ...], by: str) -> dict[str, Any]:
        accepted = e.SubmissionAccepted(index, cases, self._ledger.state.budget.used, by)
        await self._ledger.append(accepted, sync=True)
        return await self._roll_on(index)

    async def _roll_on(self, index: int) -> dict[str, Any]:
        """Take an accepted submission from where its facts end to its commit."""
        was = self._ledger.state.submission(index)
        kept = {ep.position: result_of(ep) for ep in was.episodes}
        ground = TrainGround(self._arena, lambda: self._ledger.state, index, self._watch)

        async def gate(phase: Phase) -> None:
            await self._gate.phase(f"{phase} of submission {index}")

        facts = submission(
            index, was.cases, was.first_episode, ground, DENIED_IMPORTS, gate, kept, snapshot_taken=bool(was.tree_hash)
        )
        async with aclosing(facts):
            async for fact in facts:
                await self._ledger.append(fact)
                if isinstance(fact, e.EpisodeFinished):
                    self.steps.pop((index, fact.position), None)
        if self._ledger.state.budget.spent:
            self.spent.set()
        answer = await asyncio.to_thread(self.answer, index)
        return answer | {"left_out": ground.left_out} if ground.left_out else answer

    def _watch(self, index: int, step: EpisodeStep | None) -> None:
        if step is None:
            self.steps.clear()
        else:
            self.steps[index, step.position] = step


async def drop(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end, whatever that is."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
