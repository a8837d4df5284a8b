"""What comes out of an agent's program: awaited, cut into lines, kept to a limit, made fit to be shown."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import BinaryIO

from evotui.rollout.output import printable

LINE_BYTES = 64 << 20
"""Of a longer line the beginning is kept."""

_OPERATING_SYSTEM_COMMAND = re.compile(r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)")


def plain(text: str) -> str:
    """``text`` fit to be shown: no terminal sequences, control characters or direction overrides."""
    return printable(_OPERATING_SYSTEM_COMMAND.sub("", text))


class LineCutter:
    """Bytes as they come → whole lines, each of at most ``most`` bytes; of a longer one the beginning."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self._most = most
        self._begun: list[bytes] = []
        self._held = 0
        self.dropped = 0
        """Bytes of lines that were too long, so far."""

    def feed(self, data: bytes) -> list[str]:
        *ends, rest = data.split(b"\n")
        lines = [self._whole(piece) for piece in ends]
        self._add(rest)
        return lines

    def rest(self) -> list[str]:
        """The last line, where no line end came."""
        return [self._whole(b"")] if self._held else []

    def _add(self, piece: bytes) -> None:
        taken = piece[: self._most - self._held]
        self.dropped += len(piece) - len(taken)
        if taken:
            self._begun.append(taken)
            self._held += len(taken)

    def _whole(self, piece: bytes) -> str:
        self._add(piece)
        line = b"".join(self._begun)
        self._begun, self._held = [], 0
        return line.removesuffix(b"\r").decode("utf-8", "replace")


class Kept:
    """A file that grows to at most ``most`` bytes; what cannot be written (a full disk) is let go, never raised."""

    def __init__(self, path: Path, most: int) -> None:
        self._room = most
        self.lost = 0
        self.why = ""
        self._file: BinaryIO | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            self.why = error.strerror or str(error)

    def write(self, data: bytes) -> None:
        taken = data[: self._room] if self._file is not None else b""
        if taken and self._file is not None:
            try:
                self._file.write(taken)
                self._room -= len(taken)
            except OSError as error:
                self.why = error.strerror or str(error)
                taken = b""
        self.lost += len(data) - len(taken)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


async def until_readable(number: int, *events: asyncio.Event) -> None:
    """Return when a descriptor can be read, or one of ``events`` is set."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(number, ready.set)
    try:
        await _first(ready, *events)
    finally:
        loop.remove_reader(number)


async def until_writable(number: int, *events: asyncio.Event) -> None:
    """Return when a descriptor can be written to, or one of ``events`` is set."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(number, ready.set)
    try:
        await _first(ready, *events)
    finally:
        loop.remove_writer(number)


async def _first(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
