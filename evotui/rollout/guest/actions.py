"""Actions on their way out: the numbers of the space's shape, or a description of what a policy returned instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import layout, wire

Encode = Callable[[Any], bytes | None]

_ODD_BYTES, _ODD_VALUES = 12 << 10, 1000  # the bytes fit into wire.MAX_REPLY


def encoder(schema: dict[str, Any]) -> Encode:
    """``encode(action) -> bytes | None``: the action as the numbers of its space's shape, None if it is not that."""
    numbers = layout.action_numbers(schema)
    if numbers is None:
        return lambda action: None
    shape = layout.action_shape(schema)
    kind = numbers[0]
    readable = "fiu" if kind == "d" else "iub"

    def encode_scalar(action: Any) -> bytes | None:
        if isinstance(action, (int, np.integer, np.bool_)) or (
            type(action) is np.ndarray and action.shape == () and action.dtype.kind in "iub"
        ):
            number = int(action)
            return wire.INT64.pack(number) if -(1 << 63) <= number < 1 << 63 else None
        return None

    def encode_array(action: Any) -> bytes | None:
        if type(action) is not np.ndarray:
            if not isinstance(action, (list, tuple)):
                return None
            action = np.array(action)
        if action.shape != shape or action.dtype.kind not in readable or action.dtype == np.uint64:
            return None
        return action.astype("<f8" if kind == "d" else "<i8").tobytes()

    return encode_scalar if schema["type"] == "Discrete" else encode_array


def describe(action: Any, room: list[int], depth: int = 0) -> Any:
    """Plain JSON data for an action that is not numbers of the right shape; objects are told by their type's name.

    ``room`` holds how many values may still be told; ValueError when it is used up.
    """
    room[0] -= 1
    if room[0] < 0:
        raise ValueError("too large to record")
    if action is None or isinstance(action, (bool, str)):
        return action[:200] if isinstance(action, str) else action
    if isinstance(action, (int, np.integer)):
        number = int(action)
        return number if abs(number) < 1 << 1000 else f"<int of {number.bit_length()} bits>"
    if isinstance(action, (float, np.floating)):
        return float(action)
    if isinstance(action, np.bool_):
        return bool(action)
    if isinstance(action, np.ndarray) and action.dtype.kind in "biufU" and action.size <= _ODD_VALUES:
        return action.tolist()
    if isinstance(action, (list, tuple)) and depth < 8:
        return [describe(part, room, depth + 1) for part in action]
    if isinstance(action, dict) and depth < 8:
        return {str(key)[:100]: describe(part, room, depth + 1) for key, part in action.items()}
    return f"<{type(action).__name__[:100]}>"


def odd(action: Any) -> bytes:
    try:
        try:
            raw = wire.to_json({"value": describe(action, [_ODD_VALUES])})
        except ValueError:
            raw = b""
        if 0 < len(raw) <= _ODD_BYTES:
            return raw
        return wire.to_json({"value": f"<{type(action).__name__[:100]} too large to record>"})
    except BaseException:  # an object that resists being looked at is an unreadable action
        return b'{"value":"<unreadable object>"}'
