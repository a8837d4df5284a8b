"""How fast and how far a run came between its anchors, from plain numbers (PROTOCOL: scores).

A course is the scored submissions in order: (episodes consumed once it was charged, mean train return). A submission
that failed is no point of it, but its episodes lie between the points all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Course = Sequence[tuple[int, float]]


def normalized(value: float, low: float, high: float) -> float:
    """``(value − low) / (high − low)``, not clipped. Raises ValueError where the two do not differ."""
    if low == high:
        raise ValueError("the anchors are equal: no scale between random and expert")
    return (value - low) / (high - low)


def auc_in_loop(course: Course, budget: int, low: float, high: float) -> float | None:
    """Area below the normalized means over consumed episodes, ``Σ Δx · (y₋ + y) / 2 / budget × 100``, from (0, 0).

    Not clipped, and nothing is added beyond the last point. None for an empty course.
    """
    if not course:
        return None
    points = [(0, 0.0), *((x, normalized(mean, low, high)) for x, mean in course)]
    parts = ((right - left) * (before + after) / 2 for (left, before), (right, after) in pairwise(points))
    return math.fsum(parts) / budget * 100.0


def episodes_to(course: Course, share: float, low: float, high: float) -> int | None:
    """Episodes consumed when the normalized mean was first ``share`` or more; None where it never was."""
    return next((x for x, mean in course if normalized(mean, low, high) >= share), None)
