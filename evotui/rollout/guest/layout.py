"""How the values of spaces are laid out in frames: observations in, actions out. Fixed from the schemas once.

Both sides load this file, the guest by path: standard library and numpy only. Numbers are raw and little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_INT64 = struct.Struct("<q")
_LENGTH = struct.Struct("<I")
_MAX_ACTION_NUMBERS = 2000
"""Most numbers in one action: 16,000 bytes, which fit a reply (wire.MAX_REPLY)."""

Pack = Callable[[Any], bytes]
Unpack = Callable[[Any, int], tuple[Any, int]]


class Layout:
    """How the values of one space are laid out in a frame.

    ``canonical(value)`` gives the value with the space's own dtype and shape (raises ValueError or TypeError);
    ``pack(canonical) -> bytes``; ``unpack(buffer, offset) -> (value, next offset)`` copies out of the buffer.
    ``size`` is the length in bytes, None where it varies (Text).
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.canonical, self.pack, self.unpack, self.size = _layout(schema)
        self._array = _array_of(schema)

    def unpack_many(self, buffer: Any, at: int, n: int) -> list[Any]:
        """``n`` values from ``at`` on; arrays at one go, as rows of one copy."""
        if self._array is not None and n > 1:
            dtype, shape, count = self._array
            rows = np.frombuffer(buffer, dtype.newbyteorder("<"), n * count, at).astype(dtype)
            return list(rows.reshape(n, *shape))
        values = []
        for _ in range(n):
            value, at = self.unpack(buffer, at)
            values.append(value)
        return values


def _array_of(schema: dict[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...], int] | None:
    """``(dtype, shape, count)`` where the values of a space are arrays, of more than one number in all."""
    if schema["type"] not in ("Box", "Image", "MultiBinary") or not schema["shape"]:
        return None
    shape = tuple(schema["shape"])
    return np.dtype(schema["dtype"]), shape, int(np.prod(shape))


def _layout(schema: dict[str, Any]) -> tuple[Callable[[Any], Any], Pack, Unpack, int | None]:
    kind = schema["type"]
    if kind in ("Box", "Image", "MultiBinary"):
        return _array_layout(np.dtype(schema["dtype"]), tuple(schema["shape"]))
    if kind == "MultiDiscrete":
        return _array_layout(np.dtype(schema["dtype"]), np.shape(schema["nvec"]))
    if kind == "Discrete":
        return int, _INT64.pack, lambda buffer, at: (_INT64.unpack_from(buffer, at)[0], at + 8), 8
    if kind == "Text":
        return str, _pack_text, _unpack_text, None
    if kind == "Tuple":
        return _group_layout(list(enumerate(schema["spaces"])), tuple)
    if kind == "Dict":
        return _group_layout(list(schema["spaces"].items()), None)
    raise ValueError(f"no layout for a space of type {kind!r}")


def _array_layout(
    dtype: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[Callable[[Any], Any], Pack, Unpack, int | None]:
    wire = dtype.newbyteorder("<")
    count = 1
    for side in shape:
        count *= side
    size = count * dtype.itemsize
    flat = len(shape) == 1

    def canonical(value: Any) -> Any:
        if type(value) is np.ndarray and value.dtype == dtype and value.shape == shape:
            return value
        array = np.asarray(value, dtype=dtype)
        if array.shape != shape:
            raise ValueError(f"shape {array.shape} where the space says {shape}")
        return array

    def pack(value: Any) -> bytes:
        return value.astype(wire, copy=False).tobytes()

    def unpack(buffer: Any, at: int) -> tuple[Any, int]:
        array = np.frombuffer(buffer, wire, count, at)
        return (array if flat else array.reshape(shape)).astype(dtype), at + size

    return canonical, np.ndarray.tobytes if wire == dtype else pack, unpack, size


def _pack_text(value: str) -> bytes:
    raw = value.encode("utf-8", "backslashreplace")
    return _LENGTH.pack(len(raw)) + raw


def _unpack_text(buffer: Any, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(buffer, at)
    return bytes(memoryview(buffer)[at + 4 : at + 4 + length]).decode("utf-8"), at + 4 + length


def _group_layout(
    spaces: list[tuple[Any, dict[str, Any]]], make: Callable[[Any], Any] | None
) -> tuple[Callable[[Any], Any], Pack, Unpack, int | None]:
    """A Tuple (``make`` builds it from a list) or a Dict (``make`` is None): its parts one after another."""
    parts = [(key, *_layout(schema)) for key, schema in spaces]
    sizes = [part[4] for part in parts]

    def canonical(value: Any) -> Any:
        made = [(key, one(value[key])) for key, one, _, _, _ in parts]
        return dict(made) if make is None else make(v for _, v in made)

    def pack(value: Any) -> bytes:
        return b"".join([one(value[key]) for key, _, one, _, _ in parts])

    def unpack(buffer: Any, at: int) -> tuple[Any, int]:
        made = []
        for key, _, _, one, _ in parts:
            value, at = one(buffer, at)
            made.append((key, value))
        return (dict(made) if make is None else make(v for _, v in made)), at

    known = [size for size in sizes if size is not None]
    return canonical, pack, unpack, sum(known) if len(known) == len(sizes) else None


def action_numbers(schema: dict[str, Any]) -> tuple[str, int] | None:
    """``(kind, count)`` of an action that crosses as numbers: kind "q" (int64) or "d" (float64); None: JSON only.

    Float boxes cross as float64, whatever their own precision: Python's floats and every numpy float arrive exactly as
    the policy returned them, and the host does the rounding. Tuple, Dict and Text actions are rare and cross as JSON.
    """
    kind = schema["type"]
    if kind == "Discrete":
        return "q", 1
    if kind in ("Box", "Image", "MultiBinary", "MultiDiscrete"):
        shape = np.shape(schema["nvec"]) if kind == "MultiDiscrete" else tuple(schema["shape"])
        count = 1
        for side in shape:
            count *= side
        if count > _MAX_ACTION_NUMBERS:
            raise ValueError(f"actions of {count} numbers are more than the {_MAX_ACTION_NUMBERS} supported")
        return ("d" if np.dtype(schema["dtype"]).kind == "f" else "q"), count
    return None


def action_shape(schema: dict[str, Any]) -> tuple[int, ...]:
    """The shape of a numeric action; ``()`` for Discrete."""
    if schema["type"] == "Discrete":
        return ()
    return tuple(np.shape(schema["nvec"])) if schema["type"] == "MultiDiscrete" else tuple(schema["shape"])
