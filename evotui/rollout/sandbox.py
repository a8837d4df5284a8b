"""The walls around a policy: namespaces, Landlock, seccomp, limits. The first program in the policy process.

Run by path as ``python -P -s -B sandbox.py FD``; itself standard library only, since namespaces can be entered by a
process with one thread only, and numpy may start more. It reads the configuration, raises the walls that it is told to
use, tries each of them from the inside, and hands over to guest.py. A wall counts only if the try failed to get
through. Linux; elsewhere limits are all there is.

With the argument ``warm`` it imports numpy, and forks a process for each SPAWN that then does the same (a forked
process has one thread again). What waits there is as it was after its imports: nothing that belongs to a snapshot.

Order matters: namespaces, then mounts, then the unprivileged user, then limits, numpy and the libraries that the policy
names, then NO_NEW_PRIVS, Landlock, seccomp. Each step gives up what the next one needs.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import gc
import importlib.util
import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any, NoReturn

SYSTEM, SCRATCH = "/system", "/scratch"
"""Where the policy system and its scratch space are inside of a namespace."""

NOBODY = 65534  # the uid that root gives up its own for: RLIMIT_NPROC and file modes mean nothing to uid 0
_MAPPED_UID = 1000  # what an ordinary user is called inside its own namespace
_OPEN_FILES = 256
_PROCESSES = 64  # threads count too; some libraries start a few
_SCRATCH_FILES = 1024
_DEVICES = ("null", "zero", "urandom", "random")

_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 24, 36, 38
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 8, 32, 4096, 16384
_MS_PRIVATE, _MNT_DETACH = 1 << 18, 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEW = 0x20000 | 0x4000000 | 0x8000000 | 0x20000000 | 0x40000000  # mount, uts, ipc, pid, net

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@functools.cache
def sibling(name: str) -> Any:
    """A module beside this file, loaded by its path, once."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(f"_guest_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


syscalls = sibling("syscalls")


def prctl(option: int, value: int = 0) -> None:
    syscalls.check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def die_with_parent(parent: int) -> None:
    """Be killed when the thread that started this process ends; end now if it is gone. ``parent`` 0: do not ask."""
    if sys.platform == "linux":
        prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)


# ---------------------------------------------------------------------------------------------------------- Landlock

_READ_FILE, _READ_DIR, _EXECUTE, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 0, 1 << 1
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 14


def landlock(readable: list[str], writable: list[str]) -> int:
    """Allow reading below ``readable``, and writing below ``writable`` too; nothing else. The ABI that was used."""
    abi = syscalls.check(_libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1), "Landlock")
    handled = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, _TRUNCATE), (5, 1 << 15)):  # refer, truncate, ioctl on devices
        handled |= right if abi >= since else 0
    network, scopes = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)  # TCP bind and connect; abstract sockets, signals
    attributes = struct.pack("QQQ", handled, network, scopes)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    size = ctypes.c_size_t(len(attributes))
    rules = syscalls.check(_libc.syscall(_LANDLOCK_CREATE, attributes, size, 0), "Landlock")
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
            syscalls.check(_libc.syscall(_LANDLOCK_ADD, rules, 1, rule, 0), f"Landlock rule for {path}")
            os.close(fd)
    syscalls.check(_libc.syscall(_LANDLOCK_RESTRICT, rules, 0), "Landlock")
    os.close(rules)
    return abi


# -------------------------------------------------------------------------------------------------------- namespaces


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    raw = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    syscalls.check(_libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3]), f"mount {target}")


def _read_only(path: str) -> None:
    attributes = struct.pack("QQQQ", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, 0, 0, 0)  # the same bits as in mount
    size = ctypes.c_size_t(len(attributes))
    syscalls.syscall("mount_setattr", _AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, size)


def _pivot(new: str, old: str) -> None:
    syscalls.syscall("pivot_root", new.encode(), old.encode())


def enter_namespaces(system: str, scratch_bytes: int) -> None:
    """Leave for a world that has the interpreter, the snapshot (read-only), scratch space and four devices.

    Own user (unless root), mount, pid, net, ipc and uts namespaces; goes on as process 1 of the new pid namespace, in a
    child of the caller, which waits and ends as it ends. Raises OSError, before the point of no return, where the
    kernel refuses.
    """
    uid, gid = os.getuid(), os.getgid()
    syscalls.check(_libc.unshare(_CLONE_NEW | (_CLONE_NEWUSER if uid else 0)), "unshare")
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
    # Where evotui is installed below the interpreter's prefix its files are there by now, and perhaps not ours to open.
    missing = [path for path in stub_files() if not os.path.exists(base + path)]
    bound += [_bind(old + system, base + SYSTEM), *(_bind(old + path, base + path) for path in missing)]
    for name in _DEVICES:
        _bind(f"{old}/dev/{name}", f"{base}/dev/{name}")
    os.mkdir(base + SCRATCH)
    options = f"size={scratch_bytes},nr_inodes={_SCRATCH_FILES},mode=1777"
    _mount("evotui", base + SCRATCH, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
    for path in filter(None, bound):
        _read_only(path)
    os.chdir(base)
    _pivot(".", ".")
    syscalls.check(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
    _mount(None, "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def interpreter_paths() -> list[str]:
    """What Python needs to import its library and compiled modules: prefixes, system libraries."""
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)} | {sys.prefix, sys.base_prefix}
    return [*sorted(prefixes - {"/usr"}), "/usr", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/nix/store"]


def stub_files() -> list[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(here, name + ".py") for name in ("sandbox", "syscalls", "wire", "layout", "v03", "guest")]


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


# -------------------------------------------------------------------------------------------------------- privileges


def drop_privileges(may_change_user: bool) -> None:
    """Be nobody where this was root, and hold no capability, now or after an exec."""
    if os.getuid() == 0 and may_change_user:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        die_with_parent(0)  # a change of user forgets it
    else:
        for capability in range(64):
            if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
                break
    header = struct.pack("Ii", 0x20080522, 0)  # the third version of the call: two times three words
    syscalls.syscall("capset", header, bytes(24))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(syscalls.PR_SET_DUMPABLE, 0)


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


# -------------------------------------------------------------------------------------------------------- self-tests


def _refused(act: Any, number: int) -> bool:
    try:
        act()
    except OSError as error:
        return error.errno == number
    return False


def holds_namespaces() -> bool:
    """Process 1 of an own world: no other process, no host file, no network device but a dead loopback."""
    nets = [name for _, name in socket.if_nameindex()]
    return os.getpid() == 1 and not any(map(os.path.exists, ("/proc", "/etc/passwd", "/sys"))) and nets in ([], ["lo"])


def holds_landlock() -> bool:
    return _refused(lambda: os.listdir("/"), errno.EACCES)


def holds_seccomp() -> bool:
    return _refused(socket.socket, errno.EPERM) and _refused(lambda: os.execv("/no/such", ["x"]), errno.EPERM)


def level(layers: set[str]) -> str:
    """The level that a set of layers makes (see the package's isolation table)."""
    if "seccomp" not in layers:
        return "D"
    if {"namespaces", "landlock"} <= layers:
        return "A"
    return "B" if "landlock" in layers else "C" if "namespaces" in layers else "D"


# --------------------------------------------------------------------------------------------------------------- main


class Walls:
    """Raises the walls in their order; ``held`` are those that stood the try, ``missing`` says why others do not."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.use = set(config["use"]) if sys.platform == "linux" else set()
        self.held: list[str] = []
        self.missing: dict[str, str] = {}
        self.inside = False
        self.scratch = ""

    def before_libraries(self) -> None:
        """Namespaces, privileges' first part, limits."""
        config = self.config
        if "namespaces" in self.use:
            try:
                enter_namespaces(config["system"], config["limits"]["file"])
            except OSError as error:
                if not os.path.exists("/proc/self"):  # half way into another world: no way back
                    raise
                self.missing["namespaces"] = error.strerror or str(error)
            else:
                self.inside = True
                config["system"] = SYSTEM
                self.scratch = SCRATCH
                os.environ.update(HOME=SCRATCH, TMPDIR=SCRATCH)
        limit_resources(config["limits"]["memory"], config["limits"]["file"], self.inside or os.getuid() == 0)

    def after_libraries(self) -> None:
        """Everything that numpy and the policy's libraries must not be hindered by while they are loaded."""
        if self.inside:
            self._count("namespaces", holds_namespaces)
        if self.use & {"landlock", "seccomp"}:
            drop_privileges(may_change_user=others_may_read(self.config["system"], sys.prefix, os.__file__))
            if os.getuid() != 0:
                self.held.append("unprivileged")
            else:
                self.missing["unprivileged"] = "the interpreter is out of reach for an unprivileged user"
        if "landlock" in self.use:
            writable = [*([SCRATCH] if self.inside else []), "/dev/null", "/dev/zero"]
            readable = [*interpreter_paths(), self.config["system"], *stub_files(), "/dev/urandom", "/dev/random"]
            self._raise("landlock", lambda: landlock(readable, writable), holds_landlock)
        if "seccomp" in self.use:
            self._raise("seccomp", syscalls.seccomp_for_all, holds_seccomp)
        self.held.append("rlimits")

    def in_policy_process(self, parent: int) -> None:
        """What is left to do after the fork, before any policy code."""
        die_with_parent(parent)
        if "seccomp" in self.held:
            syscalls.seccomp_for_policy()

    def told(self) -> dict[str, Any]:
        return {"level": level(set(self.held)), "layers": self.held, "missing": self.missing}

    def _raise(self, name: str, act: Any, holds: Any) -> None:
        try:
            act()
        except OSError as error:
            self.missing[name] = error.strerror or str(error)
            return
        self._count(name, holds)

    def _count(self, name: str, holds: Any) -> None:
        if holds():
            self.held.append(name)
        else:
            self.missing[name] = "it was raised, and did not hold"


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


def receive_config(control: socket.socket, wire: Any) -> dict[str, Any]:
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
    die_with_parent(0)  # if the worker was gone before, there is nothing to receive below
    prctl(syscalls.PR_SET_DUMPABLE, 0)  # where guests run as the same user
    sibling("guest")
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
    prctl(syscalls.PR_SET_DUMPABLE, 1)  # as after an exec: else an ordinary user cannot map itself in a namespace
    for fd, standard in zip(fds[1:], (1, 2), strict=True):
        os.dup2(fd, standard)
        os.close(fd)
    ours = socket.socket(fileno=fds[0])
    wire = sibling("wire")
    ours.send(wire.HEADER.pack(0, wire.HELLO, 0))
    return ours


def main() -> NoReturn:
    control = socket.socket(fileno=int(sys.argv[1]))
    if sys.argv[2:] == ["warm"]:
        control = warm(control)
    wire = sibling("wire")
    config = receive_config(control, wire)
    die_with_parent(config["parent"])
    if sys.platform == "linux":
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.chdir(config["system"])
    os.environ["HOME"] = config["system"]
    walls = Walls(config)
    walls.before_libraries()
    if config["trial"]:  # what holds is all that is asked: no policy
        walls.after_libraries()
        control.send(wire.HEADER.pack(0, wire.READY, 0) + wire.to_json(walls.told()))
    else:
        sibling("guest").zygote(control, config, walls)
    os._exit(0)


if __name__ == "__main__":
    main()
