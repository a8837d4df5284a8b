"""Reading Python source that nobody vouches for: one ``ast.parse`` that fails in one way and never warns."""

from __future__ import annotations

import ast
import threading
import warnings

_LOCK = threading.Lock()  # catch_warnings changes the interpreter's filters: one thread at a time


class Unparsable(ValueError):
    """The source is no Python; ``line`` is where (0 where it cannot be said)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def parse(source: str | bytes) -> ast.Module:
    """The syntax tree of a file. Raises :class:`Unparsable`, also for null bytes, bad encodings and absurd nesting."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError as error:
            raise Unparsable(error.msg or "invalid syntax", error.lineno or 0) from None
        except (ValueError, UnicodeError) as error:
            raise Unparsable(str(error)) from None
        except (RecursionError, MemoryError):
            raise Unparsable("nested too deeply to be read") from None
