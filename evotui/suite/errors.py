"""The suite's error family: each message is one sentence that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SuiteError(Exception):
    """An environment or a policy could not be found, read or made."""


class UnknownEnvironment(SuiteError):
    """No environment has this name; ``near`` are existing names that look like it."""

    def __init__(self, name: str, near: Iterable[str] = (), hint: str = "") -> None:
        self.name = name
        self.near = tuple(near)
        self.hint = hint
        super().__init__(f"unknown environment {name!r}" + did_you_mean(self.near) + (f"; {hint}" if hint else ""))


class UnknownPolicy(SuiteError):
    """The task has no policy of this name."""


class MissingExtra(SuiteError):
    """A package is not installed; ``command`` installs it."""

    def __init__(self, what: str, package: str, command: str) -> None:
        self.package = package
        self.command = command
        super().__init__(f"{what} needs {package}, which is not installed: {command}")


class WrongVersion(SuiteError):
    """A package is installed in a version that does not serve; ``command`` installs one that does."""

    def __init__(self, what: str, package: str, version: str, wanted: str, why: str) -> None:
        self.package = package
        self.command = f"pip install '{package}{wanted}'"
        super().__init__(f"{what} needs {package}{wanted}, and {version} is installed ({why}): {self.command}")


class BadTaskFile(SuiteError):
    """A task file that cannot be used: which file, which line, which field, what is expected there."""

    def __init__(self, path: str, line: int, field: str, expected: str) -> None:
        self.path, self.line, self.field, self.expected = path, line, field, expected
        named = f"{field}: " if field else ""
        super().__init__(f"{path}, line {line}: {named}{expected}")


def near_names(name: str, known: Iterable[str], most: int = 3, least: float = 0.5) -> list[str]:
    """Up to ``most`` of the known names that look like ``name``, best first, case ignored.

    ``least``: how much they must look like it, 0 to 1.
    """
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    return [by_lower[low] for low in difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=least)]


def did_you_mean(near: Iterable[str]) -> str:
    """``": did you mean A, B or C?"``, or nothing where nothing is near."""
    names = list(near)
    if not names:
        return ""
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
    return f": did you mean {listed}?"
