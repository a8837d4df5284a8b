"""Landlock: what files a process and its children may open, by its system calls. Linux only."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .syscalls import check, libc, refused

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_READ_FILE, _READ_DIR, _EXECUTE, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 0, 1 << 1
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 14


def allow_only(readable: list[str], writable: list[str]) -> int:
    """Allow reading below ``readable``, and writing below ``writable`` too; nothing else. The ABI that was used."""
    abi = check(libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1), "Landlock")
    handled = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15)):  # refer, truncate, ioctl on devices
        handled |= right if abi >= since else 0
    network, scopes = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)  # TCP bind and connect; abstract sockets, signals
    attributes = struct.pack("QQQ", handled, network, scopes)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    size = ctypes.c_size_t(len(attributes))
    rules = check(libc.syscall(_CREATE, attributes, size, 0), "Landlock")
    of_files = _READ_FILE | _EXECUTE | _WRITE_FILE | _TRUNCATE
    reading = _READ_FILE | _READ_DIR | _EXECUTE
    writing = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
    for paths, rights in ((readable, reading), (writable, writing)):
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # not on this machine: nothing to allow
            allowed = rights & handled & (-1 if os.path.isdir(path) else of_files)
            rule = struct.pack("=Qi", allowed, fd)
            check(libc.syscall(_ADD, rules, 1, rule, 0), f"Landlock rule for {path}")
            os.close(fd)
    check(libc.syscall(_RESTRICT, rules, 0), "Landlock")
    os.close(rules)
    return abi


def holds_landlock() -> bool:
    return refused(lambda: os.listdir("/"), errno.EACCES)
