"""Edited files by content: ``blobs/<sha256>`` holds each version of each file, so any moment can be shown again."""

from __future__ import annotations

import difflib
import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path

from evotui.record.events import FileEdited


def edit_fact(blobs: Path, path: str, before: str, data: bytes, by: str) -> FileEdited:
    """Store ``data`` as a blob and describe the edit from the text ``before``. Blocking."""
    digest = hashlib.sha256(data).hexdigest()
    blob = blobs / digest
    if not blob.exists():
        temporary = blobs / f".{digest}.{secrets.token_hex(4)}.tmp"
        try:
            temporary.write_bytes(data)
            temporary.replace(blob)
        except BaseException:
            temporary.unlink(missing_ok=True)  # a full disk is not to be filled by halves
            raise
    added, removed = changed_lines(before, text_of(data))
    return FileEdited(path, digest, len(data), added, removed, by)


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed between two texts."""
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return added, removed


def text_of(data: bytes) -> str:
    """A file's content as text to be shown or compared; what is no UTF-8 is replaced."""
    return data.decode("utf-8", "replace")


def edits_between(blobs: Path, before: Mapping[str, str], after: Mapping[str, bytes], by: str) -> list[FileEdited]:
    """The edits that lead from texts (by path) to files, in the order of their paths; each file is stored. Blocking."""
    facts = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if new is not None and old == text_of(new):
            continue
        if new is None:
            facts.append(FileEdited(path, "", 0, 0, len((old or "").splitlines()), by))
        else:
            facts.append(edit_fact(blobs, path, old or "", new, by))
    return facts
