"""How commands without a screen end early: signals heard in good order, and a terminal that may be gone already."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

from evotui.cli.early import Begun
from evotui.cli.errors import Told

_T = TypeVar("_T")


@contextmanager
def heard(told: Callable[[int], None]) -> Iterator[None]:
    """Call ``told`` with the first SIGINT, SIGTERM or SIGHUP; at the second the process ends at once.

    Whoever sends two means it, and every log is whole at any moment; workers and guests end with their parent. Inside
    of a running event loop, in the main thread. Under nohup SIGHUP stays ignored: the work outlives its terminal.
    """
    loop = asyncio.get_running_loop()
    caught: list[int] = []

    def interrupted(number: int) -> None:
        if caught:
            os._exit(128 + number)
        caught.append(number)
        told(number)

    Begun.work = True
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, interrupted, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of ``work``, which a signal cancels: it cleans up, and Told has the exit code."""
    task = asyncio.ensure_future(work)
    caught: list[int] = []

    def told(number: int) -> None:
        caught.append(number)
        task.cancel()

    with heard(told):
        await asyncio.wait({task})
    if task.cancelled() and caught:
        raise Told("interrupted", 128 + caught[0])
    return task.result()


def write(text: str) -> None:
    """On stderr, where that is still there: a terminal that was closed must not cost the work its good order."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what is still to be written to a standard stream vanish, also at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
