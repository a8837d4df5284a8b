"""A program on a pseudo-terminal of a given size: reads what it draws, types keys, answers what terminals answer."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence


class Terminal:
    """Starts ``command`` on a pseudo-terminal; a context manager that leaves no process behind."""

    def __init__(
        self, command: Sequence[str], columns: int = 120, rows: int = 40, environment: Mapping[str, str] | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, columns * 10, rows * 20))
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.written = 0

    def read(self, seconds: float) -> bytes:
        """What was drawn: returns as soon as there is something, b"" after ``seconds`` or at the end."""
        ready, _, _ = select.select([self._ours], [], [], seconds)
        if not ready:
            return b""
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:
            return b""
        self.written += len(data)
        if b"\x1b[?2026$p" in data:  # synchronized output: yes, as most terminals have it
            os.write(self._ours, b"\x1b[?2026;2$y")
        return data

    def type(self, keys: bytes) -> float:
        """Type; returns when, by ``time.perf_counter``."""
        now = time.perf_counter()
        os.write(self._ours, keys)
        return now

    def until(self, needle: bytes, seconds: float) -> float | None:
        """The moment at which ``needle`` had been drawn, or None after ``seconds``."""
        tail, deadline = b"", time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            tail = tail[-4096:] + self.read(left)
            if needle in tail:
                return time.perf_counter()
            if self.process.poll() is not None:
                return None
        return None

    def drain(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self.read(left)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)
