"""The budget pane: where the episodes went; below them time, tokens and money, which are no episodes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from evotui.ui import costs, figures
from evotui.ui.chrome import Line, Part
from evotui.ui.panes.pane import Pane
from evotui.ui.panes.picture import Picture
from evotui.ui.widgets.budget import BudgetFigures, BudgetMeter


class BudgetPane(Pane):
    number: ClassVar[int] = 5
    label: ClassVar[str] = "Budget"

    def __init__(self) -> None:
        super().__init__(id="budget")
        self._figures: BudgetFigures | None = None
        self.meter = BudgetMeter(id="meter")
        self.beside = Line(id="beside")

    def compose(self) -> ComposeResult:
        yield self.meter
        yield self.beside

    def draw(self, picture: Picture) -> None:
        now = picture.now if picture.live and not picture.frozen else picture.state.last_at
        parts = costs.beside(picture.ledger, picture.state, picture.limits, now)
        self.beside.show(parts)
        if parts and not self.has_class("-priced"):
            self.add_class("-priced")
        made = figures.budget_figures(picture.state, picture.view.submission, picture.live)
        if made == self._figures:
            return
        self._figures = made
        self.meter.show(made)
        parts = [Part("episodes", "$text-muted", 30)]
        self.titled("", parts)

    def plain(self) -> str:
        f = self._figures
        if f is None:
            return ""
        word = " running" if f.live else " unfinished"
        lines = [f"total {f.total}, used {f.used}, reserved {f.reserved}, remaining {f.remaining}", *f.facts]
        lines += [f"s{c.submission:03d}\t{c.episodes}{' failed' * c.failed}{word * c.running}" for c in f.charges]
        lines += [self.beside.text] * bool(self.beside.text)
        return "\n".join(lines)
