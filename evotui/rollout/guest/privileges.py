"""What a process gives up before policy code: its user, its capabilities, resources without bounds, life after us."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

from .syscalls import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, libc, prctl, syscall

NOBODY = 65534  # the uid that root gives up its own for: RLIMIT_NPROC and file modes mean nothing to uid 0
_OPEN_FILES = 256
_PROCESSES = 64  # threads count too; some libraries start a few
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38


def die_with_parent(parent: int) -> None:
    """Be killed when the thread that started this process ends; end now if it is gone. ``parent`` 0: do not ask."""
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def drop_privileges(may_change_user: bool) -> None:
    """Be nobody where this was root, and hold no capability, now or after an exec."""
    if os.getuid() == 0 and may_change_user:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        die_with_parent(0)  # a change of user forgets it
    else:
        for capability in range(64):
            if libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
                break
    header = struct.pack("Ii", 0x20080522, 0)  # the third version of the call: two times three words
    syscall("capset", header, bytes(24))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, 0)


def limit_resources(memory: int, file: int, count_processes: bool) -> None:
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_MEMLOCK, 0),
    ]
    if sys.platform == "linux":
        wanted.append((resource.RLIMIT_MSGQUEUE, 0))
        if count_processes:  # of a user who has other processes, those would count too
            wanted.append((resource.RLIMIT_NPROC, _PROCESSES))
    for which, value in wanted:
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bound, bound))


def others_may_read(*paths: str) -> bool:
    """Whether a user who owns nothing can read these and pass the folders above them."""
    for path in map(os.path.realpath, paths):
        if not os.stat(path).st_mode & 4:
            return False
        while path != "/":
            path = os.path.dirname(path)
            if not os.stat(path).st_mode & 1:
                return False
    return True
