"""The launcher of an agent's program: it raises a wall around the program, waits for it, and cleans up behind it.

Run by path as ``python -I -S -B confine.py REPORT CONFIG PROGRAM ARGS…``; standard library only, so that it is there in
some fifty milliseconds. REPORT is the number of a pipe that it tells on what became of the wall; CONFIG is JSON: what
:class:`Plan` holds. The wall is Landlock's: an agent reads everything but other runs and what the host keeps of this
one, and writes below ``system/``, its temporary folder and its own settings. Landlock lets nobody mount: a sandbox
inside of it can be Landlock again, but not bubblewrap. Where Landlock is missing the program runs without a wall, and
``guard.py`` mends what it breaks. What Landlock does not know is refused by a filter of system calls (``calls.py``),
and no terminal can be opened. The launcher stays as the program's parent, so that whatever the program leaves
behind, however it hides, becomes the launcher's child and ends with it; it ends everything when the host is gone.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import importlib.util
import json
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import NoReturn

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_TIOCNOTTY = 0x5422

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REMOVE, _MAKE = 0b11 << 4, (1 << 7) | (1 << 8) | (1 << 9) | (1 << 10) | (1 << 12)
"""Files and folders; folders, regular files, sockets, pipes, symbolic links (no devices)."""
_ALL_MAKE, _REFER, _TRUNCATE = 0b1111111 << 6, 1 << 13, 1 << 14
_SCOPE_SIGNALS = 2

END_ALL = signal.SIGUSR1
"""The signal that makes the launcher kill the program and all that it started."""

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = READ | _WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

DEVICES = ("null", "zero", "full", "random", "urandom", "shm")
"""Below ``/dev``, writable; nothing else there can be opened. No terminals: one is the screen of whoever watches."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a program may: ``parent`` is the process that it ends with; no file below ``closed`` is readable but what
    lies below ``opened`` (names of files are); ``writable`` is what it may change, as far as it is not
    ``closed`` itself.
    """

    parent: int
    closed: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """What it may not change though it be a part of ``writable``."""
    wall: bool = True
    folder: str = ""
    """The program's temporary folder, removed when it has ended."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Ruleset:
    """Landlock rules by ``ctypes``. Raises OSError where the kernel has none."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long
        self.abi = self._call(_CREATE, None, ctypes.c_size_t(0), 1)
        self._handled = READ | _WRITE_FILE | _REMOVE | _ALL_MAKE
        self._handled |= (_REFER if self.abi >= 2 else 0) | (_TRUNCATE if self.abi >= 3 else 0)
        scopes = _SCOPE_SIGNALS if self.abi >= 6 else 0  # an agent has no business with processes it did not start
        attributes = struct.pack("QQQ", self._handled, 0, scopes)[: 8 if self.abi < 4 else 16 if self.abi < 6 else 24]
        self.rules = self._call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)

    def allow(self, path: str, rights: int) -> None:
        """Allow ``rights`` at and below ``path``; a path that is not there is passed over."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            kept = rights & self._handled & (-1 if os.path.isdir(f"/proc/self/fd/{fd}") else _OF_FILES)
            self._call(_ADD, self.rules, 1, struct.pack("=Qi", kept, fd), 0)
        finally:
            os.close(fd)

    def enforce(self) -> None:
        """From here on nothing else is allowed, in this process and those that it starts."""
        no_new_privileges()
        self._call(_RESTRICT, self.rules, 0)
        os.close(self.rules)

    def _call(self, number: int, *arguments: object) -> int:
        result = self._libc.syscall(number, *arguments)
        if result < 0:
            errno = ctypes.get_errno()
            raise OSError(errno, f"Landlock: {os.strerror(errno)}")
        return int(result)


def around(top: str, closed: Iterable[str]) -> Iterator[str]:
    """What lies at and below the folder ``top``, without ``closed``, as few paths as will do.

    A folder that leads to a closed one is entered: each of its entries stands for itself. Symbolic links are passed
    over: a rule holds for what is really there.
    """
    shut = [path for path in closed if path == top or path.startswith(top.rstrip("/") + "/")]
    if top in shut:
        return
    if not shut:
        yield top
        return
    try:
        with os.scandir(top) as listing:
            entries = sorted(entry.path for entry in listing if not entry.is_symlink())
    except OSError:
        return
    for path in entries:
        yield from around(path, shut)


def raise_wall(plan: Plan) -> int:
    """Confine this process according to ``plan``; returns Landlock's version. Raises OSError where it cannot be."""
    rules = Ruleset()
    closed = [os.path.realpath(path) for path in plan.closed]
    opened = [os.path.realpath(path) for path in plan.opened]
    kept = [os.path.realpath(path) for path in plan.kept]
    rules.allow("/", _READ_DIR)  # names can be tried out anyway, and programs list the folders above their own
    for path in around("/", [*closed, "/dev"]):
        rules.allow(path, READ)
    for path in opened:
        rules.allow(path, READ)
    for name in DEVICES:
        for path in around(f"/dev/{name}", [*closed, *opened]):
            rules.allow(path, WRITE)
    rules.allow("/proc", READ | _WRITE_FILE)  # maps of its own namespaces; other processes are out of reach
    for path in plan.writable:
        real = os.path.realpath(path)
        # What is closed, or the workspace, is not to be written as a part of something larger.
        for part in around(real, [*closed, *opened, *kept]) if not _within(real, opened) else [real]:
            rules.allow(part, WRITE)
    rules.enforce()
    return rules.abi


def no_new_privileges() -> None:
    """No program that is started from here on gets more rights than this process has. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")


def refuse_calls() -> None:
    """Install the filter of ``calls.py``, which lies beside this file. Raises OSError."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls.py")
    spec = importlib.util.spec_from_file_location("_calls", path)
    if spec is None or spec.loader is None:
        raise OSError(errno.ENOENT, f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    no_new_privileges()
    module.refuse()


def give_up_terminal() -> None:
    """Lose the controlling terminal; it stays that of the others, since this process leads no session."""
    try:
        number = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # there is none
    try:
        fcntl.ioctl(number, _TIOCNOTTY)
    finally:
        os.close(number)


def why_not() -> str:
    """Why no wall can be raised here; "" where one can."""
    if sys.platform != "linux":
        return "this system has no Landlock"
    try:
        os.close(Ruleset().rules)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Get a signal when the thread that started this process ends; end now if its process is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def give_up_peeking() -> None:
    """As root: lose for good what lets it read other processes' memory maps and environment past Landlock."""
    libc = ctypes.CDLL(None)
    for capability in (_CAP_PERFMON, _CAP_SYS_ADMIN):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def below(top: int) -> list[int]:
    """All processes that descend from ``top``."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [top]
    while queue:
        queue += (mine := children.get(queue.pop(), []))
        found += mine
    return found


def look_after(program: int, folder: str) -> None:
    """Wait for the program; what it leaves behind falls to this process and is killed. Ends as the program did.

    ``folder`` is removed in the end. END_ALL, sent by the host, or by the system when the host is gone, kills the
    program too.
    """
    ended: int | None = None

    def kill(*_: object) -> None:
        for pid in below(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue  # gone already

    signal.signal(END_ALL, kill)
    os.closerange(0, 3)  # the program's own ends must be the last ones; nothing is read or said here from now on
    while True:
        try:
            pid, status = os.wait() if ended is None else os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == program:
            ended = status
        if ended is not None:
            kill()
            time.sleep(0.002)
    if folder:
        import shutil  # only now: it would be in the way of a quick start

        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(ended if ended is not None else 0)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def become(program: list[str], plan: Plan, pipe: int) -> NoReturn:
    """Raise the wall, report, exec."""
    told: dict[str, object] = {"landlock": 0, "why": "not asked for", "seccomp": False}
    if sys.platform == "linux":
        try:
            give_up_terminal()
        except OSError as error:
            told["terminal"] = error.strerror or str(error)
    if plan.wall and sys.platform == "linux":
        try:
            told |= {"landlock": raise_wall(plan), "why": ""}
            give_up_peeking()
        except OSError as error:
            told |= {"landlock": 0, "why": error.strerror or str(error)}
    try:  # last: raising the wall itself is nothing that the filter knows of
        refuse_calls()
        told["seccomp"] = True
    except OSError as error:
        told["why_no_filter"] = error.strerror or str(error)
    os.write(pipe, (json.dumps(told | {"pid": os.getpid()}) + "\n").encode())
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):  # Python ignores the second
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(pipe, (json.dumps({"error": error.strerror or str(error)}) + "\n").encode())
        os._exit(127)


def main(arguments: list[str]) -> None:
    report, config, *program = arguments
    pipe = int(report)
    os.set_inheritable(pipe, False)  # closed by the exec: the other side sees that it went well
    plan = Plan(**json.loads(config))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the program, sent to its group
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        signal.signal(END_ALL, lambda *_: os._exit(1))
        die_with(plan.parent, END_ALL)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what a crash leaves would lie in the workspace
    host = os.getpid()
    child = os.fork()
    if child == 0:
        if sys.platform == "linux":
            die_with(host)
        become(program, plan, pipe)
    os.close(pipe)
    look_after(child, plan.folder)


if __name__ == "__main__":
    main(sys.argv[1:])
