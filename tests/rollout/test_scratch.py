"""Scratch folders of sessions that were killed are removed by the next one, whoever else is at it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evotui.rollout.engine import Engine


def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


async def test_what_killed_sessions_left_goes_and_what_the_living_have_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, living = tmp_path / f"evotui-{gone()}-abc", tmp_path / f"evotui-{os.getpid()}-abc"
    for folder in (left, living):
        (folder / "inside").mkdir(parents=True)
    vanishing, listed = tmp_path / f"evotui-{gone()}-xyz", Path.glob

    def glob(self: Path, pattern: str) -> list[Path]:
        """As it is where another session removes a folder between the listing and the look at it."""
        return [vanishing, *listed(self, pattern)]

    monkeypatch.setattr(Path, "glob", glob)
    async with Engine(workers=1) as engine:
        assert engine.isolation.level in "ABCD"
    assert not left.exists() and (living / "inside").exists()
