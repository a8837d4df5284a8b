"""One episode in the worker: the environment on this side, the policy on the other, and what came of it."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotui.protocol.results import EpisodeResult
from evotui.protocol.spaces import Schema, action_reader, to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import Fault, FaultKind
from evotui.rollout.guest import wire
from evotui.rollout.guest.layout import Layout, action_numbers, action_shape
from evotui.rollout.host import Odd, PolicyFault, PolicyProcess
from evotui.rollout.output import printable
from evotui.rollout.recorder import Recorder, RecordingFailed
from evotui.suite import worlds

TICK_SECONDS = 0.1
"""How often a running episode looks up: tells where it is, reads the guest's clocks, asks whether to go on."""

_KNOWN_ACTIONS = 256


class CalledOff(Exception):
    """Nobody wants this episode any more."""


class ActionDecoder:
    """Turns a guest's reply into ``(executed, returned as plain data, was invalid)``; checks every number.

    Numbers that lie in the space take the fast path; everything else goes through the protocol's repair.
    """

    def __init__(self, schema: Schema) -> None:
        self._repair = action_reader(schema)
        self.kind = schema["type"]
        self._shape = action_shape(schema) if action_numbers(schema) else ()
        numbers = action_numbers(schema)
        self._wire = np.dtype("<f8" if numbers and numbers[0] == "d" else "<i8")
        self.bounds: tuple[np.ndarray, np.ndarray, np.dtype[Any]] | None = None
        """``(low, high, dtype)`` of a Box of floats, None for other spaces."""
        if self.kind == "Box" and numbers and numbers[0] == "d":
            dtype = np.dtype(schema["dtype"])
            low, high = (np.broadcast_to(np.asarray(schema[side], dtype), self._shape) for side in ("low", "high"))
            self.bounds = low, high, dtype
        self._known: dict[bytes | Odd, tuple[Any, Any, bool]] = {}
        """What the first few actions of a Discrete space decode to: a light environment's step is that short."""
        if self.kind == "Discrete":
            self.first = int(schema.get("start", 0))
            self.last = self.first + int(schema["n"]) - 1
            self.integer = np.dtype(schema.get("dtype", "int64")).type
            for number in range(self.first, min(self.last, self.first + _KNOWN_ACTIONS - 1) + 1):
                self._known[wire.INT64.pack(number)] = self.integer(number), number, False

    def __call__(self, reply: bytes | Odd) -> tuple[Any, Any, bool]:
        if (known := self._known.get(reply)) is not None:
            return known
        if isinstance(reply, Odd):
            executed, _ = self._repair(reply.value)
            return executed, to_jsonable(reply.value), True
        if self.kind == "Discrete":
            number = wire.INT64.unpack(reply)[0]
            if self.first <= number <= self.last:
                return self.integer(number), number, False
            return self._repair(number)[0], number, True
        array = np.frombuffer(reply, self._wire).reshape(self._shape)
        executed, invalid = self._repair(array)
        returned = array.tolist()
        return executed, to_jsonable(returned) if invalid else returned, invalid


def global_seed(seed: int) -> int:
    """The 64-bit seed of the guest's global generators for a case: one-way, so that it tells nothing of the case."""
    raw = seed.to_bytes((seed.bit_length() + 7) // 8 or 1, "little")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8, person=b"evotui globals").digest(), "little")


@dataclass
class Tools:
    """What the episodes of one job share: prepared codecs."""

    task: TaskSpec
    layout: Layout
    decode: ActionDecoder
    cpu_limit: float


def play(
    tools: Tools,
    policy: PolicyProcess,
    recorder: Recorder,
    position: int,
    index: int,
    seed: int,
    look_up: Callable[[int, float], None],
) -> EpisodeResult:
    """Run one episode to its end, which may be a fault; ``index`` is what the policy's reset is told.

    Raises CalledOff where ``look_up(step, return)`` does. A fault of the policy or of the environment is in the result.
    Files are not finished here.
    """
    episode = _Episode(tools, policy, recorder, look_up)
    began = time.perf_counter()
    cpu_before = policy.tick()
    fault: Fault | None = None
    try:
        episode.run(index, seed)
    except PolicyFault as error:
        fault = Fault(error.kind, episode.at, error.message, error.trace)
        if error.kind in (FaultKind.ACT_ERROR,) and episode.world is not None:
            fault = episode.last_sampled_step(fault)
    except (CalledOff, RecordingFailed):
        raise
    except Exception as error:  # whatever an environment raises is the environment's fault, and a result
        text = printable("".join(traceback.format_exception(error)))
        message = printable(f"{type(error).__name__}: {error}")[:1000]
        fault = Fault(FaultKind.ENVIRONMENT, episode.at, message, text[-8000:])
    finally:
        episode.close()
    return EpisodeResult(
        position=position,
        return_=episode.return_,
        length=episode.length,
        terminated=episode.terminated,
        truncated=episode.truncated,
        success=episode.success if fault is None else (None if not tools.task.success else False),
        components=episode.components,
        invalid_actions=episode.invalid,
        fault=fault,
        wall_seconds=time.perf_counter() - began,
        cpu_seconds=max(policy.tick() - cpu_before, 0.0),
    )


class _Episode:
    """The running state of one episode; ``at`` is the step that a fault would be charged to, −1 in reset."""

    def __init__(
        self, tools: Tools, policy: PolicyProcess, recorder: Recorder, look_up: Callable[[int, float], None]
    ) -> None:
        self.tools, self.policy, self.recorder, self.look_up = tools, policy, recorder, look_up
        self.world: worlds.World | None = None
        self.at = -1
        self.length = self.invalid = 0
        self.return_ = 0.0
        self.terminated = self.truncated = False
        self.success: bool | None = None
        self.components: dict[str, float] = dict.fromkeys(tools.task.reward_components, 0.0)
        self._obs: Any = None

    def run(self, index: int, seed: int) -> None:
        self.world = world = worlds.make(self.tools.task)
        canonical, pack = self.tools.layout.canonical, self.tools.layout.pack
        act, decode, step, record = self.policy.act, self.tools.decode, world.step, self.recorder.step
        silent = self.recorder.idle
        obs = self._obs = canonical(world.reset(seed))
        cpu_began = self.policy.tick()
        self.policy.reset(index, global_seed(seed))
        next_tick = time.perf_counter() + TICK_SECONDS
        while True:
            self.at = self.length
            executed, returned, invalid = decode(act(pack(obs)))
            new_obs, reward, terminated, truncated, info = step(executed)
            self.return_ += reward
            self.length += 1
            if self.components:
                self._add_components(info)
            if invalid:
                self.invalid += 1
            if not silent:
                marks = {"action_invalid": True} if invalid else None
                record(obs, returned, executed, reward, terminated, truncated, info, marks)
            if terminated or truncated:
                self._end(reward, terminated, truncated, info)
                return
            obs = self._obs = canonical(new_obs)
            if time.perf_counter() >= next_tick:
                self._tick(cpu_began)
                next_tick = time.perf_counter() + TICK_SECONDS

    def last_sampled_step(self, fault: Fault) -> Fault:
        """``act`` raised: the step is made with a sample of the action space, and the episode stops (PROTOCOL §4)."""
        assert self.world is not None
        try:
            executed = self.world.sample()
            _, reward, terminated, truncated, info = self.world.step(executed)
        except Exception as error:  # the environment's own: told beside the policy's, which came first
            message = printable(f"{fault.message} (then the environment: {error})")
            return Fault(fault.kind, fault.step, message, fault.traceback)
        self.return_ += reward
        self.length += 1
        self._add_components(info)
        marks = {"action_sampled": True}
        self.recorder.step(self._obs, to_jsonable(executed), executed, reward, terminated, truncated, info, marks)
        self.terminated, self.truncated = terminated, truncated
        return fault

    def close(self) -> None:
        if self.world is None:
            return
        try:
            self.world.close()
        except Exception as error:
            print(f"closing the environment failed: {error}", flush=True)  # the worker's log; the episode is over

    def _end(self, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]) -> None:
        assert self.world is not None
        self.terminated, self.truncated = terminated, truncated
        self.success = self.world.success(reward, terminated, truncated, info, self.return_)

    def _add_components(self, info: dict[str, Any]) -> None:
        for key in self.components:
            value = info.get(key)
            if value is not None:
                self.components[key] += float(value)

    def _tick(self, cpu_began: float) -> None:
        used = self.policy.tick() - cpu_began
        if used > self.tools.cpu_limit:
            raise PolicyFault(
                FaultKind.EPISODE_TIMEOUT, f"the episode took more than {self.tools.cpu_limit:g} s of processor time"
            )
        self.look_up(self.length, self.return_)


def not_tried(fault: Fault, position: int) -> EpisodeResult:
    """The result of an episode that was not run because its submission was given up."""
    return EpisodeResult(position, 0.0, 0, False, False, fault=fault)
