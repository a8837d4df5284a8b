"""The process that holds a policy: it answers the worker's requests, one after another, on the socket or the lane.

Replies are untrusted from the moment the policy is loaded; the worker treats them so. Nothing that arrives here is
secret: the configuration holds spaces, limits and the snapshot's path, a RESET holds the seed of the *global
generators* (a one-way hash of the case's).
"""

from __future__ import annotations

import array
import os
import socket
import struct
from typing import Any

from . import wire
from .actions import encoder, odd
from .layout import Layout
from .policies import Policies
from .reports import flush, report
from .seeds import seed_globals
from .wire import HEADER


def act_many(slots: list[Any], unpack_many: Any, encode: Any, discrete: bool, source: Any, n: int) -> bytes | None:
    """One action for each slot of an ACT_MANY; None where one is not plain numbers."""
    at = 8 + 2 * n
    observations = unpack_many(source, at + -at % wire.ALIGN, n)
    numbers = struct.unpack_from(f"<{n}H", source, 8)
    actions = [slots[slot].act(obs) for slot, obs in zip(numbers, observations, strict=True)]
    if discrete and all(type(action) is int for action in actions):
        try:
            return array.array("q", actions).tobytes()
        except OverflowError:
            return None
    try:
        return b"".join([encode(action) for action in actions])
    except Exception:  # not numbers, or None for one that is not
        return None


class Codecs:
    """What serving needs and every policy process would build alike: made once, before the forks.

    A page that a child does not write to is never copied; building these cost each child a millisecond.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.observations = Layout(config["obs_schema"])
        self.encode = encoder(config["action_schema"])
        self.discrete = config["action_schema"]["type"] == "Discrete"
        self.buffer = bytearray(wire.PART_BYTES + 64)
        self.pack_int = struct.Struct("<IHHq").pack


class Served:
    """One policy process that answers requests until the worker hangs up. Whatever a policy raises becomes a RAISED
    reply.

    After a RESET that says so it listens on the ``lane`` (two file descriptors, to read from and to write to), until
    that turns it aside.
    """

    def __init__(self, sock: socket.socket, lane: list[int], config: dict[str, Any], codecs: Codecs) -> None:
        self.sock, self.lane, self.codecs, self.system = sock, lane, codecs, config["system"]
        self.policies = Policies(config)

    def serve(self) -> None:
        """Never returns."""
        recv_into, send, buffer = self.sock.recv_into, self.sock.send, self.codecs.buffer
        whole = b""
        send(HEADER.pack(0, wire.HELLO, 0))
        while True:
            size = recv_into(buffer)
            if size == 0:
                os._exit(0)
            seq, kind, n = HEADER.unpack_from(buffer)
            if kind == wire.PART:
                whole += buffer[8:size]
                continue
            source: Any = buffer
            if whole:
                source = bytes(8) + whole + bytes(buffer[8:size])
                whole = b""
            if kind == wire.ACT:
                send(self.act(seq, source))
                continue
            try:
                send(self.answer(seq, kind, n, source))
            except BaseException as error:  # SystemExit and KeyboardInterrupt too: only the worker ends this process
                send(self.raised(seq, error))
                continue
            if kind == wire.RESET and n == 1 and wire.RESET_ITEM.unpack_from(source, 8)[1]:
                self.ride()

    def ride(self) -> None:
        """Answer ACTs on the lane, until the worker is gone or wants the socket."""
        (asked, answered), act, read, write = self.lane, self.act, os.read, os.write
        while True:
            frame = read(asked, wire.LANE_BYTES)
            if len(frame) <= HEADER.size:
                if not frame:
                    os._exit(0)
                return
            seq = HEADER.unpack_from(frame)[0]
            answer = act(seq, frame)
            if len(answer) > wire.LANE_BYTES:
                self.sock.send(answer)
                answer = HEADER.pack(seq, wire.ASIDE, 0)
            write(answered, answer)

    def act(self, seq: int, source: Any) -> bytes:
        """The frame that answers an ACT: the action's numbers, ODD or RAISED."""
        codecs = self.codecs
        try:
            action = self.policies.slots[0].act(codecs.observations.unpack(source, 8)[0])
            if codecs.discrete and type(action) is int and -(1 << 63) <= action < 1 << 63:
                return codecs.pack_int(seq, wire.ACT, 1, action)
            try:
                raw = codecs.encode(action)
            except Exception:  # ragged lists, hostile __array__: not numbers
                raw = None
            if raw is None:
                return HEADER.pack(seq, wire.ODD, 1) + odd(action)
            return HEADER.pack(seq, wire.ACT, 1) + raw
        except BaseException as error:  # as in serve
            return self.raised(seq, error)

    def answer(self, seq: int, kind: int, n: int, source: Any) -> bytes:
        """Do what a request that is no ACT asks. Raises whatever the policy does."""
        policies = self.policies
        if kind == wire.ACT_MANY:
            codecs = self.codecs
            raw = act_many(policies.slots, codecs.observations.unpack_many, codecs.encode, codecs.discrete, source, n)
            if raw is None:
                return HEADER.pack(seq, wire.ODD, 1) + b'{"value":null}'
            return HEADER.pack(seq, kind, n) + raw
        if kind == wire.LOAD:
            policies.load()
        elif kind == wire.CONSTRUCT:
            policies.construct(n)
        elif kind == wire.RESET:
            for i in range(n):
                slot, _, index, seed = wire.RESET_ITEM.unpack_from(source, 8 + i * wire.RESET_ITEM.size)
                seed_globals(seed)
                reset = getattr(policies.slots[slot], "reset", None)
                if reset is not None:
                    reset(index)
        elif kind == wire.FLUSH:
            flush()
        return HEADER.pack(seq, kind, n)

    def raised(self, seq: int, error: BaseException) -> bytes:
        flush()
        return HEADER.pack(seq, wire.RAISED, 0) + report(error, self.system)
