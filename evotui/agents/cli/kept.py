"""What an earlier process of a conversation said last of itself, from the stream that was kept of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TAIL = 4 << 20
"""Bytes at the end of a kept stream that are looked through."""


def last_kept(path: Path, *marks: bytes) -> dict[str, Any]:
    """The last line that holds all ``marks``, decoded; an empty table where there is none. Blocking, quick."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        if all(mark in line for mark in marks):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
    return {}
