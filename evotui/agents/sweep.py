"""The processes of an agent: told by a tag in their environment, and ended by it, whoever started them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from collections import deque
from collections.abc import Collection
from pathlib import Path

TAG = "EVOTUI_AGENT"
"""The variable that marks every process of a run's agent: the run's tag, a dot, and one program's own."""

SECONDS = 5.0


def tag_of(workspace: Path) -> str:
    """The tag of a run's agents, made from where its workspace lies: another process of ours finds it again."""
    return hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()[:20]


def sweep_leftovers(workspace: Path) -> int:
    """End the agents of a run whose host was killed. Returns how many processes there were. Blocking."""
    return sweep(tag_of(workspace))


def sweep(tag: str, group: int = 0, family: Collection[tuple[int, float]] = (), seconds: float = SECONDS) -> int:
    """Kill what an agent left behind: whoever bears the tag, is in its ``group``, or of its ``family``. Blocking.

    Returns how many there were, once they are gone (or after ``seconds``). Never this process or one above it.
    """
    spared, until = _ancestors(), time.monotonic() + seconds
    killed: set[int] = set()
    while True:
        found = [pid for pid in survivors(tag, group, family) if pid not in spared]
        if not found or time.monotonic() > until:
            return len(killed)
        for pid in found:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def survivors(tag: str, group: int = 0, family: Collection[tuple[int, float]] = ()) -> list[int]:
    """Living processes that bear the tag (a run's, or one program's), are in the group, or of the family. Blocking."""
    mark = f"{TAG}={tag}".encode()
    found = []
    for pid in _pids():
        fields = _stat(pid)
        if fields is None or fields[0] in "ZX":
            continue
        if (
            (group and int(fields[2]) == group)
            or (pid, float(fields[19])) in family
            or any(word.startswith(mark) for word in _environ(pid))
        ):
            found.append(pid)
    return found


def family_of(root: int) -> list[tuple[int, float]]:
    """Those whom a process started, and they in turn: (pid, start time), which names a process for good."""
    children: dict[int, list[tuple[int, float]]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append((pid, float(fields[19])))
    found, queue = [], deque([root])
    while queue:
        for child in children.get(queue.popleft(), ()):
            found.append(child)
            queue.append(child[0])
    return found


def _ancestors() -> set[int]:
    pid, found = os.getpid(), set()
    while pid > 0 and pid not in found:
        found.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields is not None else 0
    return found


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the state on: state, parent, group, …, start time (19); None if gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def state_of(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else ""


def _environ(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
