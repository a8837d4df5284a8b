"""`DiffView`: what an edit changed in the bundle, unified or side by side, with the constants that moved on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView

DiffMode = Literal["unified", "side-by-side"]


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
class DiffStats:
    """Figures for a pane's header."""

    added: int = 0
    removed: int = 0
    hunks: int = 0
    files: int = 0
    """Files that differ."""
    hunk: int = 0
    """1-based hunk at the top of the view; 0 when there is none."""


class DiffView(ScrollView):
    """Shows a `DiffInput`. Modes are reactives; `stats` and `StatsChanged` feed a header."""

    DEFAULT_CSS = "DiffView { width: 1fr; height: 1fr; }"
    mode: reactive[DiffMode] = reactive("unified")
    changes_only: reactive[bool] = reactive(True)

    class StatsChanged(Message):
        """The figures of the header changed."""

        def __init__(self, view: DiffView, stats: DiffStats) -> None:
            super().__init__()
            self.view = view
            self.stats = stats

        @property
        def control(self) -> DiffView:
            return self.view

    stats = DiffStats()

    def show(self, diff: DiffInput, *, keep_position: bool = False) -> None:
        """Show a comparison; the view jumps to its first hunk unless `keep_position`."""

    def next_hunk(self) -> None:
        """Scroll to the next hunk."""

    def previous_hunk(self) -> None:
        """Scroll to the previous hunk."""

    def toggle_mode(self) -> None:
        """Unified <-> side by side."""
        self.mode = "side-by-side" if self.mode == "unified" else "unified"
