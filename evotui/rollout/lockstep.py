"""Several episodes of one policy in lockstep: one frame with all observations, one with all actions.

Crossing between two processes costs as much as a few steps of a light environment; sixteen at a time share that cost.
It is the same experiment only for a policy whose objects share nothing, which is why the worker checks samples against
episodes run alone, and why anything out of the ordinary (an exception, a print, an odd action, a time limit) is
:class:`Irregular`: the episodes concerned are then run alone, and only that counts.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotui.protocol.results import EpisodeResult
from evotui.rollout import messages
from evotui.rollout.episode import TICK_SECONDS, Tools, global_seed
from evotui.rollout.guest import wire
from evotui.rollout.host import PolicyFault, PolicyProcess
from evotui.rollout.recorder import Recorder
from evotui.suite import worlds

RECHECK = 8
"""The first lockstep of a job and then every so many has one of its episodes run alone, to be compared."""

MAX_STEP_SECONDS = 1e-3
"""Where a step takes longer, sharing the crossing gains less than a few percent."""


class Irregular(Exception):
    """These episodes cannot go on in lockstep; says why. Nothing of the unfinished ones counts."""


@dataclass(frozen=True)
class Script:
    """An episode that was run alone: what the policy was shown (packed) and returned at each step, and the result.

    In a lockstep it is played again without an environment: as long as the policy answers the same, the same case
    would show it the same, so each answer is compared and the next observation comes from here.
    """

    run: messages.Run
    result: EpisodeResult
    shown: list[bytes]
    returned: list[Any]


class Slot:
    """One episode of a lockstep; with a ``script``, one that follows it."""

    __slots__ = (
        "components", "index", "invalid", "length", "number", "obs", "position", "recorder", "return_", "script",
        "seed", "silent", "world",
    )  # fmt: skip

    def __init__(
        self, number: int, position: int, index: int, seed: int, recorder: Recorder, script: Script | None = None
    ) -> None:
        self.script = script
        self.number, self.position, self.index, self.seed, self.recorder = number, position, index, seed, recorder
        self.world: worlds.World | None = None
        self.obs: Any = None
        self.silent = recorder.idle
        self.return_ = 0.0
        self.length = self.invalid = 0
        self.components: dict[str, float] = {}


def play_together(
    tools: Tools, policy: PolicyProcess, slots: list[Slot], look_up: Callable[[Slot], None]
) -> Iterator[tuple[Slot, EpisodeResult]]:
    """Run episodes side by side; each with its result as it ends, its files not finished yet.

    ``policy`` has ``len(slots)`` Policy objects, numbered as the slots. Raises :class:`Irregular`, or what ``look_up``
    raises, which is called for each running slot about ten times a second.
    """
    began, cpu_began = time.perf_counter(), policy.tick()
    steps = 0
    running = list(slots)
    shuffle = random.Random(0).shuffle if any(slot.script for slot in slots) else None
    try:
        _begin(tools, policy, running)
        decode = Decoder(tools)
        next_tick = began + TICK_SECONDS
        while running:
            n = len(running)
            if shuffle is not None:  # in a fixed order, what objects share could look right by chance
                shuffle(running)
            replies = _ask(tools, policy, running)
            steps += n
            ended = []
            for slot, (executed, returned, invalid) in zip(running, decode(replies, n), strict=True):
                take = _step if slot.script is None else _follow
                if (end := take(tools, slot, executed, returned, invalid)) is not None:
                    ended.append((slot, end))
            if ended:
                policy.flush()
                if any(policy.guest.output.take()):
                    raise Irregular("the policy prints")
                share = (time.perf_counter() - began) / steps, (policy.tick() - cpu_began) / steps
                for slot, (terminated, truncated, success) in ended:
                    running.remove(slot)
                    alone = slot.script.result if slot.script is not None else None
                    yield slot, alone or _result(slot, terminated, truncated, success, share)
            if time.perf_counter() >= next_tick:
                if policy.tick() - cpu_began > tools.cpu_limit:
                    raise Irregular("it takes much processor time")
                for slot in running:
                    look_up(slot)
                next_tick = time.perf_counter() + TICK_SECONDS
    except PolicyFault as fault:
        raise Irregular(fault.message) from fault
    finally:
        for slot in slots:
            if slot.world is not None:
                slot.world.close()


def _begin(tools: Tools, policy: PolicyProcess, slots: list[Slot]) -> None:
    for slot in slots:
        if slot.script is not None:
            slot.obs, _ = tools.layout.unpack(slot.script.shown[0], 0)
            continue
        try:
            slot.world = worlds.make(tools.task)
            slot.obs = tools.layout.canonical(slot.world.reset(slot.seed))
        except Exception as error:  # whatever an environment raises: told when the episode is run alone
            raise Irregular(f"the environment raised {type(error).__name__}") from error
        slot.components = dict.fromkeys(tools.task.reward_components, 0.0)
    policy.reset_many([(slot.number, slot.index, global_seed(slot.seed)) for slot in slots])


def _ask(tools: Tools, policy: PolicyProcess, running: list[Slot]) -> bytes:
    pack = tools.layout.pack
    numbers = np.array([slot.number for slot in running], "<u2").tobytes()
    numbers += bytes(-len(numbers) % wire.ALIGN)
    reply = policy.act_many(len(running), numbers + b"".join([pack(slot.obs) for slot in running]))
    if reply is None:
        raise Irregular("an action is no plain number")
    return reply


def _step(
    tools: Tools, slot: Slot, executed: Any, returned: Any, invalid: bool
) -> tuple[bool, bool, bool | None] | None:
    """One environment step of one slot; ``(terminated, truncated, success)`` where it was the last."""
    assert slot.world is not None
    try:
        obs, reward, terminated, truncated, info = slot.world.step(executed)
        slot.return_ += reward
        slot.length += 1
        if slot.components:
            for key in slot.components:
                if (value := info.get(key)) is not None:
                    slot.components[key] += float(value)
        if invalid:
            slot.invalid += 1
        if not slot.silent:
            marks = {"action_invalid": True} if invalid else None
            slot.recorder.step(slot.obs, returned, executed, reward, terminated, truncated, info, marks)
        if terminated or truncated:
            success = slot.world.success(reward, terminated, truncated, info, slot.return_)
            return terminated, truncated, success
        slot.obs = tools.layout.canonical(obs)
    except Exception as error:  # as in _begin
        raise Irregular(f"the environment raised {type(error).__name__}") from error
    return None


def _follow(
    tools: Tools, slot: Slot, executed: Any, returned: Any, invalid: bool
) -> tuple[bool, bool, bool | None] | None:
    """As :func:`_step` for a slot with a script. Raises Irregular where the policy left it."""
    script = slot.script
    assert script is not None
    if returned != script.returned[slot.length]:
        raise Irregular("the same case went differently in lockstep: the policy's objects share something")
    slot.length += 1
    if slot.length == len(script.returned):
        return script.result.terminated, script.result.truncated, script.result.success
    slot.obs, _ = tools.layout.unpack(script.shown[slot.length], 0)
    return None


def _result(
    slot: Slot, terminated: bool, truncated: bool, success: bool | None, share: tuple[float, float]
) -> EpisodeResult:
    """Times are this episode's share, by steps, of what the lockstep took so far."""
    wall, cpu = share
    return EpisodeResult(
        position=slot.position,
        return_=slot.return_,
        length=slot.length,
        terminated=terminated,
        truncated=truncated,
        success=success,
        components=slot.components,
        invalid_actions=slot.invalid,
        wall_seconds=wall * slot.length,
        cpu_seconds=max(cpu * slot.length, 0.0),
    )


class Decoder:
    """Splits a reply into actions; the common case (all of them in the space) is checked for all at once."""

    def __init__(self, tools: Tools) -> None:
        self._one = tools.decode

    def __call__(self, reply: bytes, n: int) -> Iterable[tuple[Any, Any, bool]]:
        """``(executed, returned, invalid)`` of ``n`` actions."""
        one = self._one
        if one.kind == "Discrete":
            numbers = np.frombuffer(reply, "<i8")
            returned = numbers.tolist()
            if one.first <= min(returned) and max(returned) <= one.last:
                return zip(numbers.astype(one.integer), returned, itertools.repeat(False), strict=False)
        elif one.bounds is not None:
            low, high, dtype = one.bounds
            given = np.frombuffer(reply, "<f8").reshape(n, *low.shape)
            cast = given.astype(dtype)
            if bool((cast >= low).all()) and bool((cast <= high).all()):
                return zip(cast, given.tolist(), itertools.repeat(False), strict=False)
        size = len(reply) // n
        return (one(reply[at : at + size]) for at in range(0, len(reply), size))
