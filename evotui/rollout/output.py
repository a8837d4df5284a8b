"""What a policy prints: drained so that it never blocks, cut, and made fit to be shown."""

from __future__ import annotations

import os
import re
import select
import threading

_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"  # terminal sequences
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # control and direction characters
)


def printable(text: str) -> str:
    """``text`` without escape sequences, control characters (tabs and line ends stay) and direction overrides.

    Lone surrogates, which no message and no file can hold, become escapes.
    """
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n"))


class Output:
    """Drains a guest's stdout and stderr in a thread, keeping the first ``keep`` bytes of each until taken."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._kept = [bytearray(), bytearray()]
        self._dropped = [0, 0]
        self._ends: list[int] = []
        self.for_child: list[int] = []
        for _ in range(2):
            read, write = os.pipe()
            os.set_blocking(read, False)
            self._ends.append(read)
            self.for_child.append(write)
        self._thread = threading.Thread(target=self._drain_until_closed, name="guest output", daemon=True)

    def start(self) -> None:
        """Begin draining; the child has its ends by now, so ours of its side are closed."""
        for fd in self.for_child:
            os.close(fd)
        self._thread.start()

    def take(self) -> tuple[bytes, bytes]:
        """What was written since the last call: (stdout, stderr), with a line that says how much was cut."""
        with self._lock:
            for which in (0, 1):
                self._read(which)
            taken = tuple(
                bytes(kept) + (f"\n[evotui: {dropped} bytes more were dropped]\n".encode() if dropped else b"")
                for kept, dropped in zip(self._kept, self._dropped, strict=True)
            )
            self._kept, self._dropped = [bytearray(), bytearray()], [0, 0]
        return taken[0], taken[1]

    def _read(self, which: int) -> bool:
        """Read all that is there; False once the other side is closed."""
        if not self._ends:
            return False
        for _ in range(64):  # a flooding writer must not keep us here: 4 MiB in one go
            try:
                piece = os.read(self._ends[which], 65536)
            except BlockingIOError:
                return True
            if not piece:
                return False
            room = self._keep - len(self._kept[which])
            self._kept[which] += piece[: max(room, 0)]
            self._dropped[which] += len(piece) - max(min(room, len(piece)), 0)
        return True

    def _drain_until_closed(self) -> None:
        poll = select.poll()
        numbers = {fd: which for which, fd in enumerate(self._ends)}
        for fd in numbers:
            poll.register(fd, select.POLLIN)
        while numbers:
            for fd, _ in poll.poll():
                with self._lock:
                    if not self._read(numbers[fd]):
                        poll.unregister(fd)
                        del numbers[fd]
        with self._lock:
            ends, self._ends = self._ends, []  # a number that is closed may soon be another file's
            for fd in ends:
                os.close(fd)
