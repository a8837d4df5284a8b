"""A run while it lives: people steer it here, and one agent after another is driven through it to the run's end.

Agents reach a session as their :class:`Door`, people through its controls, the CLI through :meth:`Session.run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evotui.kernel.door import Door
from evotui.kernel.ending import finalize
from evotui.kernel.gate import Mode
from evotui.kernel.ground import Arena
from evotui.kernel.ledger import Ledger
from evotui.kernel.rollouts import drop
from evotui.protocol.budget import DoorClosed
from evotui.protocol.turns import AgentFailed, LimitReached
from evotui.protocol.words import counted
from evotui.record import events as e
from evotui.record.blobs import edits_between
from evotui.record.lock import Lock
from evotui.record.state import RunState
from evotui.record.tree import read_tree

_WISHED = {"stop": "stopped", "finalize": "finalized by hand", "hand over": "handed over"}
_WITH_BUDGET_LEFT = ("agent_ended", "agent_failed", "failed", "limit")


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent's turn at a run; see :meth:`Session.run`."""

    kind: str
    name: str
    evolve: Callable[[], Awaitable[str]]
    grace: float = 20.0
    options: Mapping[str, Any] = field(default_factory=dict)
    """To be told in the record, so that a resumed run goes on with the same agent; the first one's are known."""


class Session(Door):
    """Owns a run's folder for writing. Made by :func:`evotui.kernel.opening.open_run`; ``close`` it in the end."""

    def __init__(self, arena: Arena, lock: Lock, state: RunState | None = None) -> None:
        super().__init__(arena, Ledger(arena.run, arena.clock, state if state is not None else RunState()))
        self.watchers = self.ledger.watchers
        self.steps = self.rollouts.steps
        self._lock = lock
        self._early = ""
        self._heir: Turn | None = None
        self.model_config: Mapping[str, Any] = {}
        """The agent's options, for ``run.json``."""
        self.patient = False
        """Whether a run whose agent ended with budget left waits for a person to say what next."""

    # ── controls ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def edited(self, before: Mapping[str, str]) -> list[str]:
        """Record what a person changed below ``system/`` since ``before``; returns the paths."""

        def work() -> list[e.FileEdited]:
            return edits_between(self.run_dir.blobs, before, read_tree(self.run_dir.system), "human")

        facts = await asyncio.to_thread(work)
        if facts:
            await self.append(e.Intervened("edit", ", ".join(f.path for f in facts)), *facts)
        return [f.path for f in facts]

    async def say(self, text: str) -> None:
        """Tell the agent something: at its next look, at the latest after its next submission; also as a file."""
        await self.append(e.Intervened("message", text))
        self._spoken.set()
        path = self.run_dir.messages

        def work() -> None:
            with path.open("a", encoding="utf-8") as file:
                file.write(text.rstrip() + "\n\n")

        await asyncio.to_thread(work)

    async def approve_each(self, on: bool) -> None:
        """Let each of the agent's submissions wait for :meth:`decide` from now on, or none; one that waits goes on."""
        await self.append(e.ApprovalSet(on))
        if not on:
            self.decide(True)

    def decide(self, approved: bool, text: str = "") -> None:
        """Answer the submission that waits for approval, if one does."""
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(e.ApprovalGiven(approved, text))

    def hand_over(self, turn: Turn) -> None:
        """Let another agent go on from here: the present one is stopped, its submission under way ends first."""
        self._heir = turn
        self.wish("hand over")

    def wish(self, what: str) -> None:
        """Ask the running session to ``stop`` (record unfinished), ``finalize`` (score what there is), or hand over.

        The last is :meth:`hand_over`'s, which names the heir. Asked before :meth:`run`, it is heard as that begins.
        """
        if self._wish is None:
            self._early = what
        elif not self._wish.done():
            self._wish.set_result(what)

    # ── the whole run ────────────────────────────────────────────────────────────────────────────────────────────

    async def run(
        self,
        kind: str,
        name: str,
        evolve: Callable[[], Awaitable[str]],
        grace: float = 20.0,
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Drive one agent to its end, then finalize. Returns the final status, ``stopped``, or ``failed`` where the
        agent cannot go on and nobody is there to help: the run stays open then, as after a stop.

        ``evolve`` is the agent's own loop; ``grace`` is how many seconds it may go on once the budget is spent (a last
        word, not a last edit); ``options`` are those of an heir (:class:`Turn`). Raises OSError where the log cannot be
        written any more.
        """
        self._wish = asyncio.get_running_loop().create_future()
        if self._early:
            self._wish.set_result(self._early)
        reason = self.state.finalize_reason
        turn: Turn | None = Turn(kind, name, evolve, grace, options or {})
        try:
            await self._take_up()
            if self.state.finalizing is None and self.state.agent_ended == "done" and self.state.budget.spent:
                reason, turn = "spent", None
            elif self.state.finalizing is None and self.state.agent_ended == "done" and not self.patient:
                reason, turn = "agent_ended", None
            elif self.state.finalizing is not None:
                turn = None
            while turn is not None:
                reason, turn = await self._next(await self._evolve(turn))
            if reason in ("stopped", "failed"):
                return reason
            return await finalize(self.arena, self.ledger, self._wish, self.model_config, reason)
        except asyncio.CancelledError:
            await self.rollouts.abandon()
            raise
        finally:
            self._wish.cancel()

    async def _next(self, reason: str) -> tuple[str, Turn | None]:
        """Who goes on after an agent's turn that ended for ``reason``, and the reason if nobody does."""
        if reason in _WITH_BUDGET_LEFT and self.patient:
            await self.append(e.GateHeld(f"what next, with {counted(self.state.budget.remaining, 'episode')} left"))
            assert self._wish is not None
            wished = await asyncio.shield(self._wish)
            await self.append(e.GateHeld(""))
            reason = _WISHED[wished]
        if reason != "handed over":
            return reason, None
        heir, self._heir = self._heir, None
        assert heir is not None
        self._wish = asyncio.get_running_loop().create_future()
        await self.append(e.Intervened("hand over", heir.name))
        return reason, heir

    async def _take_up(self) -> None:
        """Finish the submission that an earlier process left unfinished, if any."""
        left = self.rollouts.take_up()
        if left is not None:
            assert self._wish is not None
            # Whoever asks to stop need not wait until it has been rolled out: the agent's part hears the wish next.
            waited: set[asyncio.Future[Any]] = {left, self._wish}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                await left

    async def _evolve(self, turn: Turn) -> str:
        """Let an agent work until it ends, the budget is spent, the host breaks or a person wishes; why it ended."""
        assert self._wish is not None
        await self.append(e.AgentStarted(turn.kind, turn.name, turn.options))
        agent = asyncio.ensure_future(turn.evolve())
        spent = asyncio.ensure_future(self.rollouts.spent.wait())
        broken = asyncio.ensure_future(self.rollouts.broken.wait())
        try:
            waited: set[asyncio.Future[Any]] = {agent, self._wish, spent, broken}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if spent.done() and not agent.done() and not self._wish.done():
                await asyncio.wait(waited - {spent}, timeout=turn.grace, return_when=asyncio.FIRST_COMPLETED)
        finally:
            spent.cancel()
            broken.cancel()
            wished = self._wish.result() if self._wish.done() and not self._wish.cancelled() else ""
            if not agent.done():
                await drop(agent)
        if wished in ("finalize", "hand over") and self.rollouts.under_way:
            # What was paid for is worth having: the submission under way ends before the agent's record is closed.
            await self.gate.set(Mode.RUN, wished)
            await self.rollouts.finish()
        elif wished:
            await self.rollouts.abandon()
        if wished:
            ended = "handed_over" if wished == "hand over" else "stopped"
            await self.append(e.AgentEnded(ended, f"asked to {wished}"))
            return _WISHED[wished]
        if self.rollouts.broken.is_set() and self.rollouts.active is not None:
            if not agent.cancelled():
                agent.exception()  # what the host's failure made of it: seen, and not told twice
            await self.append(e.AgentEnded("stopped", "the host could not go on"))
            await self.rollouts.active
        return await self._ended(agent)

    async def _ended(self, agent: asyncio.Future[str]) -> str:
        """Record how an agent ended by itself, once what it paid for is its own; the reason for the run to go on."""
        incident = ""
        try:
            how, text, reason = "done", agent.result(), "agent_ended"
        except (DoorClosed, asyncio.CancelledError):
            how, text, reason = "done", "", "agent_ended"
        except LimitReached as limit:
            how, text, reason = "limit", str(limit), "limit"
        except AgentFailed as failure:
            how, text, reason = "failed", str(failure), "failed"
        except Exception as error:  # an agent's failure ends the agent, never the run: it is told in the transcript
            how, text, reason = "failed", str(error), "agent_failed"
            incident = f"the agent failed: {type(error).__name__}: {error}"
        await self.rollouts.finish()
        if incident:
            await self.append(e.IncidentNoted(incident))
        await self.append(e.AgentEnded(how, text))
        return "spent" if self.state.budget.spent and not incident else reason

    async def rest(self) -> None:
        """Let the workers go once :meth:`run` has returned, however long the run is looked at.

        What goes on from it, such as a resumed run or a branch, opens a session of its own.
        """
        await self.rollouts.abandon()
        await self.arena.engine.close()

    async def close(self) -> None:
        """Stop whatever runs, close the log, kill the workers, give the folder free."""
        await self.rollouts.abandon()
        await self.ledger.close()
        await self.rest()
        self._lock.release()
