"""What an agent that asks may do: write below ``system/``, read in its workspace, run ``evotui`` and look at files.

This is what it is told, so that it does not try; what it cannot get around is the wall that its process stands behind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_LOOKS = frozenset({
    "cat", "head", "tail", "ls", "wc", "grep", "egrep", "fgrep", "rg", "jq", "sort", "uniq", "cut", "tr", "nl", "diff",
    "echo", "printf", "pwd", "true", "column", "stat", "file", "test", "cd", "sed", "find", "tree",
})  # fmt: skip
_NEVER = {
    "sed": ("-i", "--in-place", "w"), "find": ("-exec", "-execdir", "-delete", "-ok", "-okdir", "-fprint", "-fls"),
    "sort": ("-o", "--output"), "tree": ("-o",), "rg": ("--pre",),
}  # fmt: skip
_JOINTS = re.compile(r"&&|\|\||[;|\n]")


def command_allowed(command: str) -> bool:
    """Whether a shell command only runs ``evotui`` and programs that look at files."""
    text = command.strip()
    quoted = re.sub(r"'[^']*'", "''", text)
    without = re.sub(r'"(?:[^"\\$`]|\\.)*"', '""', quoted)
    if not text or re.search(r"[`]|\$\(|<\(|>\(|\\\n", quoted) or re.search(r"(?<!&)&(?![&>\d])", without):
        return False
    harmless = re.sub(r"\d?>&\d|&?\d?>\s*/dev/null", " ", without)
    if ">" in harmless:
        return False
    return all(_part_allowed(part) for part in _JOINTS.split(harmless) if part.strip())


def _part_allowed(part: str) -> bool:
    words = part.split()
    while words and re.fullmatch(r"\w+=\S*", words[0]):
        if words[0].startswith(("PATH=", "LD_", "PYTHON", "EVO", "BASH_ENV=")):
            return False
        words = words[1:]
    if not words:
        return True
    if words[0] in ("evotui", "!"):
        return words[0] == "evotui" and len(words) > 1 and words[1] in ("submit", "info", "task", "--help", "--version")
    if words[0] not in _LOOKS:
        return False
    return not any(word == bad or word.startswith(bad + "=") for word in words[1:] for bad in _NEVER.get(words[0], ()))


def write_allowed(path: str, root: Path) -> bool:
    """Whether a file (absolute, or relative to the workspace ``root``) lies below ``system/``, links followed."""
    system = os.path.realpath(root / "system")
    return os.path.realpath(root / path).startswith(system + os.sep)


def read_allowed(path: str, root: Path) -> bool:
    """Whether a file lies in the workspace, links followed."""
    real = os.path.realpath(root)
    found = os.path.realpath(root / path)
    return found == real or found.startswith(real + os.sep)


def call_allowed(kind: str, paths: Iterable[str], command: str, root: Path) -> bool:
    """Whether a tool call that asks for permission gets it. ``kind`` is ACP's: read, edit, execute, fetch …"""
    places = [path for path in paths if path]
    if kind in ("edit", "delete", "move"):
        return bool(places) and all(write_allowed(path, root) for path in places)
    if kind in ("read", "search"):
        return all(read_allowed(path, root) for path in places)
    if kind == "think":
        return True
    if kind == "execute" or command:
        return command_allowed(command)
    return False
