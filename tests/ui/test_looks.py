"""Snapshots of the screens at three sizes; to be looked at when they change (``--snapshot-update`` accepts)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from evotui.ui.app import EvotuiApp
from tests.golden import START, build
from tests.ui.conftest import Rig, Rigger
from tests.ui.fakes import FakeLauncher
from tests.ui.test_run_screen import screen_of, settle

SIZES = [(120, 40), (80, 24), (40, 20)]


async def stand_still(made: Rig, pilot: Pilot[Any]) -> None:
    """Everything is drawn and known, and the episode stands at its tenth step."""
    screen = screen_of(made)
    await settle(pilot, lambda: len(screen.edits) >= len(screen.state.submissions) - (made.feed.live))
    await settle(pilot, lambda: bool(screen.policy.plain()) or screen.state.opened is None)
    screen.redraw()
    if screen.environment.player is None:
        return
    await pilot.press("space")
    await settle(pilot)
    player = screen.environment.player
    for _ in range(60):
        if player.step >= 10 or screen.environment.frame.size.width == 0:
            break
        at = player.step
        player.step_on()
        await settle(pilot, lambda at=at: player.step > at)  # type: ignore[misc]
    while player.step > 10:
        at = player.step
        player.step_back()
        await settle(pilot, lambda at=at: player.step < at)  # type: ignore[misc]
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("stage", ["rolling", "finished", "model", "asked"])
def test_run_screen(rig: Rigger, snap_compare: Any, stage: str, size: tuple[int, int]) -> None:
    made = rig(stage)
    assert snap_compare(made.app, terminal_size=size, run_before=lambda pilot: stand_still(made, pilot))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_home_screen(tmp_path: Path, snap_compare: Any, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = Path("runs")
    for name, stage in {"aaa111": "finished", "bbb222": "between", "ccc333": "error", "ddd444": "validating"}.items():
        build(runs, stage, name)
    app = EvotuiApp(FakeLauncher(runs), clock=lambda: START + 7200)

    async def listed(pilot: Pilot[Any]) -> None:
        await settle(pilot, lambda: len(app.screen.runs.rows) == 4 and not app.screen._scanning)  # type: ignore[attr-defined]

    assert snap_compare(app, terminal_size=size, run_before=listed)


def test_evidence(rig: Rigger, snap_compare: Any) -> None:
    made = rig("model")

    async def opened(pilot: Pilot[Any]) -> None:
        await stand_still(made, pilot)
        await pilot.press("E", "left_square_bracket")
        await settle(pilot, lambda: bool(screen_of(made).policy.rows.text))
        screen_of(made).keybar._hush()
        await settle(pilot)

    assert snap_compare(made.app, terminal_size=(120, 40), run_before=opened)


def test_help_screen(rig: Rigger, snap_compare: Any) -> None:
    made = rig("finished")

    async def opened(pilot: Pilot[Any]) -> None:
        await stand_still(made, pilot)
        await pilot.press("question_mark")
        await settle(pilot)

    assert snap_compare(made.app, terminal_size=(120, 40), run_before=opened)


@pytest.mark.parametrize("theme", ["daylight", "contrast", "safe-dark", "safe-light"])
def test_themes(rig: Rigger, snap_compare: Any, theme: str) -> None:
    made = rig("finished")
    made.app.theme = theme
    assert snap_compare(made.app, terminal_size=(100, 32), run_before=lambda pilot: stand_still(made, pilot))
