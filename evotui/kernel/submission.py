"""The life of one accepted submission, from snapshot to commit, as an async generator of facts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from evotui.protocol.imports import denied_in
from evotui.protocol.results import EpisodeResult, sound, stats
from evotui.protocol.syntax import Unparsable, parse
from evotui.protocol.verdict import LoadFault, Phase, Verdict, verdict_of_faults
from evotui.record import events as e
from evotui.record.tree import SnapshotError
from evotui.rollout.limits import EpisodeStarted as EpisodeBegan
from evotui.rollout.limits import EpisodeStep


class Rollout(Protocol):
    """One policy system on some cases, stage by stage."""

    async def compile(self) -> LoadFault | None: ...
    async def initialize(self) -> LoadFault | None: ...
    def episodes(self) -> AsyncIterator[EpisodeBegan | EpisodeStep | EpisodeResult]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is committed: the verdict, where it fell, and the episodes by position (complete unless loading failed)."""

    verdict: Verdict
    phase: Phase
    message: str = ""
    traceback: str = ""
    episodes: tuple[EpisodeResult, ...] = ()


class Ground(Protocol):
    """The files and rollouts that a submission needs; the session's, or a test's."""

    async def snapshot(self) -> tuple[str, Mapping[str, Any]]:
        """Copy ``system/`` to the checkpoint; returns (tree hash, metrics). Raises SnapshotError."""

    async def sources(self) -> Mapping[str, bytes]:
        """The checkpoint's files by relative path."""

    def rollout(self, kept: Collection[int]) -> AbstractAsyncContextManager[Rollout]:
        """A rollout of all positions but ``kept`` (which it may run again where the rest depends on them)."""

    def progress(self, step: EpisodeStep | None) -> None:
        """An episode took a step (not a fact). None: no episode is under way any more."""

    async def commit(self, outcome: Outcome) -> None:
        """Write ``errors.txt`` where due and then ``summary.json``."""


async def submission(
    index: int,
    cases: Sequence[int],
    first_episode: int,
    ground: Ground,
    denied_imports: Sequence[str],
    gate: Callable[[Phase], Awaitable[None]],
    kept: Mapping[int, EpisodeResult] | None = None,
    snapshot_taken: bool = False,
) -> AsyncGenerator[e.Event, None]:
    """Facts of submission ``index`` after its acceptance. ``gate`` is awaited before each phase.

    The last fact is :class:`SubmissionFinished` unless the generator is closed early, which leaves the submission
    unfinished: what was yielded stays true. Such a submission is taken up again with the episodes that were ``kept``
    by position, and with ``snapshot_taken`` where its checkpoint is on disk.
    """

    async def enter(phase: Phase) -> e.PhaseEntered:
        await gate(phase)
        return e.PhaseEntered(index, phase)

    async def finish(outcome: Outcome) -> AsyncIterator[e.Event]:
        await ground.commit(outcome)
        scored = stats([ep.return_ for ep in outcome.episodes]) if outcome.verdict is Verdict.OK else None
        mean, std = (scored.mean, scored.std) if scored is not None else (None, None)
        yield e.SubmissionFinished(index, outcome.verdict, outcome.phase, outcome.message, mean, std)

    if not snapshot_taken:
        yield await enter(Phase.SNAPSHOT)
        try:
            tree_hash, metrics = await ground.snapshot()
        except SnapshotError as error:
            async for fact in finish(Outcome(Verdict.MISSING_POLICY, Phase.SNAPSHOT, str(error))):
                yield fact
            return
        yield e.SnapshotTaken(index, tree_hash, metrics)

    yield await enter(Phase.VALIDATE)
    fault = validate(await ground.sources(), denied_imports)
    if fault is not None:
        async for fact in finish(Outcome(fault.verdict, fault.phase, fault.message, fault.traceback)):
            yield fact
        return

    results: dict[int, EpisodeResult] = dict(kept or {})
    async with ground.rollout(results.keys()) as rollout:
        for phase, load in ((Phase.COMPILE, rollout.compile), (Phase.INITIALIZE, rollout.initialize)):
            yield await enter(phase)
            fault = await load()
            if fault is not None:
                async for fact in finish(Outcome(fault.verdict, fault.phase, fault.message, fault.traceback)):
                    yield fact
                return

        yield await enter(Phase.EXECUTE)
        async for item in rollout.episodes():
            if item.position in results:
                continue
            if isinstance(item, EpisodeStep):
                ground.progress(item)
            elif isinstance(item, EpisodeBegan):
                position = item.position
                yield e.EpisodeStarted(index, position, first_episode + position, cases[position])
            else:
                results[item.position] = result = sound(item)
                yield episode_fact(index, result, first_episode, cases)
        ground.progress(None)

    episodes = tuple(results[p] for p in sorted(results))
    verdict = verdict_of_faults([ep.fault for ep in episodes])
    yield await enter(Phase.COMMIT)
    if verdict is Verdict.OK:
        outcome = Outcome(verdict, Phase.COMMIT, "", "", episodes)
    else:
        worst = next(ep.fault for ep in episodes if ep.fault is not None and verdict_of_faults([ep.fault]) is verdict)
        outcome = Outcome(verdict, Phase.EXECUTE, worst.message, worst.traceback, episodes)
    async for fact in finish(outcome):
        yield fact


def episode_fact(index: int, result: EpisodeResult, first_episode: int, cases: Sequence[int]) -> e.EpisodeFinished:
    """The fact of one finished train episode."""
    return e.EpisodeFinished(
        submission=index,
        position=result.position,
        episode=first_episode + result.position,
        case=cases[result.position],
        return_=result.return_,
        length=result.length,
        terminated=result.terminated,
        truncated=result.truncated,
        success=result.success,
        components=dict(result.components),
        invalid_actions=result.invalid_actions,
        fault=result.fault,
        wall_seconds=round(result.wall_seconds, 6),
        cpu_seconds=round(result.cpu_seconds, 6),
    )


def result_of(fact: e.EpisodeFinished) -> EpisodeResult:
    """The result that a recorded fact tells of; the inverse of :func:`episode_fact`."""
    return EpisodeResult(
        position=fact.position,
        return_=fact.return_,
        length=fact.length,
        terminated=fact.terminated,
        truncated=fact.truncated,
        success=fact.success,
        components=fact.components,
        invalid_actions=fact.invalid_actions,
        fault=fact.fault,
        wall_seconds=fact.wall_seconds,
        cpu_seconds=fact.cpu_seconds,
    )


def validate(files: Mapping[str, bytes], denied_imports: Sequence[str]) -> LoadFault | None:
    """Phase ``validate``: ``policy.py`` exists, parses, and no Python file imports what is denied.

    A syntax error in ``policy.py`` is reported here with its line; the protocol's verdict for it is ``import_error``
    (the file is there, importing it must fail), so that ``missing_policy`` means what it says.
    """
    source = files.get("policy.py")
    if source is None:
        return LoadFault(Phase.VALIDATE, Verdict.MISSING_POLICY, "system/policy.py does not exist")
    try:
        parse(source)
    except Unparsable as error:
        where = f"policy.py, line {error.line}" if error.line else "policy.py"
        return LoadFault(Phase.VALIDATE, Verdict.IMPORT_ERROR, f"{where}: {error.message}")
    for path, line_number, module in denied_in(files, denied_imports):
        return LoadFault(
            Phase.VALIDATE,
            Verdict.DENIED_IMPORT,
            f"{path}, line {line_number}: import of {module} is denied; use the standard library and numpy",
        )
    return None
