"""What a rollout is asked to do and what it tells: limits, cases, jobs, isolation, events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evotui.protocol.spaces import Schema
from evotui.protocol.task import TaskSpec

Lifetime = Literal["episode", "submission"]
Mode = Literal["episode", "auto", "batch"]

ALL_WALLS = frozenset({"namespaces", "landlock", "seccomp"})
"""The layers of isolation that can be raised one by one; limits are always there."""

MOST_WORKERS = 256
"""Worker processes of one engine, at most: each takes some 50 MB and a socket, and more than cores gain nothing."""

LOCKSTEP_WIDTH = 64
"""Most episodes in one lockstep: light environments then run at four fifths of the bare loop's speed (16: three)."""

LEAST_WIDTH = 4

STEP_SECONDS_SHARED = 1.6e-3
"""Width × time of a step from which on sharing the crossing further gains less than what it costs.

A crossing takes 20 to 90 µs (the less the environment leaves of the caches, the longer): 1 to 6 % of the steps that
share it. More episodes side by side then only push each other out of the core's cache: a step of HalfCheetah takes
72 µs among 16 and 87 among 64.
"""

FIRST_LOCKSTEP = 16
"""Episodes in a worker's first lockstep of a job, whose results wait for the comparison."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one policy process may use.

    Times are seconds of the policy's own time: waiting for a busy core does not count, sleeping does. Loading covers
    the import and, separately, the constructor. ``episode_cpu_seconds`` is processor time of one episode.
    ``memory_bytes`` is address space, ``file_bytes`` what may be written to scratch files, ``output_bytes`` how much of
    stdout and of stderr is kept per episode (the rest is read and dropped).
    """

    load_seconds: float = 10.0
    reset_seconds: float = 5.0
    act_seconds: float = 1.0
    episode_cpu_seconds: float = 60.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 32 << 20
    output_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class CaseSeed:
    """One case of a job: its position there, a label that may be shown, and the reset seed that may not.

    ``episode_index`` is what ``Policy.reset`` is told; the position where it is None. They differ where a job holds the
    rest of an interrupted submission.
    """

    position: int
    label: str
    seed: int = field(repr=False)
    episode_index: int | None = None

    @property
    def index(self) -> int:
        return self.position if self.episode_index is None else self.episode_index


@dataclass(frozen=True, slots=True)
class Job:
    """One policy system on some cases of one task.

    ``snapshot`` is the folder with ``policy.py``; ``env_meta`` goes to ``Policy(...)``. With ``record`` each episode's
    files are written to ``record/<name>/`` before its result is told; with ``actions`` the executed actions to
    ``actions/<name>.npy`` or ``.npz`` (host only; exact replay needs them and the seed). ``names`` has one name per
    case and is needed with either. ``mode``: each episode in a process of its own (``episode``); or several in lockstep
    in one process where samples show no difference, either after a look at the source and the environment's speed
    (``auto``) or whatever these say (``batch``).
    """

    task: TaskSpec
    snapshot: Path
    cases: tuple[CaseSeed, ...]
    env_meta: Mapping[str, Any]
    obs_schema: Schema
    action_schema: Schema
    limits: Limits = Limits()
    lifetime: Lifetime = "episode"
    denied_imports: tuple[str, ...] = ()
    record: Path | None = None
    names: tuple[str, ...] = ()
    actions: Path | None = None
    mode: Mode = "episode"

    def __post_init__(self) -> None:
        if [case.position for case in self.cases] != list(range(len(self.cases))):
            raise ValueError("the positions of a job's cases are 0, 1, 2, … in order")
        if (self.record or self.actions) and len(self.names) != len(self.cases):
            raise ValueError(f"{len(self.cases)} cases need as many names, not {len(self.names)}")


@dataclass(frozen=True, slots=True)
class Isolation:
    """What stands between a policy and the host: level A to D, the layers that were seen to hold, the mode.

    A: namespaces, Landlock and seccomp. B: Landlock and seccomp. C: namespaces and seccomp. D: an own process with
    limits. ``missing`` has a line for each layer that is not there, with the reason.
    """

    level: str
    layers: tuple[str, ...]
    mode: str = "episode"
    width: int = 1
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    position: int


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """Where a running episode is: environment steps done and their return. At most about ten a second each."""

    position: int
    step: int
    return_: float


def lockstep_width(step_seconds: float) -> int:
    """How many episodes to run in lockstep where a step of one takes so long (infinity: not known yet)."""
    if step_seconds == math.inf:
        return FIRST_LOCKSTEP
    return min(max(round(STEP_SECONDS_SHARED / step_seconds), LEAST_WIDTH), LOCKSTEP_WIDTH)
