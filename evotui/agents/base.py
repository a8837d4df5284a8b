"""What an agent is given and what it must be: the door, the workspace, the teller."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from evotui.protocol.budget import DoorClosed, Rejected
from evotui.protocol.door import DoorUrls
from evotui.protocol.turns import AgentFailed, LimitReached
from evotui.record.blobs import edit_fact
from evotui.record.events import Event, FileEdited

__all__ = [
    "Agent",
    "AgentFailed",
    "Door",
    "DoorClosed",
    "DoorUrls",
    "LimitReached",
    "Place",
    "Rejected",
    "Teller",
    "Workspace",
    "WorkspaceError",
]


class Door(Protocol):
    """The three things an agent can ask (PROTOCOL: the agent's interface)."""

    async def task(self) -> str:
        """The task text and the policy contract, in Markdown."""

    async def info(self) -> dict[str, Any]:
        """The ``/info`` document: budget, spaces, limits, allowed and denied imports."""

    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
        """Spend ``len(cases)`` episodes on the current ``system/``.

        Returns ``{"submit_id", "status", "summary"}``. Raises :class:`~evotui.protocol.budget.Rejected` for a request
        that was refused for free, :class:`DoorClosed` once the run takes none.
        """

    async def messages(self, how: str = "at the gate") -> list[str]:
        """What a person said to the agent since the last call, to be passed on now; recorded as delivered.

        Ask after each submission and before each turn. An agent that can be spoken to at any time waits in
        :meth:`spoken_to` and then asks with ``how="at once"``.
        """

    async def spoken_to(self) -> None:
        """Return when a message waits."""


class Teller(Protocol):
    """Takes the agent's own facts (thoughts, messages, tool calls, usage) into the log."""

    async def __call__(self, fact: Event) -> None: ...


class WorkspaceError(ValueError):
    """A path outside ``system/``, or one that cannot be written."""


class Workspace:
    """The agent's folder: it writes below ``system/`` and reads below ``feedback/``.

    ``blobs`` is where each written version is kept by its SHA-256, so that any moment of the run can be shown again.
    """

    def __init__(self, root: Path, blobs: Path, tell: Teller, by: str = "agent") -> None:
        self.root = root
        self.system = root / "system"
        self.feedback = root / "feedback"
        self._blobs = blobs
        self._tell = tell
        self._by = by

    @property
    def blobs(self) -> Path:
        return self._blobs

    def resolve(self, path: str) -> Path:
        """``path`` (relative, POSIX) below ``system/``. Raises WorkspaceError for anything that would leave it."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or not pure.parts or ".." in pure.parts:
            raise WorkspaceError(f"{path!r} is not a path below system/")
        target = self.system / pure
        if not target.resolve().is_relative_to(self.system.resolve()):
            raise WorkspaceError(f"{path!r} leads out of system/")
        return target

    async def read(self, path: str) -> str:
        """A file below ``system/`` as text. Raises FileNotFoundError."""
        return await asyncio.to_thread(self.resolve(path).read_text, "utf-8")

    async def write(self, path: str, text: str) -> None:
        """Write ``system/<path>`` and tell :class:`FileEdited` (unchanged text is not an edit)."""
        target = self.resolve(path)
        fact = await asyncio.to_thread(self._store, target, path, text)
        if fact is not None:
            await self._tell(fact)

    async def delete(self, path: str) -> None:
        """Delete ``system/<path>`` and tell :class:`FileEdited`. Raises FileNotFoundError."""
        target = self.resolve(path)

        def work() -> int:
            lines = len(target.read_text("utf-8", errors="replace").splitlines())
            target.unlink()
            return lines

        removed = await asyncio.to_thread(work)
        await self._tell(FileEdited(path, "", 0, 0, removed, self._by))

    def _store(self, target: Path, path: str, text: str) -> FileEdited | None:
        before = target.read_text("utf-8", errors="replace") if target.exists() else ""
        if target.exists() and before == text:
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        fact = edit_fact(self._blobs, path, before, text.encode("utf-8"), self._by)
        # Moved in whole, from outside of system/: a kill must leave nothing there that the agent did not write.
        temporary = self._blobs / f".{fact.sha256}.{secrets.token_hex(4)}.tmp"
        shutil.copyfile(self._blobs / fact.sha256, temporary)
        temporary.replace(target)
        return fact


@dataclass(frozen=True, slots=True)
class Place:
    """What an agent outside of this process needs beside its door.

    ``stream`` is the file that every line of its own stream is appended to, as it came. ``closed`` are folders that its
    process must not be able to read (host-only records, other runs). ``serve()`` opens the door as HTTP for as long as
    its context lives, or the door that it is given: an agent's own view of it. ``session`` is the conversation to take
    up (``""``: a new one), ``past`` a summary of what an earlier session did (``""``: nothing). ``recorded()`` are the
    files of ``system/`` as the record has them now, path → SHA-256; None where nobody knows.
    """

    stream: Path
    closed: tuple[Path, ...]
    serve: Callable[..., AbstractAsyncContextManager[DoorUrls]]
    session: str = ""
    past: str = ""
    recorded: Callable[[], Mapping[str, str]] | None = None


class Agent(Protocol):
    """Somebody who tries. Cancelled when the run stops; it must leave no process and no file outside ``system/``.

    Made by ``catalog.make(kind, seed, options, place)``. May raise AgentFailed and LimitReached.
    """

    kind: str
    name: str

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        """Evolve the policy until done. Returns a sentence for the transcript."""
