"""The frames between a worker (the host side) and its guest: header and kinds.

Both sides load this file; the guest loads it by path, before numpy, so it imports the standard library only and knows
nothing of evotui. Everything that crosses is a header, raw little-endian numbers, or JSON: nothing that could run code.

A frame is one ``SOCK_SEQPACKET`` message, so boundaries are the kernel's and no length field can lie. The header is
``<u32 seq, u16 kind, u16 n>``; a reply repeats its request's header, which makes the host's check one comparison.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("<IHH")
INT64 = struct.Struct("<q")
RESET_ITEM = struct.Struct("<HHIQ")
"""One episode to begin: slot, 1 if its ACTs come by the lane, episode index, seed of the global generators."""

# Kinds. A request is answered with its own kind, but an ACT may be answered with ODD, and anything with RAISED.
HELLO = 1  # guest → host, once per fork, before any policy code: "I am here"; carries the pid by SCM_CREDENTIALS
LOAD = 2  # import policy.py
CONSTRUCT = 3  # make n Policy objects
RESET = 4  # begin episodes: n × RESET_ITEM
ACT = 5  # one observation for slot 0 → its action
PART = 6  # a piece of a request too long for one message; the last piece carries the request's kind
ODD = 7  # an action that is not plain numbers of the space's shape, described in JSON
RAISED = 8  # the policy raised: a report in JSON
ACT_MANY = 10  # n slots (u16, padded to ALIGN) and as many observations → n actions
FLUSH = 9  # write out what print still holds back
ASIDE = 11  # on the lane, both ways: the message itself is on the socket
FORK = 16  # host → zygote with a socket: fork a process that serves it
REAP = 17  # host → zygote: kill and collect children; n = 1 asks how the last one ended, if it did so by itself
CONFIG = 18  # host → zygote, first: what to load, limits, isolation
READY = 19  # zygote → host: isolation layers that hold
SPAWN = 20  # host → warm interpreter with a control socket, stdout and stderr: fork a zygote; echoed when it is there

ALIGN = 8
"""Observations begin at a multiple of this many bytes."""

MAX_REPLY = 16 << 10
"""Longest frame that a host accepts from a guest, in bytes. Reports are cut to fit; batches of actions are shorter."""

LANE_BYTES = 4096
"""Longest frame on the lane (lane.py): what a pipe passes in one piece, PIPE_BUF on Linux."""

PART_BYTES = 96 << 10
"""Longest piece of a request. Half the kernel's usual 208 KiB socket buffer, so that one piece always fits."""


def send_request(sock: socket.socket, seq: int, kind: int, n: int, payload: bytes) -> None:
    """Send one request, in pieces where it is longer than :data:`PART_BYTES`."""
    start = 0
    while len(payload) - start > PART_BYTES:
        sock.sendmsg([HEADER.pack(seq, PART, 0), memoryview(payload)[start : start + PART_BYTES]])
        start += PART_BYTES
    sock.sendmsg([HEADER.pack(seq, kind, n), memoryview(payload)[start:]])


def to_json(document: Any) -> bytes:
    """ASCII JSON; NaN and infinities as the bare words that Python's reader takes back."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii")
