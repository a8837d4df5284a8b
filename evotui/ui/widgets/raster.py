"""A braille raster: points and lines in 2 x 4 dots a cell, with one ink and one tint for each cell.

Owns pixels and ticks, knows nothing of scores or styles: inks and tints are small numbers. All of it is numpy, so that
ten thousand points cost a few milliseconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

BLANK = 0
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint8)


class Raster:
    """Cells of `width` x `height` over the ranges `x` and `y` (low, high). Later drawing covers earlier drawing."""

    def __init__(self, width: int, height: int, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.width, self.height = width, height
        self._x, self._y = x, y
        self.bits = np.zeros((height, width), np.uint8)
        self.inks = np.zeros((height, width), np.int16)
        self.tints = np.zeros((height, width), np.int16)
        self.glyphs = np.full((height, width), ord(" "), np.uint32)

    def px(self, x: np.ndarray | float) -> np.ndarray:
        """Horizontal dot of each x, clipped to the raster."""
        low, high = self._x
        at = (np.asarray(x, float) - low) / (high - low) * (2 * self.width - 1)
        return np.clip(np.rint(at), 0, 2 * self.width - 1).astype(int)

    def py(self, y: np.ndarray | float) -> np.ndarray:
        """Vertical dot of each y from the top, clipped to the raster."""
        low, high = self._y
        at = (high - np.asarray(y, float)) / (high - low) * (4 * self.height - 1)
        return np.clip(np.rint(at), 0, 4 * self.height - 1).astype(int)

    def column(self, x: float) -> int:
        """Cell column of x."""
        return self.dot(x) // 2

    def row(self, y: float) -> int:
        """Cell row of y."""
        return self.dot_down(y) // 4

    def dot(self, x: float) -> int:
        """Horizontal dot of one x: what `px` does, without the price of an array."""
        low, high = self._x
        last = 2 * self.width - 1
        return min(max(round((x - low) / (high - low) * last), 0), last)

    def dot_down(self, y: float) -> int:
        """Vertical dot of one y, from the top."""
        low, high = self._y
        last = 4 * self.height - 1
        return min(max(round((high - y) / (high - low) * last), 0), last)

    def dots(self, x: np.ndarray, y: np.ndarray, ink: int) -> None:
        """One dot a point."""
        self._set(self.px(x), self.py(y), ink)

    def level(self, start: int, end: int, y: float, ink: int, dash: int = 0) -> None:
        """A horizontal line between two horizontal dots; with `dash` every so many dots, half of them are left out."""
        across = np.arange(start, end + 1)
        if dash:
            across = across[across % dash < (dash + 1) // 2]
        self._set(across, np.full_like(across, self.dot_down(y)), ink)

    def levels(self, lines: Sequence[tuple[int, int, float]], ink: int) -> None:
        """Many horizontal lines (first dot, last dot, y) at once."""
        if not lines:
            return
        table = np.array(lines, float)
        first = table[:, 0].astype(int)
        lengths = table[:, 1].astype(int) - first + 1
        ends = np.cumsum(lengths)
        across = np.arange(ends[-1]) - np.repeat(ends - lengths - first, lengths)
        self._set(across, np.repeat(self.py(table[:, 2]), lengths), ink)

    def upright(self, x: float, y0: float, y1: float, ink: int, dash: int = 0) -> None:
        """A vertical line."""
        ends = sorted((self.dot_down(y0), self.dot_down(y1)))
        down = np.arange(ends[0], ends[1] + 1)
        if dash:
            down = down[down % dash < (dash + 1) // 2]
        self._set(np.full_like(down, self.dot(x)), down, ink)

    def steps(self, points: Sequence[tuple[float, float]], until: float, ink: int, dash: int) -> None:
        """A dashed staircase through points (x, y): each y holds up to the next x, the last one up to `until`."""
        ends = [*(x for x, _ in points[1:]), max(until, points[-1][0])]
        for index, ((x, y), end) in enumerate(zip(points, ends, strict=True)):
            if index:
                self.upright(x, points[index - 1][1], y, ink, dash)
            self.level(self.dot(x), self.dot(end), y, ink, dash)

    def stairs(self, points: Sequence[tuple[float, float]], until: float, ink: int) -> None:
        """A staircase in box-drawing characters: a line that reads at a glance, a row of cells being its precision."""
        rows = {self.column(x): self.row(y) for x, y in points}  # the last of several in one column
        columns = sorted(rows)
        ends = [*columns[1:], max(self.column(until), columns[-1])]
        for column, end in zip(columns, ends, strict=True):
            for at in range(column + 1, end):
                self.glyph(at, rows[column], "─", ink)
        if ends[-1] > columns[-1]:
            self.glyph(ends[-1], rows[columns[-1]], "─", ink)
        self.glyph(columns[0], rows[columns[0]], "╶", ink)
        for before, column in itertools.pairwise(columns):
            old, new = rows[before], rows[column]
            corners = "──" if old == new else "╯╭" if new < old else "╮╰"
            for at in range(min(old, new) + 1, max(old, new)):
                self.glyph(column, at, "│", ink)
            self.glyph(column, old, corners[0], ink)
            self.glyph(column, new, corners[1], ink)

    def tint(self, columns: tuple[int, int], rows: tuple[int, int], tint: int) -> None:
        """Tint cells from the first to the last column and row, both included."""
        self.tints[max(rows[0], 0) : rows[1] + 1, max(columns[0], 0) : columns[1] + 1] = tint

    def glyph(self, column: int, row: int, char: str, ink: int) -> None:
        """Put a character over a cell."""
        if 0 <= column < self.width and 0 <= row < self.height:
            self.bits[row, column] = 0
            self.glyphs[row, column] = ord(char)
            self.inks[row, column] = ink

    def is_free(self, row: int, start: int, stop: int) -> bool:
        """Whether nothing is drawn in the row's cells from ``start`` to before ``stop``."""
        cells = slice(start, stop)
        return bool(((self.bits[row, cells] == 0) & (self.glyphs[row, cells] == ord(" "))).all())

    def behind(self, column: int | slice, row: int | slice, char: str, ink: int) -> None:
        """Put a character where nothing is drawn yet."""
        free = (self.bits[row, column] == 0) & (self.glyphs[row, column] == ord(" "))
        self.glyphs[row, column] = np.where(free, ord(char), self.glyphs[row, column])
        self.inks[row, column] = np.where(free, ink, self.inks[row, column])

    def rows(self) -> Iterator[list[tuple[str, int, int]]]:
        """For each row the runs (text, ink, tint)."""
        chars = np.where(self.bits > 0, 0x2800 + self.bits.astype(np.uint32), self.glyphs).astype("<u4")
        keys = (self.inks.astype(np.int32) << 8) | self.tints
        for row in range(self.height):
            text = chars[row].tobytes().decode("utf-32-le")
            starts = np.flatnonzero(np.diff(keys[row], prepend=-1)).tolist()
            inks, tints = self.inks[row], self.tints[row]
            yield [
                (text[start:end], int(inks[start]), int(tints[start]))
                for start, end in zip(starts, [*starts[1:], self.width], strict=True)
            ]

    def _set(self, px: np.ndarray, py: np.ndarray, ink: int) -> None:
        np.bitwise_or.at(self.bits, (py >> 2, px >> 1), _DOTS[py & 3, px & 1])
        self.inks[py >> 2, px >> 1] = ink


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers within [low, high], about so many: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    raw = span / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def value_ticks(low: float, high: float, rows: int) -> list[float]:
    """Round numbers for an upright axis of so many rows: one for three rows, at least two where they have room.

    A single figure would leave the scale unknown.
    """
    about = max(2, rows // 3)
    found = ticks(low, high, about)
    while len(found) < 2 and about < min(rows, 8):
        about += 1
        found = ticks(low, high, about)
    return found


def short(value: float) -> str:
    """A number for a tick or a readout: at most four significant digits."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-3:
        return f"{value:.2g}"
    if size >= 1e5:
        return f"{value / 1000:.4g}k"
    if size >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"
