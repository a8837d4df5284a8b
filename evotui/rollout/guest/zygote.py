"""The zygote of one snapshot: it never runs policy code, and forks one process per episode (or per submission).

So module state cannot leak from one episode to another, and an import is paid for once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import socket
import sys
import time
from typing import Any

from . import v03, wire
from .imports import guard_imports, prepare
from .serving import Codecs, Served
from .walls import Walls
from .wire import HEADER, INT64

_DYING_SECONDS = 0.05


def kill_children() -> None:
    """Kill every other process of this guest, orphans included: all of the namespace, or what /proc shows."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return
    for pid in children:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap(served: int, patience: float = 0.0) -> int:
    """Kill and collect all children. The wait status of the served process if it ended by itself within ``patience``
    seconds (one that is just dying shall say why), else -1."""
    status = -1
    give_up = time.monotonic() + patience
    while served and time.monotonic() < give_up:
        pid, ended = os.waitpid(served, os.WNOHANG)
        if pid == served:
            served, status = 0, ended
        else:
            time.sleep(0.001)
    try:
        while True:
            kill_children()
            os.waitpid(-1, 0)
    except ChildProcessError:
        return status


def clean(folder: str) -> None:
    """Empty the scratch space: an episode finds nothing of an earlier one. Ends the guest where that cannot be done."""
    for entry in os.scandir(folder):
        try:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        except OSError:
            os._exit(0)


def zygote(control: socket.socket, config: dict[str, Any], walls: Walls) -> None:
    """Prepare, raise the other walls, say what holds, then fork a process for each FORK until the worker is gone."""
    system = config["system"]
    v03.provide_names()
    prepare(system, tuple(config["denied"]))
    os.chdir(system)
    sys.path.insert(0, system)
    sys.argv = ["policy"]
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    walls.after_libraries()
    guard_imports(tuple(config["denied"]))  # from here on nobody imports but the policy
    codecs = Codecs(config)
    control.send(HEADER.pack(0, wire.READY, 0) + wire.to_json(walls.told()))
    gc.collect()
    gc.freeze()  # children share these pages: no collector pass ever writes to them
    served = 0
    while True:
        message, fds, _, _ = socket.recv_fds(control, 64, 3)
        if not message:
            reap(served)
            return
        seq, kind, patient = HEADER.unpack_from(message)
        status = reap(served, _DYING_SECONDS if patient else 0.0)
        served = 0
        if kind == wire.REAP:
            control.send(HEADER.pack(seq, kind, 0) + INT64.pack(status))
        elif kind == wire.FORK:
            if walls.scratch:
                clean(walls.scratch)
            me = os.getpid()
            served = os.fork()
            if served == 0:
                control.close()
                os.setpgid(0, 0)
                walls.in_policy_process(me)
                Served(socket.socket(fileno=fds[0]), fds[1:], config, codecs).serve()
            for fd in fds:
                os.close(fd)
