"""The budget pane: where the episodes went."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult

from evotui.ui import figures
from evotui.ui.chrome import Part
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

    def compose(self) -> ComposeResult:
        yield self.meter

    def draw(self, picture: Picture) -> None:
        made = figures.budget_figures(picture.state, picture.view.submission)
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
        lines = [f"total {f.total}, used {f.used}, reserved {f.reserved}, remaining {f.remaining}", *f.facts]
        lines += [f"s{c.submission:03d}\t{c.episodes}{' failed' * c.failed}{' running' * c.running}" for c in f.charges]
        return "\n".join(lines)
