"""One job as a worker holds it: its copy of the snapshot, its guest, its policy process; episodes run alone."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.protocol.results import EpisodeResult
from evotui.protocol.verdict import Fault, FaultKind, LoadFault, Phase, Verdict
from evotui.rollout import messages
from evotui.rollout.channel import Channel
from evotui.rollout.episode import ActionDecoder, CalledOff, Tools, not_tried, play
from evotui.rollout.guest.layout import Layout
from evotui.rollout.host import Guest, GuestStartError, PolicyFault, PolicyProcess
from evotui.rollout.recorder import Recorder, Sample, writing
from evotui.rollout.warm import WarmInterpreter

_ENDED_BY_ITSELF = (FaultKind.ACT_ERROR, FaultKind.RESET_ERROR, FaultKind.ENVIRONMENT)


@dataclass
class Locksteps:
    """What is known about running a job's episodes in lockstep: how many were, and why no more are."""

    n: int = 0
    refused: str = ""


class OpenedJob:
    """One job in this worker: its guest, and the process that will serve the next episode, if one is ready."""

    def __init__(
        self, opened: messages.OpenJob, scratch: Path, walls: frozenset[str], warm: WarmInterpreter | None = None
    ) -> None:
        self.opened = opened
        self._walls, self._warm = walls, warm
        self._home = scratch / f"worker{os.getpid()}-job{opened.job}"  # workers share the scratch folder
        self._guest: Guest | None = None
        self._ready: PolicyProcess | None = None
        self._copied: list[Any] = []
        self.printed = False
        """Whether the last episode that was run alone printed anything."""
        self.locksteps = Locksteps()
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
            schemas = opened.obs_schema, opened.action_schema
            self._guest = Guest(system, *schemas, meta, opened.limits, opened.denied, self._walls, self._warm)
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
        with writing(system):
            shutil.copytree(self.opened.snapshot, system)
        for folder, _, names in os.walk(self._home):  # whoever the guest becomes must be able to read it
            os.chmod(folder, 0o755)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o644)
        self._copied = _state_of(system)
        return True

    # -- episodes

    def run(self, command: messages.Run, channel: Channel, sample: Sample | None = None) -> EpisodeResult:
        """One episode, its files complete. Raises CalledOff, CoordinatorGone.

        ``sample``, where given, collects what the policy saw and returned.
        """
        opened = self.opened
        recorder = self.recorder(command.name)
        recorder.sample = sample

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
                result = play(
                    self.tools, process, recorder, command.position, command.index, int(command.seed, 16), look_up
                )
            except BaseException:
                recorder.discard()
                self.drop()
                raise
            self._settle(process, result.fault)
            output = process.guest.output.take()
        self.printed = any(output)
        recorder.finish(*output, result.fault)
        return result

    def skip(self, command: messages.Skip) -> EpisodeResult:
        self.recorder(command.name).finish(b"", b"", command.fault)
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

    def recorder(self, name: str | None) -> Recorder:
        """Where the episode called ``name`` is written; None: nowhere."""
        record, actions = (self.opened.record, self.opened.actions) if name is not None else (None, None)
        return Recorder(
            self.opened.obs_schema,
            Path(record) / str(name) if record is not None else None,
            Path(actions) / str(name) if actions is not None else None,
        )


def _state_of(folder: Path) -> list[Any]:
    """What a folder looks like: names, sizes, times, inodes. Any write in it shows."""
    state = []
    for root, _, files in os.walk(folder):
        for name in files:
            entry = os.lstat(os.path.join(root, name))
            state.append((root, name, entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns, entry.st_ino))
    return sorted(state)
