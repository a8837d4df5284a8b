"""Reading regular files and nothing else: a FIFO, a socket or a device in a record's place would wait for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 1 << 30
"""More than any file of a record that is read whole; what is larger was not written by us."""


def not_regular(path: Path) -> OSError:
    """The one wording of it."""
    return OSError(errno.EINVAL, "Not a regular file", str(path))


def open_regular(path: Path) -> BinaryIO:
    """``path`` opened for reading, links followed. Never waits. Raises OSError, with its reason in ``strerror``, for
    what is no regular file."""
    try:
        # Opening a FIFO waits for a writer, unless told not to; a regular file does not care.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise not_regular(path) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise not_regular(path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most ``most`` bytes. Raises OSError, as :func:`open_regular` does."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:  # also where it is all hole: nothing of it is read
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read()


def text_of_regular(path: Path, errors: str = "strict") -> str:
    """The same as UTF-8 text, line ends as ``Path.read_text`` has them. Raises OSError, UnicodeDecodeError."""
    text = read_regular(path).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")
