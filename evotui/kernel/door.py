"""What an agent may do in a run: read its task, submit within its budget, hear what a person says, tell of itself.

The same requests come from a person who submits; theirs neither wait at the gate nor for approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from evotui.kernel.gate import Gate, Mode
from evotui.kernel.ground import Arena
from evotui.kernel.ledger import Ledger
from evotui.kernel.rollouts import Rollouts
from evotui.kernel.texts import info_document, task_document
from evotui.protocol.budget import DoorClosed, Rejected, parse_cases
from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from evotui.record.blobs import edits_between, text_of
from evotui.record.state import RunState, agent_view
from evotui.record.tree import read_tree, restore

AGENT_FACTS = (
    e.AgentSession, e.AgentDelta, e.AgentRetried, e.AgentRaw, e.AgentThought, e.AgentMessage, e.ToolCalled,
    e.ToolReturned, e.FileEdited, e.WriteReverted, e.UsageReported,
)  # fmt: skip
"""What an agent may tell of itself; every other fact is the session's to state."""


class Door:
    """A run as its agent reaches it (``agents.base.Door``). It closes when the run is finalized, stopped or broken."""

    def __init__(self, arena: Arena, ledger: Ledger) -> None:
        self.arena = arena
        self.run_dir = arena.run
        self.ledger = ledger
        self.gate = Gate(self._gate_moved, self._gate_held)
        self.rollouts = Rollouts(arena, ledger, self.gate)
        self._turn = asyncio.Lock()
        self._human_turns = 0
        self._spoken = asyncio.Event()
        self._verdict: asyncio.Future[e.ApprovalGiven] | None = None
        self._wish: asyncio.Future[str] | None = None
        """What the session was asked to do; from then on nobody submits any more."""

    @property
    def state(self) -> RunState:
        return self.ledger.state

    async def append(self, *facts: e.Event, sync: bool = False) -> None:
        await self.ledger.append(*facts, sync=sync)

    async def tell(self, fact: e.Event) -> None:
        """Take a fact from the agent. Raises TypeError for a kind that is not the agent's to tell."""
        if not isinstance(fact, AGENT_FACTS):
            raise TypeError(f"an agent cannot tell {type(fact).__name__}")
        await self.append(fact)

    async def task(self) -> str:
        return task_document(self.arena.task, self.arena.limits, self.arena.lifetime)

    async def info(self) -> dict[str, Any]:
        return self.info_at(self.state)

    def info_at(self, state: RunState) -> dict[str, Any]:
        """The ``/info`` document as it was when the run was in ``state``."""
        return info_document(agent_view(state), self.arena.limits)

    def answer(self, index: int) -> dict[str, Any]:
        """What submission ``index`` was answered with, once it is committed. Blocking."""
        return self.rollouts.answer(index)

    async def submit(self, cases: str | Sequence[int], by: str = "agent") -> dict[str, Any]:
        """Spend episodes on the current ``system/``; returns ``{"submit_id", "status", "summary"}``, with ``message``
        where it went wrong and ``left_out`` where paths in ``system/`` are none that a snapshot takes.

        An agent's request waits at the gate, a person's does not; requests queue. Raises Rejected (nothing was
        charged) or DoorClosed. Once accepted, the submission runs to its end even if the caller is cancelled.
        """
        self._check_open()
        if by == "agent":
            asked, turns = None, self._human_turns
            if self.gate.mode is not Mode.RUN:
                asked = await asyncio.to_thread(read_tree, self.run_dir.system)
            await self.gate.submission(f"submission {len(self.state.submissions)}")
            async with self._turn:
                if asked is not None and turns != self._human_turns:
                    await self._put_back(asked)
                if self.state.approval:  # nobody is asked for what cannot be
                    await self.rollouts.finish()
                    await self._checked(cases, by)
                await self._approved(cases)
                return await self._accept(cases, by)
        async with self._turn:
            self._human_turns += 1
            await self.append(e.Intervened("submit", f"cases {cases}"))
            return await self._accept(cases, by)

    async def messages(self, how: str = "at the gate") -> list[str]:
        """What a person said since the last call; recorded as delivered to the agent."""
        self._spoken.clear()
        texts = self.state.messages
        if texts:
            await self.append(e.MessageDelivered(texts, how))
        return list(texts)

    async def spoken_to(self) -> None:
        """Return when a person's message waits to be delivered."""
        if not self.state.messages:
            self._spoken.clear()
            await self._spoken.wait()

    async def _approved(self, request: str | Sequence[int]) -> None:
        """Wait for a person's approval where each submission takes one. Raises Rejected for a refusal."""
        if not self.state.approval:
            return
        shown = (request if isinstance(request, str) else str(list(request)))[:1000]
        self._verdict = verdict = asyncio.get_running_loop().create_future()
        try:
            await self.append(e.ApprovalAsked(shown))
            given = await verdict
        except asyncio.CancelledError:  # whoever asked is gone
            if self.state.asked is not None:
                await asyncio.shield(self.append(e.ApprovalGiven(False, "withdrawn")))
            raise
        finally:
            self._verdict = None
        await self.append(given)
        if not given.approved:
            message = f"the operator refused this submission: {given.text or 'change the policy before you submit'}"
            await self.append(
                e.Intervened("refusal", given.text), e.SubmissionRejected(Verdict.REFUSED, message, shown, "agent")
            )
            raise Rejected(Verdict.REFUSED, message)

    def _check_open(self) -> None:
        if self.state.finalizing is not None or self.state.ended is not None:
            raise DoorClosed("the run is finalized: no more submissions")
        if self.rollouts.broken.is_set():
            raise DoorClosed("the host cannot go on: no more submissions")
        if self._wish is not None and self._wish.done():
            raise DoorClosed("the run is being stopped: no more submissions")

    async def _checked(self, request: str | Sequence[int], by: str) -> tuple[int, ...]:
        """The cases that are asked for. A request that cannot be is recorded, and raises Rejected."""
        self._check_open()
        try:
            cases = parse_cases(list(request) if not isinstance(request, str) else request, len(self.arena.pools.train))
            self.state.budget.check(cases)
        except Rejected as refused:
            shown = request if isinstance(request, str) else str(list(request))
            await self.append(e.SubmissionRejected(refused.verdict, refused.message, shown[:1000], by))
            raise
        return cases

    async def _accept(self, request: str | Sequence[int], by: str) -> dict[str, Any]:
        await self.rollouts.finish()
        return await self.rollouts.roll(await self._checked(request, by), by)

    async def _put_back(self, asked: Mapping[str, bytes]) -> None:
        """Restore what the agent had written when it asked: a person submitted a version of their own meanwhile."""
        system = self.run_dir.system

        def work() -> list[e.FileEdited]:
            before = {path: text_of(data) for path, data in read_tree(system).items()}
            restore(asked, system)
            return edits_between(self.run_dir.blobs, before, asked, "agent")

        await self.append(*await asyncio.to_thread(work))

    async def _gate_moved(self, mode: Mode, by: str) -> None:
        await self.append(e.GateMoved(str(mode), by))

    async def _gate_held(self, where: str) -> None:
        await self.append(e.GateHeld(where))
