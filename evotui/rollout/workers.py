"""Worker processes as the coordinator sees them: started, spoken to, heard, replaced when they die, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import evotui
from evotui.rollout import messages
from evotui.rollout.limits import Isolation

_START_SECONDS = 300.0  # half a second, but minutes on a core that others take nearly whole
_STOP_SECONDS = 1.0  # for workers to end their guests in good order, before they are killed


class EngineError(Exception):
    """Workers cannot be started: the message says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How workers are started: scratch folder, the file for their output, whether they give way, layers to try."""

    scratch: Path
    log: Path
    background: bool
    walls: frozenset[str]


class Hub(Protocol):
    """Who starts workers and hears of them: the engine."""

    setting: Setting

    def told(self, worker: Worker, message: messages.Told) -> None:
        """A worker said something."""

    def replaced(self, worker: Worker, lost: list[tuple[int, int]]) -> None:
        """A worker died with these (job, position) unanswered, and is there again."""

    def broke(self, error: EngineError) -> None:
        """A worker died and cannot be started again."""


class Worker:
    """One worker process as the coordinator sees it: its socket, what it was given and has not answered."""

    def __init__(self, hub: Hub, number: int, core: int) -> None:
        self._hub, self._number, self._core = hub, number, core
        self.outstanding: list[tuple[int, int]] = []
        self.isolation = Isolation("?", ())
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._stopping = False
        self._heard = 0.0

    def check_alive(self, seconds: float) -> None:
        """Kill the process if it has had something to do and said nothing for so long."""
        if self.outstanding and asyncio.get_running_loop().time() - self._heard > seconds and self._process is not None:
            self._process.kill()

    @property
    def pid(self) -> int:
        """The worker's process id, 0 before it is started."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        reader = await self._spawn()
        self._listening = asyncio.create_task(self._listen(reader), name=f"evotui worker {self._number}")

    def send(self, command: messages.Command) -> None:
        if self._writer is not None and not self._writer.is_closing():
            if not self.outstanding:
                self._heard = asyncio.get_running_loop().time()
            self._writer.write(messages.frame(command))

    def forget(self, job: int) -> None:
        self.send(messages.CloseJob(job))
        self.outstanding = [pair for pair in self.outstanding if pair[0] != job]

    async def stop(self) -> None:
        """Hang up, wait a moment for guests to be ended in good order, then kill."""
        self._stopping = True
        if self._writer is not None:
            self._writer.close()
        if self._process is not None:
            deadline = asyncio.get_running_loop().time() + _STOP_SECONDS
            while self._process.poll() is None and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.005)
            self._kill()
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError, EngineError):  # the latter was told to its rollouts
                await self._listening

    def _kill(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    async def _spawn(self) -> asyncio.StreamReader:
        setting = self._hub.setting
        ours, theirs = socket.socketpair()
        with theirs, setting.log.open("ab") as log:
            try:
                # From this thread: the worker asks the kernel to be killed when the thread that started it ends.
                numbers = (theirs.fileno(), os.getpid(), self._core, int(setting.background))
                told = (*map(str, numbers), ",".join(sorted(setting.walls)))
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-s", "-m", "evotui.rollout.worker", *told],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(theirs.fileno(),),
                    env=worker_environment(),
                    cwd=setting.scratch,
                    process_group=0,  # not a session of its own: niceness counts within a session only
                )
            except OSError as error:
                ours.close()
                raise EngineError(f"a worker process cannot be started: {error}") from error
        reader, self._writer = await asyncio.open_connection(sock=ours)
        try:
            ready = await asyncio.wait_for(_read(reader), _START_SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            self._kill()
            last = setting.log.read_text(errors="replace").strip().splitlines()[-1:]
            raise EngineError(f"a worker process did not start: {''.join(last) or type(error).__name__}") from error
        if isinstance(ready, messages.Ready):
            self.isolation = ready.isolation
        return reader

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                message = await _read(reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                if self._stopping:
                    return
                reader = await self._restart()
                continue
            self._heard = asyncio.get_running_loop().time()
            self._hub.told(self, message)

    async def _restart(self) -> asyncio.StreamReader:
        self._kill()
        lost, self.outstanding = self.outstanding, []
        try:
            reader = await self._spawn()
        except EngineError as error:
            self._hub.broke(error)
            raise
        self._hub.replaced(self, lost)
        return reader


async def _read(reader: asyncio.StreamReader) -> messages.Told:
    (length,) = messages.LENGTH.unpack(await reader.readexactly(messages.LENGTH.size))
    return messages.told_decoder.decode(await reader.readexactly(length))


def worker_environment() -> dict[str, str]:
    """The session's environment for environments' libraries, minus what makes them slow, draw or open windows."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "PYTHONSTARTUP")}
    home = str(Path(evotui.__file__).parent.parent)
    path = [home, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return environment | {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",  # two threads made small matrix products eighty times slower, with the same bits
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
        "SDL_VIDEODRIVER": "offscreen",
    }
