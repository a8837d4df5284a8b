"""How an edit that a program wanted to make is shown: the path below its workspace, and the change as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

_PATHS = ("path", "file_path", "filePath", "absolute_path", "notebook_path")
_DIFFED = 200_000
"""Characters up to which old and new text are compared line by line."""


def relative(path: str, root: str) -> str:
    """``path`` as seen from ``root``, where it is below it."""
    return path[len(root) + 1 :] if root and path.startswith(root + "/") else path


def _first(values: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if isinstance(values.get(key), str)), None)


def shown_edit(arguments: dict[str, Any], root: str) -> dict[str, Any]:
    """Arguments of a call with its path, relative to ``root``, first and as ``path``."""
    place = _first(arguments, _PATHS)
    if place is None:
        return arguments
    rest = {key: value for key, value in arguments.items() if key != place and value is not False}
    return {"path": relative(arguments[place], root), **rest}


def change(old: str, new: str) -> str:
    """A unified diff's hunks, without its file names, of two texts."""
    if len(old) + len(new) > _DIFFED:
        return f"{old.count(chr(10)) + 1} lines replaced by {new.count(chr(10)) + 1}"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return "\n".join(list(lines)[2:])
