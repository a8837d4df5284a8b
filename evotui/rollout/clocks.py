"""How long another process has run and has waited, as the kernel counts it: what its time limits are measured by."""

from __future__ import annotations

import sys
import time


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, dead threads included; 0.0 once it is gone (its caller then learns that by EOF)."""
    if sys.platform != "linux":
        return 0.0
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the kernel's own encoding of "the CPU clock of process pid"
    except OSError:
        return 0.0


def waiting_seconds(pid: int) -> float:
    """How long a process has been runnable without running: the machine's fault, not its own. 0.0 if unknown.

    The kernel counts a wait when it ends: one that goes on now is not in it.
    """
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def runnable(pid: int) -> bool:
    """Whether a process runs or waits for a core, rather than sleeping or being gone. False if unknown."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False
