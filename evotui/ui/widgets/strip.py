"""`ValuesStrip`: one environment step in figures: observation, action, reward, return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from evotui.ui.widgets.paint import InkedWidget, cut, one_line, pad, text_strip

_VALUE = 8
_BAR = 9
_GAP = 3
_TALL, _NARROW = 8, 60
"""From so many lines, and below so many cells, the head takes lines of its own."""
_PAYS = ("return", "reward")
_ORDER = ("t", "action", *_PAYS, "invalid", "ended")

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


class _Setting(NamedTuple):
    """The widths of a reading's parts."""

    name: int
    value: int
    bar: int

    @property
    def width(self) -> int:
        """Cells of one reading."""
        return self.name + 1 + self.value + (1 + self.bar if self.bar else 0)

    @property
    def gap(self) -> int:
        """Cells between two readings."""
        return _GAP if self.value == _VALUE else 2


# From roomy to tight. A bar tells more than the rest of a long name does.
_SETTINGS = (
    _Setting(24, 8, 9), _Setting(16, 8, 9), _Setting(16, 8, 5), _Setting(12, 8, 9), _Setting(12, 8, 5),
    _Setting(24, 8, 0), _Setting(16, 8, 0), _Setting(12, 8, 0), _Setting(8, 6, 0),
)  # fmt: skip


class ValuesStrip(InkedWidget):
    """Fits into any number of lines: first the head (t, action, reward, return), then the readings in columns."""

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
        &:ansi > .values--track { text-style: dim; }
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
        heads = self._heads(values, width)
        if y < len(heads):
            return text_strip(heads[y], width, fill)
        return text_strip(self._readings(values, y - len(heads), len(heads), width), width, fill)

    def _heads(self, values: StepValues, width: int) -> list[Parts]:
        """What comes before the readings: a line, or three of a tall and narrow strip."""
        if not self._tall(width):
            return [self._head(values, width, _ORDER)]
        return [self._head(values, width, names) for names in (("t", "ended", "invalid"), _PAYS, ("action",))]

    def _tall(self, width: int) -> bool:
        return self.size.height >= _TALL and width < _NARROW

    def _head(self, values: StepValues, width: int, names: Sequence[str]) -> Parts:
        parts: Parts = []
        groups = self._groups(values)
        for group in (groups[key] for key in names if key in groups):
            gap = [(" " * (_GAP if width > 50 else 2), self.ink("values--name"))] if parts else []
            if sum(cell_len(text) for text, _ in (*parts, *gap, *group)) > width and parts:
                continue
            parts += [*gap, *group]
        return parts

    def _groups(self, values: StepValues) -> dict[str, Parts]:
        """What the head can say, by name."""
        name, strong = self.ink("values--name"), self.ink("values--strong")
        groups: dict[str, Parts] = {"t": [("t ", name), (str(values.t), strong)]}
        if values.action_name:
            groups["action"] = [("action ", name), (cut(one_line(values.action_name), 24), self.ink("values--action"))]
        elif len(values.action) == 1:
            reading = values.action[0]
            bar = self._bar(reading, _BAR, "values--action-bar")
            shown = [("action ", name), (f"{_figure(reading.value)} ", self.ink("values--action")), *bar]
            groups["action"] = shown
        if values.return_ is not None:
            groups["return"] = [("return ", name), (_figure(values.return_, signed=False), strong)]
        if values.reward is not None:
            ink = "values--penalty" if values.reward < 0 else "values--reward"
            groups["reward"] = [("reward ", name), (_figure(values.reward), self.ink(ink))]
        if values.invalid:
            groups["invalid"] = [("! action repaired", self.ink("values--warning"))]
        if values.ended:
            groups["ended"] = [(f"■ {one_line(values.ended)}", self.ink("values--strong"))]
        return groups

    def _readings(self, values: StepValues, row: int, above: int, width: int) -> Parts:
        rows = max(1, self.size.height - above)
        action = values.action if len(values.action) > 1 and not values.action_name else ()
        inks = ["values--action-bar"] * len(action) + ["values--bar"] * len(values.observation)
        readings = [*action, *values.observation]
        if not readings:
            return []
        if self._tall(width) and any(isinstance(r.value, str) and len(r.value) > _VALUE for r in readings):
            lines = self._listed(readings, inks, width)
            if len(lines) <= rows:
                return lines[row] if row < len(lines) else []
        setting, columns = self._fit(readings, rows, width)
        labels = _labels(tuple(one_line(r.name) for r in readings), setting.name)
        missing = len(readings) - rows * columns
        parts: Parts = []
        for column in range(columns):
            at = column * rows + row  # down, then across, as one reads a table
            if at >= len(readings):
                break
            if missing > 0 and at == rows * columns - 1:
                parts.append((cut(f"+ {missing + 1} more", setting.width), self.ink("values--name")))
                break
            last = column == columns - 1 or at + rows >= len(readings)
            room = width - sum(cell_len(text) for text, _ in parts) if last else setting.width
            parts += self._reading(readings[at], labels[at], inks[at], setting, room)
            parts.append((" " * setting.gap, self.ink("values--name")))
        return parts

    def _listed(self, readings: Sequence[Reading], inks: Sequence[str], width: int) -> list[Parts]:
        """One below the other, a text that is long under its name and as long as it is."""
        setting, _ = self._fit([r for r in readings if not isinstance(r.value, str)] or list(readings), 99, width)
        labels = _labels(tuple(one_line(r.name) for r in readings), setting.name)
        lines: list[Parts] = []
        for reading, name, ink in zip(readings, labels, inks, strict=True):
            text = one_line(reading.value) if isinstance(reading.value, str) else ""
            if cell_len(text) <= width - setting.name - 2:
                lines.append(self._reading(reading, name, ink, setting, width))
                continue
            lines.append([(cut(one_line(reading.name), width), self.ink("values--name"))])
            lines += [[(line, self.ink("values--value"))] for line in wrap(text, width, break_on_hyphens=False)]
        return lines

    def _fit(self, readings: list[Reading], rows: int, width: int) -> tuple[_Setting, int]:
        """The roomiest setting in which all readings fit, else that in which most do, and how many columns it has."""
        longest = max(cell_len(one_line(r.name)) for r in readings)
        bars = any(_bounded(r) for r in readings)
        best, most = _SETTINGS[-1], 1
        for setting in _SETTINGS:
            setting = setting._replace(name=min(setting.name, longest))
            columns = max(1, (width + setting.gap) // (setting.width + setting.gap))
            if (setting.bar and not bars) or setting.width > width:
                continue
            if columns * rows >= len(readings):
                best, most = setting, min(columns, -(-len(readings) // rows))
                break
            if columns > most or best is _SETTINGS[-1]:
                best, most = setting, columns
        spare = (width + best.gap) // most - best.gap - best.width
        return best._replace(name=min(longest, best.name + max(0, spare))), most

    def _reading(self, reading: Reading, name: str, ink: str, setting: _Setting, room: int) -> Parts:
        """``name`` is its label, ``room`` is what a text may take, such as a mission in the last column."""
        if isinstance(reading.value, str):
            text = cut(_figure(reading.value), max(setting.value, room - setting.name - 2))
            head = (pad(name, setting.name + 2), self.ink("values--name"))
            return [head, (text.ljust(setting.width - setting.name - 2), self.ink("values--value"))]
        value = cut(_figure(reading.value, digits=3 if setting.value == _VALUE else 2), setting.value)
        parts: Parts = [
            (pad(name, setting.name + 1), self.ink("values--name")),
            (" " * (setting.value - cell_len(value)) + value, self.ink("values--value")),
        ]
        if setting.bar:
            bar = self._bar(reading, setting.bar, ink) or [(" " * setting.bar, self.ink("values--track"))]
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


@lru_cache(64)
def _labels(names: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Names of at most ``width`` cells, those that were cut with an ellipsis at their end, and told apart if they can.

    Names of one family often begin alike and differ in short parts, such as their numbers: then the longest words are
    shortened first.
    """
    labels = tuple(cut(name, width) for name in names)
    if len(set(labels)) < len(set(names)):
        labels = tuple(_abbreviate(name, width) for name in names)
    return labels


def _abbreviate(text: str, width: int) -> str:
    """The longest words lose their ends first."""
    words = text.split(" ")
    if cell_len(text) <= width:
        return text
    while cell_len(" ".join(words)) > width - 1:
        longest = max(range(len(words)), key=lambda i: len(words[i]))
        if len(words[longest]) <= 1:
            return cut(text, width)
        words[longest] = words[longest][:-1]
    return " ".join(words) + "…"


def _bounded(reading: Reading) -> bool:
    low, high = reading.low, reading.high
    return low is not None and high is not None and math.isfinite(low) and math.isfinite(high - low) and high > low


def _figure(value: float | str, signed: bool = True, digits: int = 3) -> str:
    """A number of at most eight cells (six with two digits), its sign always shown, so that figures do not dance."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if not signed and value == int(value) and abs(value) < 1e6:
        return str(int(value))
    value += 0.0  # -0.0 is no negative number
    size = abs(value)
    digits -= (size >= 100) + (size >= 1000) + (size >= 10_000)
    if size >= 10 ** (digits + 3) or 0 < size < 0.5 * 10**-digits:
        text = f"{value:.{max(0, digits - 2)}e}"
    else:
        text = f"{value:.{max(0, digits)}f}"
    return f"+{text}" if signed and value >= 0 else text
