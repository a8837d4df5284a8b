"""Tests with programs that are not ours run only when they are asked for."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "clis" in str(config.option.markexpr):
        return
    for item in items:
        if item.get_closest_marker("clis") is not None:
            item.add_marker(pytest.mark.skip(reason="real coding agents: pytest -m clis tests/agents/clis"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clis: real coding agents, installed on this machine")
