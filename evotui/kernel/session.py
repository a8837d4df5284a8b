"""A run while it lives: it serves the door, moves the gate, drives lifecycles, and is the log's only writer.

``Session.state`` is the fold of the log and nothing else. Agents reach it through the door methods (``task``, ``info``,
``submit``), people through the controls, the CLI through ``run``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from evotui.kernel import documents
from evotui.kernel.finalization import HiddenFailure, finalization
from evotui.kernel.gate import Gate, Mode
from evotui.kernel.ground import Arena, HiddenGround, TrainGround
from evotui.kernel.logs import ProtocolLogs
from evotui.kernel.submission import result_of, submission
from evotui.kernel.texts import info_document, task_document
from evotui.protocol.budget import DoorClosed, Rejected, parse_cases
from evotui.protocol.imports import DENIED_IMPORTS
from evotui.protocol.pools import Split
from evotui.protocol.turns import AgentFailed, LimitReached
from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.blobs import edits_between, text_of
from evotui.record.fold import fold
from evotui.record.lock import Lock
from evotui.record.log import Writer
from evotui.record.rundir import read_json, to_json, write_atomic
from evotui.record.state import RunState, agent_view
from evotui.record.tree import read_tree, restore
from evotui.rollout.limits import EpisodeStep

AGENT_FACTS = (
    e.AgentSession, e.AgentDelta, e.AgentRetried, e.AgentRaw, e.AgentThought, e.AgentMessage, e.ToolCalled,
    e.ToolReturned, e.FileEdited, e.WriteReverted, e.UsageReported,
)  # fmt: skip
"""What an agent may tell of itself; every other fact is the session's to state."""

_WISHED = {"stop": "stopped", "finalize": "finalized by hand", "hand over": "handed over"}
_WITH_BUDGET_LEFT = ("agent_ended", "agent_failed", "failed", "limit")

Watcher = Callable[[RunState, e.Record], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent's turn at a run; see :meth:`Session.run`."""

    kind: str
    name: str
    evolve: Callable[[], Awaitable[str]]
    grace: float = 20.0
    options: Mapping[str, Any] = field(default_factory=dict)
    """To be told in the record, so that a resumed run goes on with the same agent; the first one's are known."""


class Session:
    """Owns a run's folder for writing. Made by :func:`evotui.kernel.opening.open_run`; ``close`` it in the end."""

    def __init__(self, arena: Arena, lock: Lock, state: RunState | None = None) -> None:
        self.arena = arena
        self.run_dir = arena.run
        self.state = state if state is not None else RunState()
        self.watchers: list[Watcher] = []
        self.steps: dict[tuple[int, int], EpisodeStep] = {}
        """Episodes under way: (submission, position) → the newest step. Never a fact."""
        self._lock = lock
        self._logs = ProtocolLogs(arena.run)
        self._folded: dict[int, RunState] = {}
        self._log = Writer(arena.run.events, self._take, self.state.seq + 1, arena.clock, self._admit)
        self.gate = Gate(self._gate_moved, self._gate_held)
        self._turn = asyncio.Lock()
        self._active: asyncio.Task[dict[str, Any]] | None = None
        self._human_turns = 0
        self._wish: asyncio.Future[str] | None = None
        self._early = ""
        self._spent = asyncio.Event()
        self._broken = asyncio.Event()
        self._spoken = asyncio.Event()
        self._verdict: asyncio.Future[e.ApprovalGiven] | None = None
        self._heir: Turn | None = None
        self.model_config: Mapping[str, Any] = {}
        """The agent's options, for ``run.json``."""
        self.patient = False
        """Whether a run whose agent ended with budget left waits for a person to say what next."""

    # ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _admit(self, records: Sequence[e.Record]) -> None:
        """Fold facts that are about to be written. Raises FoldError where one cannot follow; then none is written."""
        state = self.state
        self._folded.clear()
        for record in records:
            state = fold(state, record)
            self._folded[record.seq] = state

    def _take(self, record: e.Record) -> None:
        self.state = self._folded.pop(record.seq)
        self._logs.take(record, self.state)
        for watcher in self.watchers:
            watcher(self.state, record)

    async def append(self, *facts: e.Event, sync: bool = False) -> None:
        await self._log.append(*facts, sync=sync)
        await self._logs.flush()

    async def tell(self, fact: e.Event) -> None:
        """Take a fact from the agent. Raises TypeError for a kind that is not the agent's to tell."""
        if not isinstance(fact, AGENT_FACTS):
            raise TypeError(f"an agent cannot tell {type(fact).__name__}")
        await self.append(fact)

    # ── the door ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def task(self) -> str:
        return task_document(self.arena.task, self.arena.limits, self.arena.lifetime)

    async def info(self) -> dict[str, Any]:
        return self.info_at(self.state)

    def info_at(self, state: RunState) -> dict[str, Any]:
        """The ``/info`` document as it was when the run was in ``state``."""
        return info_document(agent_view(state), self.arena.limits)

    async def submit(self, cases: str | Sequence[int], by: str = "agent") -> dict[str, Any]:
        """Spend episodes on the current ``system/``; returns ``{"submit_id", "status", "summary"}``.

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
                    await self._finish_active()
                    await self._checked(cases, by)
                await self._approved(cases)
                return await self._accept(cases, by)
        async with self._turn:
            self._human_turns += 1
            await self.append(e.Intervened("submit", f"cases {cases}"))
            return await self._accept(cases, by)

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

    def _check_open(self) -> None:
        if self.state.finalizing is not None or self.state.ended is not None:
            raise DoorClosed("the run is finalized: no more submissions")
        if self._broken.is_set():
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
        await self._finish_active()
        cases = await self._checked(request, by)
        index = len(self.state.submissions)
        # From the charge on it is the session's own task: a caller that goes away cannot leave it half done.
        self._active = asyncio.create_task(self._roll(index, cases, by), name=f"submission {index}")
        self._active.add_done_callback(self._rolled)
        return await asyncio.shield(self._active)

    def _rolled(self, task: asyncio.Task[dict[str, Any]]) -> None:
        """A submission that the host could not carry through ends the run here: its agent cannot help it."""
        if not task.cancelled() and task.exception() is not None:
            self._broken.set()

    async def _roll(self, index: int, cases: tuple[int, ...], by: str) -> dict[str, Any]:
        await self.append(e.SubmissionAccepted(index, cases, self.state.budget.used, by), sync=True)
        return await self._roll_on(index)

    async def _roll_on(self, index: int) -> dict[str, Any]:
        """Take an accepted submission from where its facts end to its commit. Nothing is charged."""
        was = self.state.submission(index)
        kept = {ep.position: result_of(ep) for ep in was.episodes}
        ground = TrainGround(self.arena, lambda: self.state, index, self._watch)

        async def gate(phase: Phase) -> None:
            await self.gate.phase(f"{phase} of submission {index}")

        facts = submission(
            index, was.cases, was.first_episode, ground, DENIED_IMPORTS, gate, kept, snapshot_taken=bool(was.tree_hash)
        )
        async with aclosing(facts):
            async for fact in facts:
                await self.append(fact)
                if isinstance(fact, e.EpisodeFinished):
                    self.steps.pop((index, fact.position), None)
        if self.state.budget.spent:
            self._spent.set()
        return await asyncio.to_thread(self.answer, index)

    def answer(self, index: int) -> dict[str, Any]:
        """What a submission's request is answered with, from its committed summary. Blocking."""
        summary = read_json(self.run_dir.feedback_of(index) / "summary.json")
        return {"submit_id": self.run_dir.submit_name(index), "status": summary["status"], "summary": summary}

    def _watch(self, index: int, step: EpisodeStep | None) -> None:
        if step is None:
            self.steps.clear()
        else:
            self.steps[index, step.position] = step

    async def _put_back(self, asked: Mapping[str, bytes]) -> None:
        """Restore what the agent had written when it asked: a person submitted a version of their own meanwhile."""
        system = self.run_dir.system

        def work() -> list[e.FileEdited]:
            before = {path: text_of(data) for path, data in read_tree(system).items()}
            restore(asked, system)
            return edits_between(self.run_dir.blobs, before, asked, "agent")

        await self.append(*await asyncio.to_thread(work))

    # ── controls ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _gate_moved(self, mode: Mode, by: str) -> None:
        await self.append(e.GateMoved(str(mode), by))

    async def _gate_held(self, where: str) -> None:
        await self.append(e.GateHeld(where))

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
        word, not a last edit);
        ``options`` are those of an heir (:class:`Turn`). Raises OSError where the log cannot be written any more.
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
            return await self._finalize(reason)
        except asyncio.CancelledError:
            await self._abandon()
            raise
        finally:
            self._wish.cancel()

    async def _next(self, reason: str) -> tuple[str, Turn | None]:
        """Who goes on after an agent's turn that ended for ``reason``, and the reason if nobody does."""
        if reason in _WITH_BUDGET_LEFT and self.patient:
            left = self.state.budget.remaining
            await self.append(e.GateHeld(f"what next, with {left} episode{'' if left == 1 else 's'} left"))
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
        active = self.state.active
        if active is not None and self._active is None:
            self._active = asyncio.create_task(self._roll_on(active.index), name=f"submission {active.index}")
            assert self._wish is not None
            # Whoever asks to stop need not wait until it has been rolled out: the agent's part hears the wish next.
            waited: set[asyncio.Future[Any]] = {self._active, self._wish}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if self._active.done():
                await self._active

    async def _evolve(self, turn: Turn) -> str:
        assert self._wish is not None
        await self.append(e.AgentStarted(turn.kind, turn.name, turn.options))
        agent = asyncio.ensure_future(turn.evolve())
        spent = asyncio.ensure_future(self._spent.wait())
        broken = asyncio.ensure_future(self._broken.wait())
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
                await self._drop(agent)
        if wished in ("finalize", "hand over") and self._active is not None and not self._active.done():
            # What was paid for is worth having: the submission under way ends before the agent's record is closed.
            await self.gate.set(Mode.RUN, wished)
            await asyncio.wait({self._active})
        elif wished:
            await self._abandon()
        if wished:
            ended = "handed_over" if wished == "hand over" else "stopped"
            await self.append(e.AgentEnded(ended, f"asked to {wished}"))
            return _WISHED[wished]
        if self._broken.is_set() and self._active is not None:
            if not agent.cancelled():
                agent.exception()  # what the host's failure made of it: seen, and not told twice
            await self.append(e.AgentEnded("stopped", "the host could not go on"))
            await self._active
        try:
            text = agent.result()
        except (DoorClosed, asyncio.CancelledError):
            text = ""
        except LimitReached as limit:
            await self._finish_active()
            await self.append(e.AgentEnded("limit", str(limit)))
            return "spent" if self.state.budget.spent else "limit"
        except AgentFailed as failure:
            await self._finish_active()
            await self.append(e.AgentEnded("failed", str(failure)))
            return "spent" if self.state.budget.spent else "failed"
        except Exception as error:  # an agent's failure ends the agent, never the run: it is told in the transcript
            await self._finish_active()
            await self.append(e.IncidentNoted(f"the agent failed: {type(error).__name__}: {error}"))
            await self.append(e.AgentEnded("failed", str(error)))
            return "agent_failed"
        await self._finish_active()  # an agent that left early: what it paid for is still its own
        await self.append(e.AgentEnded("done", text))
        return "spent" if self.state.budget.spent else "agent_ended"

    async def _finish_active(self) -> None:
        if self._active is not None and not self._active.done():
            await asyncio.wait({self._active})

    async def _drop(self, task: asyncio.Future[Any]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task

    async def _abandon(self) -> None:
        """Stop rolling out; the submission stays unfinished in the record, its episodes charged."""
        if self._active is not None and not self._active.done():
            await self._drop(self._active)
        self.steps.clear()

    async def _finalize(self, reason: str) -> str:
        state, head = self.state, self.state.header
        facts = finalization(
            state, head.n_validation, head.n_heldout, HiddenGround(self.arena, lambda: self.state), reason
        )
        error: str | None = None
        try:
            if not await self._until_stopped(facts):
                return "stopped"
        except HiddenFailure as failure:
            error = str(failure)
            await self.append(e.IncidentNoted(error))
        if error is None and self.state.selected is not None:
            # workspace/system becomes the checkpoint, byte for byte; done again after a kill, it completes
            best = await asyncio.to_thread(read_tree, self.run_dir.checkpoint(self.state.selected))
            await asyncio.to_thread(restore, best, self.run_dir.system)
            await self.append(e.WorkspaceMirrored(self.state.selected))
        status = "error" if error else "completed" if self.state.selected is not None else "no_ok_submit"
        await self.end(status, error)
        return status

    async def _until_stopped(self, facts: AsyncIterator[e.Event]) -> bool:
        """Append the facts as they come; False when somebody asked to stop meanwhile, or had asked before."""
        assert self._wish is not None
        if self._wish.done() and self._wish.result() == "stop":
            return False

        async def drain() -> None:
            async with aclosing(facts):  # type: ignore[type-var]
                async for fact in facts:
                    # The opening of the pools must not be younger, after a power cut, than what it allows.
                    await self.append(fact, sync=isinstance(fact, e.FinalizationStarted))

        work = asyncio.create_task(drain())
        try:
            waited: set[asyncio.Future[Any]] = {work} if self._wish.done() else {work, self._wish}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and self._wish.done() and self._wish.result() == "stop":
                return False
            await work
        finally:
            if not work.done():
                await self._drop(work)
        return True

    async def end(self, status: str, error: str | None = None) -> None:
        """Reveal the pools, write ``run.json``, state the end."""
        run, head = self.run_dir, self.state.header
        if self.state.finalizing is not None and not self.state.pools_revealed:
            await asyncio.to_thread(self._reveal)
            await self.append(e.PoolsRevealed(head.pools))

        def work() -> None:
            rules = "sha256:" + hashlib.sha256(run.agents_md.read_bytes()).hexdigest()
            dimensions = {"agent_seed": head.agent_seed, "model_config": dict(self.model_config)}
            write_atomic(
                run.run_json,
                to_json(documents.run_record(self.state, status, error, self.arena.clock(), rules, dimensions)),
            )

        await asyncio.to_thread(work)
        await self.append(e.RunEnded(status, error), sync=True)

    def _reveal(self) -> None:
        self.run_dir.pools.mkdir(exist_ok=True)
        for split in Split:
            write_atomic(self.run_dir.pools / split.file_name, (self.run_dir.host_pools / split.file_name).read_bytes())

    async def close(self) -> None:
        """Stop whatever runs, close the log, kill the workers, give the folder free."""
        await self._abandon()
        await self._log.close()
        await self.arena.engine.close()
        self._lock.release()
