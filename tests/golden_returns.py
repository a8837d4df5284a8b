"""The golden returns of tests/data/golden_returns.toml, and where this machine's packages can be held to them."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

import pytest

from evotui.protocol.task import TaskSpec
from evotui.suite.catalog import availability, distribution, find_task

_DOCUMENT = tomllib.loads((Path(__file__).parent / "data" / "golden_returns.toml").read_text("utf-8"))
_EXACT: dict[str, list[str]] = _DOCUMENT.pop("exact")
SLUGS = tuple(_DOCUMENT)
POLICIES = ("first", "cycle")


def release(package: str) -> str:
    """The installed release, two numbers: "2.4"."""
    return ".".join(importlib.metadata.version(package).split(".")[:2])


class Either:
    """Equal to each of some numbers: the one sum whose last bit depends on the machine, by the kernels numpy picks."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = numbers

    def __eq__(self, other: object) -> bool:
        return other in self.numbers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return " or ".join(map(repr, self.numbers))


def golden(slug: str, policy: str) -> tuple[TaskSpec, list[list[Any]]]:
    """The task and its ``[return, length]`` per case. Skips the test where the installed packages are others."""
    task = find_task(slug)
    if missing := availability(task):
        pytest.skip(missing)
    for package in ("numpy", *map(distribution, ("gymnasium", *task.packages, *task.requires))):
        if release(package) not in _EXACT.get(package, [release(package)]):
            known = " or ".join(_EXACT[package])
            pytest.skip(f"golden returns are known for {package} {known}; installed is {release(package)}")
    expected: list[list[Any]] = [list(figures) for figures in _DOCUMENT[slug][policy]]
    if (slug, policy) == ("gym/pusher5", "first"):
        expected[1][0] = Either(expected[1][0], -59.295550461435504)
    return task, expected
