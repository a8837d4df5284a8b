"""The frames between a worker (the host side) and its guest: header, kinds, layout of observations and actions.

Both sides load this file; the guest loads it by path, so it imports the standard library and numpy only and knows
nothing of evotui. Everything that crosses is a header, raw little-endian numbers, or JSON: nothing that could run code.

A frame is one ``SOCK_SEQPACKET`` message, so boundaries are the kernel's and no length field can lie. The header is
``<u32 seq, u16 kind, u16 n>``; a reply repeats its request's header, which makes the host's check one comparison.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

HEADER = struct.Struct("<IHH")
INT64 = struct.Struct("<q")
RESET_ITEM = struct.Struct("<HHIQ")
"""One episode to begin: slot, zero, episode index, seed of the global generators."""
_LENGTH = struct.Struct("<I")

# Kinds. A request is answered with its own kind, but an ACT may be answered with ODD, and anything with RAISED.
HELLO = 1  # guest → host, once per process, before any policy code: "I am here"; carries the pid by SCM_CREDENTIALS
LOAD = 2  # import policy.py
CONSTRUCT = 3  # make n Policy objects
RESET = 4  # begin episodes: n × RESET_ITEM
ACT = 5  # n × slot and observation → n actions
PART = 6  # a piece of a request too long for one message; the last piece carries the request's kind
ODD = 7  # an action that is not plain numbers of the space's shape, described in JSON
RAISED = 8  # the policy raised: a report in JSON
FLUSH = 9  # write out what print still holds back
FORK = 16  # host → zygote with a socket: fork a process that serves it
REAP = 17  # host → zygote: kill and collect children; n = 1 asks how the last one ended, if it did so by itself
CONFIG = 18  # host → zygote, first: what to load, limits, isolation
READY = 19  # zygote → host: isolation layers that hold

MAX_REPLY = 16 << 10
"""Longest frame that a host accepts from a guest, in bytes. Reports are cut to fit; batches of actions are shorter."""

PART_BYTES = 96 << 10
"""Longest piece of a request. Half the kernel's usual 208 KiB socket buffer, so that one piece always fits."""

Pack = Callable[[Any], bytes]
Unpack = Callable[[Any, int], tuple[Any, int]]


def send_request(sock: socket.socket, seq: int, kind: int, n: int, payload: bytes) -> None:
    """Send one request, in pieces where it is longer than :data:`PART_BYTES`."""
    start = 0
    while len(payload) - start > PART_BYTES:
        sock.sendmsg([HEADER.pack(seq, PART, 0), memoryview(payload)[start : start + PART_BYTES]])
        start += PART_BYTES
    sock.sendmsg([HEADER.pack(seq, kind, n), memoryview(payload)[start:]])


class Layout:
    """How the values of one space are laid out in a frame.

    ``canonical(value)`` gives the value with the space's own dtype and shape (raises ValueError or TypeError);
    ``pack(canonical) -> bytes``; ``unpack(buffer, offset) -> (value, next offset)`` copies out of the buffer.
    ``size`` is the length in bytes, None where it varies (Text).
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.canonical, self.pack, self.unpack, self.size = _layout(schema)


def _layout(schema: dict[str, Any]) -> tuple[Callable[[Any], Any], Pack, Unpack, int | None]:
    kind = schema["type"]
    if kind in ("Box", "Image", "MultiBinary"):
        return _array_layout(np.dtype(schema["dtype"]), tuple(schema["shape"]))
    if kind == "MultiDiscrete":
        return _array_layout(np.dtype(schema["dtype"]), np.shape(schema["nvec"]))
    if kind == "Discrete":
        return int, INT64.pack, lambda buffer, at: (INT64.unpack_from(buffer, at)[0], at + 8), 8
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
        if 8 + 8 * count > MAX_REPLY:
            raise ValueError(f"actions of {count} numbers are longer than a reply may be")
        return ("d" if np.dtype(schema["dtype"]).kind == "f" else "q"), count
    return None


def action_shape(schema: dict[str, Any]) -> tuple[int, ...]:
    """The shape of a numeric action; ``()`` for Discrete."""
    if schema["type"] == "Discrete":
        return ()
    return tuple(np.shape(schema["nvec"])) if schema["type"] == "MultiDiscrete" else tuple(schema["shape"])


def to_json(document: Any) -> bytes:
    """ASCII JSON; NaN and infinities as the bare words that Python's reader takes back."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii")
