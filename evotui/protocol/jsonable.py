"""Any value as strict JSON data. Records hold what policies and environments made, and those make anything."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_DEPTH = 64
_MAX_NODES = 1_000_000
_MAX_REPR = 200
_MAX_INT_BITS = 1023


def to_jsonable(value: Any) -> Any:
    """``value`` as strict JSON data: None, bool, int, float, str, list, dict with string keys. Never raises.

    NaN and infinities become "NaN", "Inf", "-Inf"; arrays nested lists; bytes text with escapes; sets sorted lists;
    anything unknown its repr, cut at 200 characters and without memory addresses (records must not differ by them).
    """
    return _Encoder().encode(value, 0)


class _Encoder:
    def __init__(self) -> None:
        self.nodes = 0
        self.path: set[int] = set()  # containers being encoded: a cycle ends at its second visit

    def encode(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        try:
            return self._encode(value, depth)
        except Exception:  # a hostile object: say that it could not be looked into
            return f"<unreadable {type(value).__name__}>"

    def _encode(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return _clean(str.__str__(value))
        if isinstance(value, int):
            number = int.__int__(value)
            return number if number.bit_length() <= _MAX_INT_BITS else ("Inf" if number > 0 else "-Inf")
        if isinstance(value, float):
            return _number(float.__float__(value))
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value), depth)
        if isinstance(value, (bytes, bytearray)):
            return bytes(value).decode("utf-8", "backslashreplace")
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return self._container(value, depth)
        return _clean(_ADDRESS.sub("", repr(value)))[:_MAX_REPR]

    def _array(self, array: np.ndarray, depth: int) -> Any:
        kind = array.dtype.kind
        if kind in "bui":
            return array.tolist()
        if kind == "f":
            wide = array.astype(np.float64)
            return wide.tolist() if np.isfinite(wide).all() else _numbers_of(wide.tolist())
        plain = array.tolist()
        if isinstance(plain, (list, tuple, str, bytes)) or kind == "O":
            return self.encode(plain, depth + 1)
        return _clean(repr(plain))[:_MAX_REPR]

    def _container(self, value: Any, depth: int) -> Any:
        if depth >= _MAX_DEPTH or self.nodes > _MAX_NODES or id(value) in self.path:
            return "…"
        self.path.add(id(value))
        try:
            if isinstance(value, dict):
                return {self._key(k): self.encode(v, depth + 1) for k, v in dict.items(value)}
            if isinstance(value, (set, frozenset)):
                return sorted((self.encode(v, depth + 1) for v in value), key=repr)
            return [self.encode(v, depth + 1) for v in value]
        finally:
            self.path.discard(id(value))

    def _key(self, key: Any) -> str:
        encoded = self.encode(key, _MAX_DEPTH - 1)
        return encoded if isinstance(encoded, str) else str(encoded)


def _clean(text: str) -> str:
    """``text`` without lone surrogates, which no UTF-8 file can hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def _numbers_of(value: Any) -> Any:
    return [_numbers_of(v) for v in value] if isinstance(value, list) else _number(value)
