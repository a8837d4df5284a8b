"""`BudgetMeter`: where the episodes of the budget went. `CaseMap`, its companion, lives in `casemap`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from evotui.ui.widgets.casemap import CaseColumn, CaseMap
from evotui.ui.widgets.paint import InkedWidget, cut, one_line, runs, text_strip

__all__ = ["BudgetFigures", "BudgetMeter", "CaseColumn", "CaseMap", "Charge"]


@dataclass(frozen=True, slots=True)
class Charge:
    """Episodes charged by one submission."""

    submission: int
    episodes: int
    failed: bool = False
    """Charged, although it brought no score."""
    running: bool = False
    """Reserved: accepted and not finished."""
    done: int = 0
    """Episodes finished so far, while running."""


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """What the meter draws. `facts`: short texts beside it, such as "9 submissions", "32 since best", "00:42"."""

    total: int
    charges: tuple[Charge, ...] = ()
    facts: tuple[str, ...] = ()
    selected: int | None = None
    rejected: int = 0
    """Rejected submissions: they cost nothing, and the facts say so."""
    live: bool = True
    """Whether what has not finished may still do so."""

    @property
    def used(self) -> int:
        """Episodes charged by finished submissions."""
        return sum(c.episodes for c in self.charges if not c.running)

    @property
    def reserved(self) -> int:
        """Episodes charged by running submissions."""
        return sum(c.episodes for c in self.charges if c.running)

    @property
    def remaining(self) -> int:
        """Episodes left to charge."""
        return max(0, self.total - self.used - self.reserved)


class BudgetMeter(InkedWidget):
    """One line: the bar. Two: facts. Three: the submissions' names. Four: a thicker bar."""

    DEFAULT_CSS = """
    BudgetMeter {
        width: 1fr; height: 2;
        & > .budget--used { color: $primary; }
        & > .budget--used-alt { color: $primary 70%; }
        & > .budget--failed { color: $text-error; }
        & > .budget--selected { color: $accent; }
        & > .budget--reserved { color: $text-primary; }
        & > .budget--remaining { color: $foreground 20%; }
        & > .budget--count { color: $foreground; text-style: bold; }
        & > .budget--fact { color: $text-muted; }
        &:ansi > .budget--remaining, &:ansi > .budget--used-alt { text-style: dim; }
    }
    """
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"budget--{name}"
        for name in ("used", "used-alt", "failed", "selected", "reserved", "remaining", "count", "fact")
    }

    class ChargePicked(Message):
        """The user clicked at a submission's share."""

        def __init__(self, meter: BudgetMeter, submission: int) -> None:
            super().__init__()
            self.meter = meter
            self.submission = submission

        @property
        def control(self) -> BudgetMeter:
            return self.meter

    def __init__(
        self, figures: BudgetFigures | None = None, *, name: str | None = None, id: str | None = None,
        classes: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name, id=id, classes=classes)
        self._figures = figures or BudgetFigures(0)

    def show(self, figures: BudgetFigures) -> None:
        """Draw new figures."""
        if figures != self._figures:
            self._figures = figures
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        cells = self._cells(self._bar_width())
        if event.y < self._bar_height() + (self.size.height > 2) and 0 <= event.x < len(cells):
            charge = cells[event.x][0]
            if charge is not None:
                self.post_message(self.ChargePicked(self, charge.submission))

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        bar = self._bar_height()
        if y < bar:
            return self._bar(width, counts=y == 0)
        if y == bar and height > 2:
            return self._names(width)
        if y == height - 1 or y == bar:
            return self._facts(width)
        return Strip.blank(width, self.ink("budget--fact"))

    def _bar_height(self) -> int:
        return 2 if self.size.height > 3 else 1

    def _counts(self) -> str:
        f = self._figures
        return f"{f.used + f.reserved}/{f.total}"

    def _bar_width(self) -> int:
        room = self.size.width - len(self._counts()) - 1
        return room if room >= 4 else 0

    def _cells(self, width: int) -> list[tuple[Charge | None, int, bool]]:
        """For each cell the charge at its middle, its place among the charges, whether its episode is finished."""
        figures = self._figures
        total = max(figures.total, figures.used + figures.reserved, 1)
        cells: list[tuple[Charge | None, int, bool]] = []
        start, index = 0, 0
        for at in range(width):
            middle = (at + 0.5) / width * total
            while index < len(figures.charges) and middle >= start + figures.charges[index].episodes:
                start += figures.charges[index].episodes
                index += 1
            if index == len(figures.charges):
                cells.append((None, index, False))
            else:
                charge = figures.charges[index]
                cells.append((charge, index, not charge.running or middle < start + charge.done))
        return cells

    def _look(self, charge: Charge | None, index: int, finished: bool) -> tuple[str, Style]:
        if charge is None:
            return "░", self.ink("budget--remaining")
        chosen = charge.submission == self._figures.selected
        if charge.failed:
            ink = "budget--selected" if chosen else "budget--failed"
            return "╱", self.ink(ink, "budget--failed", 0.3)
        if charge.running:
            return "▓" if finished else "▒", self.ink("budget--selected" if chosen else "budget--reserved")
        return "█", self.ink("budget--selected" if chosen else "budget--used-alt" if index % 2 else "budget--used")

    def _bar(self, width: int, counts: bool) -> Strip:
        looks = [self._look(*cell) for cell in self._cells(self._bar_width())]
        segments = list(runs([char for char, _ in looks], [style for _, style in looks]))
        parts = [(segment.text, segment.style or Style()) for segment in segments]
        if counts:
            parts.append((f"{' ' * bool(parts)}{self._counts()}", self.ink("budget--count")))
        return text_strip(parts, width, self.ink("budget--fact"))

    def _names(self, width: int) -> Strip:
        """The submissions' numbers under their shares, where they fit; the selected one always."""
        chars = [" "] * width
        styles = [self.ink("budget--fact")] * width
        spans: dict[int, tuple[int, int, Charge]] = {}
        for at, (charge, index, _) in enumerate(self._cells(self._bar_width())):
            if charge is not None:
                spans[index] = (spans.get(index, (at,))[0], at, charge)
        chosen = [s for s in spans.values() if s[2].submission == self._figures.selected]
        for first, last, charge in [*chosen, *(s for s in spans.values() if s not in chosen)]:
            mine = (first, last, charge) in chosen
            label = f"▲ s{charge.submission:03d}" if mine else str(charge.submission)
            if not mine and len(label) >= last - first + 1:
                continue
            at = max(0, min(first, width - len(label)))
            if any(char != " " for char in chars[max(0, at - 1) : at + len(label) + 1]):
                continue
            chars[at : at + len(label)] = label
            styles[at : at + len(label)] = [self.ink("budget--selected" if mine else "budget--fact")] * len(label)
        return Strip(runs(chars[:width], styles[:width]), width)

    def _facts(self, width: int) -> Strip:
        figures, fact = self._figures, self.ink("budget--fact")
        facts = [f"{figures.remaining} left"]
        if figures.reserved:
            facts.append(f"{figures.reserved} {'running' if figures.live else 'unfinished'}")
        failed = sum(c.episodes for c in figures.charges if c.failed)
        if failed:
            facts.append(f"╱ {failed} failed")
        if figures.rejected:
            facts.append(f"{figures.rejected} rejected (free)")
        text = ""
        for item in [*facts, *(one_line(item) for item in figures.facts)]:
            longer = f"{text} · {item}" if text else item
            if cell_len(longer) > width and text:
                break
            text = longer
        return text_strip([(cut(text, width), fact)], width, fact)
