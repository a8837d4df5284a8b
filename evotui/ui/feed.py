"""What the CLI hands to the screens: a run to look at, the controls of a run, frames, and the catalogue for a new run.

A live run, a run of another process and a finished one are all a :class:`Feed`; they differ in ``controls`` only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # the home screen paints before any of these is loaded
    import numpy as np

    from evotui.record.rundir import RunDir
    from evotui.record.state import RunState


@dataclass(frozen=True, slots=True)
class Progress:
    """An episode that is rolling out right now: environment steps taken and return so far. Not a fact, only a view."""

    submission: int
    position: int
    step: int
    return_: float


class Controls(Protocol):
    """What may be asked of a run that this process drives. Each call returns when it has taken effect."""

    @property
    def system(self) -> Path:
        """``workspace/system``: what a person may edit."""

    async def pause(self) -> None:
        """Close the gate before the next submission (and the next phase of none)."""

    async def resume(self) -> None:
        """Open the gate."""

    async def step_iteration(self) -> None:
        """Let exactly one submission through, then close the gate again."""

    async def step_phase(self) -> None:
        """Let exactly one phase of a submission through, then close the gate again."""

    async def submit(self, cases: str) -> dict[str, Any]:
        """Submit the workspace as a person. Raises ``protocol.budget.Rejected`` for a refused request."""

    async def say(self, text: str) -> None:
        """Tell the agent something: at once where it can be spoken to, else at the next gate."""

    async def approve_each(self, on: bool) -> None:
        """Whether each of the agent's submissions waits for :meth:`decide` from now on."""

    async def decide(self, approved: bool, text: str = "") -> None:
        """Answer the submission that waits for approval; ``text`` tells the agent why it was refused."""

    async def hand_over(self, agent: str, options: Mapping[str, str], program: Sequence[str] = ()) -> None:
        """Let another agent go on. Raises an exception whose text is one sentence where it cannot."""

    async def edited(self, before: Mapping[str, str]) -> list[str]:
        """Record what a person changed below ``system/`` since ``before`` (path → text). Returns the paths."""

    async def stop(self) -> None:
        """End the agent and the run now; the record stays whole."""

    async def finalize(self) -> None:
        """End the agent and validate, select and score what there is."""


class Feed(Protocol):
    """One run, live or recorded."""

    @property
    def run(self) -> RunDir: ...

    @property
    def state(self) -> RunState: ...

    @property
    def live(self) -> bool:
        """Whether facts may still come: the run has not ended and somebody writes it."""

    @property
    def controls(self) -> Controls | None:
        """None where this process does not drive the run, or the run is over."""

    @property
    def failure(self) -> str:
        """Why the run broke off, or cannot be read on, in one sentence for a person; "" while nothing is wrong."""

    def updates(self) -> AsyncIterator[RunState]:
        """Newest states as they come, intermediate ones dropped; ends when no more can come. Cancel to leave."""

    def progress(self) -> Sequence[Progress]:
        """Episodes under way right now; empty for a run of another process."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Shot:
    """One moment of a replayed episode.

    ``pixels`` is uint8 H×W×3, already shrunk to about the size asked for, or None where no frame can be had: then
    ``why`` says the reason in a line. ``text`` is a drawing in characters: the environment's own, or what stands in for
    the frame. ``return_`` is the sum of rewards up to and
    including this step; ``action`` is what was executed after ``obs`` was seen (None at the last moment).
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
    info: Mapping[str, Any] = field(default_factory=dict)


class FrameSource(Protocol):
    """Replays recorded episodes of a run in a process of its own."""

    def play(self, submission: int, position: int, width: int, height: int, start: int = 0) -> AsyncIterator[Shot]:
        """Shots of an episode from step ``start``, as fast as they are taken; pixels at most width × height."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EnvChoice:
    """One environment in the new-run dialog. ``why_not`` is "" where it can be run."""

    name: str
    title: str
    gym_id: str
    family: str
    why_not: str
    random_mean: float | None = None
    reference_mean: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """One agent in a dialog. ``why_not`` is "" where it can be run; ``options`` are the names of what it can be told,
    ``needs`` those that it cannot do without (``program`` is a command's words)."""

    name: str
    about: str
    why_not: str = ""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewRun:
    """What the new-run dialog asks for."""

    env: str
    agent: str = "search"
    budget: int = 128
    seed: int = 0
    pools: str = "secret"
    lifetime: str = "episode"
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """The agent's options, by name, as typed."""
    program: tuple[str, ...] = ()
    """The words of a command."""
    branch: tuple[Path, int] | None = None
    """The run and the submission whose checkpoint this run starts from, with the budget that was left there."""


class Launcher(Protocol):
    """Starts and opens runs for the home screen."""

    @property
    def runs(self) -> Path: ...

    def environments(self) -> list[EnvChoice]:
        """Blocking; call it in a thread."""

    def agents(self) -> list[AgentChoice]:
        """Those that cannot be run included. Blocking: it looks for programs; call it in a thread."""

    async def start(self, wish: NewRun) -> tuple[Feed, FrameSource]:
        """Raises an exception whose text is one sentence for a person where the run cannot start."""

    async def open(self, run: Path) -> tuple[Feed, FrameSource]: ...

    async def resume(self, run: Path) -> tuple[Feed, FrameSource]:
        """Take an unfinished run up where its log ends. Raises as :meth:`start` does."""


class Latest:
    """Wakes whoever waits that something is new: the queue of length one between a writer and a screen."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._closed = False

    def put(self) -> None:
        self._event.set()

    def close(self) -> None:
        self._closed = True
        self._event.set()

    async def wait(self) -> bool:
        """True when something is new, False when nothing more can come."""
        await self._event.wait()
        if self._closed:
            return False
        self._event.clear()
        return True


EditFile = Callable[[Path], Awaitable[None]]
