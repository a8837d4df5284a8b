"""One job on the engine: its episodes are dealt to workers, what they tell is streamed, faults are counted."""

from __future__ import annotations

import asyncio
import collections
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from evotui.protocol.results import EpisodeResult
from evotui.protocol.verdict import STRIKES, Fault, FaultKind, LoadFault, Phase, Verdict
from evotui.rollout import messages
from evotui.rollout.limits import FIRST_LOCKSTEP, EpisodeStarted, EpisodeStep, Isolation, Job, lockstep_width
from evotui.rollout.workers import EngineError, Worker

if TYPE_CHECKING:
    from evotui.rollout.engine import Engine

Event = EpisodeStarted | EpisodeStep | EpisodeResult

_AHEAD = 2  # episodes a worker holds, so that it never waits for this loop, which may be busy drawing
_COUNTED = frozenset(
    k for k in FaultKind if k not in (FaultKind.ACT_ERROR, FaultKind.RESET_ERROR, FaultKind.ENVIRONMENT)
)  # faults that the host observes; three of one kind end a submission's remaining episodes


class Rollout:
    """One job on an engine: ``compile``, ``initialize``, ``episodes``, as a context manager that cleans up."""

    def __init__(self, engine: Engine, number: int, job: Job) -> None:
        self._engine, self.number, self._job = engine, number, job
        self._events: asyncio.Queue[Event | EngineError] = asyncio.Queue()
        self.workers: list[Worker] = []
        self._pending: collections.deque[int] = collections.deque()
        self._tries: collections.Counter[int] = collections.Counter()
        self._strikes: collections.Counter[FaultKind] = collections.Counter()
        self._done: set[int] = set()
        self._awaiting: asyncio.Future[LoadFault | None] | None = None
        self._given_up: Fault | None = None
        self._together = job.mode != "episode" and job.lifetime == "episode"
        self._ran_together = 0  # the widest lockstep that gave results
        self._step_seconds = math.inf  # the least that a step in lockstep took so far: the least disturbed
        self._compared: set[Worker] = set()
        self.notes: list[str] = []
        """Why episodes that might have run in lockstep did not, for the person; empty where there is nothing to say."""

    @property
    def isolation(self) -> Isolation:
        """The engine's, with the mode in which this job's episodes were run."""
        mode, width = ("batch", self._ran_together) if self._ran_together else ("episode", 1)
        return replace(self._engine.isolation, mode=mode, width=width)

    async def __aenter__(self) -> Rollout:
        await self._engine.start()
        self._engine.rollouts[self.number] = self
        width = 1 if self._job.lifetime == "submission" else min(len(self._engine.workers), len(self._job.cases))
        jobs = collections.Counter(worker for other in self._engine.rollouts.values() for worker in other.workers)
        by_load = sorted(self._engine.workers, key=lambda worker: (jobs[worker], len(worker.outstanding)))
        self.workers = by_load[: max(width, 1)]
        for worker in self.workers:
            worker.send(self.opening())
        for worker in self.workers[1:]:
            worker.send(messages.Warm(self.number))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.rollouts.pop(self.number, None)
        for worker in self.workers:
            worker.forget(self.number)

    def opening(self) -> messages.OpenJob:
        job = self._job
        return messages.OpenJob(
            self.number,
            job.task,
            str(job.snapshot.absolute()),
            job.obs_schema,
            job.action_schema,
            job.env_meta,
            job.limits,
            job.lifetime,
            tuple(job.denied_imports),
            "episode" if job.lifetime == "submission" else job.mode,
            str(job.record.absolute()) if job.record else None,
            str(job.actions.absolute()) if job.actions else None,
        )

    async def compile(self) -> LoadFault | None:
        """Import ``policy.py`` in a guest; None if that went well. Raises EngineError."""
        return await self._load(messages.Compile(self.number), Phase.COMPILE, Verdict.IMPORT_ERROR)

    async def initialize(self) -> LoadFault | None:
        """Construct ``Policy(obs_space, action_space, env_meta)`` in a guest; None if that went well."""
        return await self._load(messages.Construct(self.number), Phase.INITIALIZE, Verdict.INIT_ERROR)

    async def _load(self, command: messages.Command, phase: Phase, verdict: Verdict) -> LoadFault | None:
        for _ in range(2):
            self._awaiting = asyncio.get_running_loop().create_future()
            self.workers[0].send(command)
            try:
                return await self._awaiting
            except ConnectionError:  # the worker died and is there again: once more, then give up
                continue
            finally:
                self._awaiting = None
        return LoadFault(phase, verdict, "the worker process died twice while loading this policy")

    async def episodes(self) -> AsyncIterator[Event]:
        """Everything told about the job's episodes, until each has its result; in order of time, not of position.

        Raises EngineError where a worker died and cannot be started again.
        """
        self._pending.extend(case.position for case in self._job.cases)
        for worker in self.workers:
            self._deal(worker)
        while len(self._done) < len(self._job.cases):
            event = await self._events.get()
            if isinstance(event, EngineError):
                raise event
            if isinstance(event, EpisodeResult):
                self._done.add(event.position)
            yield event

    # -- what workers tell

    def told(self, worker: Worker, message: messages.Told) -> None:
        if isinstance(message, messages.Loaded):
            if self._awaiting is not None and not self._awaiting.done():
                self._awaiting.set_result(message.fault)
        elif isinstance(message, messages.Started):
            self._events.put_nowait(EpisodeStarted(message.position))
        elif isinstance(message, messages.Progress):
            self._events.put_nowait(EpisodeStep(message.position, message.step, message.return_))
        elif isinstance(message, messages.Declined):
            self._declined(worker, message)
        elif isinstance(message, messages.Troubled):
            self.broke(EngineError(f"an episode cannot be recorded: {message.reason}"))
        elif isinstance(message, messages.Finished):
            if message.lockstep:
                self._measure(message.lockstep, message.result)
            worker.outstanding.remove((self.number, message.result.position))
            self._count(message.result.fault)
            self._events.put_nowait(message.result)
            self._deal(worker)

    def lost(self, worker: Worker, positions: list[int]) -> None:
        """``worker`` died with these episodes, the first of which it was running, and is there again."""
        worker.send(self.opening())
        if self._awaiting is not None and not self._awaiting.done() and worker is self.workers[0]:
            self._awaiting.set_exception(ConnectionError("the worker died"))
        if positions:
            self._tries[positions[0]] += 1
        self._pending.extendleft(reversed(positions))
        self._deal(worker)

    def broke(self, error: EngineError) -> None:
        """No more can come of this job: there is no worker any more, or no place to write to."""
        self._events.put_nowait(error)
        if self._awaiting is not None and not self._awaiting.done():
            self._awaiting.set_exception(error)

    def _declined(self, worker: Worker, message: messages.Declined) -> None:
        """Lockstep is not for this policy: run what came back one by one, and all that follows."""
        for position in message.positions:
            worker.outstanding.remove((self.number, position))
        self._pending.extendleft(reversed(message.positions))
        self._together = False
        if message.reason not in self.notes:
            self.notes.append(message.reason)
        for each in self.workers:
            self._deal(each)

    def _deal_together(self, worker: Worker) -> None:
        """Give a worker that holds less than one lockstep the next, of a fair share of what is left."""
        held = sum(1 for number, _ in worker.outstanding if number == self.number)
        if held > 1 or not self._pending:
            return
        fair = -(-len(self._pending) // len(self.workers))
        width = lockstep_width(self._step_seconds) if worker in self._compared else FIRST_LOCKSTEP
        self._compared.add(worker)
        positions = [self._pending.popleft() for _ in range(min(width, fair))]
        worker.send(messages.RunMany(self.number, tuple(self._run(position) for position in positions)))
        worker.outstanding += [(self.number, position) for position in positions]

    def _measure(self, width: int, result: EpisodeResult) -> None:
        self._ran_together = max(self._ran_together, width)
        if result.length:
            self._step_seconds = min(self._step_seconds, result.wall_seconds / result.length)

    def _run(self, position: int) -> messages.Run:
        name = self._job.names[position] if self._job.names else ""
        case = self._job.cases[position]
        return messages.Run(self.number, position, name, f"{case.seed:x}", case.index)

    def _deal(self, worker: Worker) -> None:
        """Give a worker episodes up to what it may hold; after a first strike only one at a time."""
        if self._together and not self._strikes and not self._tries:
            self._deal_together(worker)
            return
        ahead = 1 if self._strikes or self._tries else _AHEAD
        while self._pending and sum(1 for number, _ in worker.outstanding if number == self.number) < ahead:
            position = self._pending.popleft()
            run = self._run(position)
            fault = self._given_up
            if self._tries[position] > 1:
                fault = Fault(FaultKind.ENVIRONMENT, -1, "the worker process died twice while running this episode")
            worker.send(messages.Skip(self.number, position, run.name, fault) if fault is not None else run)
            worker.outstanding.append((self.number, position))

    def _count(self, fault: Fault | None) -> None:
        if fault is None or fault.kind not in _COUNTED or self._given_up is not None:
            return
        self._strikes[fault.kind] += 1
        if self._strikes[fault.kind] >= STRIKES:
            message = f"not tried: {STRIKES} episodes of this submission had ended with {fault.kind}"
            self._given_up = Fault(fault.kind, -1, message)
