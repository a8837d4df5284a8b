"""Counts in sentences, the same everywhere: ``1 episode``, ``2 episodes``, ``0 tries``."""

from __future__ import annotations


def counted(n: float, one: str, many: str = "") -> str:
    """``n`` with its noun. ``many``: the plural where it is neither ``one`` with an s nor, after a consonant, -ies."""
    return f"{n} {noun(n, one, many)}"


def noun(n: float, one: str, many: str = "") -> str:
    """The noun alone, as it goes with ``n``."""
    if n == 1:
        return one
    if many:
        return many
    return f"{one[:-1]}ies" if one.endswith("y") and one[-2:-1] not in "aeiou" else f"{one}s"
