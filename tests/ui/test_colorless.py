"""``NO_COLOR``: no screen sends a colour, and what colours say can still be told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style

from evotui.ui.app import EvotuiApp
from evotui.ui.colorless import colorless
from evotui.ui.screens.confirm import Confirm
from evotui.ui.screens.help import HelpScreen
from evotui.ui.screens.home import HomeScreen
from evotui.ui.screens.newrun import NewRunScreen
from tests.golden import START, build
from tests.ui.conftest import Rigger
from tests.ui.fakes import FakeLauncher
from tests.ui.test_run_screen import screen_of, settle, text_of
from tests.ui.test_suite_screen import make as make_suite

SIZE = (120, 40)


@pytest.fixture(autouse=True)
def _no_color(_still: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def segments(app: EvotuiApp) -> Iterator[Segment]:
    for strip in app.screen._compositor.render_strips():
        yield from strip


def colored(app: EvotuiApp) -> list[str]:
    """What on the screen would be sent with a colour, be it a grey or the terminal's own."""
    return [
        s.text
        for s in segments(app)
        if s.style is not None and (s.style.color is not None or s.style.bgcolor is not None)
    ]


def text(app: EvotuiApp) -> str:
    return " ".join(s.text for s in segments(app))


def words(app: EvotuiApp, attribute: str) -> str:
    return " ".join(s.text.strip() for s in segments(app) if s.style is not None and getattr(s.style, attribute))


async def test_the_run_screen_and_its_dialogs(rig: Rigger) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "@" in text_of(made) and "K_THETA" in text_of(made))  # the picture in letters
        assert not colored(made.app)
        assert "┏" in text_of(made)  # the focused pane
        assert "0.22" in words(made.app, "underline")  # changed words
        await pilot.press("c", "2", "t")
        await settle(pilot, lambda: "NO_COLOR" in text_of(made))
        assert not colored(made.app)
        await pilot.press("question_mark")
        await settle(pilot, lambda: isinstance(made.app.screen, HelpScreen) and "Cursor" in text_of(made))
        assert not colored(made.app)
        assert "One environment step on" in words(made.app, "dim")  # not possible just now
        await pilot.press("escape", "x")
        await settle(pilot, lambda: isinstance(made.app.screen, Confirm) and "No, stay" in text_of(made))
        assert not colored(made.app) and "No, stay" in words(made.app, "reverse")
        assert "stop it" not in words(made.app, "dim") + words(made.app, "reverse")
        await pilot.press("escape")
        await settle(pilot, lambda: made.app.screen is screen_of(made))


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_where_panes_have_an_upper_edge_only_the_focused_has_no_other(rig: Rigger, size: tuple[int, int]) -> None:
    made = rig("rolling")
    async with made.app.run_test(size=size) as pilot:
        await pilot.press("4")
        await settle(pilot, lambda: "━" in text_of(made))
        assert "┏" not in text_of(made) and "┗" not in text_of(made)


async def test_home_and_a_new_run(tmp_path: Path) -> None:
    for name, stage in {"aaa111": "finished", "bbb222": "between", "ccc333": "error"}.items():
        build(tmp_path, stage, name)
    app = EvotuiApp(FakeLauncher(tmp_path), clock=lambda: START + 7200)
    async with app.run_test(size=SIZE) as pilot:
        home = app.screen
        assert isinstance(home, HomeScreen)
        await settle(pilot, lambda: len(home.runs.rows) == 3)
        assert not colored(app)
        chosen = home.runs.selected
        assert chosen is not None and chosen.name in words(app, "reverse") and "heading" not in words(app, "reverse")
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, NewRunScreen) and "Acrobot" in text(app))
        assert not colored(app)
        assert "Start" not in words(app, "reverse")  # it is not focused


async def test_the_suite(tmp_path: Path) -> None:
    app, _ = make_suite(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot, lambda: "acrobot" in text(app))
        assert not colored(app) and "-71" in words(app, "reverse")


def test_what_a_colour_said() -> None:
    assert colorless(Style.parse("#ffffff on #000000 bold")) == Style(bold=True)
    assert colorless(Style.parse("#000000 on #ffffff")) == Style(reverse=True)
    assert colorless(Style.parse("#ffffff on #5a2020")) == Style(underline=True)
    assert colorless(Style.parse("#8a8a8a on #000000")) == Style(dim=True)
    assert colorless(Style.parse("#ff6b6b on #000000")) == Style()  # an error is not faint
    assert colorless(Style.parse("red on blue")) == Style()
    linked = Style.parse("#ffffff on #000000") + Style.from_meta({"@click": "x"})
    assert colorless(linked).meta == {"@click": "x"}
