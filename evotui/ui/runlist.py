"""The home screen's table of runs: any number of rows on the line API, columns by what fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evotui.ui.widgets.paint import InkedWidget, cut, one_line
from evotui.ui.words import mean_of, number

STATES = {
    "running": ("●", "running"), "completed": ("✓", "finished"), "no_ok_submit": ("✗", "failed"),
    "error": ("✗", "failed"), "interrupted": ("◌", "interrupted"), "unreadable": ("!", "unreadable"),
    "damaged": ("!", "damaged"),
}  # fmt: skip
if TYPE_CHECKING:  # painted before any record is loaded
    from evotui.record.summary import RunSummary

_VERSION = re.compile(r"-v\d+$")
_BARS = "▁▂▃▄▅▆▇█"


def spark(means: Sequence[float | None], width: int) -> str:
    """The last means as bars between their least and greatest; a dot where a submission was not scored."""
    shown = list(means)[-width:]
    known = [m for m in shown if m is not None]
    if not known:
        return "·" * len(shown)
    low, high = min(known), max(known)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join("·" if m is None else _BARS[round((m - low) * scale) if scale else 3] for m in shown)


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    seconds = max(0.0, seconds)
    for size, unit in ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def words_of(run: RunSummary) -> str:
    """What a filter looks into."""
    state = STATES.get(run.status, ("?", run.status))[1]
    return " ".join((state, run.env, run.env_version, run.agent, run.model, run.name)).lower()


def matching(runs: Sequence[RunSummary], text: str) -> list[RunSummary]:
    """Runs that hold every word of ``text`` somewhere, running ones first, then the newest."""
    wanted = text.lower().split()
    found = [run for run in runs if all(word in words_of(run) for word in wanted)]
    return sorted(found, key=lambda run: (run.status != "running", -run.last_at, str(run.path)))


# name, heading, width, rank (the greatest rank is dropped first), on the right
_COLUMNS: tuple[tuple[str, str, int, int, bool], ...] = (
    ("state", "state", 13, 0, False),
    ("env", "environment", 20, 0, False),
    ("agent", "agent", 8, 5, False),
    ("run", "run", 8, 1, False),
    ("best", "best", 8, 3, True),
    ("held", "held-out", 15, 2, True),
    ("score", "score", 5, 7, True),
    ("budget", "budget", 7, 6, True),
    ("spark", "means", 8, 8, False),
    ("age", "age", 6, 4, True),
)
_GAP = 2


def columns(width: int) -> list[tuple[str, str, int, bool]]:
    """(name, heading, width, on the right) of the columns that fit; environment and means take what is left over."""
    chosen = list(_COLUMNS)
    if width < 60:
        chosen[0] = ("state", "", 1, 0, False)  # the glyph says it
    least = {"env": 12}

    def need() -> int:
        return sum(least.get(c[0], c[2]) for c in chosen) + _GAP * (len(chosen) - 1)

    while len(chosen) > 3 and need() > width:
        chosen.remove(max(chosen, key=lambda c: c[3]))
    spare = max(0, width - need())
    wider = {"env": min(spare, 20), "spark": min(max(0, spare - 20), 40)}
    return [(n, h, least.get(n, w) + wider.get(n, 0), right) for n, h, w, _, right in chosen]


def named(env: str, size: int) -> str:
    """An environment's name for so many cells: its version goes before a letter of it does."""
    return env if cell_len(env) <= size else _VERSION.sub("", env)


class RunList(ScrollView, InkedWidget, can_focus=True):
    """Rows of :class:`RunSummary`; one is selected. Says :class:`Opened` on enter or a second click."""

    DEFAULT_CSS = """
    RunList {
        width: 1fr; height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .runs--text { color: $foreground; }
        & > .runs--head { color: $text-muted; }
        & > .runs--muted { color: $text-muted; }
        & > .runs--env { color: $foreground; text-style: bold; }
        & > .runs--run { color: $text-accent; }
        & > .runs--spark { color: $text-primary; }
        & > .runs--held { color: $text-accent; }
        & > .runs--running { color: $text-success; text-style: bold; }
        & > .runs--finished { color: $text-success; }
        & > .runs--failed { color: $text-error; }
        & > .runs--interrupted { color: $text-warning; }
        & > .runs--unreadable, & > .runs--damaged { color: $text-error; }
        & > .runs--cursor { color: $block-cursor-foreground; background: $block-cursor-background; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"runs--{n}"
        for n in (
            *("text", "head", "muted", "env", "run", "spark", "held", "cursor"),
            *("running", "finished", "failed", "interrupted", "unreadable", "damaged"),
        )
    }

    class Moved(Message):
        """Another run is selected (or none)."""

        def __init__(self, runs: RunList, run: RunSummary | None) -> None:
            super().__init__()
            self.runs = runs
            self.run = run

        @property
        def control(self) -> RunList:
            return self.runs

    class Opened(Message):
        """A run shall be opened."""

        def __init__(self, runs: RunList, run: RunSummary) -> None:
            super().__init__()
            self.runs = runs
            self.run = run

        @property
        def control(self) -> RunList:
            return self.runs

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[RunSummary] = []
        self._at = 0
        self._now = 0.0

    @property
    def rows(self) -> Sequence[RunSummary]:
        return self._rows

    @property
    def selected(self) -> RunSummary | None:
        return self._rows[self._at] if self._rows else None

    def show(self, rows: Sequence[RunSummary], now: float) -> None:
        """Draw rows; the selected run stays selected. ``now`` is what ages are counted from."""
        chosen = self.selected
        self._rows = list(rows)
        self._now = now
        paths = {run.path: i for i, run in enumerate(self._rows)}
        fallback = min(self._at, max(0, len(self._rows) - 1))
        # A list that still grows keeps its first row selected until somebody moves.
        self._at = paths.get(chosen.path, fallback) if chosen is not None and self._at else 0
        self.virtual_size = Size(self.size.width, len(self._rows))
        self.refresh()
        self.post_message(self.Moved(self, self.selected))

    def choose(self, path: Path) -> None:
        """Select the run of that folder, if it is listed."""
        for i, run in enumerate(self._rows):
            if run.path == path:
                self.move_to(i)

    def move(self, by: int) -> None:
        self.move_to(self._at + by)

    def move_to(self, row: int) -> None:
        """Select a row, as near as there is one, and bring it into view."""
        if not self._rows:
            return
        self._at = min(max(row, 0), len(self._rows) - 1)
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self._at < top:
            self.scroll_to(y=self._at, animate=False)
        elif self._at >= top + height:
            self.scroll_to(y=self._at - height + 1, animate=False)
        self.refresh()
        self.post_message(self.Moved(self, self.selected))

    def page(self, pages: float) -> None:
        self.move(round(pages * max(1, self.size.height - 1)))

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))

    def on_click(self, event: events.Click) -> None:
        row = event.y + self.scroll_offset.y
        if row < len(self._rows):
            again = row == self._at
            self.move_to(row)
            if again:
                self.post_message(self.Opened(self, self._rows[row]))

    def heading(self) -> Strip:
        """The columns' names."""
        ink = self.ink("runs--head")
        cells = [(cut(h, w).rjust(w) if right else cut(h, w).ljust(w), ink) for _, h, w, right in columns(self._room)]
        return self._row(cells, ink)

    @property
    def _room(self) -> int:
        return self.size.width - 2

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.size.width
        if at >= len(self._rows):
            return Strip.blank(width, self.ink("runs--text"))
        run = self._rows[at]
        here = at == self._at
        cells = []
        for name, _, size, right in columns(self._room):
            text, ink = self._cell(run, name, size)
            text = cut(text, size)
            pad = " " * (size - cell_len(text))
            style = self.ink(f"runs--{ink}")
            if here:
                cursor = self.ink("runs--cursor")
                style = style + Style(bgcolor=cursor.bgcolor) if ink != "text" else cursor
            cells.append((pad + text if right else text + pad, style))
        return self._row(cells, self.ink("runs--cursor") if here else self.ink("runs--text"), "▌" if here else " ")

    def _row(self, cells: Sequence[tuple[str, Style]], fill: Style, edge: str = " ") -> Strip:
        segments = [Segment(edge, fill + Style(color=self.ink("runs--run").color))]
        for i, (text, style) in enumerate(cells):
            if i:
                segments.append(Segment(" " * _GAP, fill))
            segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(self.size.width, fill)

    def _cell(self, run: RunSummary, name: str, size: int) -> tuple[str, str]:
        """(text, ink) of one column."""
        match name:
            case "state":
                glyph, word = STATES.get(run.status, ("?", run.status))
                return (
                    glyph if size == 1 else f"{glyph} {word}",
                    word if f"runs--{word}" in self.COMPONENT_CLASSES else "muted",
                )
            case "env":
                return named(one_line(run.env_version or run.env or run.problem), size), "env"
            case "agent":
                return one_line(run.agent), "text"
            case "run":
                name = one_line(run.name)  # the runs of a suite differ at their ends
                return (name if cell_len(name) <= size else f"…{name[1 - size :]}"), "run"
            case "best":
                return ("" if run.best_in_loop is None else number(run.best_in_loop)), "text"
            case "held":
                held = run.heldout
                return ("" if held is None else mean_of(*held)), "held"
            case "score":
                return ("" if run.final_score is None else f"{run.final_score:.1f}"), "held"
            case "budget":
                return (f"{run.used}/{run.total}" if run.total else ""), "muted"
            case "spark":
                return spark(run.means, size), "spark"
            case _:
                return (age(self._now - run.last_at) if run.last_at else ""), "muted"
