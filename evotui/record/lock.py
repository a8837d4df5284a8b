"""One writer a run: an advisory lock on ``.host/lock`` that the system drops when its owner dies."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from evotui.record.regular import not_regular
from evotui.record.rundir import RunDir


class Locked(Exception):
    """Another process writes this run."""


class Lock:
    """Held from construction to :meth:`release`. Raises Locked where somebody else holds it."""

    def __init__(self, run: RunDir) -> None:
        self._descriptor = os.open(_path(run), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.release()
            raise not_regular(_path(run))
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            name = run.root.name
            raise Locked(f"another process is running {name}; watch it with `evotui watch {name}`") from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Give the run free; safe to call again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_held(run: RunDir) -> bool:
    """Whether some process writes the run right now. A run that cannot be asked (foreign, read-only) counts as not."""
    try:
        descriptor = os.open(_path(run), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _path(run: RunDir) -> Path:
    return run.host / "lock"
