"""What the coordinator and its workers say to each other: typed structs in msgpack, each behind its length.

Both ends are trusted; the types are checked all the same. Seeds travel as hexadecimal text, since msgpack's integers
end at 64 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from evotui.protocol.results import EpisodeResult
from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import Fault, LoadFault
from evotui.rollout.limits import Isolation, Limits

LENGTH = struct.Struct("<I")


class OpenJob(msgspec.Struct, tag=True, frozen=True):
    """Know a job from now on. Its guest starts when it is first needed."""

    job: int
    task: TaskSpec
    snapshot: str
    obs_schema: dict[str, Any]
    action_schema: dict[str, Any]
    env_meta: Mapping[str, Any]
    limits: Limits
    lifetime: str
    denied: tuple[str, ...]
    mode: str
    record: str | None
    actions: str | None


class Compile(msgspec.Struct, tag=True, frozen=True):
    job: int


class Construct(msgspec.Struct, tag=True, frozen=True):
    job: int


class Warm(msgspec.Struct, tag=True, frozen=True):
    """Start the job's guest now: episodes are about to come."""

    job: int


class Run(msgspec.Struct, tag=True, frozen=True):
    job: int
    position: int
    name: str
    seed: str
    index: int


class RunMany(msgspec.Struct, tag=True, frozen=True):
    """Run these, in lockstep if that is found to make no difference."""

    job: int
    runs: tuple[Run, ...]


class Skip(msgspec.Struct, tag=True, frozen=True):
    """Write the files of an episode that is not tried, and tell its result."""

    job: int
    position: int
    name: str
    fault: Fault


class CloseJob(msgspec.Struct, tag=True, frozen=True):
    job: int


class Ready(msgspec.Struct, tag=True, frozen=True):
    """A worker is up: environments can be made, and this much isolation was seen to hold."""

    isolation: Isolation


class Loaded(msgspec.Struct, tag=True, frozen=True):
    """The answer to Compile and to Construct."""

    job: int
    fault: LoadFault | None


class Started(msgspec.Struct, tag=True, frozen=True):
    job: int
    position: int


class Progress(msgspec.Struct, tag=True, frozen=True):
    job: int
    position: int
    step: int
    return_: float


class Finished(msgspec.Struct, tag=True, frozen=True):
    job: int
    result: EpisodeResult
    lockstep: int = 0
    """How many episodes ran side by side; 0: it ran alone."""


class Declined(msgspec.Struct, tag=True, frozen=True):
    """These of a RunMany were not run, or do not count: they must be run one by one, and this is why."""

    job: int
    positions: tuple[int, ...]
    reason: str


class Troubled(msgspec.Struct, tag=True, frozen=True):
    """An episode cannot be recorded here; its result would be lost, so there is none."""

    job: int
    reason: str


Command = OpenJob | Compile | Construct | Warm | Run | RunMany | Skip | CloseJob
Told = Ready | Loaded | Started | Progress | Finished | Declined | Troubled

_encoder = msgspec.msgpack.Encoder()
command_decoder = msgspec.msgpack.Decoder(Command)
told_decoder = msgspec.msgpack.Decoder(Told)


def frame(message: Command | Told) -> bytes:
    raw = _encoder.encode(message)
    return LENGTH.pack(len(raw)) + raw
