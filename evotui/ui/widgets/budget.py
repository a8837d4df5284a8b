"""`BudgetMeter`, where the episodes went, and `CaseMap`, which submission ran which case and how it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.message import Message

from evotui.ui.widgets.paint import InkedWidget


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
    """Rejected submissions: free, shown as a fact."""

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
        return self.total - self.used - self.reserved


class BudgetMeter(InkedWidget):
    """One to four lines: bar, facts, labels of the submissions."""

    DEFAULT_CSS = "BudgetMeter { width: 1fr; height: 2; }"

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
        self,
        figures: BudgetFigures | None = None,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._figures = figures or BudgetFigures(0)

    def show(self, figures: BudgetFigures) -> None:
        """Draw new figures."""
        self._figures = figures
        self.refresh()

    def render(self) -> str:
        f = self._figures
        return f"{f.used + f.reserved}/{f.total}"


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """One submission's returns: (case, return) pairs; a return of None means that the episode failed."""

    submission: int
    returns: tuple[tuple[int, float | None], ...]
    label: str = ""


class CaseMap(InkedWidget):
    """Cases down, submissions across; cells by quantile of the return, each with a glyph."""

    DEFAULT_CSS = "CaseMap { width: 1fr; height: 1fr; }"

    class CellPicked(Message):
        """The user clicked at an episode."""

        def __init__(self, case_map: CaseMap, submission: int, case: int) -> None:
            super().__init__()
            self.case_map = case_map
            self.submission = submission
            self.case = case

        @property
        def control(self) -> CaseMap:
            return self.case_map

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._columns: Sequence[CaseColumn] = ()

    def show(self, columns: Sequence[CaseColumn], selected: int | None = None, case: int | None = None) -> None:
        """Draw submissions in order; `selected` and `case` are the cursor."""
        self._columns = columns
        self.refresh()

    def render(self) -> str:
        return "cases × submissions"
