"""Feeds, controls, frames and a launcher that the screens are driven with in tests: simple, deterministic, no mocks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evotui.protocol.budget import Rejected, parse_cases
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import RunDir, width_of
from evotui.record.state import RunState
from evotui.ui.feed import AgentChoice, EnvChoice, Feed, FrameSource, Latest, NewRun, Progress, Shot


def load(run: RunDir) -> RunState:
    return fold_all(read(run.events))


class FakeControls:
    """Remembers what was asked; pausing and resuming change the feed's state as the kernel would."""

    def __init__(self, feed: FakeFeed) -> None:
        self._feed = feed
        self.system: Path = feed.run.system
        self.asked: list[Any] = []

    async def pause(self) -> None:
        self.asked.append("pause")
        self._feed.put(replace(self._feed.state, gate="pause"))

    async def resume(self) -> None:
        self.asked.append("resume")
        self._feed.put(replace(self._feed.state, gate="run"))

    async def step_iteration(self) -> None:
        self.asked.append("step_iteration")

    async def step_phase(self) -> None:
        self.asked.append("step_phase")

    async def submit(self, cases: str) -> dict[str, Any]:
        ids = parse_cases(cases, self._feed.state.header.n_train)
        self._feed.state.budget.check(ids)
        self.asked.append(("submit", cases))
        if cases == "13":
            from evotui.protocol.verdict import Verdict

            raise Rejected(Verdict.BUDGET_INVALID, "thirteen is refused")
        return {"submit_id": "submit_004", "status": "ok"}

    async def say(self, text: str) -> None:
        self.asked.append(("say", text))

    async def approve_each(self, on: bool) -> None:
        self.asked.append(("approve_each", on))
        self._feed.put(replace(self._feed.state, approval=on))

    async def decide(self, approved: bool, text: str = "") -> None:
        self.asked.append(("decide", approved, text))
        self._feed.put(replace(self._feed.state, asked=None))

    async def hand_over(self, agent: str, options: Mapping[str, str], program: Sequence[str] = ()) -> None:
        if options.get("model") == "refused":
            raise RuntimeError("401: the key was refused")
        self.asked.append(("hand_over", agent, dict(options), tuple(program)))

    async def edited(self, before: Mapping[str, str]) -> list[str]:
        changed = [p for p, text in before.items() if (self.system / p).read_text() != text]
        self.asked.append(("edited", tuple(changed)))
        return changed

    async def stop(self) -> None:
        self.asked.append("stop")
        self._feed.end()

    async def finalize(self) -> None:
        self.asked.append("finalize")


class FakeFeed:
    """A run from a golden log. ``put`` brings a newer state; ``end`` says that nothing more comes."""

    def __init__(
        self, run: RunDir, live: bool = False, drives: bool = False, progress: Sequence[Progress] = ()
    ) -> None:
        state = load(run)
        self.run = RunDir(run.root, width_of(state.budget.total))
        self.state = state
        self.live = live
        self._drives = drives
        self.fake_controls = FakeControls(self)
        self.under_way = list(progress)
        self.closed = False
        self.failure = ""
        self._slot = Latest()

    @property
    def controls(self) -> FakeControls | None:
        return self.fake_controls if self._drives and self.live else None

    def put(self, state: RunState) -> None:
        self.state = state
        self._slot.put()

    def end(self, failure: str = "") -> None:
        self.live = False
        self.failure = failure
        self._slot.close()

    async def updates(self) -> AsyncIterator[RunState]:
        yield self.state
        while self.live and await self._slot.wait():
            yield self.state
        yield self.state

    def progress(self) -> Sequence[Progress]:
        return tuple(self.under_way)

    async def close(self) -> None:
        self.closed = True
        self.end()


class FakeFrames:
    """A cart and its pole, drawn. ``kind`` "none" has no frame and says why; "text" draws with letters,
    "both" with letters too."""

    def __init__(self, last_step: int = 60, kind: str = "pixels") -> None:
        self.last_step = last_step
        self.kind = kind
        self.square = False
        self.played: list[tuple[int, int, int]] = []
        self.closed = False

    async def play(
        self, submission: int, position: int, width: int, height: int, start: int = 0
    ) -> AsyncIterator[Shot]:
        self.played.append((submission, position, start))
        for step in range(start, self.last_step + 1):
            await asyncio.sleep(0)
            yield self.shot(step, width, height)

    def shot(self, step: int, width: int, height: int) -> Shot:
        x = 0.9 * math.sin(step / 23)
        angle = 0.16 * math.sin(step / 9)
        pixels = cart(width, height, x, angle) if self.kind in ("pixels", "both") else None
        if pixels is not None and self.square:
            pixels = pixels[:, : len(pixels)]
        return Shot(
            step,
            self.last_step,
            pixels,
            "S F F\nF H F\nF F G" if self.kind in ("text", "both") else "",
            "no frame: this environment has no renderer" if self.kind == "none" else "",
            [x, 0.3 * math.cos(step / 23), angle, -0.4 * math.cos(step / 9)],
            None if step == self.last_step else int(angle > 0),
            1.0,
            float(step),
            step == self.last_step,
        )

    async def close(self) -> None:
        self.closed = True


def cart(width: int, height: int, x: float, angle: float) -> np.ndarray:
    """A picture like CartPole's, in its aspect 3 : 2, at most width × height."""
    w = max(6, min(width, height * 3 // 2))
    h = max(4, w * 2 // 3)
    px = np.full((h, w, 3), 255, np.uint8)
    yy, xx = np.mgrid[0:h, 0:w]
    track = int(h * 0.75)
    px[track : track + 1] = 0
    cx = int(w * (0.5 + x / 4.8))
    px[track - max(2, h // 12) : track + max(2, h // 12), max(0, cx - w // 12) : cx + w // 12] = 0
    length = h * 0.5
    dx, dy = math.sin(angle), -math.cos(angle)
    along = (xx - cx) * dx + (yy - track) * dy
    across = np.abs((xx - cx) * dy - (yy - track) * dx)
    px[(along > 0) & (along < length) & (across < max(1.0, w / 80))] = (202, 152, 101)
    return px


CHOICES = [
    EnvChoice("cartpole", "CartPole", "CartPole-v1", "warm-up", "", 22.1, 500.0, "Balance a pole on a cart."),
    EnvChoice("acrobot", "Acrobot", "Acrobot-v1", "Gym/Box2D", "", -500.0, -79.0, "Swing a two-link arm up."),
    EnvChoice("pendulum", "Pendulum", "Pendulum-v1", "warm-up", "", -1200.0, -150.0, "Swing a pendulum up."),
    EnvChoice("doorkey", "DoorKey 16×16", "MiniGrid-DoorKey-16x16-v0", "MiniGrid", "", 0.0, 0.96, "Key, door, goal."),
    EnvChoice("ant", "Ant", "Ant-v5", "MuJoCo", "needs mujoco: pip install 'evotui[core16]'", None, None, "Four legs."),
    EnvChoice("racing", "Car Racing", "CarRacing-v3", "Gym/Box2D", "needs box2d: pip install 'evotui[core16]'"),
]


_MODEL = ("model", "api_base", "env_file", "max_cost", "max_turns", "max_wall", "temperature")
AGENTS = [
    AgentChoice("search", "structural edits and CMA-ES, no key needed"),
    AgentChoice("human", "you edit and submit"),
    AgentChoice("litellm", "a language model with tools, any provider", "", _MODEL, ("model",)),
    AgentChoice("claude", "Claude Code", "", ("model", "max_cost", "max_turns")),
    AgentChoice("gemini", "Gemini CLI", "Gemini CLI is not there; install it with `npm install -g it`", ("model",)),
    AgentChoice("command", "any program", "", ("env_file", "max_turns", "max_wall", "program"), ("program",)),
]


class FakeLauncher:
    """Opens golden runs below ``runs``; starts the one that ``to_start`` names."""

    def __init__(self, runs: Path, to_start: RunDir | None = None) -> None:
        self.runs = runs
        self.to_start = to_start
        self.wishes: list[NewRun] = []
        self.refuse = ""
        self.resumed: list[Path] = []

    def environments(self) -> list[EnvChoice]:
        return list(CHOICES)

    def agents(self) -> list[AgentChoice]:
        return list(AGENTS)

    async def start(self, wish: NewRun) -> tuple[Feed, FrameSource]:
        if self.refuse:
            raise RuntimeError(self.refuse)
        self.wishes.append(wish)
        assert self.to_start is not None
        return FakeFeed(self.to_start, live=True, drives=True), FakeFrames()

    async def resume(self, run: Path) -> tuple[Feed, FrameSource]:
        if self.refuse:
            raise RuntimeError(self.refuse)
        self.resumed.append(run)
        return FakeFeed(RunDir(run), live=True, drives=True), FakeFrames()

    async def open(self, run: Path) -> tuple[Feed, FrameSource]:
        return FakeFeed(RunDir(run)), FakeFrames()
