"""Runs a model's analysis code: in the sandbox, with a deadline, its output kept to a head and a tail."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evotui.protocol.imports import DENIED_IMPORTS
from evotui.rollout.guest import start

SECONDS = 120.0
MEMORY, FILE = 2 << 30, 32 << 20
KEPT = 5000
"""Characters kept of the beginning and of the end of an output."""
_NO_WALLS = 97


@dataclass(frozen=True, slots=True)
class Ran:
    """``code`` is the exit code, negative for a signal, None where the time ran out."""

    code: int | None
    output: str


class Ends:
    """The head and the tail of a stream of any length, and what went missing between them."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._head = b""
        self._tail = b""
        self._left_out = 0

    def feed(self, data: bytes) -> None:
        room = self._kept - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        over = len(self._tail) - self._kept
        if over > 0:
            self._left_out += over
            self._tail = self._tail[over:]

    def text(self) -> str:
        if not self._left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n… {self._left_out:,} bytes left out …\n{tail}"


def ends(text: str, kept: int = KEPT) -> str:
    """``text``, or its head and tail where it is longer than both."""
    if len(text) <= 2 * kept:
        return text
    return f"{text[:kept]}\n… {len(text) - 2 * kept:,} characters left out …\n{text[-kept:]}"


async def run_python(code: str, workspace: Path, seconds: float = SECONDS) -> Ran:
    """Run ``code`` in ``workspace``, which it can read and not write. No network, no other process, no simulator.

    Cancelled or late, it is killed with all that it started.
    """
    config = {
        "workspace": str(workspace.resolve()),
        "guest": start.__file__,
        "denied": list(DENIED_IMPORTS),
        "limits": {"memory": MEMORY, "file": FILE},
        "parent": os.getpid(),
    }
    program = str(Path(__file__).with_name("analysis.py"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-s", "-B", program, json.dumps(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )
    output = Ends()
    late = False
    try:
        async with asyncio.timeout(seconds):
            await _talk(process, code, output)
    except TimeoutError:
        late = True
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    text = output.text()
    if late:
        return Ran(None, f"{text}\n(stopped after {seconds:g} s)")
    if process.returncode == _NO_WALLS:
        return Ran(_NO_WALLS, "run_python is not available here: this machine has no sandbox to run it in.")
    return Ran(process.returncode, text)


async def _talk(process: asyncio.subprocess.Process, code: str, output: Ends) -> None:
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(code.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()
    while data := await process.stdout.read(1 << 16):
        output.feed(data)
    await process.wait()
