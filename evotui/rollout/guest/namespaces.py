"""A world of its own for a policy: namespaces, and a root with the interpreter, the snapshot, scratch space, no more.

What comes from the host is bound read-only. Entered by a process with one thread, before numpy may start more.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

from .privileges import die_with_parent
from .syscalls import check, libc, syscall

SYSTEM, SCRATCH = "/system", "/scratch"
"""Where the policy system and its scratch space are inside of a namespace."""

HERE = os.path.dirname(os.path.abspath(__file__))
"""The guest's own files, which are to be read in there too."""

_MAPPED_UID = 1000  # what an ordinary user is called inside its own namespace
_SCRATCH_FILES = 1024
_DEVICES = ("null", "zero", "urandom", "random")

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 8, 32, 4096, 16384
_MS_PRIVATE, _MNT_DETACH = 1 << 18, 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEW = 0x20000 | 0x4000000 | 0x8000000 | 0x20000000 | 0x40000000  # mount, uts, ipc, pid, net


def enter_namespaces(system: str, scratch_bytes: int) -> None:
    """Leave for a world that has the interpreter, the snapshot (read-only), scratch space and four devices.

    Own user (unless root), mount, pid, net, ipc and uts namespaces; goes on as process 1 of the new pid namespace, in a
    child of the caller, which waits and ends as it ends. Raises OSError, before the point of no return, where the
    kernel refuses.
    """
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(_CLONE_NEW | (_CLONE_NEWUSER if uid else 0)), "unshare")
    if uid:
        maps = {"setgroups": "deny", "uid_map": f"{_MAPPED_UID} {uid} 1", "gid_map": f"{_MAPPED_UID} {gid} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _new_root(system, scratch_bytes)
    inner = os.fork()
    if inner:
        for fd in range(3, 32):
            try:
                os.close(fd)
            except OSError:
                continue
        _, status = os.waitpid(inner, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent(0)


def _new_root(system: str, scratch_bytes: int) -> None:
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("evotui", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    base, old = "/tmp/new", "/tmp/old"
    os.mkdir(base)
    os.mkdir(old)
    _pivot("/tmp", old)
    os.chdir("/")
    base, old = "/new", "/old"
    _mount("evotui", base, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    bound = [_bind(old + path, base + path) for path in _interpreter_paths(old)]
    # Where evotui is installed below the interpreter's prefix this is there by now, and perhaps not ours to open.
    if not os.path.exists(base + HERE):
        bound.append(_bind(old + HERE, base + HERE))
    bound.append(_bind(old + system, base + SYSTEM))
    for name in _DEVICES:
        _bind(f"{old}/dev/{name}", f"{base}/dev/{name}")
    os.mkdir(base + SCRATCH)
    options = f"size={scratch_bytes},nr_inodes={_SCRATCH_FILES},mode=1777"
    _mount("evotui", base + SCRATCH, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
    for path in filter(None, bound):
        _read_only(path)
    os.chdir(base)
    _pivot(".", ".")
    check(libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
    _mount(None, "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def interpreter_paths() -> list[str]:
    """What Python needs to import its library and compiled modules: prefixes, system libraries."""
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)} | {sys.prefix, sys.base_prefix}
    return [*sorted(prefixes - {"/usr"}), "/usr", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store"]


def _interpreter_paths(root: str) -> list[str]:
    kept: list[str] = []
    for path in interpreter_paths():
        if os.path.lexists(root + path) and not any(path.startswith(parent + "/") for parent in kept):
            kept.append(path)
    return kept


def _bind(source: str, target: str) -> str | None:
    """Show ``source`` at ``target``; a symbolic link is made again. What was mounted, if anything."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return None
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(source, target, None, _MS_BIND | _MS_REC)
    return target


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    raw = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    check(libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3]), f"mount {target}")


def _read_only(path: str) -> None:
    attributes = struct.pack("QQQQ", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, 0, 0, 0)  # the same bits as in mount
    size = ctypes.c_size_t(len(attributes))
    syscall("mount_setattr", _AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, size)


def _pivot(new: str, old: str) -> None:
    syscall("pivot_root", new.encode(), old.encode())


def holds_namespaces() -> bool:
    """Process 1 of an own world: no other process, no host file, no network device but a dead loopback."""
    nets = [name for _, name in socket.if_nameindex()]
    return os.getpid() == 1 and not any(map(os.path.exists, ("/proc", "/etc/passwd", "/sys"))) and nets in ([], ["lo"])
