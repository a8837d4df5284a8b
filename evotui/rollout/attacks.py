"""Attacks that a policy might try from inside: the policy that tries them, and what they are called.

This file is its own snapshot: ``selftest`` copies it as ``policy.py`` into a guest, so it needs the standard library
only (numpy in one place), and nothing runs when it is imported. ``env_meta["attack"]`` says where the canaries are.

An attack that raises or returns False was stopped; any other got through. None harms a host that it gets through to:
what it changes it puts back, or ``selftest`` does (files called ``mark``).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import hashlib
import json
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

Attack = Callable[[], Any]

at: Any = SimpleNamespace()
"""Where to attack: ``host`` and ``worker`` (process ids), ``port``, ``unix``, ``abstract``, ``folder``, ``mark``, …"""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
_REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ESRCH)
_NOTES: list[str] = []

THROUGH = "GOT THROUGH"


def call(name: str, *arguments: Any) -> int:
    """A raw system call. OSError unless the kernel carried it out, or minded nothing but its nonsense arguments."""
    if name not in at.calls:
        raise OSError(errno.ENOSYS, f"{name}: not on this machine")
    ctypes.set_errno(0)
    result = libc.syscall(at.calls[name], *arguments)
    code = ctypes.get_errno()
    if result < 0 and code in _REFUSALS:
        raise OSError(code, os.strerror(code))
    return int(result)


def read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read(4096)


def write(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")


def space(size: int) -> Any:
    return ctypes.create_string_buffer(size)


def vector() -> Any:
    at.kept = space(16)
    return (ctypes.c_void_p * 2)(ctypes.addressof(at.kept), 16)


def connect(family: int, address: Any) -> None:
    with socket.socket(family) as client:
        client.settimeout(1)
        client.connect(address)


def listen() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()


def send_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", at.port))


NETWORK: dict[str, Attack] = {
    "connect by TCP": lambda: connect(socket.AF_INET, ("127.0.0.1", at.port)),
    "listen by TCP": listen,
    "send by UDP": send_datagram,
    "connect to a Unix socket": lambda: connect(socket.AF_UNIX, at.unix),
    "connect to an abstract socket": lambda: connect(socket.AF_UNIX, at.abstract),
    "netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "raw packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "virtual machine socket": lambda: call("socket", 40, 1, 0),
    "io_uring instead of calls": lambda: call("io_uring_setup", 8, space(256)),
}


def link() -> None:
    os.link(at.secret, at.folder + "/hard")


def rename() -> None:
    os.rename(at.folder + "/moved", at.folder + "/moved-away")


def device() -> None:
    os.mknod(at.folder + "/device", 0o600 | 0o020000, os.makedev(1, 3))


FILES: dict[str, Attack] = {
    "read the user table": lambda: "root" in read("/etc/passwd"),
    "read a run's file": lambda: read(at.secret) == "canary",
    "read through a link": lambda: read(at.link) == "canary",
    "list the root": lambda: "var" in os.listdir("/"),
    "list a run": lambda: bool(os.listdir(at.folder)),
    "list the folder above": lambda: bool(os.listdir(os.path.dirname(at.folder))),
    "read network settings": lambda: read("/etc/resolv.conf"),
    "read the host's name": lambda: read("/etc/hostname"),
    "list devices": lambda: bool(os.listdir("/sys/class")),
    "open physical memory": lambda: os.open("/dev/mem", os.O_RDONLY),
    "write into a run": lambda: write(f"{at.folder}/{at.mark}"),
    "write into /tmp": lambda: write(f"/tmp/{at.mark}"),
    "write into /dev/shm": lambda: write(f"/dev/shm/{at.mark}"),
    "write into a library": lambda: write(f"{os.path.dirname(os.__file__)}/{at.mark}"),
    "rename a run's file": rename,
    "link a run's file": link,
    "change a run's mode": lambda: os.chmod(at.folder, 0o755),
    "change a run's owner": lambda: os.chown(at.folder, os.getuid(), os.getgid()),
    "change a run's times": lambda: os.utime(at.folder),
    "set a run's attributes": lambda: os.setxattr(at.folder, "user.evil", b"x"),
    "open by handle": lambda: call("open_by_handle_at", -100, space(64), 0),
    "make a device": device,
    "watch all files": lambda: call("fanotify_init", 0, 0),
}


def ptrace() -> None:
    call("ptrace", 0x4206, at.worker, 0, 0)  # seize
    call("ptrace", 17, at.worker, 0, 0)  # detach


PROCESSES: dict[str, Attack] = {
    "read the host's command": lambda: bool(read(f"/proc/{at.host}/cmdline")),
    "read the host's environment": lambda: bool(read(f"/proc/{at.host}/environ")),
    "open the worker's memory": lambda: os.open(f"/proc/{at.worker}/mem", os.O_RDONLY),
    "list the worker's open files": lambda: bool(os.listdir(f"/proc/{at.worker}/fd")),
    "list the host's open files": lambda: bool(os.listdir(f"/proc/{at.host}/fd")),
    "signal the host": lambda: os.kill(at.host, 0),
    "signal the worker": lambda: os.kill(at.worker, 0),
    "signal all processes": lambda: os.kill(-1, 0),
    "signal a thread of the host": lambda: call("tgkill", at.host, at.host, 0),
    "queue a signal": lambda: call("rt_sigqueueinfo", at.host, 0, space(128)),
    "trace the worker": ptrace,
    "read a process": lambda: call("process_vm_readv", at.host, vector(), 1, vector(), 1, 0),
    "write a process": lambda: call("process_vm_writev", at.host, vector(), 0, vector(), 0, 0),
    "compare processes": lambda: call("kcmp", at.host, os.getpid(), 0, 0, 0),
    "handle of a process": lambda: call("pidfd_open", at.host, 0),
    "limits of the host": lambda: resource.prlimit(at.host, resource.RLIMIT_CORE),
    "cores of the host": lambda: os.sched_setaffinity(at.host, os.sched_getaffinity(at.host)),
    "priority of the host": lambda: os.setpriority(
        os.PRIO_PROCESS, at.host, os.getpriority(os.PRIO_PROCESS, at.host)
    ),
    "scheduler of the host": lambda: os.sched_setscheduler(
        at.host, os.sched_getscheduler(at.host), os.sched_getparam(at.host)
    ),
    "pages of the host": lambda: call("move_pages", at.host, 0, 0, 0, 0, 0),
}  # fmt: skip


def fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def spawn() -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


NEW_PROCESSES: dict[str, Attack] = {
    "fork": fork,
    "clone3": lambda: call("clone3", space(88), 8),
    "spawn": spawn,
    "shell": lambda: os.system("true") == 0,
    "execute": lambda: call("execve", 0, 0, 0),
    "execute an open file": lambda: call("execveat", -1, 0, 0, 0, 0),
    "leave the session": os.setsid,
    "join another group": lambda: os.setpgid(0, os.getppid()),
    "survive the worker": lambda: libc.prctl(1, 0, 0, 0, 0) == 0,
}


def mount() -> None:
    call("mount", b"x", at.folder.encode(), b"tmpfs", 0, 0)
    call("umount2", at.folder.encode(), 2)


def same_host_name() -> None:
    name = os.uname().nodename.encode()
    call("sethostname", name, len(name))


KERNEL: dict[str, Attack] = {
    "become root": lambda: os.setuid(0),
    "become another group": lambda: os.setgroups([0]),
    "new user namespace": lambda: call("unshare", 0x10000000),
    "new mount namespace": lambda: call("unshare", 0x20000),
    "mount": mount,
    "unmount": lambda: call("umount2", b"/nowhere", 2),
    "remount for writing": lambda: call("mount", 0, b"/system", 0, 32 | 4096, 0),
    "mount by its new calls": lambda: call("fsopen", b"tmpfs", 0),
    "change the root": lambda: call("chroot", b"/"),
    "enter a namespace": lambda: call("setns", 0, 0),
    "keyring": lambda: call("keyctl", 0, -3, 1),
    "bpf": lambda: call("bpf", 99, 0, 0),
    "performance counters": lambda: call("perf_event_open", space(128), 0, -1, -1, 0),
    "userfaultfd": lambda: call("userfaultfd", 0),
    "load a module": lambda: call("finit_module", -1, b"", 0),
    "read the kernel's log": lambda: call("syslog", 10, 0, 0),
    "name the host": same_host_name,
    "set the clock": lambda: call("settimeofday", 0, 0),
    "change personality": lambda: call("personality", 0x0040000),
    "be open to debuggers": lambda: libc.prctl(4, 1, 0, 0, 0) == 0,
}


def fill_disk() -> bool:
    total = 0
    for i in range(4):
        with open(f"{os.environ.get('TMPDIR', at.folder)}/fill{i}", "wb", 0) as file:
            for _ in range(20):
                total += file.write(b"x" * (1 << 20))
    return total > 64 << 20


def many_threads() -> None:
    over = threading.Event()
    try:
        for _ in range(300):
            threading.Thread(target=over.wait, daemon=True).start()
    finally:
        over.set()


def limit(which: int, value: int) -> None:
    resource.setrlimit(which, (value, value))


def lock_memory() -> bool:
    page = space(4096)
    done = libc.mlock(page, 4096) == 0
    libc.munlock(page, 4096)
    return done


RESOURCES: dict[str, Attack] = {
    "20 GB of memory": lambda: mmap.mmap(-1, 20 << 30).close(),
    "lift the memory limit": lambda: limit(resource.RLIMIT_AS, resource.RLIM_INFINITY),
    "lift the limit of open files": lambda: limit(resource.RLIMIT_NOFILE, 4096),
    "lift the limit of file sizes": lambda: limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY),
    "dump core": lambda: limit(resource.RLIMIT_CORE, 1 << 30),
    "lock memory": lock_memory,
    "shared memory": lambda: libc.shmctl(call("shmget", 0, 1 << 20, 0o1600), 0, 0),
    "message queue": lambda: libc.msgctl(call("msgget", 0, 0o1600), 0, 0),
    "semaphores": lambda: libc.semctl(call("semget", 0, 1, 0o1600), 0, 0, 0),
    "anonymous file": lambda: call("memfd_create", b"x", 0),
    "secret memory": lambda: call("memfd_secret", 0),
    "fill the disk": fill_disk,
    "300 threads": many_threads,
}


def seed_among_objects() -> bool:
    """Any large number that the process's objects and frames hold, compared by hash: the seed must not be here."""
    frames: list[Any] = list(sys._current_frames().values())
    held: list[Any] = list(gc.get_objects())
    while frames:
        frame = frames.pop()
        held.append(dict(frame.f_locals))
        if frame.f_back is not None:
            frames.append(frame.f_back)
    for thing in held:
        for part in gc.get_referents(thing):
            large = part.bit_length() > 62 if type(part) is int else type(part) is str and part.isdigit()
            if large and hashlib.sha256(str(part).encode()).hexdigest() == at.seed_digest:
                return True
    return False


def environment_among_objects() -> bool:
    return any(str(type(thing).__module__).startswith("gymnasium") for thing in gc.get_objects())


def change_own_snapshot() -> None:
    with open(__file__, "a") as file:
        file.write("\n")


EVALUATION: dict[str, Attack] = {
    "read the hidden cases": lambda: bool(read(at.pool)),
    "change the hidden cases": lambda: write(at.pool),
    "find the seed in memory": seed_among_objects,
    "find the environment in memory": environment_among_objects,
    "change the snapshot": change_own_snapshot,
}
"""Tried in the first episode, like all groups above."""


# Tried in the second episode, against what the first one left.


def leave_notes() -> None:
    _NOTES.append("x")
    for folder in (os.environ.get("TMPDIR", ""), at.folder):
        try:
            write(f"{folder}/notes")
        except OSError:
            continue  # that no note can be left is what the second episode tells


def notes_in_files() -> bool:
    return any(os.path.exists(f"{folder}/notes") for folder in (os.environ.get("TMPDIR", ""), at.folder) if folder)


SECOND: dict[str, Attack] = {
    "remember in memory": lambda: bool(_NOTES),
    "remember in files": notes_in_files,
}


def guess_seed(obs: Any) -> bool:
    """Whether one of the first numbers resets CartPole to this observation: how small seeds are found."""
    import numpy as np

    for seed in range(1000):
        start = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).uniform(-0.05, 0.05, 4)
        if np.array_equal(start.astype(np.float32), obs):
            return True
    return False


# One episode each from the third on, tried in ``act``; the host judges them by what became of the episode.


def forge_answers() -> None:
    for fd in range(3, 64):
        try:
            with socket.socket(fileno=os.dup(fd)) as line:
                for number in range(600):
                    line.send(struct.pack("<IHHq", number, at.act_kind, 1, 1), socket.MSG_DONTWAIT)
        except OSError:
            continue
    for fd in pipes(os.O_WRONLY):
        try:
            os.set_blocking(fd, False)
            for number in range(600):
                os.write(fd, struct.pack("<IHHq", number, at.act_kind, 1, 1))
        except OSError:
            continue


def pipes(way: int) -> list[int]:
    """This process's pipes beside its output that are open to read or to write: ``os.O_RDONLY`` or ``os.O_WRONLY``."""
    return [fd for fd in range(3, 64) if kind_of(fd, stat.S_ISFIFO) and fcntl.fcntl(fd, fcntl.F_GETFL) & 3 == way]


def kind_of(fd: int, test: Callable[[int], bool]) -> bool:
    try:
        return test(os.fstat(fd).st_mode)
    except OSError:
        return False


def jam_the_lane() -> None:
    """Fill what the worker writes into, empty what it reads from, and make both as small as they get."""
    for fd in (*pipes(os.O_RDONLY), *pipes(os.O_WRONLY)):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
    ours = [os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK) for fd in pipes(os.O_RDONLY)]
    theirs = [os.open(f"/proc/self/fd/{fd}", os.O_RDONLY) for fd in pipes(os.O_WRONLY)]
    while True:
        for fd in ours:
            try:
                os.write(fd, b"x" * 8)
            except BlockingIOError:
                continue
        for fd in theirs:
            os.set_blocking(fd, False)
            try:
                os.read(fd, 4096)
            except BlockingIOError:
                continue


def never_answer() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass


def close_everything() -> None:
    os.closerange(0, 256)


def flood() -> None:
    for _ in range(4000):
        print("x" * 1000)


IN_ACT: dict[str, Attack] = {
    "forge answers": forge_answers,
    "jam the lane": jam_the_lane,
    "never answer": never_answer,
    "flood the output": flood,
    # Last, since three of the same fault end the episodes that are left.
    "end the process": lambda: os._exit(0),
    "crash": lambda: ctypes.string_at(0),
    "close every file": close_everything,
}

GROUPS: dict[str, tuple[str, ...]] = {
    "the network": (*NETWORK,),
    "the host's files": (*FILES,),
    "the host's processes": (*PROCESSES,),
    "new processes": (*NEW_PROCESSES,),
    "doors of the kernel": (*KERNEL,),
    "resources": (*RESOURCES, "never answer", "flood the output"),
    "the evaluation": (
        *EVALUATION, *SECOND, "guess the seed", "forge answers", "jam the lane", "end the process", "crash",
        "close every file",
    ),
}  # fmt: skip
"""Every attack by what it goes for."""

# The kernel's doors last: whoever went through one stays behind it.
FIRST: dict[str, Attack] = NETWORK | FILES | PROCESSES | EVALUATION | NEW_PROCESSES | RESOURCES | KERNEL


def attempt(act: Attack) -> str:
    """What an attack came to: ``GOT THROUGH``, ``nothing``, or what it was told."""
    try:
        return THROUGH if act() is not False else "nothing"
    except BaseException as error:  # whatever stops an attack, the next one is to be tried
        number = getattr(error, "errno", None)
        return f"{type(error).__name__} {errno.errorcode.get(number, '') if number else ''}".rstrip()


class Policy:
    """Episode 0 and 1 try and tell, as JSON on a line of their own; each later one tries one attack in ``act``."""

    def __init__(self, obs_space: Any, action_space: Any, env_meta: Any) -> None:
        at.__dict__.update(env_meta["attack"])
        self.episode, self.steps = 0, 0

    def reset(self, episode_index: int) -> None:
        self.episode, self.steps = episode_index, 0
        if episode_index < 2:
            print(json.dumps({name: attempt(act) for name, act in (FIRST, SECOND)[episode_index].items()}))
        if episode_index == 0:
            leave_notes()

    def act(self, obs: Any) -> int:
        self.steps += 1
        if self.steps == 1 and self.episode == 1:
            print(json.dumps({"guess the seed": attempt(lambda: guess_seed(obs))}))
        elif self.steps == 2 and self.episode > 1:
            list(IN_ACT.values())[self.episode - 2]()
        return 0
