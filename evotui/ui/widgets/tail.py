"""`TranscriptTail`: what the agent thinks, says and does, as a tail of bounded cost.

Owns its place in the entries (an entry and a line within it, never a total height), so that fifty thousand entries cost
as much as the screenful in view. Nothing here changes the layout, whatever comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from evotui.ui.widgets.entries import Entry, Kind, wrap
from evotui.ui.widgets.paint import InkedWidget, centre, cut, harmless, one_line, text_strip

__all__ = ["Entry", "Kind", "TranscriptTail", "wrap"]

_LINES_PER_ENTRY = 4096
"""Lines of one entry that can be looked at; also the unit that makes an entry and a line one selection row."""
_CACHED = 1000


_GLYPHS = {
    Kind.THOUGHT: "∴", Kind.MESSAGE: "●", Kind.TOOL_CALL: "▸", Kind.TOOL_RESULT: "└", Kind.EDIT: "±",
    Kind.SUBMISSION: "◆", Kind.UNDER_WAY: "◇", Kind.NOTE: "·", Kind.ASIDE: "~", Kind.PERSON: "»", Kind.ERROR: "✕",
}  # fmt: skip
_LINES_SHOWN = {Kind.TOOL_CALL: 2, Kind.TOOL_RESULT: 3, Kind.EDIT: 6, Kind.THOUGHT: 4, Kind.ASIDE: 2}
_LINES_SHOWN_ELSE = 40
_LINES_SHOWN_FAILED = 8
_LINES_SHOWN_GROWING = 16


class _Line(NamedTuple):
    """One drawn line: the entry's text in it, whether it only says how much is folded, whether a click unfolds it."""

    strip: Strip
    text: str
    fold: bool = False
    opens: bool = False


class TranscriptTail(InkedWidget, can_focus=True):
    """Follows the end until scrolled up; wraps only what is in view."""

    DEFAULT_CSS = """
    TranscriptTail {
        width: 1fr; height: 1fr;
        & > .tail--text { color: $foreground; }
        & > .tail--time { color: $text-disabled; }
        & > .tail--thought { color: $text-muted; text-style: italic; }
        & > .tail--message { color: $text-primary; }
        & > .tail--tool-call { color: $text-secondary; text-style: bold; }
        & > .tail--tool-result { color: $text-muted; }
        & > .tail--edit { color: $text-warning; }
        & > .tail--submission { color: $text-success; text-style: bold; }
        & > .tail--under-way { color: $text-accent; text-style: bold; }
        & > .tail--note { color: $text-muted; }
        & > .tail--aside { color: $text-disabled; }
        & > .tail--person { color: $text-accent; }
        & > .tail--error { color: $text-error; text-style: bold; }
        & > .tail--failed { color: $text-error; }
        & > .tail--fold { color: $text-disabled; text-style: italic; }
        & > .tail--selected { color: $text-accent; }
        & > .tail--rail { color: $foreground 10%; }
        & > .tail--thumb { color: $foreground 35%; }
        & > .tail--new { color: $text-accent; text-style: bold; }
        & > .tail--empty { color: $text-muted; }
        &:ansi > .tail--rail, &:ansi > .tail--time { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"tail--{name}"
        for name in (
            *(kind.value.replace(" ", "-") for kind in Kind),
            *("text", "time", "failed", "fold", "selected", "rail", "thumb", "new", "empty"),
        )
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_lines(-1)", "up", show=False),
        Binding("down,j", "scroll_lines(1)", "down", show=False),
        Binding("pageup", "scroll_pages(-1)", "page up", show=False),
        Binding("pagedown", "scroll_pages(1)", "page down", show=False),
        Binding("ctrl+u", "scroll_pages(-0.5)", "half a page up", show=False),
        Binding("ctrl+d", "scroll_pages(0.5)", "half a page down", show=False),
        Binding("home,g", "go_home", "first entry", show=False),
        Binding("end,G", "follow", "newest entry", show=False),
        Binding("o", "toggle_folds", "unfold or fold long entries", show=False),
    ]

    class EntryPicked(Message):
        """The user clicked on an entry that belongs to a submission."""

        def __init__(self, tail: TranscriptTail, index: int, entry: Entry) -> None:
            super().__init__()
            self.tail = tail
            self.index = index
            self.entry = entry

        @property
        def control(self) -> TranscriptTail:
            return self.tail

    def __init__(
        self, *, empty: str = "the agent's transcript appears here", name: str | None = None, id: str | None = None,
        classes: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name, id=id, classes=classes)
        self.following = True
        """Whether the newest entry is kept in view."""
        self._empty = empty
        self._entries: Sequence[Entry] = ()
        self._count = 0
        self._last: Entry | None = None
        self._growing: tuple[Entry, ...] = ()
        self._first_of: Callable[[int], int | None] = self._search
        self._unseen = 0
        self._submission: int | None = None
        self._top = (0, 0)
        self._opened: set[int] = set()
        self._all_open = False
        self._blocks: dict[int, list[_Line]] = {}
        self._view: list[tuple[int, int]] | None = None
        self._drawn_for = Size(0, 0)

    # Entries

    def set_entries(
        self,
        entries: Sequence[Entry],
        growing: Sequence[Entry] = (),
        first_of: Callable[[int], int | None] | None = None,
    ) -> None:
        """Show `entries`, which only grow from call to call (anything else starts anew).

        The sequence is kept, not copied, and may be made as it is read. `growing` are entries that are still being
        written: they stand last. `first_of` gives the first entry of a submission where it need not be searched for.
        """
        self._first_of = first_of or self._search
        growing = tuple(growing)
        count = len(entries)
        grew = count >= self._count and (not self._count or entries[self._count - 1] == self._last)
        if not grew:
            self._blocks.clear()
            self._opened.clear()
            self._unseen, self._top, self.following = 0, (0, 0), True
        elif count == self._count and growing == self._growing:
            self._entries = entries
            return
        elif not self.following:
            self._unseen += count - self._count
        for at in range(len(self._growing)):
            self._blocks.pop(self._count + at, None)
            self._opened.discard(self._count + at)
        for at in range(len(growing)):
            self._blocks.pop(count + at, None)
        self._entries, self._count, self._growing = entries, count, growing
        self._last = entries[count - 1] if count else None
        self._rearrange()

    @property
    def entries(self) -> Sequence[Entry]:
        """What was shown last, without what is still being written."""
        return self._entries

    @property
    def unfolded(self) -> bool:
        """Whether every long entry is shown whole."""
        return self._all_open

    def highlight(self, submission: int | None) -> None:
        """Mark the entries of one submission; when not following, go to the first of them."""
        if submission == self._submission:
            return
        self._submission = submission
        self._blocks.clear()
        if not self.following and submission is not None:
            first = self._first_of(submission)
            if first is not None:
                self._top = (first, 0)
        self._rearrange()

    def follow(self) -> None:
        """Go to the newest entry and stay there."""
        self.following, self._unseen = True, 0
        self._rearrange()

    def _search(self, submission: int) -> int | None:
        return next((i for i in range(self._count) if self._entries[i].submission == submission), None)

    def _total(self) -> int:
        return self._count + len(self._growing)

    def _entry(self, index: int) -> Entry:
        return self._entries[index] if index < self._count else self._growing[index - self._count]

    # Moving about

    def action_follow(self) -> None:
        self.follow()

    def action_go_home(self) -> None:
        self._top, self.following = (0, 0), False
        self._settle()

    def action_scroll_pages(self, pages: float) -> None:
        self.action_scroll_lines(round(pages * max(1, self.size.height - 1)))

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by lines, negative towards the beginning."""
        view = self._arranged()
        if not view or not lines:
            return
        entry, line = view[0]
        while lines < 0 and (entry, line) > (0, 0):
            step = min(line, -lines)
            line, lines = line - step, lines + step
            if lines < 0 and entry > 0:
                entry -= 1
                line, lines = len(self._block(entry)) - 1, lines + 1
        while lines > 0 and entry < self._total():
            left = len(self._block(entry)) - 1 - line
            if lines <= left:
                line, lines = line + lines, 0
            elif entry + 1 < self._total():
                entry, line, lines = entry + 1, 0, lines - left - 1
            else:
                line, lines = line + left, 0
        self._top, self.following = (entry, line), False
        self._settle()

    def action_toggle_folds(self) -> None:
        """Unfold every long entry, or fold them again."""
        self._all_open = not self._all_open
        self._opened.clear()
        self._blocks.clear()
        self._rearrange()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_lines(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_lines(3)

    def on_click(self, event: events.Click) -> None:
        view = self._arranged()
        if self._unseen and event.y == self.size.height - 1:
            self.follow()
            return
        if event.y >= len(view):
            return
        index, line = view[event.y]
        entry = self._entry(index)
        if self._block(index)[line].opens:
            self._opened ^= {index}
            self._blocks.pop(index, None)
            self._rearrange()
        elif entry.submission is not None:
            self.post_message(self.EntryPicked(self, index, entry))

    def _settle(self) -> None:
        """After a move: whoever reaches the end follows again."""
        self._rearrange()
        if len(self._arranged()) < self.size.height or self._arranged()[-1] == self._end():
            self.follow()

    def _end(self) -> tuple[int, int]:
        last = self._total() - 1
        return (last, len(self._block(last)) - 1) if last >= 0 else (0, 0)

    def on_resize(self) -> None:
        self._rearrange()

    def restyle(self) -> None:
        self._blocks.clear()
        self._view = None
        super().restyle()

    def _rearrange(self) -> None:
        self._view = None
        self.refresh()

    def _arranged(self) -> list[tuple[int, int]]:
        """The (entry, line) of each row in view."""
        if self._drawn_for != self.size:  # painting may come before the resize event
            self._drawn_for, self._view = self.size, None
            self._blocks.clear()
        if self._view is not None:
            return self._view
        height = self.size.height
        view: list[tuple[int, int]] = []
        if not self.following:
            entry, line = self._top
            for index in range(entry, self._total()):
                lines = len(self._block(index))
                view += [(index, k) for k in range(min(line, lines - 1) if index == entry else 0, lines)]
                if len(view) >= height:
                    break
            view = view[:height]
        if len(view) < height:  # the newest entries fill the view, as many as there are
            view = []
            for index in range(self._total() - 1, -1, -1):
                view[:0] = [(index, line) for line in range(len(self._block(index)))]
                if len(view) >= height:
                    break
            view = view[-height:] if height else []
        self._view = view
        return view

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        view = self._arranged()
        if not view:
            ink = self.ink("tail--empty")
            text = one_line(self._empty) if y == self.size.height // 2 else ""
            return text_strip([(centre(text, width), ink)], width, ink)
        if self._unseen and y == self.size.height - 1:
            return self._new_strip(width)
        if y >= len(view):
            return Strip.blank(width, self.ink("tail--text"))
        index, line = view[y]
        strip = self._block(index)[line].strip
        if self.text_selection is not None:
            strip = self._select(index, line, self.text_selection)
        if len(view) < self.size.height or (view[0] == (0, 0) and view[-1] == self._end()):
            return strip.adjust_cell_length(width, self.ink("tail--text"))
        thumb = self._thumb(view, y)
        rail = Segment("┃" if thumb else "│", self.ink("tail--thumb" if thumb else "tail--rail"))
        return Strip.join([strip.adjust_cell_length(width - 1, self.ink("tail--text")), Strip([rail], 1)])

    def _thumb(self, view: list[tuple[int, int]], y: int) -> bool:
        height, total = self.size.height, self._total()
        size = max(1, round(height * (view[-1][0] - view[0][0] + 1) / total))
        if self.following:
            start = height - size
        else:
            start = min(height - size, round(height * view[0][0] / total))
        return start <= y < start + size

    def _new_strip(self, width: int) -> Strip:
        text = f"▼ {self._unseen} new"
        ink = self.ink("tail--new", "tail--selected", 0.15)
        return text_strip([(centre(text, width), ink)], width, ink)

    def _block(self, index: int) -> list[_Line]:
        block = self._blocks.get(index)
        if block is None:
            if len(self._blocks) >= _CACHED:
                del self._blocks[next(iter(self._blocks))]
            block = self._blocks[index] = self._draw(index, self._entry(index))
        return block

    def _draw(self, index: int, entry: Entry) -> list[_Line]:
        width = self.size.width - 1  # the last column is the rail's
        times = width >= 44
        left = (7 if times else 0) + 3
        room = max(8, width - left - 1)
        opened = self._all_open != (index in self._opened)
        folded = _LINES_SHOWN.get(entry.kind, _LINES_SHOWN_ELSE) if entry.ok else _LINES_SHOWN_FAILED
        title = cut(one_line(entry.title), room)
        taken = cell_len(title) + 2 if title else 0
        if entry.growing:
            lines, more = wrap(harmless(entry.text).rstrip("\n"), room, _LINES_PER_ENTRY - 2, first=taken)
            cut_off = max(0, len(lines) - _LINES_SHOWN_GROWING)
            lines = lines[cut_off:]
        else:
            text = harmless(entry.detail if opened and entry.detail else entry.text).strip("\n").rstrip()
            lines, more = wrap(text, room, _LINES_PER_ENTRY - 2 if opened else folded, first=taken)
        hidden = bool(entry.detail) and not opened and not more
        ink = self._entry_ink(entry)
        tint = "tail--submission" if entry.kind is Kind.SUBMISSION and entry.ok else ""
        tint = "tail--failed" if entry.kind is Kind.SUBMISSION and not entry.ok else tint
        body = self._body_ink(entry)
        mine = entry.submission is not None and entry.submission == self._submission
        bar = ("▌" if mine else " ", self.ink("tail--selected"))
        out: list[_Line] = []
        for number, line in enumerate(lines):
            first, last = number == 0, number == len(lines) - 1
            clock = f"{_clock(entry.time) if first else '':>5}  " if times else ""
            glyph = _GLYPHS[entry.kind] if first and entry.ok else "✕" if first else " "
            head = [bar, (clock, self._tinted("tail--time", tint)), (f"{glyph} ", self._tinted(ink, tint))]
            told = [Segment(line, self._tinted(body, tint))] if line else []
            if first and title and not (entry.growing and cut_off):
                gap = [Segment("  ", self._tinted(body, tint))] if line else []
                told = [Segment(title, self._tinted(ink, tint)), *gap, *told]
            chosen = Strip(told).apply_offsets(0, index * _LINES_PER_ENTRY + number)  # what can be selected
            mark = " ⋯" if last and hidden else "▍" if last and entry.growing else ""
            after = [Segment(mark, self.ink("tail--fold" if hidden else ink))] if mark else []
            strip = Strip([*(Segment(part, style) for part, style in head if part), *chosen, *after])
            strip = strip.adjust_cell_length(width, self._tinted("tail--text", tint))
            out.append(_Line(strip, chosen.text, opens=hidden))
        if not entry.growing and (more or (opened and (len(lines) > folded or entry.detail))):
            words = f"⋯ {more} more line{'s' * (more > 1)}" if more else "⋯ less"
            fold = [bar, (" " * (left - 1) + words, self.ink("tail--fold"))]
            out.append(_Line(text_strip(fold, width, self.ink("tail--text")), "", fold=True, opens=True))
        return out

    def _tinted(self, name: str, tint: str) -> Style:
        return self.ink(name, tint, 0.10) if tint else self.ink(name)

    def _entry_ink(self, entry: Entry) -> str:
        return "tail--failed" if not entry.ok else f"tail--{entry.kind.value.replace(' ', '-')}"

    def _body_ink(self, entry: Entry) -> str:
        if entry.kind in (Kind.MESSAGE, Kind.SUBMISSION, Kind.UNDER_WAY, Kind.EDIT, Kind.PERSON):
            return "tail--text"
        if entry.kind is Kind.TOOL_CALL:
            return "tail--tool-result"
        return self._entry_ink(entry)

    # Selecting text

    def _select(self, index: int, line: int, selection: Selection) -> Strip:
        drawn = self._block(index)[line]
        span = selection.get_span(index * _LINES_PER_ENTRY + line)
        if span is None or not drawn.text:
            return drawn.strip
        start, end = span[0], len(drawn.text) if span[1] == -1 else span[1]
        chosen = self.screen.get_component_rich_style("screen--selection")
        segments: list[Segment] = []
        for segment in drawn.strip:
            offset = (segment.style.meta or {}).get("offset") if segment.style else None
            if offset is None or segment.style is None:
                segments.append(segment)
                continue
            a, b = max(0, start - offset[0]), max(0, end - offset[0])
            parts = (segment.text[:a], segment.text[a:b], segment.text[b:])
            styles = (segment.style, segment.style + chosen, segment.style)
            segments += [Segment(text, style) for text, style in zip(parts, styles, strict=True) if text]
        return Strip(segments, drawn.strip.cell_length)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first = selection.start.y // _LINES_PER_ENTRY if selection.start else 0
        last = selection.end.y // _LINES_PER_ENTRY if selection.end else self._total() - 1
        out: list[str] = []
        for index in range(first, min(last, self._total() - 1) + 1):
            for line, drawn in enumerate(self._block(index)):
                span = selection.get_span(index * _LINES_PER_ENTRY + line)
                if span is not None and not drawn.fold:
                    out.append(drawn.text[span[0] : None if span[1] == -1 else span[1]])
        return "\n".join(out), "\n"


def _clock(seconds: float | None) -> str:
    if seconds is None or not 0 <= seconds < 360_000:
        return ""
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes:02}:{second:02}" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}"
