"""Keys that come twice, and the branch of a run that spent all it had."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input

from evotui.protocol.budget import Budget
from evotui.ui.panes.policy import PolicyPane
from evotui.ui.screens.newrun import Branch, Form, NewRunScreen, preflight
from tests.ui.conftest import Rigger
from tests.ui.test_run_screen import SIZE, screen_of, settle, text_of


async def test_an_editor_that_is_asked_for_twice_opens_once(rig: Rigger) -> None:
    made = rig("between")
    opened: list[Path] = []
    closed = asyncio.Event()

    async def edit_file(path: Path) -> None:
        opened.append(path)
        await closed.wait()

    async with made.app.run_test(size=SIZE) as pilot:
        screen = screen_of(made)
        screen._edit_file = edit_file
        await pilot.press("e", "e", "C")
        await settle(pilot, lambda: "is being edited already" in screen.keybar.said)
        assert len(opened) == 1 and made.app.screen is screen
        closed.set()
        await settle(pilot, lambda: not screen._editing)
        await pilot.press("e")
        await settle(pilot, lambda: len(opened) == 2)


async def test_a_branch_without_an_episode_left_asks_for_a_budget(rig: Rigger) -> None:
    made = rig("modelled")
    state = made.feed.state
    total = state.submissions[1].consumed_after
    made.feed.state = replace(state, opened=replace(state.header, budget=total), budget=Budget(total))
    async with made.app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("left_square_bracket", "B")
        await settle(pilot, lambda: isinstance(made.app.screen, NewRunScreen))
        await settle(pilot, lambda: f"none of {total} episodes was left" in " ".join(text_of(made).split()))
        assert made.app.screen.query_one("#budget", Input).value == ""


def test_one_episode_is_one() -> None:
    form = Form("gym/cartpole", "search", "1", "0")
    words = preflight(form, None, Branch(Path("abc"), 1, form, ""))
    assert "with 1 episode, on" in words


async def test_a_pane_that_grows_says_its_words_again(rig: Rigger, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig("finished")
    async with made.app.run_test(size=(80, 24)) as pilot:
        pane = screen_of(made).query_one(PolicyPane)
        await settle(pilot, lambda: "→" in str(pane.border_title))
        assert "synthesis" not in str(pane.border_title)
        # As for a submission without a change: no new figures come, on which the title would be made anew.
        monkeypatch.setattr(PolicyPane, "on_diff_view_stats_changed", lambda self, message: message.stop())
        await pilot.resize_terminal(*SIZE)
        await settle(pilot, lambda: "synthesis" in str(pane.border_title))
