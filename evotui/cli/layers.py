"""The layers of isolation in words: what each keeps out, why it is off on this machine, how to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evotui.rollout.limits import Isolation

LEVELS = {
    "A": "namespaces, Landlock and seccomp: nothing of the host can be seen or reached",
    "B": "Landlock and seccomp: files, network and processes are out of reach; no scratch space",
    "C": "namespaces and seccomp: the host cannot be seen; no Landlock behind that",
    "D": "a process of its own with limits: a policy can do what you can",
}

KEEPS = {
    "namespaces": "a world of its own: users, files, processes, network",
    "landlock": "files: the snapshot and the libraries, nothing else",
    "seccomp": "no sockets, no programs, no doors of the kernel",
    "unprivileged": "a user who owns nothing, without capabilities",
    "rlimits": "memory, files, processes",
}

_KNOBS = {  # file below /proc/sys: (the value that forbids user namespaces, one that allows them)
    "user/max_user_namespaces": ("0", "15000"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
}
_LANDLOCK_SINCE = (5, 13)
_FAULT = "no setting of yours: please report it, with this reason"
_MAPPED_ROOT = "this root is that of a user namespace, and may not change its mounts: be an ordinary user, or real root"
_ELSEWHERE = "the walls are Linux's: run evotui on Linux, in a container or a virtual machine"


@dataclass(frozen=True, slots=True)
class Host:
    """What decides which walls can be had."""

    system: str
    kernel: str
    machine: str
    uid: int
    container: bool
    knobs: Mapping[str, str] = field(default_factory=dict)
    """Values of the files below /proc/sys that forbid namespaces, where they exist."""
    modules: str = ""
    """The kernel's security modules; empty where they cannot be told."""
    mapped: bool = False
    """Whether the users here are those of a user namespace: its root is not the machine's."""

    @classmethod
    def here(cls) -> Host:
        knobs = {name: _first_line(f"/proc/sys/{name}") for name in _KNOBS}
        return cls(
            system=sys.platform,
            kernel=platform.release(),
            machine=platform.machine(),
            uid=os.getuid(),
            container=any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))),
            knobs={name: value for name, value in knobs.items() if value},
            modules=_first_line("/sys/kernel/security/lsm"),
            mapped=_first_line("/proc/self/uid_map").split() not in ([], ["0", "0", str(2**32 - 1)]),
        )


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def layers(isolation: Isolation, tried: frozenset[str], host: Host) -> list[dict[str, Any]]:
    """Every layer as ``{name, held, keeps, why, how}``; why it is off and how to get it are empty where it held."""
    told = {name: _last_line(why) for name, _, why in (line.partition(": ") for line in isolation.missing)}
    rows = []
    for name, keeps in KEEPS.items():
        held = name in isolation.layers
        why, how = ("", "") if held else _advice(name, told.get(name, ""), isolation, tried, host)
        rows.append({"name": name, "held": held, "keeps": keeps, "why": why, "how": how})
    return rows


def _last_line(text: str) -> str:
    """What a traceback ends with; any other text is a line of its own."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _advice(name: str, told: str, isolation: Isolation, tried: frozenset[str], host: Host) -> tuple[str, str]:
    if not isolation.layers:
        return "unknown: no worker could be started", ""
    if host.system != "linux":
        return f"not on {host.system}", _ELSEWHERE
    if name in ("namespaces", "landlock", "seccomp") and name not in tried:
        return "EVOTUI_WALLS leaves it out", "unset EVOTUI_WALLS"
    match name:
        case "namespaces":
            fault = "did not start" in "".join(isolation.missing)
            if fault:
                return told or "the kernel refuses", _MAPPED_ROOT if host.mapped and host.uid == 0 else _FAULT
            return told or "the kernel refuses", _namespaces(host)
        case "landlock":
            return told or "the kernel refuses", _landlock(host)
        case "seccomp":
            return told or "the kernel refuses", (
                "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64"
                if host.machine in ("x86_64", "aarch64", "arm64")
                else f"there is no table of calls for {host.machine}: x86_64 or aarch64"
            )
        case "unprivileged":
            if told:
                return (
                    told,
                    "keep Python and evotui where every user may read them (not below /root), or do not be root",
                )
            return "privileges are given up together with Landlock or seccomp", "get one of those"
        case _:
            return told or "unknown", ""


def _namespaces(host: Host) -> str:
    closed = [name for name, (no, _) in _KNOBS.items() if host.knobs.get(name) == no]
    if host.uid == 0:
        closed = [name for name in closed if name.startswith("user/")]  # root needs no user namespace
    if closed:
        return "; ".join(f"as root: sysctl -w {name.replace('/', '.')}={_KNOBS[name][1]}" for name in closed)
    if host.container:
        return "start the container with --security-opt seccomp=unconfined (as root also --cap-add SYS_ADMIN)"
    if host.uid == 0:
        return "this root lacks CAP_SYS_ADMIN: give it that, or run evotui as an ordinary user"
    return "let ordinary users make user namespaces: a security module or a seccomp profile forbids it here"


def _landlock(host: Host) -> str:
    if _version(host.kernel) < _LANDLOCK_SINCE:
        return f"a kernel of 5.13 or newer (here: {host.kernel})"
    if host.modules and "landlock" not in host.modules.split(","):
        return f"boot with lsm=landlock,{host.modules}"
    if host.container:
        return "a newer container runtime: its seccomp profile does not know Landlock"
    return "a kernel with CONFIG_SECURITY_LANDLOCK, booted with landlock among its lsm="


def _version(kernel: str) -> tuple[int, ...]:
    parts = kernel.split("-")[0].split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else (0, 0)
