"""A worker's warm interpreter: one clean process with numpy loaded, from which the guest of each snapshot is forked.

Starting an interpreter and importing numpy costs some 150 ms; a fork of one that has done so costs a few. It is as
clean as a fresh one: an exec'd program with a guest's own environment, that never holds a seed, a snapshot or a
configuration and never runs policy code (its side is ``guest.start.warm``). What makes a guest a guest — namespaces,
user, limits, the walls — happens after the fork.

A guest is forked twice, so that it becomes a child of the worker, which adopts orphans: the worker waits for it as for
one that it started itself, and the kernel ends it with the worker. If the interpreter dies, guests live on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys

from evotui.rollout.guest import start, wire
from evotui.rollout.guest.wire import HEADER

START_SECONDS = 30.0  # interpreter, numpy and the libraries that a policy names: slow disks are no fault of a policy
_PR_SET_CHILD_SUBREAPER = 36
_CREDENTIALS = struct.Struct("iII")
_SO_PASSCRED = getattr(socket, "SO_PASSCRED", 16)
_SCM_CREDENTIALS = 2
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""A guest's whole environment: nothing of ours is inherited. HOME becomes the snapshot."""


def execute(control: socket.socket, *arguments: str, stdout: int, stderr: int) -> int:
    """Start a clean interpreter on the stub, with ``control`` as its end of the connection. Its process id."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-B", start.__file__, str(control.fileno()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        pass_fds=(control.fileno(),),
        env=_ENVIRONMENT,
        cwd="/",
        process_group=0,
    )
    process.returncode = 0  # whoever asked for it waits by its id, as for a guest that was forked
    return process.pid


def end(group: int) -> None:
    """Kill a process group that is our children and wait for all of it, adopted members too."""
    with contextlib.suppress(ProcessLookupError):  # it was gone already
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


class WarmInterpreter:
    """Forks guests for one worker; started at once, and again where it died. ``usable`` is False if that is no use."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._said = -1
        self._seq = 0
        self.pid = 0
        self.usable = sys.platform == "linux" and adopt_orphans()
        if self.usable:
            self._start()

    def fork(self, stdout: int, stderr: int) -> tuple[socket.socket, int]:
        """A guest that waits for its configuration: our end of its connection, its process id.

        Raises OSError where that cannot be had even from a new interpreter; ``usable`` is False then.
        """
        try:
            return self._fork(stdout, stderr)
        except OSError:
            self.close()
        try:
            self._start()
            return self._fork(stdout, stderr)
        except OSError:
            self.close()
            self.usable = False
            raise

    def close(self) -> None:
        """End it; what it had to say goes to the worker's log. Guests live on."""
        if self._control is None:
            return
        self._control.close()
        self._control = None
        end(self.pid)
        said = os.read(self._said, 65536)
        os.close(self._said)
        if said:
            print(f"the warm interpreter ended: {said.decode('utf-8', 'replace')}", file=sys.stderr, flush=True)

    def _start(self) -> None:
        """Start it and go on: requests wait in the socket until it is ready."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        receive_timeout(self._control, START_SECONDS)
        self._said, write = os.pipe()  # a pipe as guests have it: Python remembers what its streams were at first
        try:
            self.pid = execute(theirs, "warm", stdout=write, stderr=write)
        except OSError:
            self._control.close()
            self._control = None
            os.close(self._said)
            raise
        finally:
            theirs.close()
            os.close(write)

    def _fork(self, stdout: int, stderr: int) -> tuple[socket.socket, int]:
        if self._control is None:
            raise OSError("no warm interpreter")
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        receive_timeout(control, START_SECONDS)
        expect_greeting(control)
        self._seq = (self._seq + 1) & 0xFFFFFFFF
        request = HEADER.pack(self._seq, wire.SPAWN, 0)
        try:
            with theirs:
                socket.send_fds(self._control, [request], [theirs.fileno(), stdout, stderr])
                if self._control.recv(64) != request:
                    raise OSError("the warm interpreter ended")
            return control, greeting(control)
        except OSError:
            control.close()
            raise


def greeting(sock: socket.socket) -> int:
    """Wait for the HELLO of a new process; the id that the kernel says its sender has. Raises OSError.

    The sender is the trusted stub, before any policy code. SO_PASSCRED must have been set before it could send.
    """
    hello, ancillary, _, _ = sock.recvmsg(64, socket.CMSG_SPACE(_CREDENTIALS.size))
    pids = [
        _CREDENTIALS.unpack(data)[0]
        for level, kind, data in ancillary
        if level == socket.SOL_SOCKET and kind == _SCM_CREDENTIALS
    ]
    if hello != HEADER.pack(0, wire.HELLO, 0) or not pids or pids[0] <= 1:
        raise OSError("no greeting from its child")
    sock.setsockopt(socket.SOL_SOCKET, _SO_PASSCRED, 0)
    return int(pids[0])


def expect_greeting(sock: socket.socket) -> None:
    """Let the kernel say who sends; to be called before a process can be at the other end."""
    sock.setsockopt(socket.SOL_SOCKET, _SO_PASSCRED, 1)


def adopt_orphans() -> bool:
    """Make this process the parent of its descendants' orphans; whether the kernel did."""
    return ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def receive_timeout(sock: socket.socket, seconds: float) -> None:
    """Let the kernel end a receive after this long: unlike Python's own timeout it costs nothing per call."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(seconds))


def timeval(seconds: float) -> bytes:
    micro = max(int(seconds * 1e6), 1)  # zero would mean "wait for ever"
    return struct.pack("@ll", micro // 1_000_000, micro % 1_000_000)
