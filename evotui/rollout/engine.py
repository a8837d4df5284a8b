"""The coordinator: owns the workers and the jobs on them. Runs in the session's event loop.

No episode runs here, and nothing here waits for one: a rollout is an async iterator of facts.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

from evotui.protocol.verdict import LoadFault
from evotui.rollout import messages
from evotui.rollout.dealing import Event, Rollout
from evotui.rollout.limits import ALL_WALLS, Isolation, Job
from evotui.rollout.workers import EngineError, Setting, Worker

__all__ = ["Engine", "EngineError", "Event", "Rollout", "evaluate", "walls_to_try"]

_SILENT_SECONDS = 300.0  # a worker that has work and says nothing: its environment hangs (policies have limits)
_SCRATCH = "evotui-"
_PR_SET_DUMPABLE = 4


class Engine:
    """Worker processes and what is running on them. Cheap to make; workers start on first use.

    ``workers``: how many, one per usable core by default. ``background``: they give way to an interface. ``log``: the
    file that their output is appended to (environments' libraries print); by default one that close() removes.
    ``walls``: the layers of isolation to try, :func:`walls_to_try` by default; fewer is for tests and self-tests.
    ``private``: this process holds hidden seeds, and nobody but root may look into it from ``start`` on.
    """

    def __init__(
        self,
        workers: int | None = None,
        background: bool = False,
        log: Path | None = None,
        walls: frozenset[str] | None = None,
        private: bool = False,
    ) -> None:
        cores = list(range(os.cpu_count() or 1))
        if hasattr(os, "sched_getaffinity"):
            cores = sorted(os.sched_getaffinity(0))
        if workers is not None and workers < 1:
            raise ValueError(f"an engine needs at least 1 worker, not {workers}")
        n = workers or len(cores)
        first = secrets.randbelow(len(cores))  # engines beside each other must not all crowd the same core
        self._cores = [cores[(first + i) % len(cores)] if n <= len(cores) else -1 for i in range(n)]
        self._background, self._log, self._walls, self._private = background, log, walls, private
        self.workers: list[Worker] = []
        self.rollouts: dict[int, Rollout] = {}
        self._numbers = itertools.count(1)
        self._scratch: Path | None = None
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self.isolation = Isolation("?", ())

    @property
    def width(self) -> int:
        """How many workers there are or will be."""
        return len(self._cores)

    async def start(self) -> None:
        """Start the workers and learn what isolation holds. Raises EngineError. Safe to call again."""
        async with self._starting:
            if self.workers:
                return
            if self._private:
                # An agent's own commands run as this user and behind no wall: they could read the hidden seeds here by
                # ptrace or /proc. The price: profilers and debuggers that attach need root. It stays so after close(),
                # as the seeds may.
                keep_memory_private()
            walls = walls_to_try() if self._walls is None else self._walls
            _sweep()
            scratch = self._scratch = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-"))
            scratch.chmod(0o711)  # unprivileged guests pass through to their copy of the snapshot
            log = self._log or scratch / "workers.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            self.setting = Setting(scratch, log, self._background, walls)
            self.workers = [Worker(self, number, core) for number, core in enumerate(self._cores)]
            try:
                await asyncio.gather(*(worker.start() for worker in self.workers))
            except BaseException:
                await self._stop()
                raise
            self._watching = asyncio.create_task(self._watch(), name="evotui engine")
            self.isolation = max((w.isolation for w in self.workers), key=lambda isolation: isolation.level)

    def open(self, job: Job) -> Rollout:
        return Rollout(self, next(self._numbers), job)

    async def close(self) -> None:
        """End workers and guests; nothing is left over. The engine may be started again."""
        async with self._starting:
            await self._stop()

    # -- what workers tell (workers.Hub)

    def told(self, worker: Worker, message: messages.Told) -> None:
        rollout = None if isinstance(message, messages.Ready) else self.rollouts.get(message.job)
        if rollout is not None:
            rollout.told(worker, message)

    def replaced(self, worker: Worker, lost: list[tuple[int, int]]) -> None:
        for number, rollout in list(self.rollouts.items()):
            if worker in rollout.workers:
                rollout.lost(worker, [position for job, position in lost if job == number])

    def broke(self, error: EngineError) -> None:
        for rollout in self.rollouts.values():
            rollout.broke(error)

    async def _watch(self) -> None:
        """Kill workers that went silent; what they were doing is then handled like any death."""
        while True:
            await asyncio.sleep(min(_SILENT_SECONDS / 10, 10.0))
            for worker in self.workers:
                worker.check_alive(_SILENT_SECONDS)

    async def _stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        workers, self.workers = self.workers, []
        await asyncio.gather(*(worker.stop() for worker in workers))
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    async def __aenter__(self) -> Engine:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def evaluate(engine: Engine, job: Job) -> AsyncIterator[Event | LoadFault]:
    """Load a policy and run its episodes. Where it cannot be loaded, the one thing told is why."""
    async with engine.open(job) as rollout:
        failed = await rollout.compile() or await rollout.initialize()
        if failed is not None:
            yield failed
            return
        async for event in rollout.episodes():
            yield event


def walls_to_try() -> frozenset[str]:
    """All walls, or those that ``EVOTUI_WALLS`` names, with commas between them: to see what a weaker machine does.

    Fewer walls are never hidden: the level that is left is in every record. Raises EngineError for a name that is none.
    """
    named = os.environ.get("EVOTUI_WALLS")
    if named is None:
        return ALL_WALLS
    walls = frozenset(filter(None, map(str.strip, named.split(","))))
    if not walls <= ALL_WALLS:
        raise EngineError(f"EVOTUI_WALLS takes {', '.join(sorted(ALL_WALLS))}; {named!r} names something else")
    return walls


def keep_memory_private() -> None:
    """Let no process of the same user read this one's memory or trace it, where the kernel can see to that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _sweep() -> None:
    """Remove scratch folders whose session was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*-*"):
        match = re.fullmatch(rf"{_SCRATCH}(\d+)-.*", folder.name)
        with contextlib.suppress(FileNotFoundError):  # somebody else sweeps at this moment
            if match and folder.lstat().st_uid == os.getuid() and not _alive(int(match[1])):
                shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
