"""System calls that a policy may not make, and the seccomp filters that refuse them. x86_64 and aarch64, no libraries.

Part of the stub in the policy process: standard library only. A deny-list, since what numerical libraries call is hard
to list and what a policy has no business with is not; it closes what Landlock leaves open.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
_ARM = platform.machine() in ("aarch64", "arm64")


def check(result: int, what: str) -> int:
    """The result of a C call; OSError where it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0) -> None:
    check(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def syscall(name: str, *arguments: Any) -> int:
    """One of :data:`SYSCALLS` by name. Raises OSError."""
    number = SYSCALLS[name][_ARM]
    if number is None:
        raise OSError(errno.ENOSYS, f"{name}: not on this machine")
    return check(libc.syscall(number, *arguments), name)


# name: (x86_64, aarch64). What a policy has no business with; everything else stays allowed, so that ordinary
# libraries run. Denied with EPERM, which Python turns into an exception, rather than with a kill.
SYSCALLS: dict[str, tuple[int | None, int | None]] = {
    # the network, local sockets included (Landlock knows neither paths of sockets nor UDP nor netlink)
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "bind": (49, 200),
    "listen": (50, 201),
    # other processes
    "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "tkill": (200, 130), "process_madvise": (440, 440), "process_mrelease": (448, 448), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    # identity and privileges
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "capset": (126, 91), "personality": (135, 92), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89),
    # what a file is (Landlock does not mind these)
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
    # memory that outlives a process or its limits
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "msgget": (68, 186), "mq_open": (240, 180), "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # large and seldom used parts of the kernel
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "vmsplice": (278, 75), "modify_ldt": (154, None),
    # the machine
    "reboot": (169, 142), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "iopl": (172, None), "ioperm": (173, None),
    "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
}  # fmt: skip

# Denied to policies only: the zygote needs them.
_POLICY_ONLY: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None), "vfork": (58, None), "kill": (62, 129), "setpgid": (109, 154), "setsid": (112, 157),
}  # fmt: skip

# Used above or below, and never denied as a whole.
_CLONE, _CLONE3, _TGKILL, _PRCTL = (56, 220), (435, 435), (234, 131), (157, 167)
_PRLIMIT, _SETAFFINITY = (302, 261), (203, 122)
_SECCOMP = (317, 277)

_ALLOW, _EPERM, _ENOSYS, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data: of arguments their low halves
_THREAD_FLAG, _NAMESPACE_FLAGS = 0x10000, 0x7E020080
_SPEC_ALLOW = 4  # older kernels would else slow down every branch of a process that holds no secrets

Program = list[tuple[int, int, int, int]]


def _deny(program: Program, number: int | None, result: int = _EPERM) -> None:
    if number is not None:
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, result)]


def _only_for(program: Program, number: int, argument: int, allowed: tuple[int, ...]) -> None:
    """Allow a call only where an argument (its low 32 bits) has one of these values."""
    body: Program = [(_LOAD, 0, 0, argument)]
    body += [(_JUMP_EQUAL, len(allowed) - i, 0, value) for i, value in enumerate(allowed)]
    body += [(_RETURN, 0, 0, _EPERM), (_LOAD, 0, 0, _NUMBER)]
    program += [(_JUMP_EQUAL, 0, len(body), number), *body]


def _never_for(program: Program, number: int, argument: int, denied: tuple[int, ...]) -> None:
    body: Program = [(_LOAD, 0, 0, argument)]
    for value in denied:
        body += [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _EPERM)]
    body.append((_LOAD, 0, 0, _NUMBER))
    program += [(_JUMP_EQUAL, 0, len(body), number), *body]


def _without_bits(program: Program, number: int, bits: int, needed: int = 0) -> None:
    """Refuse a call whose first argument has any of ``bits``, or lacks ``needed``."""
    body: Program = [(_LOAD, 0, 0, _FIRST), (_JUMP_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _EPERM)]
    if needed:
        body += [(_JUMP_ANY_BIT, 1, 0, needed), (_RETURN, 0, 0, _EPERM)]
    body.append((_LOAD, 0, 0, _NUMBER))
    program += [(_JUMP_EQUAL, 0, len(body), number), *body]


def _start_of_program() -> Program:
    arch = 0xC00000B7 if _ARM else 0xC000003E
    program: Program = [(_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if not _ARM:  # the x32 numbers are a second way to every call
        program += [(_JUMP_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ENOSYS)]
    return program


def _install(program: Program) -> None:
    program = [*program, (_RETURN, 0, 0, _ALLOW)]
    raw = b"".join(struct.pack("HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(raw, len(raw))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(kept))
    check(libc.syscall(_SECCOMP[_ARM], 1, _SPEC_ALLOW, header), "seccomp")


def refused(act: Callable[[], Any], number: int) -> bool:
    """Whether the kernel refuses something, with this error number."""
    try:
        act()
    except OSError as error:
        return error.errno == number
    return False


def holds_seccomp() -> bool:
    return refused(socket.socket, errno.EPERM) and refused(lambda: os.execv("/no/such", ["x"]), errno.EPERM)


def seccomp_for_all() -> None:
    """Deny :data:`SYSCALLS` to this process and its children. Needs NO_NEW_PRIVS."""
    if platform.machine() not in ("x86_64", "aarch64", "arm64") or struct.calcsize("P") != 8:
        raise OSError(errno.ENOSYS, f"no table of calls for {platform.machine()}")
    program = _start_of_program()
    for numbers in SYSCALLS.values():
        _deny(program, numbers[_ARM])
    _deny(program, _CLONE3[_ARM], _ENOSYS)  # its flags lie in memory; glibc falls back to clone, whose can be read
    _without_bits(program, _CLONE[_ARM], _NAMESPACE_FLAGS)
    _install(program)


def seccomp_for_policy() -> None:
    """What else the process with the policy may not do: fork, signal others, change others' limits or cores."""
    program = _start_of_program()
    me = os.getpid()
    for numbers in _POLICY_ONLY.values():
        _deny(program, numbers[_ARM])
    _without_bits(program, _CLONE[_ARM], _NAMESPACE_FLAGS, needed=_THREAD_FLAG)
    _only_for(program, _TGKILL[_ARM], _FIRST, (me,))
    for call in (_PRLIMIT, _SETAFFINITY):
        _only_for(program, call[_ARM], _FIRST, (0, me))
    _never_for(program, _PRCTL[_ARM], _FIRST, (PR_SET_PDEATHSIG, PR_SET_DUMPABLE))
    _install(program)
