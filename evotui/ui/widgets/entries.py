"""What `TranscriptTail` shows: entries as plain values, and the wrapping of their texts.

Wrapping stops when it has enough, so that a megabyte of output costs as little as a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, chop_cells

_WORDS = re.compile(r"\s*\S+")


class Kind(StrEnum):
    """What an entry is: decides glyph and colour."""

    THOUGHT = "thought"
    MESSAGE = "message"
    TOOL_CALL = "tool call"
    TOOL_RESULT = "tool result"
    EDIT = "edit"
    SUBMISSION = "submission"
    UNDER_WAY = "under way"
    NOTE = "note"
    ASIDE = "aside"
    """What hardly anybody wants to read: a retry that passed, an item that nobody understands."""
    PERSON = "person"
    """What a person said, or is asked."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `time`: seconds since the run began, or None. `submission`: the one it led to or speaks of."""

    kind: Kind
    text: str
    time: float | None = None
    title: str = ""
    """Short head in the kind's colour: a tool's name, a path, "s005"."""
    submission: int | None = None
    ok: bool = True
    """False draws a tool result or a submission as failed."""
    detail: str = ""
    """What stands in place of the text once the entry is unfolded: a call's whole arguments."""
    growing: bool = False
    """It is being written: its end is shown, not its beginning."""


def wrap(text: str, width: int, limit: int, first: int = 0) -> tuple[list[str], int]:
    """Wrap text to lines of at most `width` cells, at most `limit` lines.

    `first` cells of the first line are taken already. Returns the lines and how many are missing; those that were
    never wrapped count once each.
    """
    lines: list[str] = []
    at = 0
    while at <= len(text):
        left = limit - len(lines)
        if left <= 0:
            return lines, 1 + text.count("\n", at)
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + 2 * width * (left + 1))]
        room = width - first if not lines else width
        pieces = [line] if cell_len(line) <= room else _wrap_line(line, room, width)
        if len(pieces) > left:
            return lines + pieces[:left], len(pieces) - left + text.count("\n", end)
        lines += pieces
        at = end + 1
    return lines, 0


def _wrap_line(line: str, room: int, width: int) -> list[str]:
    measure = len if line.isascii() and line.isprintable() else cell_len  # most lines by far
    out: list[str] = []
    current, used = "", 0
    for word in _WORDS.findall(line):
        size = measure(word)
        if used + size <= room:
            current += word
            used += size
            continue
        if current.strip() or (room < width and not out):
            out.append(current)
            room = width
        if current.strip():
            word = word.lstrip()
            size = measure(word)
        while size > room:
            head = chop_cells(word, max(2, room))[0]
            out.append(head)
            word = word[len(head) :]
            size = measure(word)
        current, used = word, size
    return [*out, current] if current or not out else out
