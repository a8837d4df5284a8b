"""The interaction budget: episodes, what a submission may ask for, and what acceptance costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evotui.protocol.verdict import Verdict
from evotui.protocol.words import counted

_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?\Z")
_MOST_DIGITS = 18


class Rejected(Exception):
    """A request that takes no index and costs nothing; ``verdict`` is one of the request phase's."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message


class DoorClosed(Exception):
    """The run takes no more submissions: it was finalized or stopped."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Episodes of one run. ``total = used + remaining`` always; only :meth:`charge` changes ``used``."""

    total: int
    used: int = 0
    min_submit: int = 1
    max_submit: int = 128

    def __post_init__(self) -> None:
        if self.total < 1:
            raise ValueError(f"budget must be at least 1 episode, not {self.total}")
        if not 1 <= self.min_submit <= self.max_submit:
            raise ValueError(f"submission size needs 1 ≤ min ≤ max, not {self.min_submit}..{self.max_submit}")
        if not 0 <= self.used <= self.total:
            raise ValueError(f"used episodes must lie in 0..{self.total}, not {self.used}")

    @property
    def remaining(self) -> int:
        return self.total - self.used

    @property
    def spent(self) -> bool:
        """Whether no submission of the least size fits any more."""
        return self.remaining < self.min_submit

    def charge(self, episodes: int) -> Budget:
        """The budget after a submission of ``episodes`` was accepted. Raises ValueError if it does not fit."""
        if not 1 <= episodes <= self.remaining:
            raise ValueError(f"cannot charge {episodes} of {self.remaining} remaining episodes")
        return replace(self, used=self.used + episodes)

    def check(self, cases: Sequence[int]) -> None:
        """Raise :class:`Rejected` (``budget_invalid``) unless this many cases may be submitted now."""
        most = min(self.max_submit, self.remaining)
        if self.spent:
            raise Rejected(
                Verdict.BUDGET_INVALID,
                f"the budget is spent: {self.remaining} of {self.total} episodes remain, "
                f"a submission takes at least {self.min_submit}",
            )
        if not self.min_submit <= len(cases) <= most:
            raise Rejected(
                Verdict.BUDGET_INVALID,
                f"{counted(len(cases), 'case')} asked for; this submission takes {self.min_submit} to {most} "
                f"({self.remaining} episodes remain)",
            )


def parse_cases(request: object, n_cases: int, limit: int = 1_000_000) -> tuple[int, ...]:
    """Train case ids from a request: a list of ints, or a string such as ``"7-10,16"``.

    Ranges are inclusive; order and repeats are kept (every repeat costs). ``n_cases`` is the pool's size, ``limit``
    the most ids a string may expand to. Raises :class:`Rejected` (``invalid_env_instance``) for anything else.
    """

    def bad(message: str) -> Rejected:
        return Rejected(Verdict.INVALID_ENV_INSTANCE, message)

    def missing(case: object) -> Rejected:
        return bad(f"case {case} does not exist: train cases are 0 to {n_cases - 1}")

    ids: list[int] = []
    if isinstance(request, str):
        for part in request.split(","):
            match = _RANGE.match(part)
            if match is None:
                raise bad(f"cannot read {part.strip()!r} as a case id or a range such as 7-10")
            for digits in (match[1], match[2] or ""):
                if len(digits) > _MOST_DIGITS:
                    raise missing(f"{digits[:_MOST_DIGITS]}…")
            first = int(match[1])
            last = int(match[2]) if match[2] is not None else first
            if last < first:
                raise bad(f"the range {part.strip()!r} runs backwards")
            if last >= n_cases:  # before the range is made: it may be longer than memory
                raise missing(max(first, n_cases))
            if len(ids) + last - first + 1 > limit:
                raise bad(f"more than {counted(limit, 'case')} asked for")
            ids.extend(range(first, last + 1))
    elif isinstance(request, (list, tuple)):
        for item in request:
            if isinstance(item, bool) or not isinstance(item, int):
                raise bad(f"case ids are integers, not {item!r}")
            ids.append(item)
    else:
        raise bad(f'cases must be a list of ids or a string such as "0-3,7", not {type(request).__name__}')
    for case in ids:
        if not 0 <= case < n_cases:
            raise missing(case)
    return tuple(ids)


def format_cases(cases: Sequence[int]) -> str:
    """The shortest string that :func:`parse_cases` expands to ``cases``: ascending neighbours become ranges."""
    parts: list[str] = []
    i = 0
    while i < len(cases):
        j = i
        while j + 1 < len(cases) and cases[j + 1] == cases[j] + 1:
            j += 1
        parts.append(str(cases[i]) if i == j else f"{cases[i]}-{cases[j]}")
        i = j + 1
    return ",".join(parts)
