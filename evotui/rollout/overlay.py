"""What a picture does not show by itself, or not in the few pixels of a pane: a car's controls, a grid's cells.

MiniGrid's pictures show what the agent sees, those of Reacher, Pusher, Fetch and parking their goals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from evotui.suite.pictures import Grid

_STEER, _GO, _STOP, _ZERO = (255, 214, 64), (80, 220, 100), (255, 80, 70), (235, 235, 235)
_AGENT, _BEHIND = (255, 70, 60), (150, 20, 20)
_LEAST_CELL = 4
"""Pixels of a cell from which its tile's drawing can be made out."""
_STANDS_OUT = 40
_GO_NAMES, _STOP_NAMES = ("gas", "throttle"), ("brake",)


def controls(pixels: np.ndarray, names: Sequence[str], action: Any) -> np.ndarray:
    """``pixels`` (H × W × 3, uint8) with two bars in the upper left corner where one of the action's values steers.

    The upper bar is the steering, from the middle to the side; the lower one what drives (right, green) or brakes
    (left, red). Other actions, and frames too small for it, come back as they are.
    """
    height, width = pixels.shape[:2]
    if "steering" not in names or not isinstance(action, list) or len(action) != len(names) or min(height, width) < 24:
        return pixels
    values = dict(zip(names, action, strict=True))
    if not all(isinstance(v, (int, float)) for v in action):
        return pixels
    half, thick = max(width // 10, 5), max(height // 40, 1)
    drive = sum(values.get(n, 0.0) for n in _GO_NAMES) - sum(values.get(n, 0.0) for n in _STOP_NAMES)
    drawn = pixels.copy()
    # A wide picture is a car park, with places, one of them the goal, along its upper and lower side.
    top = (height - 2 * thick - 3) // 2 if width > 1.8 * height else 1
    place = drawn[top : top + 2 * thick + 3, 1 : 2 * half + 4]
    place[:] = place // 3
    _bar(drawn, top + 1, thick, half, values["steering"], _STEER, _STEER)
    _bar(drawn, top + 2 + thick, thick, half, drive, _GO, _STOP)
    return drawn


def cells(pixels: np.ndarray, grid: Grid, width: int, height: int) -> np.ndarray:
    """A grid world's picture (tiles of equal size) for ``width`` × ``height`` pixels, at least one a cell.

    Where a cell gets four pixels or more it gets a whole number of them, so that its edges stay sharp. Where it gets
    fewer, nothing of a tile's drawing would be left: then it has one colour, that of what stands out in it, and the
    agent's cell is bright where it looks to.
    """
    scale = min(width / grid.across, height / grid.down)
    if scale >= _LEAST_CELL:
        each = min(int(scale), pixels.shape[0] // grid.down)
        size = grid.across * each, grid.down * each
        return np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).resize(size, Image.Resampling.BOX))
    colours = _colours(pixels, grid)
    colours[grid.agent[1], grid.agent[0]] = _AGENT
    columns = _places(grid.across, max(round(grid.across * scale), 1))
    rows = _places(grid.down, max(round(grid.down * scale), 1))
    drawn = colours[rows][:, columns]
    along = np.flatnonzero(columns == grid.agent[0]), np.flatnonzero(rows == grid.agent[1])
    if min(len(along[0]), len(along[1])) > 0:
        mine = drawn[along[1][0] : along[1][-1] + 1, along[0][0] : along[0][-1] + 1]
        behind = {0: mine[:, :-1], 1: mine[:-1], 2: mine[:, 1:], 3: mine[1:]}[grid.heading]
        behind[:] = _BEHIND
    return drawn


def _places(count: int, pixels: int) -> np.ndarray:
    """The cell of each pixel of a row."""
    return ((np.arange(pixels) + 0.5) * count / pixels).astype(int)


def _colours(pixels: np.ndarray, grid: Grid) -> np.ndarray:
    """One colour a cell, down × across × 3: of the pixel that stands out most, else the cell's middle one."""
    high, wide = pixels.shape[0] // grid.down, pixels.shape[1] // grid.across
    tiles = pixels[: grid.down * high, : grid.across * wide].reshape(grid.down, high, grid.across, wide, 3)
    inside = tiles[:, 1:, :, 1:].transpose(0, 2, 1, 3, 4).reshape(grid.down, grid.across, -1, 3)  # no grid lines
    rank = 2 * np.ptp(inside, axis=-1).astype(int) + inside.max(axis=-1)
    best = np.take_along_axis(inside, rank.argmax(axis=-1)[..., None, None], axis=2)[:, :, 0]
    middle = np.median(inside, axis=2).astype(np.uint8)
    stands_out = np.abs(best.astype(int) - middle).max(axis=-1) > _STANDS_OUT
    return np.where(stands_out[..., None], best, middle)


def _bar(
    drawn: np.ndarray, top: int, thick: int, half: int, value: float,
    positive: tuple[int, int, int], negative: tuple[int, int, int],
) -> None:  # fmt: skip
    middle = 2 + half
    reach = round(min(max(value, -1.0), 1.0) * half)
    left, right = (middle, middle + reach + 1) if reach >= 0 else (middle + reach, middle + 1)
    drawn[top : top + thick, left:right] = positive if value >= 0 else negative
    drawn[top : top + thick, middle] = _ZERO
