"""What the CLI hands to the suite's screen: the cells of a matrix as they stand, and one control, to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evotui.analysis.leaderboard import Environment
    from evotui.record.suitedir import CellState


@dataclass(frozen=True, slots=True)
class SuiteView:
    """A suite at one moment. ``at`` names the cell that is being run (its run's name), ``progress`` says how it goes.

    ``seconds_left`` is a guess from the cells that this process finished, None where there is none yet.
    """

    name: str
    environments: tuple[Environment, ...]
    agents: tuple[str, ...]
    repeats: int
    cells: tuple[CellState, ...]
    at: str = ""
    progress: str = ""
    seconds_left: float | None = None


class SuiteFeed(Protocol):
    """A suite that this process runs, or ran."""

    @property
    def root(self) -> Path: ...

    @property
    def view(self) -> SuiteView: ...

    @property
    def live(self) -> bool:
        """Whether cells are still run."""

    @property
    def failure(self) -> str:
        """Why the suite broke off, in one sentence; "" while nothing is wrong. A cell that failed is no such reason."""

    def updates(self) -> AsyncIterator[SuiteView]:
        """Newest views, some a second at most; ends when no more can come."""

    async def stop(self) -> None:
        """End the cell that is run, its record whole, and begin no other. Returns when that is done."""

    async def close(self) -> None:
        """Stop, if it still goes on."""
