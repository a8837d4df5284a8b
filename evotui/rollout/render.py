"""Frames of recorded episodes, drawn in a process of their own by replaying the executed actions.

Rollouts never render: every environment repeats itself from its seed and actions, so pictures can be made whenever
somebody looks. Drawing libraries can abort the process that uses them; the one here is expendable.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evotui.protocol.spaces import Schema
from evotui.protocol.task import TaskSpec
from evotui.rollout.drawing import forget_gl
from evotui.rollout.workers import worker_environment

CRASHED = "drawing this environment crashed; its values are shown"

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Scene:
    """An episode to replay: task, spaces, reset seed, and the actions file that the rollout wrote (without suffix)."""

    task: TaskSpec
    obs_schema: Schema
    action_schema: Schema
    seed: int = field(repr=False)
    actions: Path


@dataclass(frozen=True, slots=True)
class Frame:
    """One moment of an episode, lined up with row ``step`` of its trajectory.

    ``pixels`` (uint8, height × width × 3, already shrunk) show what the policy saw before ``action``; None where
    nothing can be drawn: ``why`` says the reason. ``text`` is a drawing in characters: beside the pixels where the
    environment has one of its own, in their place also the values as bars. ``reward`` and
    ``info`` are what the action brought, ``return_`` includes it. After the last action comes one more frame, ``done``,
    with ``action`` None and the final observation. ``obs`` is None where it is an image.
    """

    step: int
    last_step: int
    pixels: np.ndarray | None
    text: str
    why: str
    obs: Any
    action: Any
    reward: float
    return_: float
    done: bool
    info: Mapping[str, Any]


class FrameError(Exception):
    """An episode cannot be shown; the message is one line for a person."""


class OpenScene(msgspec.Struct, tag=True, frozen=True):
    task: TaskSpec
    obs_schema: dict[str, Any]
    action_schema: dict[str, Any]
    seed: str
    actions: str
    draw: bool


class TakeFrame(msgspec.Struct, tag=True, frozen=True):
    step: int
    width: int
    height: int


class Request(msgspec.Struct, frozen=True):
    number: int
    wish: OpenScene | TakeFrame


class Picture(msgspec.Struct, tag=True, frozen=True):
    step: int
    last_step: int
    shape: tuple[int, int, int] | None
    pixels: bytes
    text: str
    why: str
    obs: Any
    action: Any
    reward: float
    return_: float
    done: bool
    info: dict[str, Any]


class Opened(msgspec.Struct, tag=True, frozen=True):
    last_step: int
    why: str


class Failed(msgspec.Struct, tag=True, frozen=True):
    message: str


class Answer(msgspec.Struct, frozen=True):
    number: int
    answer: Picture | Opened | Failed


def pack(message: Request | Answer) -> bytes:
    raw = msgspec.msgpack.encode(message)
    return len(raw).to_bytes(_LENGTH_BYTES, "little") + raw


request_decoder = msgspec.msgpack.Decoder(Request)
_answer_decoder = msgspec.msgpack.Decoder(Answer)


class FrameWorker:
    """A drawing process, started on first use. Show one scene at a time: :meth:`open`, then :meth:`frame` at will.

    Asking for a step behind the present one replays from the start; steps between are not drawn. If the process dies
    while drawing, the scene goes on without pixels and says why.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Picture | Opened | Failed]] = {}
        self._numbers = itertools.count(1)
        self._lock = asyncio.Lock()
        self._scene: Scene | None = None
        self._no_drawing: dict[str, str] = {}  # task name → why its pictures killed a process

    async def open(self, scene: Scene) -> int:
        """Make ``scene`` the one that is shown; its last step. Raises FrameError."""
        async with self._lock:
            self._scene = scene
            return await self._open()

    async def frame(self, step: int, width: int, height: int) -> Frame:
        """The moment before action ``step`` (the last step: the end), at most ``width`` × ``height`` pixels.

        Raises FrameError, also where no scene is open or the step lies outside of it.
        """
        async with self._lock:
            if self._scene is None:
                raise FrameError("no episode is open")
            wish = TakeFrame(step, max(width, 1), max(height, 1))
            try:
                answer = await self._ask(wish)
            except ConnectionError:  # drawing took the process down: go on without
                self._give_up_drawing(self._scene.task)
                await self._open()
                try:
                    answer = await self._ask(wish)
                except ConnectionError as error:
                    raise FrameError("replaying this episode crashes its environment") from error
        return _to_frame(answer)

    async def play(self, width: int, height: int, start: int = 0) -> AsyncIterator[Frame]:
        """Frames from step ``start`` to the end, one for each time that the caller asks."""
        for step in itertools.count(start):
            frame = await self.frame(step, width, height)
            yield frame
            if frame.done:
                return

    async def close(self) -> None:
        """End the process. The worker may be used again."""
        async with self._lock:
            self._scene = None
            await self._end()

    async def _open(self) -> int:
        scene = self._scene
        assert scene is not None
        why = self._no_drawing.get(scene.task.name, "")
        wish = OpenScene(
            scene.task,
            scene.obs_schema,
            scene.action_schema,
            f"{scene.seed:x}",
            str(scene.actions.absolute()),
            not why,
        )
        try:
            answer = await self._ask(wish)
        except ConnectionError:
            if why:
                raise FrameError("replaying this episode crashes its environment") from None
            self._give_up_drawing(scene.task)
            return await self._open()
        if isinstance(answer, Opened):
            return answer.last_step
        raise FrameError(answer.message if isinstance(answer, Failed) else "the drawing process answered nonsense")

    def _give_up_drawing(self, task: TaskSpec) -> None:
        self._no_drawing[task.name] = CRASHED
        if "mujoco" in (*task.packages, *task.requires):
            forget_gl()

    async def _ask(self, wish: OpenScene | TakeFrame) -> Picture | Opened | Failed:
        """One request; ConnectionError where the process dies over it, or died before."""
        if self._writer is None:
            if isinstance(wish, TakeFrame):
                raise ConnectionResetError
            await self._start()
        assert self._writer is not None
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._writer.write(pack(Request(number, wish)))
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        shown = {k: os.environ[k] for k in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY") if k in os.environ}
        environment = worker_environment() | shown | {"SDL_VIDEODRIVER": "offscreen"}
        with theirs:
            told = (str(theirs.fileno()), str(os.getpid()))
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-s", "-m", "evotui.rollout.render_process", *told],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                    process_group=0,
                )
            except OSError as error:
                ours.close()
                raise FrameError(f"no drawing process can be started: {error}") from error
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._listening = asyncio.create_task(self._listen(reader), name="evotui frames")

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "little")
                told = _answer_decoder.decode(await reader.readexactly(length))
                waiting = self._answers.get(told.number)
                if waiting is not None and not waiting.done():  # nobody waits where the caller was cancelled
                    waiting.set_result(told.answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._reap()
            for waiting in self._answers.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError("the drawing process ended"))

    def _reap(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    async def _end(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None
        self._reap()


def _to_frame(answer: Picture | Opened | Failed) -> Frame:
    if isinstance(answer, Failed):
        raise FrameError(answer.message)
    if isinstance(answer, Opened):
        raise FrameError("the drawing process answered nonsense")
    pixels = None
    if answer.shape is not None:
        pixels = np.frombuffer(answer.pixels, np.uint8).reshape(answer.shape)
    return Frame(
        answer.step,
        answer.last_step,
        pixels,
        answer.text,
        answer.why,
        answer.obs,
        answer.action,
        answer.reward,
        answer.return_,
        answer.done,
        answer.info,
    )
