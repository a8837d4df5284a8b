"""A worker process: owns environments, seeds, scores and files; runs episodes one after another on its own core.

Started as ``python -m evotui.rollout.worker FD PARENT CORE BACKGROUND WALLS``. It never imports policy code: that
runs in guests (evotui.rollout.guest). It ends when its coordinator does, and its guests end with it.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from evotui.protocol.results import EpisodeResult
from evotui.protocol.verdict import Fault, FaultKind, LoadFault, Phase, Verdict
from evotui.rollout import messages
from evotui.rollout.episode import ActionDecoder, CalledOff, Tools, not_tried, play
from evotui.rollout.host import Guest, GuestStartError, PolicyFault, PolicyProcess
from evotui.rollout.layout import Layout
from evotui.rollout.limits import Isolation, Limits
from evotui.rollout.recorder import Recorder

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_ENDED_BY_ITSELF = (FaultKind.ACT_ERROR, FaultKind.RESET_ERROR, FaultKind.ENVIRONMENT)


class CoordinatorGone(Exception):
    """The other end of the control socket is closed."""


class Channel:
    """The worker's end of the control socket, blocking; keeps commands that arrive while an episode runs."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._inbox: collections.deque[messages.Command] = collections.deque()

    def tell(self, message: messages.Told) -> None:
        try:
            self._sock.sendall(messages.frame(message))
        except OSError as error:
            raise CoordinatorGone from error

    def next(self) -> messages.Command:
        return self._inbox.popleft() if self._inbox else self._read()

    def called_off(self, job: int) -> bool:
        """Whether a CloseJob for ``job`` has come in; reads what is there without waiting."""
        while select.select([self._sock], [], [], 0)[0]:
            self._inbox.append(self._read())
        return any(isinstance(command, messages.CloseJob) and command.job == job for command in self._inbox)

    def _read(self) -> messages.Command:
        (length,) = messages.LENGTH.unpack(self._exactly(messages.LENGTH.size))
        return messages.command_decoder.decode(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        raw = bytearray()
        while len(raw) < size:
            piece = self._sock.recv(min(size - len(raw), 1 << 20))
            if not piece:
                raise CoordinatorGone
            raw += piece
        return bytes(raw)


class OpenedJob:
    """One job in this worker: its guest, and the process that will serve the next episode, if one is ready."""

    def __init__(self, opened: messages.OpenJob, scratch: Path, walls: frozenset[str]) -> None:
        self.opened = opened
        self._walls = walls
        self._home = scratch / f"worker{os.getpid()}-job{opened.job}"  # workers share the scratch folder
        self._guest: Guest | None = None
        self._ready: PolicyProcess | None = None
        self._copied: list[Any] = []
        self.tools = Tools(
            task=opened.task,
            layout=Layout(opened.obs_schema),
            decode=ActionDecoder(opened.action_schema),
            cpu_limit=opened.limits.episode_cpu_seconds,
        )

    # -- the policy process

    def guest(self) -> Guest:
        """The guest, started if there is none alive, on an unharmed copy of the snapshot. Raises GuestStartError."""
        opened = self.opened
        system = self._home / "system"
        harmed = self._refresh_copy(system)
        if self._guest is not None and (harmed or not self._guest.alive):
            self._guest.close()
            self._guest = None
        if self._guest is None:
            meta = dict(opened.env_meta)
            self._guest = Guest(
                system, opened.obs_schema, opened.action_schema, meta, opened.limits, opened.denied, self._walls
            )
        return self._guest

    def compile(self) -> LoadFault | None:
        """Import policy.py in a new process, which is kept for what comes next."""
        self.drop()
        process = self.guest().fork()
        try:
            process.load()
        except PolicyFault as error:
            process.kill()
            return LoadFault(Phase.COMPILE, Verdict.IMPORT_ERROR, error.message, error.trace)
        self._ready = process
        return None

    def construct(self) -> LoadFault | None:
        if self._ready is None and (failed := self.compile()):
            return failed
        assert self._ready is not None
        try:
            self._ready.construct()
        except PolicyFault as error:
            self.drop()
            return LoadFault(Phase.INITIALIZE, Verdict.INIT_ERROR, error.message, error.trace)
        return None

    def process(self) -> PolicyProcess:
        """A process whose Policy object is made. Raises PolicyFault where loading fails now, and GuestStartError."""
        if self._ready is None:
            failed = self.compile() or self.construct()
            if failed is not None:
                raise PolicyFault(FaultKind.RESET_ERROR, f"loading failed: {failed.message}", failed.traceback)
        assert self._ready is not None
        return self._ready

    def drop(self) -> None:
        if self._ready is not None:
            self._ready.kill()
            self._ready = None

    def _refresh_copy(self, system: Path) -> bool:
        """Keep a private copy of the snapshot; True where it was made (anew): a policy may harm only its own."""
        if self._copied and _state_of(system) == self._copied:
            return False
        shutil.rmtree(system, ignore_errors=True)
        shutil.copytree(self.opened.snapshot, system)
        for folder, _, names in os.walk(self._home):  # whoever the guest becomes must be able to read it
            os.chmod(folder, 0o755)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o644)
        self._copied = _state_of(system)
        return True

    # -- episodes

    def run(self, command: messages.Run, channel: Channel) -> EpisodeResult:
        """One episode, its files complete. Raises CalledOff, CoordinatorGone."""
        opened = self.opened
        recorder = self._recorder(command.name)

        def look_up(step: int, return_: float) -> None:
            if channel.called_off(opened.job):
                raise CalledOff
            channel.tell(messages.Progress(opened.job, command.position, step, return_))

        output = (b"", b"")
        try:
            process = self.process()
        except PolicyFault as error:
            result = not_tried(Fault(error.kind, -1, error.message, error.trace), command.position)
        except GuestStartError as error:
            result = not_tried(Fault(FaultKind.ENVIRONMENT, -1, str(error)), command.position)
        else:
            try:
                result = play(self.tools, process, recorder, command.position, int(command.seed, 16), look_up)
            except BaseException:
                recorder.discard()
                self.drop()
                raise
            self._settle(process, result.fault)
            output = process.guest.output.take()
        recorder.finish(*output, result.fault)
        return result

    def skip(self, command: messages.Skip) -> EpisodeResult:
        self._recorder(command.name).finish(b"", b"", command.fault)
        return not_tried(command.fault, command.position)

    def close(self) -> None:
        self.drop()
        if self._guest is not None:
            self._guest.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _settle(self, process: PolicyProcess, fault: Fault | None) -> None:
        """After an episode: keep the process where the Policy lives on, end it otherwise."""
        usable = fault is None or fault.kind in _ENDED_BY_ITSELF
        if usable:
            try:
                process.flush()
            except PolicyFault:
                usable = False
        if self.opened.lifetime == "episode" or not usable:
            self.drop()

    def _recorder(self, name: str) -> Recorder:
        record, actions = self.opened.record, self.opened.actions
        return Recorder(
            self.opened.obs_schema,
            Path(record) / name if record is not None else None,
            Path(actions) / name if actions is not None else None,
        )


def _state_of(folder: Path) -> list[Any]:
    """What a folder looks like: names, sizes, times, inodes. Any write in it shows."""
    state = []
    for root, _, files in os.walk(folder):
        for name in files:
            entry = os.lstat(os.path.join(root, name))
            state.append((root, name, entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns, entry.st_ino))
    return sorted(state)


def try_walls(scratch: Path, allowed: frozenset[str]) -> tuple[frozenset[str], Isolation]:
    """Raise the walls around a guest without a policy and see which hold; the walls to use, and what they make."""
    empty = scratch / f"worker{os.getpid()}-trial"
    empty.mkdir(mode=0o755)
    space = {"type": "Discrete", "n": 2}
    reason = ""
    try:
        for walls in dict.fromkeys((allowed, allowed - {"namespaces"}, frozenset[str]())):
            try:
                guest = Guest(empty, space, space, {}, Limits(), (), walls)
                guest.fork().kill()
            except GuestStartError as error:
                reason = str(error)
                continue
            guest.close()
            missing = {**dict.fromkeys(sorted(allowed - walls), reason), **guest.missing}
            told = tuple(f"{layer}: {why}" for layer, why in missing.items())
            return walls, Isolation(guest.level, guest.layers, missing=told)
    finally:
        shutil.rmtree(empty, ignore_errors=True)
    raise GuestStartError(reason)


def work(channel: Channel, scratch: Path, walls: frozenset[str]) -> None:
    """Carry out commands until the coordinator hangs up."""
    jobs: dict[int, OpenedJob] = {}
    try:
        while True:
            command = channel.next()
            if isinstance(command, messages.OpenJob):
                jobs[command.job] = OpenedJob(command, scratch, walls)
            elif isinstance(command, messages.CloseJob):
                if command.job in jobs:
                    jobs.pop(command.job).close()
            elif command.job in jobs:
                carry_out(command, jobs[command.job], channel)
    except CoordinatorGone:
        for job in jobs.values():
            job.close()


def carry_out(command: messages.Command, job: OpenedJob, channel: Channel) -> None:
    number = command.job
    if isinstance(command, messages.Run):
        channel.tell(messages.Started(number, command.position))
        with contextlib.suppress(CalledOff):
            channel.tell(messages.Finished(number, job.run(command, channel)))
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
    import gymnasium  # noqa: F401  before the first job: that is what being ready means

    channel = Channel(socket.socket(fileno=fd))
    walls, isolation = try_walls(Path.cwd(), allowed)
    with contextlib.suppress(CoordinatorGone):
        channel.tell(messages.Ready(isolation))
        work(channel, Path.cwd(), walls)


if __name__ == "__main__":
    main()
