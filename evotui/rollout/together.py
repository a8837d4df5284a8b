"""When and how a worker runs a job's episodes in lockstep: samples run alone first, comparison, what is told."""

from __future__ import annotations

from pathlib import Path

from evotui.protocol.results import EpisodeResult
from evotui.rollout import messages
from evotui.rollout.channel import Channel
from evotui.rollout.episode import CalledOff
from evotui.rollout.host import GuestStartError, PolicyFault
from evotui.rollout.job import OpenedJob
from evotui.rollout.lockstep import (
    MAX_STEP_SECONDS,
    RECHECK,
    Irregular,
    Script,
    Slot,
    play_together,
)
from evotui.rollout.recorder import Sample
from evotui.rollout.sharing import shares_nothing_obvious


def run_many(job: OpenedJob, command: messages.RunMany, channel: Channel) -> None:
    """Run episodes in lockstep and tell their results; Declined for those that must be run alone instead.

    Raises CalledOff and CoordinatorGone.
    """
    left = list(command.runs)
    try:
        if job.locksteps.refused:
            raise Irregular(job.locksteps.refused)
        script = _take_sample(job, left, channel)
        if left:
            _run(job, left, script, channel)
    except Irregular as error:
        job.locksteps.refused = str(error)
        channel.tell(messages.Declined(job.opened.job, tuple(run.position for run in left), str(error)))


def _take_sample(job: OpenedJob, left: list[messages.Run], channel: Channel) -> Script | None:
    """Where a check is due: run the first episode alone, tell it, and take it off ``left``. Raises Irregular."""
    job.locksteps.n += 1
    if job.locksteps.n % RECHECK != 1:
        return None
    careful = job.opened.mode == "auto"
    if careful and not shares_nothing_obvious(Path(job.opened.snapshot)):
        raise Irregular("its source names what policies in one process would share")
    run = left[0]
    channel.tell(messages.Started(run.job, run.position))
    sample = Sample(job.tools.layout.pack)
    result = job.run(run, channel, sample)
    del left[0]
    channel.tell(messages.Finished(run.job, result))
    if result.fault is not None or job.printed:
        raise Irregular("the policy raises or prints")
    if careful and result.wall_seconds > MAX_STEP_SECONDS * result.length:
        raise Irregular("steps are slow beside the crossing")
    if sample.too_large:
        raise Irregular("what it sees is too much to play a sample again")
    return Script(run, result, sample.shown, sample.returned)


def _run(job: OpenedJob, left: list[messages.Run], script: Script | None, channel: Channel) -> None:
    """One lockstep of ``left``, from which each is taken off when it is told; beside them, ``script``'s case again.

    With a script nothing is told before it was followed to its end. Raises Irregular, CalledOff, CoordinatorGone.
    """
    slots = [Slot(i, run.position, run.index, int(run.seed, 16), job.recorder(run.name)) for i, run in enumerate(left)]
    for run in left:
        channel.tell(messages.Started(run.job, run.position))
    again: Slot | None = None
    if script is not None:
        run = script.run
        again = Slot(len(left), run.position, run.index, int(run.seed, 16), job.recorder(None), script)

    def look_up(slot: Slot) -> None:
        if channel.called_off(job.opened.job):
            raise CalledOff
        if slot is not again:
            channel.tell(messages.Progress(job.opened.job, slot.position, slot.length, slot.return_))

    def tell(slot: Slot, result: EpisodeResult) -> None:
        slot.recorder.finish(b"", b"", None)
        left[:] = [run for run in left if run.position != result.position]
        channel.tell(messages.Finished(job.opened.job, result, lockstep=len(slots)))

    held: list[tuple[Slot, EpisodeResult]] = []
    try:
        process = job.guest().fork()
        try:
            process.load()
            process.construct(len(slots) + (again is not None))
            for slot, result in play_together(job.tools, process, [*slots, *([again] if again else [])], look_up):
                if script is None:
                    tell(slot, result)
                elif slot is not again:
                    held.append((slot, result))
        finally:
            process.kill()
            process.guest.output.take()
        for slot, result in held:
            tell(slot, result)
    except (PolicyFault, GuestStartError) as error:
        raise Irregular(str(error)) from error
    finally:
        for slot in slots:
            slot.recorder.discard()
