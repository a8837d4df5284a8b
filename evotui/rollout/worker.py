"""A worker process: owns environments, seeds, scores and files; runs episodes one after another on its own core.

Started as ``python -m evotui.rollout.worker FD PARENT CORE BACKGROUND WALLS``. It never imports policy code: that
runs in guests (evotui.rollout.guest). It ends when its coordinator does, and its guests end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

from evotui.protocol.verdict import LoadFault, Phase, Verdict
from evotui.rollout import messages
from evotui.rollout.channel import Channel, CoordinatorGone
from evotui.rollout.episode import CalledOff
from evotui.rollout.host import Guest, GuestStartError
from evotui.rollout.job import OpenedJob
from evotui.rollout.limits import Isolation, Limits
from evotui.rollout.recorder import RecordingFailed
from evotui.rollout.together import run_many
from evotui.rollout.warm import WarmInterpreter

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def try_walls(
    scratch: Path, allowed: frozenset[str], warm: WarmInterpreter
) -> tuple[frozenset[str], Isolation, WarmInterpreter | None]:
    """Raise the walls around a guest without a policy and see which hold; the walls to use, and what they make.

    Where not all hold around one that was forked, one that is executed is tried too: None if that holds better.
    """
    best: tuple[frozenset[str], Isolation, WarmInterpreter | None] | None = None
    for source in [warm, None] if warm.usable else [None]:
        try:
            tried = _try_walls(scratch, allowed, source)
        except GuestStartError:
            if source is None and best is None:
                raise
            continue
        if best is None or len(tried[1].layers) > len(best[1].layers):
            best = (*tried, source)
        if allowed <= set(tried[1].layers):
            break
    assert best is not None
    if best[2] is None:
        warm.close()
    return best


def _try_walls(
    scratch: Path, allowed: frozenset[str], warm: WarmInterpreter | None
) -> tuple[frozenset[str], Isolation]:
    empty = scratch / f"worker{os.getpid()}-trial"
    empty.mkdir(mode=0o755)
    space = {"type": "Discrete", "n": 2}
    reason = ""
    try:
        for walls in dict.fromkeys((allowed, allowed - {"namespaces"}, frozenset[str]())):
            try:
                guest = Guest(empty, space, space, {}, Limits(), (), walls, warm, trial=True)
            except GuestStartError as error:
                reason = str(error)
                continue
            guest.kill()
            missing = {**dict.fromkeys(sorted(allowed - walls), reason), **guest.missing}
            told = tuple(f"{layer}: {why}" for layer, why in missing.items())
            return walls, Isolation(guest.level, guest.layers, missing=told)
    finally:
        shutil.rmtree(empty, ignore_errors=True)
    raise GuestStartError(reason)


def work(channel: Channel, scratch: Path, walls: frozenset[str], warm: WarmInterpreter | None) -> None:
    """Carry out commands until the coordinator hangs up."""
    jobs: dict[int, OpenedJob] = {}
    try:
        while True:
            command = channel.next()
            if isinstance(command, messages.OpenJob):
                jobs[command.job] = OpenedJob(command, scratch, walls, warm)
            elif isinstance(command, messages.CloseJob):
                if command.job in jobs:
                    jobs.pop(command.job).close()
            elif command.job in jobs:
                try:
                    carry_out(command, jobs[command.job], channel)
                except RecordingFailed as error:
                    channel.tell(messages.Troubled(command.job, str(error)))
    except CoordinatorGone:
        for job in jobs.values():
            job.close()


def carry_out(command: messages.Command, job: OpenedJob, channel: Channel) -> None:
    number = command.job
    if isinstance(command, messages.Run):
        channel.tell(messages.Started(number, command.position))
        with contextlib.suppress(CalledOff):
            channel.tell(messages.Finished(number, job.run(command, channel)))
    elif isinstance(command, messages.RunMany):
        with contextlib.suppress(CalledOff):
            run_many(job, command, channel)
    elif isinstance(command, messages.Skip):
        channel.tell(messages.Finished(number, job.skip(command)))
    elif isinstance(command, (messages.Compile, messages.Construct)):
        compiling = isinstance(command, messages.Compile)
        try:
            fault = job.compile() if compiling else job.construct()
        except GuestStartError as error:
            phase, verdict = (
                (Phase.COMPILE, Verdict.IMPORT_ERROR) if compiling else (Phase.INITIALIZE, Verdict.INIT_ERROR)
            )
            fault = LoadFault(phase, verdict, str(error))
        channel.tell(messages.Loaded(number, fault))
    elif isinstance(command, messages.Warm):
        with contextlib.suppress(GuestStartError):  # told by the first episode, which tries again
            job.guest()


def settle_in(parent: int, core: int, background: bool) -> None:
    """Die with the coordinator, let nobody read this memory, stay on one core, yield to an interface if told to."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        if core >= 0:
            with contextlib.suppress(OSError):  # a container may own fewer cores by now
                os.sched_setaffinity(0, {core})
    if os.getppid() != parent:
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the interface's to interpret
    if background:  # as good for the interface's latency as SCHED_IDLE, and five times its share beside other work
        os.setpriority(os.PRIO_PROCESS, 0, 19)


def main() -> None:
    fd, parent, core, background = (int(argument) for argument in sys.argv[1:5])
    allowed = frozenset(filter(None, sys.argv[5].split(",")))
    settle_in(parent, core, bool(background))
    warm = WarmInterpreter()  # first, since it takes its time
    import gymnasium  # noqa: F401  before the first job: that is what being ready means

    channel = Channel(socket.socket(fileno=fd))
    walls, isolation, source = try_walls(Path.cwd(), allowed, warm)
    with contextlib.suppress(CoordinatorGone):
        channel.tell(messages.Ready(isolation))
        work(channel, Path.cwd(), walls, source)
    warm.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # nothing is left to tidy up, and tearing down the libraries takes longer than their work did


if __name__ == "__main__":
    main()
