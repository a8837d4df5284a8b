"""The policy pane: what the selected submission (or the workspace between two) changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.worker import Worker

from evotui.analysis.edits import constant_changes
from evotui.analysis.source import read_bundle
from evotui.ui.bundles import Bundle, Bundles
from evotui.ui.chrome import Part
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.select import Base, Ref, sides
from evotui.ui.widgets.diff import ConstantRow, DiffInput, DiffStats, DiffView, FilePair
from evotui.ui.widgets.evidencerows import EvidenceRows
from evotui.ui.words import number

GLYPHS = {"synthesis": "◆", "parametric": "≈", "rollback": "◀", "retest": "◎", "failed": "✕", "first": "●"}
INKS = {
    "synthesis": "$text-accent", "parametric": "$text-primary", "rollback": "$text-warning",
    "retest": "$text-secondary", "failed": "$text-error", "first": "$text-primary",
}  # fmt: skip
_FEW = 3
MODES = ("unified", "side by side", "whole file")


def compare(before: Bundle, after: Bundle, labels: tuple[str, str]) -> DiffInput:
    """Two bundles as the diff view takes them, with the constants that differ. Blocking: it parses."""
    paths = [*after, *(path for path in before if path not in after)]
    files = tuple(FilePair(path, before.get(path), after.get(path)) for path in paths)
    rows: list[ConstantRow] = []
    if before and after:
        old, new = (read_bundle({p: t.encode() for p, t in b.items() if p.endswith(".py")}) for b in (before, after))
        for change in constant_changes(old, new):
            values = [v if isinstance(v, (int, float)) else None for v in (change.old, change.new)]
            if values != [None, None]:
                rows.append(ConstantRow(change.name, _float(values[0]), _float(values[1])))
    return DiffInput(files, tuple(rows), *labels)


def fitted(diff: DiffInput, room: int) -> DiffInput:
    """The comparison for ``room`` lines: constants that are new or gone are left out where the table would push the
    code away, since they are seen in the code."""
    moved = tuple(row for row in diff.constants if row.old is not None and row.new is not None)
    many = len(diff.constants) - len(moved) > _FEW or 2 * len(diff.constants) > room
    return replace(diff, constants=moved) if many else diff


def file_parts(diff: DiffInput) -> list[Part]:
    """Files that only one side has, for the pane's title."""
    parts = []
    for word, ink, paths in (
        ("new", "bold $text-success", [pair.path for pair in diff.files if pair.before is None]),
        ("gone", "bold $text-error", [pair.path for pair in diff.files if pair.after is None]),
    ):
        if paths:
            parts.append(Part(f"{word} {paths[0] if len(paths) == 1 else f'{len(paths)} files'}", ink, 60))
    return parts


def evidence_rows(picture: Picture) -> tuple[tuple[str, str], ...]:
    """What stood behind the selected submission: read, said, changed, and the result."""
    at = picture.view.submission
    if at is None:
        return (("", "not submitted yet: evidence comes with the submission"),)
    row = picture.evidence.get(at)
    if row is None:
        return (("", "nothing is known of it yet"),)
    read = few(row.read) if row.read else "no feedback before the edit" if row.there else "there was no feedback yet"
    changed = "nothing is known of the change yet"
    if row.edit is not None:
        changed = f"{row.edit.kind.value} +{row.edit.added} −{row.edit.removed}"
        if row.constants:
            changed += f", {row.constants} constant{'s' * (row.constants != 1)} moved"
    if row.by != "agent":
        changed += f" · submitted by {'you' if row.by == 'human' else row.by}"
    came = "still on its way"
    if row.mean is not None:
        came = f"mean {number(row.mean)}"
        came += (
            f", {'+' * (row.gain >= 0)}{number(row.gain)} against the best before"
            if row.gain is not None
            else ", the first that was scored"
        )
    elif row.verdict:
        came = f"{row.verdict.replace('_', ' ')}: no score"
    rows = [("read", read), ("said", row.said or "nothing"), ("changed", changed), ("result", came)]
    if row.share_never is not None:
        rows.insert(1, ("unread", f"{row.never} of {row.there} feedback files, {row.share_never:.0%}"))
    return tuple(rows)


def few(paths: Sequence[str]) -> str:
    """``submit_000: summary.json, 3 of episodes``: paths below ``feedback/`` by submission, shortened."""
    by: dict[str, list[str]] = {}
    for path in paths:
        folder, _, rest = path.partition("/")
        by.setdefault(folder.replace("submit_", "s"), []).append(rest)
    parts = []
    for folder, rests in by.items():
        plain = [rest for rest in rests if not rest.startswith("episodes/")]
        deep = sorted({rest.split("/")[1] for rest in rests if rest.startswith("episodes/") and rest.count("/") > 0})
        episodes = deep[0] if len(deep) == 1 else f"{len(deep)} episodes" if deep else ""
        parts.append(f"{folder} {', '.join(part for part in (*plain, episodes) if part)}")
    return "; ".join(parts)


def _float(value: float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


class PolicyPane(Pane):
    number: ClassVar[int] = 1
    label: ClassVar[str] = "Policy"

    def __init__(self, bundles: Bundles) -> None:
        super().__init__(id="policy")
        self._bundles = bundles
        self._refs: tuple[Ref, Ref] | None = None
        self._loading: tuple[Ref, Ref] | None = None
        self._picture: Picture | None = None
        self._worker: Worker[None] | None = None
        self._diff = DiffInput()
        self._alike = False
        """Nothing differs: then the code itself is shown, rather than nothing."""
        self.mode = 0
        self.view = DiffView(id="diff")
        self.rows = EvidenceRows(id="evidence")
        self.rows.display = False

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.rows

    def draw(self, picture: Picture) -> None:
        self._picture = picture
        if self.rows.display:
            self.rows.show(evidence_rows(picture))
        refs = sides(picture.state, picture.cursor)
        if refs not in (self._refs, self._loading) or (self._loading is not None and refs != self._loading):
            self._loading = refs
            self._worker = self.run_worker(partial(self._load, refs), group="diff", exclusive=True)
        self._retitle_all()

    async def _load(self, refs: tuple[Ref, Ref]) -> None:
        def work() -> DiffInput:
            before, after = (self._bundles.load(ref) for ref in refs)
            return compare(before, after, (refs[0].label, refs[1].label))

        diff = await asyncio.to_thread(work)
        # A growing draft of one submission keeps the reader's place; another comparison begins at its first hunk.
        same = self._refs is not None and [r.label for r in self._refs] == [r.label for r in refs]
        self._diff = diff
        self._alike = all(pair.before == pair.after for pair in diff.files)
        self.view.changes_only = not (self.mode == 2 or self._alike)
        self._refs, self._loading = (refs if diff.files else None), None
        self.view.show(fitted(diff, self._room), keep_position=same)
        self._retitle_all()

    @property
    def _room(self) -> int:
        return self.view.size.height or 40

    def on_resize(self) -> None:
        self._retitle_all()  # its words depend on the width
        self.view.show(fitted(self._diff, self._room), keep_position=True)

    def on_diff_view_stats_changed(self, message: DiffView.StatsChanged) -> None:
        message.stop()
        self._retitle_all()

    def _retitle_all(self) -> None:
        picture = self._picture
        if picture is None:
            return
        before, after = sides(picture.state, picture.cursor)
        view = picture.view
        stats: DiffStats = self.view.stats
        arrow = after.label if before.empty else f"{before.label}→{after.label}"
        parts = [Part(arrow, "$text-accent", 90)]
        edit = picture.edits.get(view.submission) if view.submission is not None else None
        if edit is not None and picture.cursor.base is Base.PREVIOUS:
            kind = edit.kind.value
            word = "" if self.size.width < 48 else f" {kind}{'?' * (edit.provisional and kind != 'first')}"
            parts.append(Part(f"{GLYPHS[kind]}{word}", INKS[kind], 70))
        if stats.added or stats.removed:
            parts.append(Part(f"+{stats.added}", "$text-success", 80))
            parts.append(Part(f"−{stats.removed}", "$text-error", 80))
        if not before.empty:
            parts += file_parts(self._diff)
        note = f"{MODES[self.mode]} · against {picture.cursor.base.value}"
        if self._alike and self._diff.files:
            note = f"same code as {before.label}" if after.label != before.label else "the same on both sides"
        if stats.hunks:
            note += (
                f" · hunk {stats.hunk}/{stats.hunks}"
                if stats.hunk
                else f" · {stats.hunks} hunk{'s' * (stats.hunks > 1)}"
            )
        self.titled(note, parts)

    def toggle_evidence(self) -> bool:
        """Show what stood behind the submission below its diff, or not. Returns whether it is shown now."""
        self.rows.display = not self.rows.display
        if self.rows.display and self._picture is not None:
            self.rows.show(evidence_rows(self._picture))
        return bool(self.rows.display)

    def next_mode(self) -> None:
        self.set_mode((self.mode + 1) % 3)

    def set_mode(self, mode: int) -> None:
        self.mode = mode
        view = self.view
        view.mode = "side-by-side" if mode == 1 else "unified"
        view.changes_only = not (mode == 2 or self._alike)
        self._retitle_all()

    def scroll_lines(self, lines: int) -> None:
        self.view.scroll_relative(y=lines, animate=False)

    def scroll_pages(self, pages: float) -> None:
        self.view.scroll_relative(y=round(pages * max(1, self.view.size.height - 1)), animate=False)

    def scroll_edge(self, end: bool) -> None:
        self.view.scroll_to(y=self.view.max_scroll_y if end else 0, animate=False)

    def plain(self) -> str:
        """The comparison as a unified diff."""
        from difflib import unified_diff

        lines: list[str] = []
        for pair in self._diff.files:
            before, after = (pair.before or "").splitlines(), (pair.after or "").splitlines()
            names = (f"{self._diff.before_label}/{pair.path}", f"{self._diff.after_label}/{pair.path}")
            lines += unified_diff(before, after, *names, lineterm="")
        if self.rows.display and self.rows.text:
            lines.append("\n" + self.rows.text)
        return "\n".join(lines)
