"""What a check of a record finds, and small helpers to look at its files without falling over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evotui.record.regular import read_regular
from evotui.record.rundir import RunDir, RunDirError, read_json


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that a record says or holds and should not. ``code`` names the kind, ``where`` a file or a fact."""

    code: str
    where: str
    sentence: str


@dataclass(slots=True)
class Desk:
    """Collects breaches about one run; paths are told relative to its folder."""

    run: RunDir
    breaches: list[Breach] = field(default_factory=list)

    def where(self, path: Path) -> str:
        return path.relative_to(self.run.root).as_posix()

    def say(self, code: str, where: Path | str, sentence: str) -> None:
        self.breaches.append(Breach(code, where if isinstance(where, str) else self.where(where), sentence))

    def need(self, truth: bool, code: str, where: Path | str, sentence: str) -> bool:
        if not truth:
            self.say(code, where, sentence)
        return truth

    def equal(self, code: str, where: Path | str, name: str, found: Any, expected: Any) -> None:
        """``found`` stands in a file, ``expected`` follows from the facts; types count, NaN does not occur."""
        if (type(found) is not type(expected) and not (_number(found) and _number(expected))) or found != expected:
            self.say(code, where, f"{name} is {_short(found)}, the events say {_short(expected)}")

    def document(self, code: str, path: Path) -> dict[str, Any] | None:
        """A JSON object; None (and a breach) where there is none."""
        if not path.exists():
            self.say(code, path, "is missing")
            return None
        try:
            found = read_json(path)
        except RunDirError as error:
            self.say(code, path, str(error).removeprefix(f"{path}: "))
            return None
        if not isinstance(found, dict):
            self.say(code, path, "is not a JSON object")
            return None
        return found

    def read(self, code: str, path: Path) -> bytes | None:
        """A file's bytes; None (and a breach) where it cannot be read."""
        try:
            return read_regular(path)
        except FileNotFoundError:
            self.say(code, path, "is missing")
        except OSError as error:
            self.say(code, path, f"cannot be read ({error.strerror or error})")
        return None


def leftover(name: str) -> bool:
    """Whether a file is what a killed process left of an unfinished write; never damage."""
    return name.startswith(".") and name.endswith(".tmp")


def names_in(folder: Path) -> Iterator[str]:
    """Names in a folder, sorted, leftovers apart; none where it does not exist."""
    if folder.is_dir():
        yield from sorted(p.name for p in folder.iterdir() if not leftover(p.name))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
