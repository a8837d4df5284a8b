"""An observation drawn in characters, for where there is no picture: a line with a bar for each value.

Owns the scale: a value is shown within its declared bounds where they are near, else squeezed so that all of the number
line fits (half a bar is 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evotui.protocol.spaces import Schema, flatten_names, flatten_values

_NEAR = 50.0
_LEAST_BAR = 9


def gauges(schema: Schema, fields: Sequence[str], obs: Any, width: int, height: int, note: str = "") -> str:
    """Lines of ``width`` characters, at most ``height`` of them, the note last. Empty for images, which have no values.

    ``obs`` is an observation as JSON values.
    """
    values, names = flatten_values(obs), flatten_names(schema, fields)
    if not values or len(values) != len(names):
        return note[:width]
    bounds = _bounds(schema)
    if len(bounds) != len(values):
        bounds = [(-math.inf, math.inf)] * len(values)
    rows = max(height - bool(note), 1)
    kept = len(values) if len(values) <= rows else rows - 1
    label = min(max(len(n) for n in names[: max(kept, 1)]), max(width - _LEAST_BAR - 10, 4))
    bar = max(width - label - 10, 0)
    lines = [
        f"{name[:label]:<{label}} {_bar(value, low, high, bar)} {_number(value):>8}"[:width]
        for name, value, (low, high) in list(zip(names, values, bounds, strict=True))[:kept]
    ]
    if kept < len(values):
        lines.append(f"… and {len(values) - kept} more values"[:width])
    return "\n".join([*lines, note[:width]] if note else lines)


def _bar(value: float | str, low: float, high: float, width: int) -> str:
    if width < 3 or isinstance(value, str) or not math.isfinite(value):
        return " " * width
    if -_NEAR <= low < high <= _NEAR:
        at, zero = (value - low) / (high - low), (min(max(0.0, low), high) - low) / (high - low)
    else:
        at, zero = 0.5 + value / (2 * (1 + abs(value))), 0.5
    here, there = (round(min(max(x, 0.0), 1.0) * (width - 1)) for x in (at, zero))
    first, last = min(here, there), max(here, there)
    cells = ["█" if first <= i <= last and here != there else "·" for i in range(width)]
    cells[there] = "│" if here == there else cells[there]
    return "".join(cells)


def _number(value: float | str) -> str:
    return value[:8] if isinstance(value, str) else f"{value:.4g}"[:8]


def _bounds(schema: Schema) -> list[tuple[float, float]]:
    kind = schema["type"]
    if kind == "Dict":
        return [b for key in sorted(schema["spaces"]) for b in _bounds(schema["spaces"][key])]
    if kind == "Tuple":
        return [b for part in schema["spaces"] for b in _bounds(part)]
    if kind == "Box":
        low, high = _flat(schema["low"]), _flat(schema["high"])
        n = math.prod(schema["shape"])
        return list(zip(low * n if len(low) == 1 else low, high * n if len(high) == 1 else high, strict=True))
    if kind == "Discrete":
        return [(schema.get("start", 0), schema.get("start", 0) + schema["n"] - 1)]
    return []


def _flat(value: Any) -> list[float]:
    return [x for part in value for x in _flat(part)] if isinstance(value, list) else [float(value)]
