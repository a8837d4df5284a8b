"""The worker's end of its connection to the coordinator."""

from __future__ import annotations

import collections
import select
import socket

from evotui.rollout import messages


class CoordinatorGone(Exception):
    """The other end of the control socket is closed."""


class Channel:
    """The worker's end of the control socket, blocking; keeps commands that arrive while an episode runs."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._inbox: collections.deque[messages.Command] = collections.deque()

    def tell(self, message: messages.Told) -> None:
        try:
            self._sock.sendall(messages.frame(message))
        except OSError as error:
            raise CoordinatorGone from error

    def next(self) -> messages.Command:
        return self._inbox.popleft() if self._inbox else self._read()

    def called_off(self, job: int) -> bool:
        """Whether a CloseJob for ``job`` has come in; reads what is there without waiting."""
        while select.select([self._sock], [], [], 0)[0]:
            self._inbox.append(self._read())
        return any(isinstance(command, messages.CloseJob) and command.job == job for command in self._inbox)

    def _read(self) -> messages.Command:
        (length,) = messages.LENGTH.unpack(self._exactly(messages.LENGTH.size))
        return messages.command_decoder.decode(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        raw = bytearray()
        while len(raw) < size:
            piece = self._sock.recv(min(size - len(raw), 1 << 20))
            if not piece:
                raise CoordinatorGone
            raw += piece
        return bytes(raw)
