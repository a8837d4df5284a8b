"""System calls that an agent's program may not make: a seccomp filter that refuses them. x86_64 and aarch64.

Loaded by path in the launcher (``confine.py``): standard library only. It closes ways around Landlock: a local socket
leads to a server that works outside of the wall for whoever asks (tmux, Docker, D-Bus, an ssh agent); limits,
priorities and cores of other processes; characters pushed into a terminal. Pairs of connected sockets stay, since
Node.js makes its pipes of them, unless they are of datagrams: those can still be turned to somebody else's socket.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_ARM = platform.machine() in ("aarch64", "arm64")

# (x86_64, aarch64)
_SOCKET, _SOCKETPAIR, _IOCTL, _PRLIMIT = (41, 198), (53, 199), (16, 29), (302, 261)
_SETPRIORITY, _IOPRIO_SET = (141, 140), (251, 30)
_OF_A_PROCESS = (_PRLIMIT, (203, 122), (144, 119), (142, 118), (314, 274))
"""Their first argument is a process, 0 the caller: prlimit64, sched_setaffinity, …setscheduler, …setparam, …setattr."""
_IO_URING_SETUP = (425, 425)
_SECCOMP = (317, 277)

_AF_UNIX, _DATAGRAMS = 1, (2, 3)  # the second kind is called raw, and made to be the first
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3

_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; of arguments the low halves, all ints
_SPEC_ALLOW = 4

Line = tuple[int, int, int, int]


def _refuse_if(offset: int, values: tuple[int, ...], error: int, mask: int = 0) -> list[Line]:
    """Refuse where an argument has one of these values."""
    made: list[Line] = [(_LOAD, 0, 0, offset)]
    made += [(_AND, 0, 0, mask)] if mask else []
    for value in values:
        made += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERROR | error)]
    return made


def _refuse_unless_zero(offset: int) -> list[Line]:
    return [(_LOAD, 0, 0, offset), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERROR | errno.EPERM)]


def lines() -> list[Line]:
    """The filter as lines of classic BPF (code, jump if true, jump if false, number)."""
    made: list[Line] = [
        (_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, 0xC00000B7 if _ARM else 0xC000003E), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]  # fmt: skip
    if not _ARM:  # the x32 numbers are a second way to every call
        made += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    rules = [
        (_SOCKET, _refuse_if(_FIRST, (_AF_UNIX,), errno.EACCES)),
        (_SOCKETPAIR, _refuse_if(_SECOND, _DATAGRAMS, errno.EACCES, mask=0xF)),
        (_IOCTL, _refuse_if(_SECOND, (_TIOCSTI, _TIOCLINUX), errno.EPERM)),
        (_SETPRIORITY, _refuse_if(_FIRST, (_PRIO_USER,), errno.EPERM) + _refuse_unless_zero(_SECOND)),
        (_IOPRIO_SET, _refuse_if(_FIRST, (_IOPRIO_WHO_USER,), errno.EPERM) + _refuse_unless_zero(_SECOND)),
        (_IO_URING_SETUP, [(_RETURN, 0, 0, _ERROR | errno.ENOSYS)]),  # it makes sockets past any filter
        *((call, _refuse_unless_zero(_FIRST)) for call in _OF_A_PROCESS),
    ]
    for numbers, body in rules:
        whole = [*body, (_RETURN, 0, 0, _ALLOW)]
        made += [(_EQUAL, 0, len(whole), numbers[_ARM]), *whole]
    return [*made, (_RETURN, 0, 0, _ALLOW)]


def refuse() -> None:
    """Refuse them to this process and all that it starts. Needs NO_NEW_PRIVS. Raises OSError."""
    if sys.platform != "linux" or struct.calcsize("P") != 8 or not (_ARM or platform.machine() == "x86_64"):
        raise OSError(errno.ENOSYS, f"no filter of system calls for {sys.platform} on {platform.machine()}")
    program = lines()
    raw = b"".join(struct.pack("HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(raw, len(raw))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(_SECCOMP[_ARM], 1, _SPEC_ALLOW, header) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
