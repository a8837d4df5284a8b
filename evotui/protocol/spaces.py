"""Observation and action spaces as schema dictionaries: reading actions, naming flattened values.

A schema is plain data (``{"type": "Box", "shape": [4], "dtype": "float32", "low": …, "high": …}``), so that policies,
records and screens need no simulator. Bounds are nested lists or one scalar; infinities are floats in Python and
"Inf"/"-Inf" in JSON (both are read here).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evotui.protocol.jsonable import to_jsonable

__all__ = [
    "Reader",
    "Schema",
    "action_reader",
    "default_action",
    "flatten_names",
    "flatten_values",
    "repair_action",
    "to_jsonable",
]

Schema = dict[str, Any]
Reader = Callable[[Any], tuple[Any, bool]]

_SPECIAL = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}


# ---------------------------------------------------------------------------------------------------------- actions


def default_action(schema: Schema) -> Any:
    """What an unreadable action becomes: zeros (clipped into a Box), the start value, or the empty text."""
    kind = schema["type"]
    if kind in ("Box", "Image"):
        dtype, low, high = _bounds(schema)
        return np.clip(np.zeros(tuple(schema["shape"]), dtype), low, high).astype(dtype)
    if kind == "Discrete":
        return np.dtype(schema.get("dtype", "int64")).type(schema.get("start", 0))
    if kind == "MultiDiscrete":
        nvec = np.asarray(schema["nvec"])
        return (np.zeros(nvec.shape, "int64") + schema.get("start", 0)).astype(schema.get("dtype", "int64"))
    if kind == "MultiBinary":
        return np.zeros(tuple(schema["shape"]), schema.get("dtype", "int8"))
    if kind == "Tuple":
        return tuple(default_action(s) for s in schema["spaces"])
    if kind == "Dict":
        return {key: default_action(s) for key, s in schema["spaces"].items()}
    if kind == "Text":
        return ""
    raise ValueError(f"unknown space type {kind!r}")


def repair_action(action: Any, schema: Schema) -> tuple[Any, bool]:
    """``(value, was_invalid)``: the action as the environment gets it, in the space's own dtype.

    An action inside the space comes back unchanged (numbers of another precision are cast). One outside is clipped
    into its Box or Discrete range; one that cannot be read (wrong shape or type, NaN) becomes
    :func:`default_action`. Never raises for any ``action``. In a loop, make an :func:`action_reader` once instead.
    """
    return action_reader(schema)(action)


def action_reader(schema: Schema) -> Reader:
    """:func:`repair_action` with the schema's bounds prepared once, for a rollout's inner loop."""
    read = _reader(schema)

    def guarded(action: Any) -> tuple[Any, bool]:
        try:
            return read(action)
        except Exception:  # a hostile object raised while it was looked at: that is an unreadable action
            return default_action(schema), True

    return guarded


def _reader(schema: Schema) -> Reader:
    kind = schema["type"]
    if kind in ("Box", "Image"):
        return _box_reader(schema)
    if kind == "Discrete":
        return _discrete_reader(schema)
    if kind in ("MultiDiscrete", "MultiBinary"):
        return _multi_reader(schema)
    if kind == "Tuple":
        return _tuple_reader(schema)
    if kind == "Dict":
        return _dict_reader(schema)
    if kind == "Text":
        return _text_reader(schema)
    raise ValueError(f"unknown space type {kind!r}")


def _bounds(schema: Schema) -> tuple[np.dtype[Any], np.ndarray, np.ndarray]:
    dtype = np.dtype(schema["dtype"])
    shape = tuple(schema["shape"])
    low, high = (np.broadcast_to(np.asarray(schema[side], dtype=dtype), shape) for side in ("low", "high"))
    return dtype, low, high


def _numbers(action: Any) -> np.ndarray | None:
    """``action`` as a numeric array, or None. Looks only into numbers, arrays, lists and tuples: no ``__array__``."""
    if isinstance(action, np.ndarray):
        array = np.asarray(action)
    elif isinstance(action, (bool, int, float, np.generic, list, tuple)):
        array = np.array(action)
    else:
        return None
    return array if array.dtype.kind in "iuf" else None


def _box_reader(schema: Schema) -> Reader:
    dtype, low, high = _bounds(schema)
    shape = low.shape
    whole = dtype.kind in "iu"

    def read(action: Any) -> tuple[Any, bool]:
        if type(action) is np.ndarray and action.dtype == dtype and action.shape == shape:
            if bool((action >= low).all()) and bool((action <= high).all()):
                return action, False
            array: np.ndarray | None = action
        else:
            array = _numbers(action)
        if array is None or array.shape != shape or (whole and array.dtype.kind == "f") or np.isnan(array).any():
            return default_action(schema), True
        if whole:  # clip before the cast, which would wrap around
            inside = bool(((array >= low) & (array <= high)).all())
            return np.clip(np.clip(array, low, high).astype(dtype), low, high), not inside
        with np.errstate(over="ignore"):
            value = array.astype(dtype)
        clipped = np.clip(value, low, high)
        return clipped, not bool((clipped == value).all())

    return read


def _discrete_reader(schema: Schema) -> Reader:
    make = np.dtype(schema.get("dtype", "int64")).type
    start = int(schema.get("start", 0))
    last = start + int(schema["n"]) - 1

    def read(action: Any) -> tuple[Any, bool]:
        if isinstance(action, np.ndarray) and action.shape == ():
            action = action[()]
        if isinstance(action, (bool, int, np.integer, np.bool_)):  # `return angle > 0` is a fair way to say 0 or 1
            number = int(action)
            if start <= number <= last:
                return make(number), False
            return make(min(max(number, start), last)), True
        return make(start), True

    return read


def _multi_reader(schema: Schema) -> Reader:
    if schema["type"] == "MultiBinary":
        dtype = np.dtype(schema.get("dtype", "int8"))
        low = np.zeros(tuple(schema["shape"]), "int64")
        high = low + 1
    else:
        dtype = np.dtype(schema.get("dtype", "int64"))
        nvec = np.asarray(schema["nvec"], "int64")
        low = np.zeros(nvec.shape, "int64") + schema.get("start", 0)
        high = low + nvec - 1

    def read(action: Any) -> tuple[Any, bool]:
        if isinstance(action, np.ndarray) and action.dtype.kind == "b":
            action = action.astype(dtype)
        array = _numbers(action)
        if array is None or array.shape != low.shape or array.dtype.kind == "f":
            return default_action(schema), True
        inside = bool(((array >= low) & (array <= high)).all())
        return np.clip(array, low, high).astype(dtype), not inside

    return read


def _tuple_reader(schema: Schema) -> Reader:
    readers = [_reader(s) for s in schema["spaces"]]

    def read(action: Any) -> tuple[Any, bool]:
        if not isinstance(action, (tuple, list)) or len(action) != len(readers):
            return default_action(schema), True
        pairs = [reader(part) for reader, part in zip(readers, action, strict=True)]
        return tuple(value for value, _ in pairs), any(bad for _, bad in pairs)

    return read


def _dict_reader(schema: Schema) -> Reader:
    readers = {key: _reader(s) for key, s in schema["spaces"].items()}

    def read(action: Any) -> tuple[Any, bool]:
        if not isinstance(action, dict) or set(action) != set(readers):
            return default_action(schema), True
        pairs = {key: reader(action[key]) for key, reader in readers.items()}
        return {key: value for key, (value, _) in pairs.items()}, any(bad for _, bad in pairs.values())

    return read


def _text_reader(schema: Schema) -> Reader:
    most = int(schema.get("max_length", 1))

    def read(action: Any) -> tuple[Any, bool]:
        if not isinstance(action, str):
            return "", True
        text = str.__str__(action)
        return text[:most], len(text) > most

    return read


# ------------------------------------------------------------------------------------------------ flattened values


def flatten_names(schema: Schema, fields: Sequence[str] = ()) -> list[str]:
    """Names of the values that :func:`flatten_values` yields for an observation of this schema, in its order.

    ``fields`` are used where there are as many of them as values; otherwise names are indices (``obs[3]``), with the
    keys of a Dict in front (``image[6][3][0]``). Images (stored outside the trajectory) have no names.
    """
    names = _names(schema, "")
    if fields and len(fields) == len(names):
        return list(fields)
    return [name if name and not name.startswith("[") else f"obs{name}" for name in names]


def _names(schema: Schema, prefix: str) -> list[str]:
    kind = schema["type"]
    if kind == "Image":
        return []
    if kind == "Dict":
        dot = f"{prefix}." if prefix else ""
        return [n for key in sorted(schema["spaces"]) for n in _names(schema["spaces"][key], f"{dot}{key}")]
    if kind == "Tuple":
        return [n for i, s in enumerate(schema["spaces"]) for n in _names(s, f"{prefix}[{i}]")]
    if kind in ("Box", "MultiBinary"):
        shape: tuple[int, ...] = tuple(schema["shape"])
    elif kind == "MultiDiscrete":
        shape = np.asarray(schema["nvec"]).shape
    else:
        return [prefix]
    return [prefix + "".join(f"[{i}]" for i in index) for index in np.ndindex(*shape)]


def flatten_values(value_json: Any) -> list[float | str]:
    """A jsonable observation as a flat list, Dict keys sorted; None (stored outside) is empty.

    "NaN", "Inf" and "-Inf" come back as floats, other strings (a mission) stay.
    """
    if value_json is None:
        return []
    if isinstance(value_json, dict):
        return [v for key in sorted(value_json) for v in flatten_values(value_json[key])]
    if isinstance(value_json, (list, tuple)):
        return [v for part in value_json for v in flatten_values(part)]
    if isinstance(value_json, str):
        return [_SPECIAL.get(value_json, value_json)]
    return [float(value_json)]
