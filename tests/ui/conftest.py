"""Golden runs, and an application around them that stands still: a fixed clock, no animation, no editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tests.golden_model  # noqa: F401  (its stages)
from evotui.record.rundir import RunDir
from evotui.ui.app import EvotuiApp
from evotui.ui.feed import Progress
from tests.golden import START, build
from tests.ui.fakes import FakeFeed, FakeFrames, FakeLauncher

ENDED = ("finished", "no_ok", "error", "modelled")
NOW = START + 42.0


class Rig:
    """An application showing one golden run, and what it was made from."""

    def __init__(self, app: EvotuiApp, feed: FakeFeed, frames: FakeFrames, launcher: FakeLauncher) -> None:
        self.app = app
        self.feed = feed
        self.frames = frames
        self.launcher = launcher
        self.edited: list[Path] = []


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], RunDir]:
    return lambda stage: build(tmp_path / "runs", stage)


Rigger = Callable[..., Rig]


@pytest.fixture
def rig(golden: Callable[[str], RunDir], tmp_path: Path) -> Rigger:
    """``rig(stage, drives=None, frames="pixels")``: live and driven from here unless the stage is an end."""

    def make(stage: str, drives: bool | None = None, frames: str = "pixels", last_step: int = 60) -> Rig:
        run = golden(stage)
        live = stage not in ENDED
        progress = [Progress(3, 3, 213, 213.0), Progress(3, 4, 80, 80.0)] if stage == "rolling" else []
        feed = FakeFeed(run, live, live if drives is None else drives, progress)
        source = FakeFrames(last_step, frames)
        launcher = FakeLauncher(tmp_path / "runs")
        edited: list[Path] = []

        async def edit_file(path: Path) -> None:
            edited.append(path)
            path.write_text(path.read_text() + "# by hand\n")

        app = EvotuiApp(launcher, (feed, source), clock=lambda: NOW, edit_file=edit_file)
        made = Rig(app, feed, source, launcher)
        made.edited = edited
        return made

    return make
