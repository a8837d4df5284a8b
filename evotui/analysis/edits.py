"""What an agent did from one submission to the next: the class of each edit, its size, the constants it moved.

Classes are the paper's: between two consecutive scored submissions, an identical bundle is a **retest**, a topology
never seen in this run a **synthesis** edit, the previous topology with other numbers a **parametric** edit, an earlier
topology a **rollback**. A submission that failed is an event, not a transition, and what it contained is not "seen".
Sizes and the treatment of docstrings are ours (see ``SIZES`` and :mod:`evotui.analysis.source`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evotui.analysis.source import Bundle, Module, Number, read_bundle
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.record.tree import read_tree


class EditKind(StrEnum):
    """``FIRST`` is a run's first scored submission, which changes nothing; ``FAILED`` one that was not scored."""

    FIRST = "first"
    SYNTHESIS = "synthesis"
    PARAMETRIC = "parametric"
    ROLLBACK = "rollback"
    RETEST = "retest"
    FAILED = "failed"

    @property
    def is_edit(self) -> bool:
        """Whether it counts in statistics over edits."""
        return self in (EditKind.SYNTHESIS, EditKind.PARAMETRIC)


class EditSize(StrEnum):
    SAME = "same"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    REWRITE = "rewrite"


SIZES: tuple[tuple[float, EditSize], ...] = (
    (0.0, EditSize.SAME),
    (0.05, EditSize.SMALL),
    (0.20, EditSize.MEDIUM),
    (0.60, EditSize.LARGE),
)
"""Greatest share of changed lines of the larger bundle for each size; above the last it is a rewrite. Ours."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A submission against the scored one before it.

    ``previous`` is None for the first. ``added`` and ``removed`` are lines of the bundle; a replaced line counts in
    both, and once in ``share``, the changed part of the larger bundle (0 … 1). ``provisional``: the submission is still
    on its way, and the class holds if it ends ok.
    """

    submission: int
    previous: int | None
    kind: EditKind
    added: int = 0
    removed: int = 0
    share: float = 0.0
    provisional: bool = False

    @property
    def size(self) -> EditSize:
        return edit_size(self.share)


@dataclass(frozen=True, slots=True)
class ConstantChange:
    """One constant that differs. ``old`` is None where it is new, ``new`` None where it went; ``percent`` is the change
    relative to the size of ``old``, None where that is zero, complex or not there.
    """

    path: str
    name: str
    old: Number | None
    new: Number | None
    line: int

    @property
    def percent(self) -> float | None:
        old, new = self.old, self.new
        if isinstance(old, (int, float)) and isinstance(new, (int, float)) and old:
            try:
                return (new - old) / abs(old) * 100.0
            except OverflowError:
                return None
        return None


def load_bundles(run: RunDir, state: RunState, known: Mapping[int, Bundle] | None = None) -> dict[int, Bundle]:
    """Bundles of the run's submissions by index, read from their checkpoints; those in ``known`` are not read again.

    Submissions without a snapshot are left out. Blocking. Raises OSError where a checkpoint is unreadable.
    """
    bundles = dict(known or {})
    for submission in state.submissions:
        if submission.index not in bundles and submission.tree_hash:
            files = read_tree(run.checkpoint(submission.index), suffix=".py")
            bundles[submission.index] = read_bundle(files)
    return bundles


def edits(state: RunState, bundles: Mapping[int, Bundle]) -> tuple[Edit, ...]:
    """One :class:`Edit` for each submission that has a bundle, or has failed, in order."""
    found: list[Edit] = []
    seen: set[str] = set()
    last: int | None = None
    for submission in state.submissions:
        index = submission.index
        if submission.verdict is not None and not submission.ok:
            found.append(_edit(index, last, EditKind.FAILED, bundles))
            continue
        bundle = bundles.get(index)
        if bundle is None:
            continue
        kind = classify(bundle, bundles[last] if last is not None else None, seen)
        found.append(_edit(index, last, kind, bundles, provisional=submission.verdict is None))
        if submission.ok:
            seen.add(bundle.topology)
            last = index
    return tuple(found)


def classify(bundle: Bundle, previous: Bundle | None, seen: set[str]) -> EditKind:
    """The class of a transition; ``seen`` holds the topologies of the scored submissions so far."""
    if previous is None:
        return EditKind.FIRST
    if bundle.identity == previous.identity:
        return EditKind.RETEST
    if bundle.topology == previous.topology:
        return EditKind.PARAMETRIC
    return EditKind.ROLLBACK if bundle.topology in seen else EditKind.SYNTHESIS


def _edit(
    index: int, last: int | None, kind: EditKind, bundles: Mapping[int, Bundle], provisional: bool = False
) -> Edit:
    before, after = bundles.get(last) if last is not None else None, bundles.get(index)
    if before is None or after is None:
        return Edit(index, last, kind, provisional=provisional)
    added, removed, share = changed(before, after)
    return Edit(index, last, kind, added, removed, share, provisional)


def edit_size(share: float) -> EditSize:
    return next((size for most, size in SIZES if share <= most), EditSize.REWRITE)


def changed(before: Bundle, after: Bundle) -> tuple[int, int, float]:
    """Lines added, lines removed, and the share of changed lines of the larger bundle."""
    added = removed = touched = 0
    for path in before.modules.keys() | after.modules.keys():
        old, new = _lines(before.modules.get(path)), _lines(after.modules.get(path))
        for a, b in _hunks(old, new):
            removed += a
            added += b
            touched += max(a, b)
    larger = max(sum(len(_lines(m)) for m in bundle.modules.values()) for bundle in (before, after))
    if touched == 0 and before.identity != after.identity:
        touched = 1  # only line ends or undecodable bytes differ: not the same, and no line of text shows it
    return added, removed, min(1.0, touched / larger) if larger else float(touched > 0)


def _lines(module: Module | None) -> list[str]:
    return module.text.splitlines() if module is not None else []


def _hunks(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """(removed, added) of each differing stretch. Equal ends are cut off first; the exact match is quadratic."""
    start = 0
    least = min(len(old), len(new))
    while start < least and old[start] == new[start]:
        start += 1
    end = 0
    while end < least - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if not old or not new:
        return [(len(old), len(new))] if old or new else []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > 4_000_000)
    return [(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]


def constant_changes(before: Bundle, after: Bundle) -> tuple[ConstantChange, ...]:
    """Constants that differ between two bundles, in the order of the newer one, then those that went.

    Where a file's topology stayed, its numbers correspond one to one, named or not. Elsewhere constants correspond by
    name, and those that nothing names are left out.
    """
    found: list[ConstantChange] = []
    for path in sorted(before.modules.keys() | after.modules.keys()):
        old, new = before.modules.get(path), after.modules.get(path)
        if old is not None and new is not None and old.topology == new.topology:
            for a, b in zip(old.constants, new.constants, strict=True):
                if _differ(a.value, b.value):
                    found.append(ConstantChange(path, b.name, a.value, b.value, b.line))
        else:
            found.extend(_by_name(path, old, new))
    return tuple(found)


def _by_name(path: str, old: Module | None, new: Module | None) -> list[ConstantChange]:
    was = {c.name: c for c in old.constants if c.named} if old is not None else {}
    now = {c.name: c for c in new.constants if c.named} if new is not None else {}
    found = []
    for name, constant in now.items():
        before = was[name].value if name in was else None
        if before is None or _differ(before, constant.value):
            found.append(ConstantChange(path, name, before, constant.value, constant.line))
    found += [ConstantChange(path, name, c.value, None, c.line) for name, c in was.items() if name not in now]
    return found


def _differ(a: Number, b: Number) -> bool:
    """1 and 1.0 differ (an index against a factor); so do 0.0 and -0.0."""
    return type(a) is not type(b) or repr(a) != repr(b)
