"""The walls around a policy in their order: namespaces, user, limits, Landlock, seccomp; each tried from the inside.

A wall counts only if the try failed to get through. Standard library only: the first walls are raised before numpy is
loaded. Linux; elsewhere limits are all there is.

Order matters: namespaces, then mounts, then the unprivileged user, then limits, numpy and the libraries that the policy
names, then NO_NEW_PRIVS, Landlock, seccomp. Each step gives up what the next one needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from . import syscalls
from .landlock import allow_only, holds_landlock
from .namespaces import HERE, SCRATCH, SYSTEM, enter_namespaces, holds_namespaces, interpreter_paths
from .privileges import die_with_parent, drop_privileges, limit_resources, others_may_read


def level_of(layers: set[str]) -> str:
    """The level that a set of layers makes (see the package's isolation table)."""
    if "seccomp" not in layers:
        return "D"
    if {"namespaces", "landlock"} <= layers:
        return "A"
    return "B" if "landlock" in layers else "C" if "namespaces" in layers else "D"


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
            readable = [*interpreter_paths(), self.config["system"], HERE, "/dev/urandom", "/dev/random"]
            self._raise("landlock", lambda: allow_only(readable, writable), holds_landlock)
        if "seccomp" in self.use:
            self._raise("seccomp", syscalls.seccomp_for_all, syscalls.holds_seccomp)
        self.held.append("rlimits")

    def in_policy_process(self, parent: int) -> None:
        """What is left to do after the fork, before any policy code."""
        die_with_parent(parent)
        if "seccomp" in self.held:
            syscalls.seccomp_for_policy()

    @property
    def level(self) -> str:
        return level_of(set(self.held))

    def told(self) -> dict[str, Any]:
        return {"level": self.level, "layers": self.held, "missing": self.missing}

    def _raise(self, name: str, act: Callable[[], Any], holds: Callable[[], bool]) -> None:
        try:
            act()
        except OSError as error:
            self.missing[name] = error.strerror or str(error)
            return
        self._count(name, holds)

    def _count(self, name: str, holds: Callable[[], bool]) -> None:
        if holds():
            self.held.append(name)
        else:
            self.missing[name] = "it was raised, and did not hold"
