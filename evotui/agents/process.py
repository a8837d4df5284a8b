"""An agent's program as a process: started behind a wall, read as lines, written to, and ended with all it started.

Everything that a program does to us is bounded here: lines have a length, a flood is read and let go, a program that
says nothing is noticed, one that was stopped by a signal too. Whoever starts one holds it as a context::

    async with await AgentProcess.start(["claude", "-p", …], workspace, place, urls, tell=tell) as program:
        async for line in program.lines():
            …
        code = await program.wait()

When the context is left, also by cancellation, no process of the agent is there any more: each carries the run's tag in
its environment and is swept by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from evotui.agents import confine
from evotui.agents.base import AgentFailed, DoorUrls, Place, Teller, Workspace
from evotui.agents.launch import Launched, launch
from evotui.agents.pipes import LINE_BYTES, Kept, LineCutter, until_readable, until_writable
from evotui.agents.stderr import Errors
from evotui.agents.sweep import family_of, state_of, sweep
from evotui.record.events import AgentRaw

STREAM_BYTES = 512 << 20
"""What of a program's stdout is kept in ``place.stream``; the rest is read and let go."""

_CHUNK = 1 << 16
_INTERRUPT, _TERMINATE, _SWEEP = 2.0, 2.0, 5.0
"""Seconds that a program has after each signal, and that the sweep goes on."""
_LINGER = 2.0
"""Seconds that a program's output is read after its end, while somebody it left behind keeps it open."""


class AgentProcess:
    """A running program. Made by :meth:`start`; see the module's text for how it is held."""

    def __init__(
        self, launched: Launched, place: Place, tell: Teller | None, idle: float | None, busy: Callable[[], bool],
        line_bytes: int, stream_bytes: int,
    ) -> None:  # fmt: skip
        popen = launched.popen
        self.pid = popen.pid
        self.walls: dict[str, Any] = {}
        """What became of the wall: ``landlock`` (its version, 0: none), ``why`` not; ``seccomp`` (whether the filter of
        system calls holds), ``why_no_filter``; ``pid`` is the program's own."""
        self.idle, self.busy = idle, busy
        self.killed = False
        """Whether it was us who ended it."""
        self._popen = popen
        self._tag, self._folder, self._tell = launched.tag, launched.folder, tell
        self._lines = LineCutter(line_bytes)
        self._stream = Kept(place.stream, stream_bytes)
        self._errors = Errors(place.stream.with_name("agent_stderr.txt"))
        self._exited = asyncio.Event()
        self._heard = time.monotonic()
        self._failure: AgentFailed | None = None
        self._wake = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        for pipe in (popen.stdin, popen.stdout, popen.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        assert popen.stderr is not None
        self._errors_read = asyncio.create_task(self._errors.drain(popen.stderr.fileno()), name="agent stderr")
        self._tasks = [
            asyncio.create_task(self._watch_exit(), name="agent exit"),
            self._errors_read,
            asyncio.create_task(self._look_after(), name="agent watchdog"),
        ]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        workspace: Workspace,
        place: Place,
        urls: DoorUrls | None = None,
        *,
        tell: Teller | None = None,
        env: Mapping[str, str] | None = None,
        keys: Collection[str] | None = None,
        stdin: bool = False,
        writable: Sequence[Path] = (),
        wall: bool = True,
        idle: float | None = None,
        busy: Callable[[], bool] = lambda: False,
        line_bytes: int = LINE_BYTES,
        stream_bytes: int = STREAM_BYTES,
    ) -> AgentProcess:
        """Start ``command`` in the workspace. Raises AgentFailed where it cannot be started.

        ``env`` is laid over the filtered environment; with ``keys`` only secrets of those names are passed (see
        :func:`environment`). Without ``stdin`` the program's is at its end. It may write below ``system/``, a temporary
        folder (caches lie there too) and ``writable`` (its own, made where it is missing). ``idle``
        seconds without a line fail the agent, unless ``busy()``: it waits for us. ``tell`` hears of what a person
        should know (AgentRaw of "process").
        """
        launched = await launch(command, workspace, place, urls, env, keys, stdin, writable, wall)
        self = cls(launched, place, tell, idle, busy, line_bytes, stream_bytes)
        try:
            await self._started(launched, command[0])
        except BaseException:
            await self.stop()
            raise
        return self

    async def _started(self, launched: Launched, name: str) -> None:
        """Wait for the launcher's report, which ends when the program has begun."""
        self.walls |= await launched.told(self._wake)
        error = self.walls.pop("error", None)
        if error is not None:
            raise AgentFailed(f"{name} cannot be started: {error}")
        if not self.walls:
            raise AgentFailed(f"{name} was not started: the launcher ended; it said: {self.last_words() or 'nothing'}")

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────

    async def pieces(self) -> AsyncIterator[bytes]:
        """Its stdout as it comes, for who need not see each line of a flood; else as :meth:`lines`."""
        while data := await self._chunk():
            yield data

    async def lines(self) -> AsyncIterator[str]:
        """Lines of its stdout, as they were written (pass them through :func:`plain` before they become a fact).

        Ends soon after the program did. Raises AgentFailed where it was silent for too long. One reader at a time; may
        be left and begun again.
        """
        while True:
            data = await self._chunk()
            for line in self._lines.feed(data) if data else self._lines.rest():
                yield line
            if not data:
                break

    async def _chunk(self) -> bytes:
        """The next piece of stdout; ``b""`` at its end."""
        assert self._popen.stdout is not None
        if self._popen.stdout.closed:
            return b""
        number = self._popen.stdout.fileno()
        until = None
        while not self._popen.stdout.closed:
            if self._failure is not None:
                raise self._failure
            try:
                data = os.read(number, _CHUNK)
            except BlockingIOError:
                if self._exited.is_set():
                    return b""
                await until_readable(number, self._wake)
                continue
            except OSError:
                return b""
            if self._exited.is_set():
                until = until or time.monotonic() + _LINGER
                if time.monotonic() > until:
                    return b""
            self._heard = time.monotonic()
            if data:
                self._stream.write(data)
                await asyncio.sleep(0)  # a flood must not keep the loop
            return data
        return b""

    def last_words(self, most: int = 600) -> str:
        """The end of its stderr, as one line of at most ``most`` characters."""
        return self._errors.last_words(most)

    @property
    def silent_for(self) -> float:
        """Seconds since it last said something."""
        return time.monotonic() - self._heard

    def touch(self) -> None:
        """It is at work, though it says nothing: the watchdog begins anew."""
        self._heard = time.monotonic()

    def unkept(self) -> list[str]:
        """Sentences on what of its output was not kept."""
        sentences = []
        if self._lines.dropped:
            sentences.append(f"{self._lines.dropped:,} bytes of lines too long to be kept were cut off")
        for kept, what in ((self._stream, "stdout"), (self._errors.kept, "stderr")):
            if kept.lost:
                why = f" ({kept.why})" if kept.why else ""
                sentences.append(f"{kept.lost:,} bytes of its {what} were not written to the record{why}")
        return sentences

    # ── what it is told ──────────────────────────────────────────────────────────────────────────────────────────

    async def write(self, text: str) -> bool:
        """Write to its stdin, waiting while it does not read; False where it reads no more."""
        pipe = self._popen.stdin
        if pipe is None:
            return False
        async with self._writing:
            left = memoryview(text.encode("utf-8", "surrogateescape"))
            while left:
                if pipe.closed:
                    return False
                try:
                    left = left[os.write(pipe.fileno(), left) :]
                except BlockingIOError:
                    await until_writable(pipe.fileno(), self._exited)
                except OSError:
                    return False
        return True

    async def write_line(self, text: str) -> bool:
        return await self.write(text + "\n")

    def close_stdin(self) -> None:
        """No more is to come."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()

    def signal(self, number: int) -> None:
        """Send a signal to its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    # ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def returncode(self) -> int | None:
        """Its exit code, minus a signal's number, or None while it runs."""
        return self._popen.returncode

    async def wait(self) -> int:
        """Wait until the program itself has ended; returns its code. Raises AgentFailed as :meth:`lines` does."""
        while not self._exited.is_set():
            if self._failure is not None:
                raise self._failure
            await self._wake.wait()
        assert self._popen.returncode is not None
        return self._popen.returncode

    async def stop(self) -> None:
        """End the program and all that it started: INT, TERM, KILL, then whoever bears the tag. Safe to call again.

        Done to its end even when the caller is cancelled meanwhile.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="agent stop")
        cancelled = False
        while not self._stopping.done():
            try:
                await asyncio.shield(self._stopping)
            except asyncio.CancelledError:
                cancelled = True
        self._stopping.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _stop(self) -> None:
        family = await asyncio.to_thread(family_of, self.pid)
        ways = [(signal.SIGINT, _INTERRUPT), (signal.SIGTERM, _TERMINATE), (confine.END_ALL, _SWEEP)]
        for number, patience in [*ways, (signal.SIGKILL, _SWEEP)]:
            if self._exited.is_set():
                break
            self.killed = True
            if number is confine.END_ALL:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
            else:
                self.signal(number)
            self.signal(signal.SIGCONT)  # one that is stopped hears nothing
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._exited.wait(), patience)
        await asyncio.to_thread(sweep, self._tag, self.pid, family)
        await asyncio.wait({self._errors_read}, timeout=1.0)  # nobody writes any more: its end is near
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=_SWEEP)
        self._wake.set()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        self._stream.close()
        self._errors.kept.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    async def __aenter__(self) -> AgentProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _watch_exit(self) -> None:
        try:
            number = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            while self._popen.poll() is None:
                await asyncio.sleep(0.05)
        else:
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(number, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(number)
                os.close(number)
            while self._popen.poll() is None:
                await asyncio.sleep(0.01)
        self._exited.set()
        self._wake.set()

    async def _look_after(self) -> None:
        """Once a second: is it stopped, is it silent?"""
        stopped = False
        while not self._exited.is_set():
            await asyncio.sleep(1.0)
            now = state_of(self.walls.get("pid", self.pid)) == "T"
            if now and not stopped:
                await self._note(f"the agent's process was stopped by a signal; `kill -CONT -{self.pid}` lets it go on")
            elif stopped and not now and not self._exited.is_set():
                await self._note("the agent's process goes on")
            stopped = now
            if stopped or self.busy():
                self.touch()
            if self.idle is not None and self.silent_for > self.idle:
                self._failure = AgentFailed(f"the agent's process said nothing for {self.idle:g} s and was ended")
                self._wake.set()
                return

    async def _note(self, text: str) -> None:
        if self._tell is not None:
            await self._tell(AgentRaw("process", text))
