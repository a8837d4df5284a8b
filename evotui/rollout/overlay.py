"""What a picture does not show by itself: the controls of a car, drawn into a corner of its frame.

MiniGrid's pictures already show what the agent sees, and those of Reacher, Pusher, Fetch and parking their goals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_STEER, _GO, _STOP, _ZERO = (255, 214, 64), (80, 220, 100), (255, 80, 70), (235, 235, 235)
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
    place = drawn[1 : 1 + 2 * thick + 3, 1 : 2 * half + 4]
    place[:] = place // 4
    _bar(drawn, 2, thick, half, values["steering"], _STEER, _STEER)
    _bar(drawn, 3 + thick, thick, half, drive, _GO, _STOP)
    return drawn


def _bar(
    drawn: np.ndarray, top: int, thick: int, half: int, value: float,
    positive: tuple[int, int, int], negative: tuple[int, int, int],
) -> None:  # fmt: skip
    middle = 2 + half
    reach = round(min(max(value, -1.0), 1.0) * half)
    left, right = (middle, middle + reach + 1) if reach >= 0 else (middle + reach, middle + 1)
    drawn[top : top + thick, left:right] = positive if value >= 0 else negative
    drawn[top : top + thick, middle] = _ZERO
