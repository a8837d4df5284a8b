"""Trees of files on disk: reading a checkpoint, and the snapshot that makes one. Blocking: call it in a thread."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from evotui.protocol.codemetrics import CACHES, UNCOUNTED, is_litter

MAX_BYTES = 64 << 20
MAX_FILES = 2_000
MAX_DEPTH = 32
RESERVED = frozenset(UNCOUNTED - {".keep"})
"""Names at the top of a checkpoint that are the host's, not the policy's."""


class SnapshotError(Exception):
    """``system/`` cannot be copied; the message is one sentence that the agent may read."""


def read_tree(folder: Path, suffix: str = "", litter: bool = False) -> dict[str, bytes]:
    """Every file below ``folder`` by its relative POSIX path, in that order; caches and ``.git`` are not entered.

    With ``suffix`` only files whose name ends so are read. What editors leave beside a file is left out, but with
    ``litter``: a checkpoint of an older version may hold some, and its hash counts it. The host's own files at the top
    of a checkpoint (``_meta.json``, ``metrics.json``) are left out, symbolic links and special files too.
    Raises OSError where a file cannot be read.
    """
    return _gather(folder, None, None, suffix, litter)


def copy_system(
    source: Path,
    target: Path,
    max_bytes: int = MAX_BYTES,
    max_files: int = MAX_FILES,
    left_out: list[str] | None = None,
) -> dict[str, bytes]:
    """The snapshot: copy the policy system at ``source`` into ``target`` and return what was copied.

    ``target`` is made; it must not exist. Left out: what :func:`read_tree` leaves out; the paths of
    links, special files and those with a name of the host's are added to ``left_out``. Nothing is reached through a
    link, also when a folder turns into one meanwhile: the agent may be at work. Raises SnapshotError for a system of
    more than ``max_bytes`` or ``max_files`` (folders count), or one that cannot be read; then nothing was written.
    Raises OSError where ``target`` cannot be written.
    """
    try:
        files = _gather(source, max_bytes, max_files, left_out=left_out)
    except OSError as error:
        raise SnapshotError(f"system/ cannot be read: {error.strerror or error}") from None
    target.mkdir(parents=True)
    restore(files, target)
    return files


def restore(files: Mapping[str, bytes], target: Path) -> None:
    """Make the folder ``target`` hold exactly ``files`` (by relative POSIX path), whatever is there now.

    Links are removed, never followed: an agent may have put one where a folder was. Not atomic; done again, it
    completes. Raises OSError where something cannot be removed or written.
    """
    target.mkdir(parents=True, exist_ok=True)
    with os.scandir(target) as listing:
        entries = list(listing)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for path, data in sorted(files.items()):
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _gather(
    folder: Path,
    max_bytes: int | None,
    max_files: int | None,
    suffix: str = "",
    litter: bool = False,
    left_out: list[str] | None = None,
) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size = count = 0
    for path, open_file in _walk(folder, left_out):
        count += 1
        if max_files is not None and count > max_files:
            raise SnapshotError(
                f"system/ holds more than {max_files} files and folders; keep the policy system smaller"
            )
        if path in RESERVED and left_out is not None:
            left_out.append(path)
        if open_file is None or path in RESERVED or not path.endswith(suffix):
            continue
        if not litter and is_litter(path.rpartition("/")[2]):
            continue
        room = None if max_bytes is None else max_bytes - size
        data = open_file(room)
        if data is None:
            continue
        size += len(data)
        if max_bytes is not None and size > max_bytes:
            raise SnapshotError(f"system/ is larger than {max_bytes / (1 << 20):g} MB; keep the policy system smaller")
        files[path] = data
    return dict(sorted(files.items()))


_Open = Callable[[int | None], bytes | None]


def _walk(folder: Path, left_out: list[str] | None) -> Iterator[tuple[str, _Open | None]]:
    """Files below ``folder``: relative POSIX path and how to read it (None: a folder). Links and special files
    are passed over; their paths are added to ``left_out``."""

    def within(descriptor: int, prefix: str, depth: int) -> Iterator[tuple[str, _Open | None]]:
        if depth > MAX_DEPTH:
            raise SnapshotError(f"system/ nests more than {MAX_DEPTH} folders; keep the policy system flatter")
        with os.scandir(descriptor) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name in CACHES or entry.name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield prefix + entry.name, None
                below = _open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, descriptor)
                if below is not None:
                    try:
                        yield from within(below, f"{prefix}{entry.name}/", depth + 1)
                    finally:
                        os.close(below)
            elif entry.is_file(follow_symlinks=False):
                yield prefix + entry.name, partial(_read, entry.name, descriptor)
            elif left_out is not None and not is_litter(entry.name):
                left_out.append(prefix + entry.name)

    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from within(root, "", 0)
    finally:
        os.close(root)


def _open(name: str, flags: int, parent: int) -> int | None:
    """A descriptor, or None where the name is gone or became a link since it was listed."""
    try:
        return os.open(name, flags | os.O_NONBLOCK, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            return None
        raise


def _read(name: str, parent: int, room: int | None) -> bytes | None:
    """Content of a regular file, at most ``room`` + 1 bytes; None where it is gone or no regular file any more."""
    descriptor = _open(name, os.O_RDONLY | os.O_NOFOLLOW, parent)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return opened.read() if room is None else opened.read(room + 1)
