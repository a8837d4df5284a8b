"""Follows ``system/`` while a program works on it, so that its edits are told as they happen.

A look costs a ``stat`` for each file; what changed is read once it has settled, stored as a blob and told as
FileEdited. What a snapshot leaves out (caches, ``.git``, links, special files, what editors
leave beside a file, files too large) is left out here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from evotui.agents.base import Teller, Workspace
from evotui.protocol.codemetrics import CACHES, is_litter
from evotui.record.blobs import edit_fact, text_of
from evotui.record.events import AgentRaw, Event, FileEdited
from evotui.record.tree import MAX_BYTES, MAX_DEPTH, MAX_FILES, RESERVED

EVERY = 0.25
"""Seconds between two looks."""

_FEW = 200

Stamp = tuple[int, int, int, int]


class SystemWatch:
    """Tells the edits below ``system/`` while its context lives, and at each :meth:`look`.

    ``recorded()`` are the files as the record has them (path → SHA-256): what differs from that is an edit, also one of
    before this began. Without it the files as they are found are where it begins.
    """

    def __init__(
        self, workspace: Workspace, tell: Teller, recorded: Callable[[], Mapping[str, str]] | None = None,
        every: float = EVERY, by: str = "agent",
    ) -> None:  # fmt: skip
        self._workspace, self._tell, self._by, self._every = workspace, tell, by, every
        self._own: dict[str, str] = {}
        self._recorded = recorded if recorded is not None else lambda: self._own
        self._begins_here = recorded is None
        self._known: dict[str, Stamp] = {}
        """Stamps of files as they are in the record."""
        self._seen: dict[str, Stamp] = {}
        """Stamps of changed files at the last look: read once they stay."""
        self._refused: set[str] = set()
        self._looking = asyncio.Lock()
        self._still: tuple[dict[str, Stamp], Mapping[str, str]] | None = None
        """Files and record as of a look that found nothing to tell: the same again needs no second look."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> SystemWatch:
        if self._begins_here:
            self._own.update(await asyncio.to_thread(self._found))
        await self.look()
        self._task = asyncio.create_task(self._follow(), name="watch system/")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        async with self._looking:  # a look under way ends first
            pass

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            with contextlib.suppress(OSError):  # a full disk, perhaps for a moment: the next look says it again
                await self.look(settled=True)

    async def look(self, settled: bool = False) -> int:
        """Tell what changed; with ``settled`` only what did not change any more since the last look. How many edits.

        Goes on to its end when whoever asked is cancelled. Raises OSError where an edit cannot be stored.
        """
        task = asyncio.ensure_future(self._look(settled))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _look(self, settled: bool) -> int:
        try:
            return await self._look_and_tell(settled)
        except BaseException:
            self._known.clear()  # what was seen but not told is found again by the record
            raise

    async def _look_and_tell(self, settled: bool) -> int:
        async with self._looking:
            recorded = self._recorded()
            # Few files are looked at right here: a thread would cost several times as much.
            few = len(self._known) < _FEW
            found = dict(files_of(self._workspace.system)) if few else None
            if found is not None and self._still == (found, recorded):
                return 0
            facts = await asyncio.to_thread(self._changes, dict(recorded), settled)
            quiet = found is not None and not facts and not self._seen
            self._still = (found, dict(recorded)) if found is not None and quiet else None
            for fact in facts:
                await self._tell(fact)
                if isinstance(fact, FileEdited):
                    if fact.sha256:
                        self._own[fact.path] = fact.sha256
                    else:
                        self._own.pop(fact.path, None)
            return len(facts)

    def _found(self) -> dict[str, str]:
        found = {}
        for path, _ in files_of(self._workspace.system):
            data = read_file(self._workspace.system / path)
            if data is not None:
                found[path] = edit_fact(self._workspace.blobs, path, "", data, self._by).sha256
        return found

    def _changes(self, recorded: Mapping[str, str], settled: bool) -> list[Event]:
        facts: list[Event] = []
        there, room = set(), MAX_BYTES
        for path, stamp in files_of(self._workspace.system):
            there.add(path)
            if stamp[1] > room:
                if path not in self._refused:
                    self._refused.add(path)
                    words = f"system/{path} is not followed: system/ is larger than {MAX_BYTES >> 20} MB"
                    facts.append(AgentRaw("file", words))
                continue
            room -= stamp[1]
            if self._known.get(path) == stamp:
                continue
            if settled and self._seen.get(path) != stamp:
                self._seen[path] = stamp
                continue
            data = read_file(self._workspace.system / path)
            if data is None:
                continue
            if recorded.get(path) != hashlib.sha256(data).hexdigest():
                facts.append(edit_fact(self._workspace.blobs, path, self._text(recorded.get(path)), data, self._by))
            self._known[path] = stamp
            self._seen.pop(path, None)
        for path in sorted(recorded.keys() - there):
            lines = len(self._text(recorded[path]).splitlines())
            facts.append(FileEdited(path, "", 0, 0, lines, self._by))
        for path in self._known.keys() - there:
            del self._known[path]
        return facts

    def _text(self, sha256: str | None) -> str:
        if sha256 is None:
            return ""
        try:
            return text_of((self._workspace.blobs / sha256).read_bytes())
        except OSError:
            return ""


def files_of(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """Regular files below ``folder`` that a snapshot would take, by relative POSIX path, with what tells a change."""
    count = 0

    def within(path: str, prefix: str, depth: int) -> Iterator[tuple[str, Stamp]]:
        nonlocal count
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            count += 1
            if entry.name in CACHES or entry.name == ".git" or count > MAX_FILES:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            name = prefix + entry.name
            if stat.S_ISDIR(status.st_mode):
                if depth < MAX_DEPTH:
                    yield from within(entry.path, name + "/", depth + 1)
            elif stat.S_ISREG(status.st_mode) and name not in RESERVED and not is_litter(entry.name):
                yield name, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    yield from within(os.fspath(folder), "", 0)


def read_file(path: Path) -> bytes | None:
    """A regular file's content, no link's; None where it is not there or cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        try:
            return file.read(MAX_BYTES + 1)[:MAX_BYTES]
        except OSError:
            return None
