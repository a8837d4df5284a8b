"""The worker's side of a guest: start it, talk to it, judge its time, end it. Trusts nothing that comes back.

A :class:`Guest` is the zygote for one snapshot; :meth:`Guest.fork` gives a :class:`PolicyProcess`. Whatever goes wrong
in there surfaces as :class:`PolicyFault`; nothing that a policy does raises anything else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evotui.protocol.spaces import Schema
from evotui.protocol.verdict import FaultKind
from evotui.rollout.clocks import cpu_seconds, runnable, waiting_seconds
from evotui.rollout.guest import wire
from evotui.rollout.guest.layout import action_numbers
from evotui.rollout.guest.wire import HEADER
from evotui.rollout.lane import Lane, open_lane
from evotui.rollout.limits import ALL_WALLS, Limits
from evotui.rollout.output import Output, printable
from evotui.rollout.warm import (
    START_SECONDS,
    WarmInterpreter,
    end,
    execute,
    expect_greeting,
    greeting,
    receive_timeout,
    timeval,
)

_ZYGOTE_SECONDS = 60.0  # a fork or a reap: kernel work, so only a machine that starves us makes it long
_GLANCE_SECONDS = 0.02  # between two looks at a process that is late
_RAN_SECONDS = 0.0005  # of processor time: less in such a time, and it was kept from its core
_HOPELESS_SECONDS = 120.0  # of wall clock beyond which even a starved policy is given up


class PolicyFault(Exception):
    """The policy process failed: what kind, and what is to be told about it."""

    def __init__(self, kind: FaultKind, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.trace = kind, message, trace


class GuestStartError(Exception):
    """No policy process could be started at all: the machine's fault, not the policy's."""


# ------------------------------------------------------------------------------------------------------------- guest


class Guest:
    """The zygote of one snapshot: a clean interpreter that forks a process per episode. Raises GuestStartError.

    It is forked from ``warm`` where that is usable, else executed. A ``trial`` only raises its walls, says which hold,
    and ends.
    """

    def __init__(
        self,
        system: Path,
        obs_schema: Schema,
        action_schema: Schema,
        env_meta: dict[str, Any],
        limits: Limits,
        denied: tuple[str, ...],
        walls: frozenset[str] = ALL_WALLS,
        warm: WarmInterpreter | None = None,
        trial: bool = False,
    ) -> None:
        self.limits = limits
        self.action_schema = action_schema
        self.output = Output(limits.output_bytes)
        self._seq = 0
        self._gone = False
        config = {
            "parent": os.getpid(),
            "system": str(system),
            "obs_schema": obs_schema,
            "action_schema": action_schema,
            "given": json.dumps({"obs_space": obs_schema, "action_space": action_schema, "env_meta": env_meta}),
            "denied": list(denied),
            "use": sorted(walls),
            "trial": trial,
            "limits": {"memory": limits.memory_bytes, "file": limits.file_bytes},
        }
        self._control, self.pid = self._begin(warm)
        self.output.start()
        try:
            wire.send_request(self._control, 0, wire.CONFIG, 0, wire.to_json(config))
            ready = self._control.recv(wire.MAX_REPLY)
        except OSError as error:
            ready = b""
            late = isinstance(error, BlockingIOError)
            reason = f"it was not ready within {START_SECONDS:g} s" if late else str(error)
        else:
            reason = "it ended"
        if len(ready) < HEADER.size or HEADER.unpack_from(ready)[1] != wire.READY:
            self.kill()
            told = self.output.take()[1].decode("utf-8", "replace")[-2000:]
            raise GuestStartError(f"the policy process did not start ({reason}) {printable(told)}".strip())
        state = json.loads(ready[HEADER.size :])
        self.level: str = state["level"]
        self.layers: tuple[str, ...] = tuple(state["layers"])
        self.missing: dict[str, str] = state["missing"]

    def _begin(self, warm: WarmInterpreter | None) -> tuple[socket.socket, int]:
        """A process that waits for its configuration: our end of its connection, its process id."""
        if warm is not None and warm.usable:
            with contextlib.suppress(OSError):  # not usable any more, which its log says: the slow way then
                return warm.fork(*self.output.for_child)
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        receive_timeout(control, START_SECONDS)
        stdout, stderr = self.output.for_child
        with theirs:
            return control, execute(theirs, stdout=stdout, stderr=stderr)

    def fork(self) -> PolicyProcess:
        """A fresh process that holds nothing of an earlier one. Raises GuestStartError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        expect_greeting(ours)
        receive_timeout(ours, _ZYGOTE_SECONDS)
        self._seq += 1
        lane = open_lane()
        try:
            request = HEADER.pack(self._seq & 0xFFFFFFFF, wire.FORK, 0)
            with theirs:
                socket.send_fds(self._control, [request], [theirs.fileno(), *(lane.theirs if lane else ())])
            if lane is not None:
                lane.handed_over()
            return PolicyProcess(self, ours, greeting(ours), lane)
        except OSError as error:
            ours.close()
            if lane is not None:
                lane.close()
            raise GuestStartError(f"the policy process cannot fork: {error}") from error

    def reap(self, ask: bool = False) -> int:
        """Kill and collect everything that was forked.

        With ``ask`` the wait status of the last process, -1 if it had not ended by itself.
        """
        self._seq += 1
        try:
            receive_timeout(self._control, _ZYGOTE_SECONDS)
            self._control.send(HEADER.pack(self._seq & 0xFFFFFFFF, wire.REAP, int(ask)))
            reply = self._control.recv(wire.MAX_REPLY)
        except OSError:
            return -1
        if len(reply) != HEADER.size + 8:
            return -1
        return int(wire.INT64.unpack_from(reply, HEADER.size)[0])

    @property
    def alive(self) -> bool:
        if not self._gone:
            try:
                self._gone = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                self._gone = True
        return not self._gone

    def close(self) -> None:
        """End the zygote and all of its children; nothing is left when this returns."""
        self.reap()
        self.kill()

    def kill(self) -> None:
        self._control.close()
        end(self.pid)
        self._gone = True


class PolicyProcess:
    """One forked process, from HELLO to its death: requests with a time limit each."""

    def __init__(self, guest: Guest, sock: socket.socket, pid: int, lane: Lane | None = None) -> None:
        self.guest, self.pid, self._lane = guest, pid, lane
        self._riding: Lane | None = None  # the lane while the guest listens there: after a reset that says so
        self._sock, self._limit, self._seq = sock, 0.0, 0
        self._recv, self._send = sock.recv, sock.send
        self._waited_before = 0.0
        self._act_seconds = guest.limits.act_seconds
        numbers = action_numbers(guest.action_schema)
        self._act_size = HEADER.size + 8 * numbers[1] if numbers else 0
        self._odd: Any = None
        _send_timeout(sock, _ZYGOTE_SECONDS)

    # -- requests

    def load(self) -> None:
        """Import ``policy.py``. Raises PolicyFault (ACT_ERROR stands for "it raised", ACT_TIMEOUT for "too slow")."""
        self._call(wire.LOAD, 0, b"", self.guest.limits.load_seconds, FaultKind.ACT_TIMEOUT, "the import")

    def construct(self, n: int = 1) -> None:
        """Make ``n`` Policy objects. Raises as :meth:`load`."""
        self._call(wire.CONSTRUCT, n, b"", self.guest.limits.load_seconds, FaultKind.ACT_TIMEOUT, "Policy(…)")

    def reset(self, episode_index: int, global_seed: int) -> None:
        """Seed the global generators and call ``reset(episode_index)``. Raises PolicyFault."""
        payload = wire.RESET_ITEM.pack(0, self._lane is not None, episode_index, global_seed)
        limit = self.guest.limits.reset_seconds
        self._call(wire.RESET, 1, payload, limit, FaultKind.RESET_TIMEOUT, "reset", FaultKind.RESET_ERROR)
        self._riding = self._lane

    def reset_many(self, items: list[tuple[int, int, int]]) -> None:
        """Begin an episode for each ``(slot, episode index, seed of the global generators)``. Raises PolicyFault."""
        payload = b"".join(wire.RESET_ITEM.pack(slot, 0, index, seed) for slot, index, seed in items)
        limit = self.guest.limits.reset_seconds * len(items)
        self._call(wire.RESET, len(items), payload, limit, FaultKind.RESET_TIMEOUT, "reset", FaultKind.RESET_ERROR)

    def act_many(self, n: int, payload: bytes) -> bytes | None:
        """Send ``n`` slots and observations; the raw numbers of all actions, None where one is odd."""
        self._seq = seq = (self._seq + 1) & 0xFFFFFFFF
        limit = self.guest.limits.act_seconds * n
        self._leave_lane()
        if self._limit != limit:
            self._set_limit(limit)
        try:
            wire.send_request(self._sock, seq, wire.ACT_MANY, n, payload)
            reply = self._recv(wire.MAX_REPLY + 1)
        except BlockingIOError:
            reply = self._overdue(FaultKind.ACT_TIMEOUT, "act", self._limit, self._receive)
        except OSError:
            reply = b""
        size = HEADER.size + n * (self._act_size - HEADER.size)
        if len(reply) == size and reply.startswith(HEADER.pack(seq, wire.ACT_MANY, n)) and size <= wire.MAX_REPLY:
            return reply[HEADER.size :]
        self._unusual(reply, seq, FaultKind.ACT_ERROR, allow_odd=True)
        return None

    def flush(self) -> None:
        self._call(wire.FLUSH, 0, b"", self.guest.limits.act_seconds, FaultKind.ACT_TIMEOUT, "flush")

    def act(self, observation: bytes) -> bytes | Any:
        """Send one packed observation; the action's raw numbers as bytes, or :class:`Odd` where it was none.

        The hot path: one send, one receive, one comparison of the header.
        """
        self._seq = seq = (self._seq + 1) & 0xFFFFFFFF
        header = HEADER.pack(seq, wire.ACT, 1)
        lane = self._riding
        if lane is not None and HEADER.size + len(observation) > wire.LANE_BYTES:
            self._leave_lane()
            lane = None
        if lane is None:
            self._set_limit(self._act_seconds)
        try:
            if lane is not None:
                reply = lane.ask(header + observation, self._act_seconds)
            else:
                if len(observation) <= wire.PART_BYTES:
                    self._send(header + observation)
                else:
                    wire.send_request(self._sock, seq, wire.ACT, 1, observation)
                reply = self._recv(wire.MAX_REPLY + 1)
        except BlockingIOError:
            wait = self._receive if lane is None else lane.wait
            reply = self._overdue(FaultKind.ACT_TIMEOUT, "act", self._act_seconds, wait)
        except OSError:
            reply = b""
        if reply.startswith(header) and len(reply) == self._act_size:
            return reply[8:]
        return self._unusual(reply, seq, FaultKind.ACT_ERROR, allow_odd=True)

    def _call(
        self,
        kind: int,
        n: int,
        payload: bytes,
        limit: float,
        late: FaultKind,
        what: str,
        raised: FaultKind = FaultKind.ACT_ERROR,
    ) -> None:
        self._seq = seq = (self._seq + 1) & 0xFFFFFFFF
        self._leave_lane()
        self._set_limit(limit)
        self.tick()
        try:
            wire.send_request(self._sock, seq, kind, n, payload)
            reply = self._recv(wire.MAX_REPLY + 1)
        except BlockingIOError:
            reply = self._overdue(late, what, limit, self._receive)
        except OSError:
            reply = b""
        if reply != HEADER.pack(seq, kind, n):
            self._unusual(reply, seq, raised, allow_odd=False)

    def _leave_lane(self) -> None:
        """Let the guest listen to the socket, where whatever is next will be sent."""
        lane, self._riding = self._riding, None
        if lane is not None:
            with contextlib.suppress(OSError):  # gone, or it filled its pipe: the socket will tell
                lane.turn_aside()

    def _unusual(self, reply: bytes, seq: int, raised: FaultKind, allow_odd: bool) -> Any:
        """Judge a reply that is not the expected one: an odd action, a report, an end, or garbage."""
        if self._riding is not None and reply == HEADER.pack(seq, wire.ASIDE, 0):  # too long for the lane
            try:
                reply = self._receive(self._act_seconds)
            except OSError as error:
                message = "the policy process announced an answer and sent none"
                raise PolicyFault(FaultKind.PROTOCOL, message) from error
        if not reply:
            self._ended()
        if len(reply) >= HEADER.size and len(reply) <= wire.MAX_REPLY:
            told_seq, kind, _ = HEADER.unpack_from(reply)
            document = _read_json(reply[HEADER.size :]) if told_seq == seq else None
            if kind == wire.ODD and allow_odd and document is not None and "value" in document:
                return Odd(document["value"])
            if kind == wire.RAISED and document is not None:
                fault = FaultKind.OOM if document.get("memory") is True else raised
                message, trace = (printable(str(document.get(key, ""))) for key in ("message", "traceback"))
                raise PolicyFault(fault, message[:1000] or "it raised", trace[:8000])
        raise PolicyFault(FaultKind.PROTOCOL, f"the policy process sent {len(reply)} bytes that are no answer")

    # -- time

    def tick(self) -> float:
        """Note how long the process has waited for a core so far; its processor time. Call this now and then."""
        self._waited_before = waiting_seconds(self.pid)
        return cpu_seconds(self.pid)

    def _overdue(self, kind: FaultKind, what: str, limit: float, receive: Callable[[float], bytes]) -> bytes:
        """The answer did not come within ``limit`` seconds by the wall clock. Wait on while that was the machine's
        doing; ``receive(seconds)`` raises BlockingIOError where nothing comes."""
        began = time.perf_counter() - limit  # at most this long ago; lateness of this process is thereby forgiven
        ran: float | None = None
        while True:
            elapsed = time.perf_counter() - began
            own = elapsed - (waiting_seconds(self.pid) - self._waited_before)
            left = limit - own
            # A wait for a core that goes on is not counted yet. So whoever is about to run is looked at until it has.
            before, ran = ran, cpu_seconds(self.pid)
            kept = runnable(self.pid) and (before is None or ran - before < _RAN_SECONDS)
            if elapsed > _HOPELESS_SECONDS or (left <= 0.001 * limit and not kept):
                raise PolicyFault(kind, f"{what} took longer than {limit:g} s")
            asked = time.perf_counter()
            try:
                return receive(_GLANCE_SECONDS)
            except BlockingIOError:
                began += max(time.perf_counter() - asked - _GLANCE_SECONDS - 0.05, 0.0)  # we were late ourselves
            except OSError:
                return b""

    def _receive(self, seconds: float) -> bytes:
        self._set_limit(seconds)
        return self._recv(wire.MAX_REPLY + 1)

    def _set_limit(self, seconds: float) -> None:
        if self._limit != seconds:
            receive_timeout(self._sock, seconds)
            self._limit = seconds

    # -- its end

    def _ended(self) -> None:
        """The connection is gone: say why. Always raises PolicyFault."""
        status = self.guest.reap(ask=True)
        if status >= 0 and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGKILL:  # nobody here sent it: the kernel does, when the machine's memory is short
                raise PolicyFault(FaultKind.OOM, "the policy process was killed by the kernel: out of memory")
            raise PolicyFault(FaultKind.EXITED, f"the policy process died of {_signal_name(number)}")
        if status >= 0 and os.WIFEXITED(status):
            raise PolicyFault(FaultKind.EXITED, f"the policy process ended itself with status {os.WEXITSTATUS(status)}")
        raise PolicyFault(FaultKind.EXITED, "the policy process closed its connection")

    def kill(self) -> float:
        """End the process; its processor time in seconds. Its last output is in the pipes when this returns."""
        used = cpu_seconds(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; the reaping below ends what is not
            os.killpg(self.pid, signal.SIGKILL)
        self.guest.reap()
        if not self.guest.alive:  # then this worker has adopted it, unless its namespace ended with it
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self._sock.close()
        if self._lane is not None:
            self._lane.close()
        return used


class Odd:
    """An action that was not numbers of the space's shape, as plain JSON data."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _read_json(raw: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _send_timeout(sock: socket.socket, seconds: float) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(seconds))
