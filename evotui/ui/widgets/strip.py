"""`ValuesStrip`: one environment step in figures: observation, action, reward, return."""

from __future__ import annotations

from dataclasses import dataclass

from evotui.ui.widgets.paint import InkedWidget


@dataclass(frozen=True, slots=True)
class Reading:
    """A named value; with finite bounds it gets a small bar."""

    name: str
    value: float | str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StepValues:
    """One environment step. `action_name` for a discrete action, `action` for continuous ones (or both)."""

    t: int = 0
    observation: tuple[Reading, ...] = ()
    action: tuple[Reading, ...] = ()
    action_name: str = ""
    reward: float | None = None
    return_: float | None = None
    invalid: bool = False
    """The policy's action was unreadable or out of bounds and was repaired."""
    ended: str = ""
    """"terminated", "truncated" or ""."""


class ValuesStrip(InkedWidget):
    """Fits into 1 to 6 lines: the head line (t, action, reward, return) first, then the observation in columns."""

    DEFAULT_CSS = "ValuesStrip { width: 1fr; height: 3; }"

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._values: StepValues | None = None

    def show(self, values: StepValues | None) -> None:
        """Draw a step; None clears."""
        self._values = values
        self.refresh()

    def render(self) -> str:
        return ""
