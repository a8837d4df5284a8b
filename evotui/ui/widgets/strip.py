"""`ValuesStrip`: one environment step in figures: observation, action, reward, return."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from textual.strip import Strip

from evotui.ui.widgets.paint import InkedWidget, cut, one_line, text_strip

_NAME = 10
_VALUE = 8
_BAR = 9
_GAP = 3

Parts = list[tuple[str, Style]]


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


class _Grid(NamedTuple):
    """How readings are set: columns and the widths of a reading's name and bar."""

    columns: int
    name: int
    bar: int


class ValuesStrip(InkedWidget):
    """Fits into 1 to 6 lines: first the head (t, action, reward, return), then the readings in columns."""

    DEFAULT_CSS = """
    ValuesStrip {
        width: 1fr; height: 3;
        & > .values--name { color: $text-muted; }
        & > .values--value { color: $foreground; }
        & > .values--strong { color: $foreground; text-style: bold; }
        & > .values--track { color: $foreground 18%; }
        & > .values--bar { color: $text-primary; }
        & > .values--action { color: $text-accent; text-style: bold; }
        & > .values--action-bar { color: $text-accent; }
        & > .values--reward { color: $text-success; }
        & > .values--penalty { color: $text-error; }
        & > .values--warning { color: $text-error; text-style: bold; }
    }
    """
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"values--{name}"
        for name in (
            *("name", "value", "strong", "track", "bar"),
            *("action", "action-bar", "reward", "penalty", "warning"),
        )
    }

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._values: StepValues | None = None

    def show(self, values: StepValues | None) -> None:
        """Draw a step; None clears."""
        if values != self._values:
            self._values = values
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, fill = self.size.width, self.ink("values--name")
        values = self._values
        if values is None or not width:
            return Strip.blank(width, fill)
        if y == 0:
            return text_strip(self._head(values, width), width, fill)
        return text_strip(self._readings(values, y - 1, width), width, fill)

    def _head(self, values: StepValues, width: int) -> Parts:
        name, strong = self.ink("values--name"), self.ink("values--strong")
        groups: list[Parts] = [[("t ", name), (str(values.t), strong)]]
        if values.action_name:
            groups.append([("action ", name), (cut(one_line(values.action_name), 24), self.ink("values--action"))])
        elif len(values.action) == 1:
            reading = values.action[0]
            bar = self._bar(reading, _BAR, "values--action-bar")
            shown = [("action ", name), (f"{_figure(reading.value)} ", self.ink("values--action")), *bar]
            groups.append(shown)
        if values.return_ is not None:
            groups.append([("return ", name), (_figure(values.return_, signed=False), strong)])
        if values.reward is not None:
            ink = "values--penalty" if values.reward < 0 else "values--reward"
            groups.append([("reward ", name), (_figure(values.reward), self.ink(ink))])
        if values.invalid:
            groups.append([("! action repaired", self.ink("values--warning"))])
        if values.ended:
            groups.append([(f"■ {one_line(values.ended)}", self.ink("values--strong"))])
        parts: Parts = []
        for group in groups:
            gap = [(" " * (_GAP if width > 50 else 2), name)] if parts else []
            if sum(cell_len(text) for text, _ in (*parts, *gap, *group)) > width and parts:
                continue
            parts += [*gap, *group]
        return parts

    def _readings(self, values: StepValues, row: int, width: int) -> Parts:
        rows = max(1, self.size.height - 1)
        action = values.action if len(values.action) > 1 and not values.action_name else ()
        inks = ["values--action-bar"] * len(action) + ["values--bar"] * len(values.observation)
        readings = [*action, *values.observation]
        if not readings:
            return []
        grid = self._grid(readings, rows, width)
        room = rows * grid.columns
        missing = len(readings) - room
        parts: Parts = []
        for column in range(grid.columns):
            at = column * rows + row if len(readings) > rows else row  # down, then across, as one reads a table
            if at >= len(readings):
                break
            if missing > 0 and at == room - 1:
                more = f"+ {missing + 1} more"
                parts.append((set_cell_size(more, _cell_width(grid)), self.ink("values--name")))
                break
            parts += self._reading(readings[at], inks[at], grid)
            parts.append((" " * _GAP, self.ink("values--name")))
        return parts

    def _grid(self, readings: list[Reading], rows: int, width: int) -> _Grid:
        """The roomiest setting in which all readings fit, else the one that shows most."""
        longest = max(cell_len(one_line(r.name)) for r in readings)
        bars = any(_bounded(r) for r in readings)
        for name in sorted({min(longest, 24), min(longest, 16), min(longest, _NAME)}, reverse=True):
            for bar in (_BAR, 5, 0) if bars else (0,):
                grid = _Grid(1, name, bar)
                columns = max(1, (width + _GAP) // (_cell_width(grid) + _GAP))
                if columns * rows >= len(readings) and _cell_width(grid) <= width:
                    return _Grid(min(columns, -(-len(readings) // rows)), name, bar)
        name = min(longest, _NAME)
        return _Grid(max(1, (width + _GAP) // (_cell_width(_Grid(1, name, 0)) + _GAP)), name, 0)

    def _reading(self, reading: Reading, ink: str, grid: _Grid) -> Parts:
        name = _abbreviate(one_line(reading.name), grid.name)
        value = cut(_figure(reading.value), _VALUE)
        parts: Parts = [
            (name + " " * (grid.name - cell_len(name) + 1), self.ink("values--name")),
            (" " * (_VALUE - cell_len(value)) + value, self.ink("values--value")),
        ]
        if grid.bar:
            bar = self._bar(reading, grid.bar, ink) or [(" " * grid.bar, self.ink("values--track"))]
            parts += [(" ", self.ink("values--track")), *bar]
        return parts

    def _bar(self, reading: Reading, width: int, ink: str) -> Parts:
        """A track from low to high: filled from zero (or from low) to the value, which is a dot on it."""
        if not _bounded(reading) or isinstance(reading.value, str):
            return []
        low, high = reading.low or 0.0, reading.high or 0.0
        track, bar = self.ink("values--track"), self.ink(ink)
        if not math.isfinite(reading.value):
            return [("─" * width, track)]
        share = (reading.value - low) / (high - low)
        at = round(min(max(share, 0.0), 1.0) * (width - 1))
        zero = round(min(max(-low / (high - low), 0.0), 1.0) * (width - 1))
        a, b = sorted((at, zero))
        chars = ["━" if a <= k <= b else "─" for k in range(width)]
        styles = [bar if a <= k <= b else track for k in range(width)]
        if 0 < zero < width - 1 and zero != at:
            chars[zero], styles[zero] = "┿", track
        slack = 1e-6
        chars[at] = "◀" if share < -slack else "▶" if share > 1 + slack else "●"
        styles[at] = self.ink("values--warning") if not -slack <= share <= 1 + slack else bar
        return list(zip(chars, styles, strict=True))


def _abbreviate(text: str, width: int) -> str:
    """Shorten the longest words first: names of one family differ in short parts, such as their numbers."""
    words = text.split(" ")
    while cell_len(" ".join(words)) > width:
        longest = max(range(len(words)), key=lambda i: len(words[i]))
        if len(words[longest]) <= 1:
            return cut(text, width)
        words[longest] = words[longest][:-1]
    return " ".join(words)


def _cell_width(grid: _Grid) -> int:
    return grid.name + 1 + _VALUE + (1 + grid.bar if grid.bar else 0)


def _bounded(reading: Reading) -> bool:
    low, high = reading.low, reading.high
    return low is not None and high is not None and math.isfinite(low) and math.isfinite(high - low) and high > low


def _figure(value: float | str, signed: bool = True) -> str:
    """A number of at most eight cells whose sign keeps its place, so that figures do not dance."""
    if isinstance(value, str):
        return one_line(value)
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    digits = 3 if size < 100 else 2 if size < 1000 else 1 if size < 10_000 else 0
    if size >= 1e6 or 0 < size < 5e-4:
        text = f"{value:.1e}"
    else:
        text = f"{value:.{digits}f}"
    return f"+{text}" if signed and value >= 0 else text
