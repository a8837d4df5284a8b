"""Which lines of a bundle changed, as rows to draw: pure functions over texts, no screen.

Owns alignment (numbers are blanked before lines of a changed block are paired, so that a tuned constant stays beside
its old self), word-level emphasis, folding of unchanged stretches and the hunks to jump to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

DiffMode = Literal["unified", "side-by-side"]
Span = tuple[int, int]

CONTEXT = 3
_WORDS = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\w+|\s+|.")
_SCOPE = re.compile(r"(\s*)(?:async )?(def|class)\s+(\w+)")
_NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class FilePair:
    """One file before and after; None where it does not exist."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ConstantRow:
    """A named numeric constant; None where it does not exist on that side."""

    name: str
    old: float | None
    new: float | None


@dataclass(frozen=True, slots=True)
class DiffInput:
    """A comparison of two bundles."""

    files: tuple[FilePair, ...] = ()
    constants: tuple[ConstantRow, ...] = ()
    before_label: str = "before"
    after_label: str = "after"
    empty: str = "the first edit appears here"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the view. `left` and `right` are 0-based lines of the file's sides."""

    kind: Literal["constants", "constant", "file", "fold", "context", "removed", "added", "changed", "text"]
    file: int = -1
    left: int | None = None
    right: int | None = None
    left_spans: tuple[Span, ...] = ()
    right_spans: tuple[Span, ...] = ()
    hunk: int = -1
    text: str = ""
    """Words of a "text", "file" or "fold" row; a constant's name."""
    fold: int = -1
    """Number of a fold within the view, for opening it."""
    inside: str = ""
    """The function or class that a fold ends in."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A compared file: its lines and its rows in side-by-side form, hunk numbers counted from 0 within the file."""

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: tuple[Row, ...]
    added: int
    removed: int
    hunks: int
    created: bool = False
    deleted: bool = False

    @property
    def changed(self) -> bool:
        """Whether the sides differ."""
        return self.hunks > 0


def compare(pair: FilePair, number: int, before: str, after: str) -> FileDiff:
    """Compare one file whose texts were made harmless already."""
    old, new = tuple(before.split("\n")), tuple(after.split("\n"))
    if old and old[-1] == "":
        old = old[:-1]
    if new and new[-1] == "":
        new = new[:-1]
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    rows: list[Row] = []
    hunk, since = -1, 2 * CONTEXT + 1
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal":
            rows += [Row("context", number, i1 + k, j1 + k) for k in range(i2 - i1)]
            since += i2 - i1
            continue
        hunk += since > 2 * CONTEXT
        since = 0
        rows += [_row(number, hunk, old, new, i, j) for i, j in _pair(old[i1:i2], new[j1:j2], i1, j1)]
    return FileDiff(
        pair.path,
        old,
        new,
        tuple(rows),
        added=sum(j2 - j1 for tag, _, _, j1, j2 in opcodes if tag != "equal"),
        removed=sum(i2 - i1 for tag, i1, i2, _, _ in opcodes if tag != "equal"),
        hunks=hunk + 1,
        created=pair.before is None and pair.after is not None,
        deleted=pair.after is None and pair.before is not None,
    )


def unified(rows: Sequence[Row]) -> list[Row]:
    """Side-by-side rows as unified ones: of each changed stretch first what went, then what came."""
    out: list[Row] = []
    gone: list[Row] = []
    came: list[Row] = []
    for row in rows:
        if row.kind == "context":
            out += gone + came
            gone, came = [], []
            out.append(row)
            continue
        if row.left is not None:
            gone.append(replace(row, kind="removed", right=None, right_spans=()))
        if row.right is not None:
            came.append(replace(row, kind="added", left=None, left_spans=()))
    return out + gone + came


def fold(
    rows: Sequence[Row], first_fold: int, opened: frozenset[int], changes_only: bool, after: Sequence[str]
) -> list[Row]:
    """Replace stretches of unchanged rows, beyond `CONTEXT` around each change, by one row with the count."""
    if not changes_only:
        return list(rows)
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.kind != "context":
            for k in range(max(0, at - CONTEXT), min(len(rows), at + CONTEXT + 1)):
                near[k] = True
    out: list[Row] = []
    at, number = 0, first_fold
    while at < len(rows):
        end = at
        while end < len(rows) and not near[end]:
            end += 1
        if end - at > 1 and number not in opened:
            inside = _enclosing(after, rows[at].right or 0, (rows[end - 1].right or 0) + 1) if end < len(rows) else ""
            out.append(Row("fold", rows[at].file, text=str(end - at), fold=number, inside=inside))
        else:
            out += rows[at:end]
        number += end > at
        if end < len(rows):
            out.append(rows[end])
        at = end + 1
    return out


def _enclosing(lines: Sequence[str], first: int, last: int) -> str:
    """The innermost function or class begun within lines first..last that goes on after them."""
    following = next((line for line in lines[last:] if line.strip()), "")
    indent = len(following) - len(following.lstrip())
    for line in reversed(lines[first:last]):
        match = _SCOPE.match(line)
        if match and len(match[1]) < indent:
            return f"{match[2]} {match[3]}"
    return ""


def _pair(old: Sequence[str], new: Sequence[str], i: int, j: int) -> Iterator[tuple[int | None, int | None]]:
    """Pair the lines of a changed block: first those that are equal but for numbers, the rest in order."""
    if len(old) * len(new) > 250_000:
        opcodes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(old), 0, len(new))]
    else:
        blank_old = [_NUMBERS.sub("#", line).strip() for line in old]
        blank_new = [_NUMBERS.sub("#", line).strip() for line in new]
        opcodes = SequenceMatcher(None, blank_old, blank_new, autojunk=False).get_opcodes()
    for _, i1, i2, j1, j2 in opcodes:
        for k in range(max(i2 - i1, j2 - j1)):
            yield (i + i1 + k if i1 + k < i2 else None), (j + j1 + k if j1 + k < j2 else None)


def _row(file: int, hunk: int, old: Sequence[str], new: Sequence[str], i: int | None, j: int | None) -> Row:
    if i is None:
        return Row("added", file, None, j, hunk=hunk)
    if j is None:
        return Row("removed", file, i, None, hunk=hunk)
    left, right = emphasis(old[i], new[j])
    return Row("changed", file, i, j, left, right, hunk)


def emphasis(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Spans of the words that differ; none where the lines have little in common or are very long."""
    if len(old) + len(new) > 2000:
        return (), ()
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < 0.4 or matcher.ratio() < 0.4:
        return (), ()
    opcodes = matcher.get_opcodes()
    return _spans(a, [(o[1], o[2]) for o in opcodes if o[0] != "equal"]), _spans(
        b, [(o[3], o[4]) for o in opcodes if o[0] != "equal"]
    )


def _spans(words: Sequence[str], ranges: Sequence[Span]) -> tuple[Span, ...]:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    # A changed indent would paint half the line: what matters is the words.
    return tuple((starts[a], starts[b]) for a, b in ranges if b > a and "".join(words[a:b]).strip())
