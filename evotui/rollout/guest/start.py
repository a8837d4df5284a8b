"""The first program in the policy process: it raises the walls and hands over to the zygote.

Run by path as ``python -P -s -B start.py FD``. It reads the configuration from that socket, raises the walls that it is
told to use before numpy is loaded, and lets :mod:`zygote` raise the rest.

With the argument ``warm`` it imports numpy, and forks a process for each SPAWN that then does the same (a forked
process has one thread again). What waits there is as it was after its imports: nothing that belongs to a snapshot.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
import types
from typing import Any, NoReturn

PACKAGE = "_guest"
"""What this folder is called where nothing of evotui can be imported."""

_PR_SET_CHILD_SUBREAPER = 36


def part(name: str) -> Any:
    """A module of this folder, imported once; its neighbors are found relative to it."""
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{name}")


def receive_config(control: socket.socket) -> dict[str, Any]:
    wire = part("wire")
    raw = b""
    while True:
        message = control.recv(wire.PART_BYTES + 64)
        if not message:
            os._exit(0)
        raw += message[wire.HEADER.size :]
        if wire.HEADER.unpack_from(message)[1] == wire.CONFIG:
            return dict(json.loads(raw))


def warm(control: socket.socket) -> socket.socket:
    """Import what every guest needs, then fork one for each SPAWN until the worker is gone.

    Returns only in a guest: its control socket. Each is forked by a process between, which ends: so the worker, which
    adopts orphans, is its parent, and by the time of the answer here it is so.
    """
    syscalls, privileges = part("syscalls"), part("privileges")
    privileges.die_with_parent(0)  # if the worker was gone before, there is nothing to receive below
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # where guests run as the same user
    part("zygote")
    gc.collect()
    gc.freeze()  # guests share these pages: no collector pass of theirs writes to them
    while True:
        message, fds, _, _ = socket.recv_fds(control, 64, 3)
        if not message:
            os._exit(0)
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            break
        for fd in fds:
            os.close(fd)
        os.waitpid(between, 0)
        control.send(message)
    control.close()
    os.setpgid(0, 0)
    # As after an exec: else an ordinary user cannot map itself in a namespace.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    for fd, standard in zip(fds[1:], (1, 2), strict=True):
        os.dup2(fd, standard)
        os.close(fd)
    ours = socket.socket(fileno=fds[0])
    wire = part("wire")
    ours.send(wire.HEADER.pack(0, wire.HELLO, 0))
    return ours


def main() -> NoReturn:
    control = socket.socket(fileno=int(sys.argv[1]))
    if sys.argv[2:] == ["warm"]:
        control = warm(control)
    wire = part("wire")
    config = receive_config(control)
    part("privileges").die_with_parent(config["parent"])
    if sys.platform == "linux":
        part("syscalls").prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.chdir(config["system"])
    os.environ["HOME"] = config["system"]
    walls = part("walls").Walls(config)
    walls.before_libraries()
    if config["trial"]:  # what holds is all that is asked: no policy
        walls.after_libraries()
        control.send(wire.HEADER.pack(0, wire.READY, 0) + wire.to_json(walls.told()))
    else:
        part("zygote").zygote(control, config, walls)
    os._exit(0)


if __name__ == "__main__":
    main()
