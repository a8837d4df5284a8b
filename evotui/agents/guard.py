"""Mends what an agent's program breaks in its workspace where no wall keeps it from that.

Everything beside ``system/`` is the host's: it is copied aside, and what differs from the copy is put back and told as
WriteReverted, before each submission and at the end. New feedback becomes part of the copy as it is delivered.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evotui.agents.base import Teller, Workspace
from evotui.record.events import WriteReverted

MOST_BYTES, MOST_TOTAL = 8 << 20, 256 << 20
"""Of a larger file, and beyond so much in all, a change is told but cannot be undone."""
_TOLD = 20
"""Paths told one by one at a time."""
_FEEDBACK = re.compile(r"(feedback/submit_(\d+))(?:/|\Z)")
_HOST_GROWS = ("feedback/operator.md",)
"""What the host appends to whenever it likes."""

Stamp = tuple[int, int, int, int, int]


class Guard:
    """Guards a workspace while its context lives."""

    def __init__(self, workspace: Workspace, tell: Teller) -> None:
        self._root, self._tell = workspace.root, tell
        self._kept: dict[str, Stamp] = {}
        self._copied: set[str] = set()
        self._copies = Path()
        self._room = MOST_TOTAL
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Guard:
        self._copies = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="evotui-guard-"))
        await asyncio.to_thread(self._keep, "")
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(shutil.rmtree, self._copies, True)

    async def adopt(self, below: str) -> None:
        """What is at and below a path of the workspace (POSIX, relative) is the host's from here on."""
        async with self._lock:
            await asyncio.to_thread(self._keep, below)

    async def mend(self, submissions: int) -> int:
        """Put back what differs and tell of it; returns how many paths. ``submissions``: how many feedback there is."""
        async with self._lock:
            facts = await asyncio.to_thread(self._mend, submissions)
        for fact in facts[:_TOLD]:
            await self._tell(fact)
        if len(facts) > _TOLD:
            await self._tell(WriteReverted("…", f"{len(facts) - _TOLD} paths more"))
        return len(facts)

    def _keep(self, below: str) -> None:
        for path, stamp in _walk(self._root, below):
            self._kept[path] = stamp
            size = stamp[2]
            if not stat.S_ISREG(stamp[0]) or size > MOST_BYTES or size > self._room:
                continue
            copy = self._copies / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._root / path, copy, follow_symlinks=False)
            self._room -= size
            self._copied.add(path)

    def _mend(self, submissions: int) -> list[WriteReverted]:
        facts: list[WriteReverted] = []
        found = dict(_walk(self._root, ""))
        gone: set[str] = set()
        for path, stamp in found.items():
            if path in self._kept or path in _HOST_GROWS or any(path.startswith(top + "/") for top in gone):
                continue
            if self._delivered(path, stamp[0], submissions):
                continue
            _remove(self._root / path)
            gone.add(path)
            facts.append(WriteReverted(path, "removed"))
        for path, stamp in self._kept.items():
            now = found.get(path)
            if now == stamp or (now is not None and stat.S_ISDIR(stamp[0]) and stat.S_ISDIR(now[0])):
                continue
            if path in _HOST_GROWS and now is not None:
                continue
            target = self._root / path
            if stat.S_ISDIR(stamp[0]):
                _remove(target)
                target.mkdir(parents=True)
                facts.append(WriteReverted(path, "made again"))
            elif path in self._copied:
                if now is None or not stat.S_ISREG(now[0]) or target.read_bytes() != (self._copies / path).read_bytes():
                    _remove(target)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(self._copies / path, target)
                    facts.append(WriteReverted(path, "restored"))
                self._kept[path] = _stamp(os.lstat(target))
            else:
                facts.append(WriteReverted(path, "was changed; it is too large to be restored"))
                if now is not None:
                    self._kept[path] = now
        for path in [p for p, s in self._kept.items() if p not in self._copied and not os.path.lexists(self._root / p)]:
            del self._kept[path]
        if not (self._root / "system").is_dir():
            _remove(self._root / "system")
            (self._root / "system").mkdir()
            facts.append(WriteReverted("system", "made again"))
        return facts

    def _delivered(self, path: str, mode: int, submissions: int) -> bool:
        """Whether it is feedback that the host is writing, or wrote for a submission that came another way."""
        named = _FEEDBACK.match(path)
        if named is None or int(named[2]) >= submissions or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return False
        return f"{named[1]}/summary.json" not in self._kept  # the last file of a submission


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _walk(root: Path, below: str) -> Iterator[tuple[str, Stamp]]:
    """Everything at and below ``below`` (folders before what is in them) but ``system``; links are not followed."""
    start = root / below if below else root
    if below:
        try:
            status = os.lstat(start)
        except OSError:
            return
        yield below, _stamp(status)
        if not stat.S_ISDIR(status.st_mode):
            return
    stack = [(os.fspath(start), f"{below}/" if below else "")]
    while stack:
        folder, prefix = stack.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = prefix + entry.name
            if name == "system":
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield name, _stamp(status)
            if stat.S_ISDIR(status.st_mode):
                stack.append((entry.path, name + "/"))
