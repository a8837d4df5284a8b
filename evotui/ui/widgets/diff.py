"""`DiffView`: what an edit changed in the bundle, unified or side by side, with the constants that moved on top.

Owns drawing and moving about; `difflines` owns what changed, `syntax` what the code is made of. Large comparisons are
made in a thread, so that the rest of the screen stays alive.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from evotui.ui.widgets import difflines, syntax
from evotui.ui.widgets.difflines import ConstantRow, DiffInput, DiffMode, FileDiff, FilePair, Row, Span
from evotui.ui.widgets.paint import InkedWidget, centre, cut, harmless, one_line, pad, text_strip
from evotui.ui.widgets.raster import short

__all__ = ["ConstantRow", "DiffInput", "DiffMode", "DiffStats", "DiffView", "FilePair"]

SyntaxOfSides = tuple[tuple[tuple[syntax.SyntaxSpan, ...], ...], ...]

_LARGE = 12_000
"""Characters of a comparison from which it is made in a thread."""
_LEAST_NAME = 6
"""Cells that a constant's name has at least: where they are missing, its change is left out."""
_CONSTANTS_SHOWN = 8
_CONSTANTS_FOLD = -2
_SIGN = {"added": "+", "removed": "−", "context": " "}
_TINT = {"added": "diff--added", "removed": "diff--removed"}
_ROW_TINT, _WORD_TINT = 0.13, 0.38


@dataclass(frozen=True, slots=True)
class DiffStats:
    """Figures for a pane's header."""

    added: int = 0
    removed: int = 0
    hunks: int = 0
    files: int = 0
    """Files that differ."""
    hunk: int = 0
    """The hunk that was jumped to, counted from 1; 0 before the first jump."""


class DiffView(ScrollView, InkedWidget, can_focus=True):
    """Shows a `DiffInput`. `mode` and `changes_only` are reactives; `stats` and `StatsChanged` feed a header."""

    DEFAULT_CSS = """
    DiffView {
        width: 1fr; height: 1fr;
        scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 20%; scrollbar-color-hover: $foreground 35%; scrollbar-color-active: $primary;
        scrollbar-background: $background 0%; scrollbar-background-hover: $background 0%;
        scrollbar-background-active: $background 0%;
        & > .diff--code { color: $foreground; }
        & > .diff--added { color: $success; }
        & > .diff--removed { color: $error; }
        & > .diff--added-sign { color: $text-success; text-style: bold; }
        & > .diff--removed-sign { color: $text-error; text-style: bold; }
        & > .diff--gutter { color: $foreground 40%; }
        & > .diff--fold { color: $text-muted; }
        & > .diff--file { color: $foreground; text-style: bold; }
        & > .diff--accent { color: $primary; }
        & > .diff--here { color: $text-accent; }
        & > .diff--gap { color: $foreground 12%; }
        & > .diff--name { color: $text-primary; }
        & > .diff--value { color: $foreground; text-style: bold; }
        & > .diff--change { color: $text-accent; }
        & > .diff--keyword { color: $text-accent; }
        & > .diff--constant { color: $text-warning; }
        & > .diff--string { color: $text-success; }
        & > .diff--doc { color: $text-success; text-style: italic; }
        & > .diff--number { color: $text-warning; }
        & > .diff--comment { color: $text-muted; text-style: italic; }
        & > .diff--function { color: $text-primary; text-style: bold; }
        & > .diff--class { color: $text-primary; text-style: bold; }
        & > .diff--builtin { color: $text-primary; }
        & > .diff--operator { color: $foreground 75%; }
        &:ansi > .diff--gap, &:ansi > .diff--gutter { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"diff--{name}"
        for name in (
            *("code", "added", "removed", "added-sign", "removed-sign", "gutter", "fold", "file", "accent", "here"),
            *("gap", "name", "value", "change", *syntax.CATEGORIES),
        )
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next_hunk", "next hunk", show=False),
        Binding("N,shift+n", "previous_hunk", "previous hunk", show=False),
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("h", "scroll_left", "left", show=False),
        Binding("l", "scroll_right", "right", show=False),
        Binding("g", "scroll_home", "top", show=False),
        Binding("G", "scroll_end", "end", show=False),
        Binding("ctrl+d", "page_down", "page down", show=False),
        Binding("ctrl+u", "page_up", "page up", show=False),
    ]

    mode: reactive[DiffMode] = reactive[DiffMode]("unified")
    changes_only: reactive[bool] = reactive(True)
    """False shows whole files, unchanged ones too."""

    class StatsChanged(Message):
        """The figures of the header changed."""

        def __init__(self, view: DiffView, stats: DiffStats) -> None:
            super().__init__()
            self.view = view
            self.stats = stats

        @property
        def control(self) -> DiffView:
            return self.view

    def __init__(
        self, diff: DiffInput | None = None, *, name: str | None = None, id: str | None = None,
        classes: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name, id=id, classes=classes)
        self.stats = DiffStats()
        self._diff = diff or DiffInput()
        self._files: tuple[FileDiff, ...] = ()
        self._syntax: SyntaxOfSides = ()
        self._rows: list[Row] = []
        self._anchors: list[int] = []
        self._opened: frozenset[int] = frozenset()
        self._hunk = -1
        self._strips: dict[tuple[int, int], Strip] = {}
        self._widest = 0

    def on_mount(self) -> None:
        self._load(keep_position=False)

    def show(self, diff: DiffInput, *, keep_position: bool = False) -> None:
        """Show a comparison, from its beginning unless `keep_position`."""
        if diff == self._diff:
            return
        self._diff = diff
        if self.is_attached:
            self._load(keep_position)

    def toggle_mode(self) -> None:
        """Unified and side by side in turn."""
        self.mode = "side-by-side" if self.mode == "unified" else "unified"

    def toggle_changes_only(self) -> None:
        """Changes with a little context, and whole files, in turn."""
        self.changes_only = not self.changes_only

    def next_hunk(self) -> None:
        """Scroll to the next hunk."""
        self._jump(+1)

    def previous_hunk(self) -> None:
        """Scroll to the previous hunk."""
        self._jump(-1)

    action_next_hunk = next_hunk
    action_previous_hunk = previous_hunk

    def watch_mode(self) -> None:
        self._lay_rows()

    def watch_changes_only(self) -> None:
        self._lay_rows()

    def restyle(self) -> None:
        self._strips.clear()
        super().restyle()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        self._set_virtual_size()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = event.y + self.scroll_offset.y
        if at < len(self._rows) and self._rows[at].kind == "fold":
            self._opened |= {self._rows[at].fold}
            self._lay_rows()

    # Comparing

    def _load(self, keep_position: bool) -> None:
        size = sum(len(text) for f in self._diff.files for text in (f.before, f.after) if text)
        if size < _LARGE:
            self._accept(self._diff, *compare_files(self._diff), keep_position)
        else:
            self.run_worker(self._load_apart(self._diff, keep_position), exclusive=True, group="diff")

    async def _load_apart(self, diff: DiffInput, keep_position: bool) -> None:
        files, spans = await asyncio.to_thread(compare_files, diff)
        if diff is self._diff:
            self._accept(diff, files, spans, keep_position)

    def _accept(
        self,
        diff: DiffInput,
        files: tuple[FileDiff, ...],
        spans: SyntaxOfSides,
        keep_position: bool,
    ) -> None:
        self._files, self._syntax = files, spans
        self._opened = frozenset()
        self._hunk = -1
        self._widest = max((len(line) for f in files for side in (f.before, f.after) for line in side), default=0)
        self._lay_rows()
        if not keep_position:
            top = 0 if self.changes_only or not self._anchors else max(0, self._anchors[0] - difflines.CONTEXT)
            self.scroll_to(0, top, animate=False)

    def _lay_rows(self) -> None:
        rows = self._constant_rows()
        several = len(self._files) > 1
        hunks = folds = 0
        for number, file in enumerate(self._files):
            if not file.changed and self.changes_only:
                continue
            if several or file.created or file.deleted:
                rows += [Row("text"), Row("file", number)] if number and rows else [Row("file", number)]
            body = list(file.rows) if self.mode == "side-by-side" else difflines.unified(file.rows)
            body = difflines.fold(body, folds, self._opened, self.changes_only, file.after)
            folds += len(file.rows)
            rows += [_renumber(row, hunks) for row in body]
            hunks += file.hunks
        rows += self._sentences(bool(rows))
        self._rows = rows
        first: dict[int, int] = {}
        for at, row in enumerate(rows):
            if row.hunk >= 0:
                first.setdefault(row.hunk, at)
        self._anchors = [first[hunk] for hunk in sorted(first)]
        self._strips.clear()
        self._set_virtual_size()
        self._tell()
        self.refresh()

    def _constant_rows(self) -> list[Row]:
        moved = self._diff.constants
        if not moved:
            return []
        shown = moved if _CONSTANTS_FOLD in self._opened else moved[:_CONSTANTS_SHOWN]
        rows = [Row("constants", text=f"{len(moved)} constant{'s' * (len(moved) > 1)}")]
        rows += [Row("constant", left=at) for at in range(len(shown))]
        if len(shown) < len(moved):
            rows.append(Row("fold", text=str(len(moved) - len(shown)), fold=_CONSTANTS_FOLD))
        return [*rows, Row("text")]

    def _sentences(self, rows: bool) -> list[Row]:
        if not self._files:
            return [] if rows else [Row("text", text=""), Row("text", text=self._diff.empty)]
        same = [f.path for f in self._files if not f.changed]
        if not same or not self.changes_only:
            return []
        if len(same) == len(self._files):
            before, after = one_line(self._diff.before_label), one_line(self._diff.after_label)
            return [Row("text"), Row("text", text=f"{after} and {before} have the same code")]
        return [Row("text"), Row("text", text=f"{len(same)} more file{'s' * (len(same) > 1)} unchanged")]

    def _set_virtual_size(self) -> None:
        width = self.scrollable_content_region.width
        room = width - self._gutter(width) if self.mode == "unified" else width // 2 - self._gutter(width // 2)
        self.virtual_size = Size(width + max(0, self._widest - room), len(self._rows))

    def _tell(self) -> None:
        stats = DiffStats(
            sum(f.added for f in self._files),
            sum(f.removed for f in self._files),
            len(self._anchors),
            sum(f.changed for f in self._files),
            self._hunk + 1,
        )
        if stats != self.stats:
            self.stats = stats
            if self.is_attached:
                self.post_message(self.StatsChanged(self, stats))

    def _jump(self, by: int) -> None:
        if not self._anchors:
            return
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        if 0 <= self._hunk < len(self._anchors) and top <= self._anchors[self._hunk] < bottom:
            self._hunk = (self._hunk + by) % len(self._anchors)
        elif by > 0:
            self._hunk = next((i for i, at in enumerate(self._anchors) if at >= top), 0)
        else:
            self._hunk = next((i for i in reversed(range(len(self._anchors))) if self._anchors[i] < bottom), -1)
            self._hunk %= len(self._anchors)
        self._strips.clear()
        self.scroll_to(y=max(0, self._anchors[self._hunk] - difflines.CONTEXT), animate=False)
        self._tell()
        self.refresh()

    # Drawing

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if at >= len(self._rows):
            return Strip.blank(width, self.ink("diff--code"))
        key = (at, self.scroll_offset.x)
        selection = self.text_selection
        if selection is None and key in self._strips:
            return self._strips[key]
        strip = self._draw(at, self._rows[at], width, selection).adjust_cell_length(width, self.ink("diff--code"))
        if selection is None:
            if len(self._strips) > 2000:
                self._strips.clear()
            self._strips[key] = strip
        return strip

    def _draw(self, at: int, row: Row, width: int, selection: Selection | None) -> Strip:
        if row.kind == "constants":
            return self._rule(f" {row.text} ", "diff--accent", "diff--fold", width)
        if row.kind == "constant":
            return self._constant(self._diff.constants[row.left or 0], width)
        if row.kind == "file":
            return self._file_header(self._files[row.file], width)
        if row.kind == "fold":
            s = "" if row.text == "1" else "s"
            if row.fold == _CONSTANTS_FOLD:
                return self._rule(f" ⋯ {row.text} more constant{s} ", "diff--gap", "diff--fold", width)
            inside = f"· {row.inside} " if row.inside and width > 50 else ""
            return self._rule(f" ⋯ {row.text} unchanged line{s} {inside}", "diff--gap", "diff--fold", width)
        if row.kind == "text":
            fold = self.ink("diff--fold")
            return text_strip([(centre(one_line(row.text), width), fold)], width, fold)
        if self.mode == "unified":
            return Strip.join(self._side(at, row, "right" if row.left is None else "left", width, selection))
        half = (width - 1) // 2
        left = self._side(at, row, "left", half, None)
        right = self._side(at, row, "right", width - half - 1, selection)
        return Strip.join([*left, Strip([Segment("│", self.ink("diff--gap"))], 1), *right])

    def _rule(self, text: str, line: str, ink: str, width: int) -> Strip:
        text = cut(text, width - 2)
        rest = max(0, width - 2 - len(text))
        return text_strip(
            [("╶─", self.ink(line)), (text, self.ink(ink)), ("─" * rest, self.ink(line))], width, self.ink(line)
        )

    def _constant(self, row: ConstantRow, width: int) -> Strip:
        constants = self._diff.constants
        values = max((len(short(v)) for c in constants for v in (c.old, c.new) if v is not None), default=1)
        changes = max(len(_change(c)) for c in constants)
        room = width - 2 * values - len("    " + " → " + "  ")
        changes *= room - changes >= _LEAST_NAME  # a figure is shown whole or not at all
        names = max(cell_len(one_line(c.name)) for c in constants)
        names = min(names, max(_LEAST_NAME, room - changes))
        old = "—" if row.old is None else short(row.old)
        new = "—" if row.new is None else short(row.new)
        fold = self.ink("diff--fold")
        parts = [
            (f"  {pad(one_line(row.name), names)}  ", self.ink("diff--name")),
            (f"{old:>{values}}", fold),
            (" → ", fold),
            (f"{new:<{values}}", self.ink("diff--value")),
            (f"  {_change(row)}" if changes else "", self.ink("diff--change")),
        ]
        return text_strip(parts, width, fold)

    def _file_header(self, file: FileDiff, width: int) -> Strip:
        strength, tint = 0.22, "diff--accent"
        fill = self.ink("diff--file", tint, strength)
        note = "new file " if file.created else "deleted " if file.deleted else "" if file.changed else "unchanged "
        counts = [
            (note, self.ink("diff--fold", tint, strength)),
            (f"+{file.added} " if file.added else "", self.ink("diff--added-sign", tint, strength)),
            (f"−{file.removed} " if file.removed else "", self.ink("diff--removed-sign", tint, strength)),
        ]
        room = width - sum(len(text) for text, _ in counts) - 2
        return text_strip(
            [("▍", self.ink("diff--accent", tint, strength)), (pad(one_line(file.path), room + 1), fill), *counts],
            width,
            fill,
        )

    def _gutter(self, width: int) -> int:
        """Cells before the code: a bar, one or two line numbers, the sign."""
        digits = self._digits()
        both = self.mode == "unified" and width >= 90
        return 1 + (2 * digits + 1 if both else digits) + 3

    def _digits(self) -> int:
        return len(str(max((max(len(f.before), len(f.after)) for f in self._files), default=1)))

    def _side(
        self, at: int, row: Row, side: Literal["left", "right"], width: int, selection: Selection | None
    ) -> list[Strip]:
        file = self._files[row.file]
        index = row.left if side == "left" else row.right
        if self.mode == "side-by-side" and index is None:
            return [text_strip([("╱" * width, self.ink("diff--gap"))], width, self.ink("diff--gap"))]
        kind = row.kind if row.kind != "changed" else "removed" if side == "left" else "added"
        line = (row.left if side == "left" else row.right) or 0
        text = (file.before if side == "left" else file.after)[line]
        tint = _TINT.get(kind, "")
        here = row.hunk >= 0 and row.hunk == self._hunk
        digits, gutter = self._digits(), self._gutter(width)
        numbers = (
            f"{_number(row.left):>{digits}} {_number(row.right):>{digits}}"
            if gutter > digits + 4
            else f"{_number(row.right if side == 'right' or row.kind == 'context' else row.left):>{digits}}"
        )
        if self.mode == "side-by-side":
            numbers = f"{_number(index):>{digits}}"
        head = [
            ("▌" if here else " ", self.ink("diff--here", tint, _ROW_TINT)),
            (numbers, self.ink("diff--gutter", tint, _ROW_TINT)),
            (f" {_SIGN[kind]} ", self.ink(f"diff--{kind}-sign" if tint else "diff--gutter", tint, _ROW_TINT)),
        ]
        fill = self.ink("diff--code", tint, _ROW_TINT)
        spans = row.left_spans if side == "left" else row.right_spans
        body = self._code(text, self._line_syntax(row.file, side, line), spans, tint, at, selection)
        room, x = max(0, width - gutter), self.scroll_offset.x
        code = Strip(body).crop(x, x + room) if room else Strip([], 0)
        if side == "right" or self.mode == "unified":
            code = code.apply_offsets(x, at)
        code = code.adjust_cell_length(room, fill)
        if room > 1 and cell_len(text) > x + room:  # more to the right: h and l scroll
            code = Strip.join([code.crop(0, room - 1), Strip([Segment("›", head[1][1])], 1)])
        return [text_strip(head, min(gutter, width), fill), code]

    def _line_syntax(self, file: int, side: str, line: int) -> tuple[syntax.SyntaxSpan, ...]:
        lines = self._syntax[2 * file + (side == "right")]
        return lines[line] if line < len(lines) else ()

    def _code(
        self, text: str, marks: Sequence[syntax.SyntaxSpan], words: Sequence[Span], tint: str, at: int,
        selection: Selection | None,
    ) -> list[Segment]:  # fmt: skip
        cuts = {0, len(text)}
        cuts.update(edge for start, end, _ in marks for edge in (start, end))
        cuts.update(edge for span in words for edge in span)
        chosen = selection.get_span(at) if selection is not None else None
        if chosen is not None:
            chosen = (chosen[0], len(text) if chosen[1] == -1 else chosen[1])
            cuts.update(min(edge, len(text)) for edge in chosen)
        edges = sorted(cuts)
        segments = []
        for start, end in itertools.pairwise(edges):
            name = next((category for a, b, category in marks if a <= start < b), "code")
            strong = any(a <= start < b for a, b in words)
            style = self.ink(f"diff--{name}", tint, _WORD_TINT if strong else _ROW_TINT)
            if chosen is not None and chosen[0] <= start < chosen[1]:
                style += self.selection_ink
            segments.append(Segment(text[start:end], style))
        return segments

    @property
    def selection_ink(self) -> Style:
        """How selected text looks, decided by the screen."""
        return self.screen.get_component_rich_style("screen--selection")

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self._code_text(row) for row in self._rows)), "\n"

    def _code_text(self, row: Row) -> str:
        if row.file < 0 or row.kind in ("file", "fold"):
            return ""
        file = self._files[row.file]
        if row.right is not None and (row.left is None or self.mode == "side-by-side"):
            return file.after[row.right]
        return file.before[row.left] if row.left is not None else ""


def compare_files(diff: DiffInput) -> tuple[tuple[FileDiff, ...], SyntaxOfSides]:
    """Compare and highlight every file: the slow part, fit for a thread. Sides are before, after of each file."""
    files, spans = [], []
    for number, pair in enumerate(diff.files):
        before, after = harmless(pair.before or ""), harmless(pair.after or "")
        files.append(difflines.compare(pair, number, before, after))
        spans += [syntax.spans(before, pair.path), syntax.spans(after, pair.path)]
    return tuple(files), tuple(spans)


def _renumber(row: Row, hunks: int) -> Row:
    if row.hunk < 0 or not hunks:
        return row
    return difflines.replace(row, hunk=row.hunk + hunks)


def _number(index: int | None) -> str:
    return "" if index is None else str(index + 1)


def _change(row: ConstantRow) -> str:
    if row.old is None:
        return "new"
    if row.new is None:
        return "gone"
    if not math.isfinite(row.old) or not math.isfinite(row.new) or row.old == 0:
        return ""
    percent = (row.new - row.old) / abs(row.old) * 100
    arrow = "▲" if percent > 0 else "▼" if percent < 0 else "="
    if abs(percent) >= 1000:
        return f"{arrow} ×{row.new / row.old:.3g}"
    return f"{arrow} {percent:+.0f} %" if abs(percent) >= 10 else f"{arrow} {percent:+.2g} %"
