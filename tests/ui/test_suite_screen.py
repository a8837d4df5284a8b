"""The suite's screen: what its boxes say, moving, opening a cell's run, stopping; and how it looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from evotui.analysis.paper import core16
from evotui.record.suitedir import Cell, CellState
from evotui.record.suitefile import AgentRow
from evotui.record.summary import RunSummary
from evotui.ui.app import EvotuiApp
from evotui.ui.feed import Latest
from evotui.ui.screens.run import RunScreen
from evotui.ui.screens.suite import SuiteScreen, columns_of
from evotui.ui.suitefeed import SuiteView
from evotui.ui.widgets.matrix import Box
from tests.golden import START, build
from tests.ui.fakes import FakeLauncher
from tests.ui.test_run_screen import settle

AGENTS = (AgentRow("search", "search"), AgentRow("claude-opus", "claude", "opus"))
ENVS = core16()[:6]


def summary(
    root: Path, env: str, mean: float | None, used: int = 128, means: tuple[float | None, ...] = ()
) -> RunSummary:
    status = "completed" if mean is not None else "running"
    held = (mean, 1.0, 32) if mean is not None else None
    return RunSummary(root, env, env, env, "search", "search", status, 128, used, len(means), means, heldout=held)


def cells(root: Path, repeats: int = 1) -> tuple[CellState, ...]:
    """One finished, one failed, one running, one that was broken off; the others wait."""
    found = []
    for repeat in range(1, repeats + 1):
        for env in ENVS:
            for agent in AGENTS:
                cell = Cell("s", env.key, agent, repeat)
                match env.key, agent.name:
                    case "acrobot", "search":
                        run = summary(root, env.key, -70.0 - repeat, 128, (-500.0, -300.0, None, -90.0, -71.5))
                        found.append(CellState(cell, "finished", "", run))
                    case "acrobot", _:
                        found.append(CellState(cell, "failed", "401: the key was refused"))
                    case "continuouscar", "search":
                        run = summary(root, env.key, None, 40, (12.5, 40.0, 88.25))
                        found.append(CellState(cell, "running", "", run))
                    case "continuouscar", _:
                        run = replace(summary(root, env.key, None, 64, (3.0,)), status="interrupted")
                        found.append(CellState(cell, "unfinished", "", run))
                    case _:
                        found.append(CellState(cell, "waiting"))
    return tuple(found)


class FakeSuite:
    failure = ""

    def __init__(self, root: Path, repeats: int = 1, live: bool = True) -> None:
        self.root = root
        self.live = live
        progress = "MountainCarContinuous-v0  evolving  40/128 episodes  2.1/s  about 42s left"
        self.view = SuiteView(
            "core16-search", ENVS, tuple(a.name for a in AGENTS), repeats, cells(root, repeats),
            Cell("s", "continuouscar", AGENTS[0], 1).name if live else "", progress if live else "", 754.0,
        )  # fmt: skip
        self.stopped = 0
        self._slot = Latest()

    async def updates(self) -> AsyncIterator[SuiteView]:
        yield self.view
        while await self._slot.wait():
            yield self.view
        yield self.view

    def put(self, view: SuiteView) -> None:
        self.view = view
        self._slot.put()

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.stopped += 1
        self.live = False
        self._slot.close()

    async def close(self) -> None: ...


def make(tmp_path: Path, **how: Any) -> tuple[EvotuiApp, FakeSuite]:
    run = build(tmp_path / "runs", "finished", "aaa111")
    feed = FakeSuite(run.root, **how)
    return EvotuiApp(FakeLauncher(tmp_path / "runs"), feed, clock=lambda: START + 7200), feed


def text_of(app: EvotuiApp) -> str:
    return "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())


def line_of(app: EvotuiApp, word: str) -> str:
    return next((line for line in text_of(app).splitlines() if line.lstrip("▌ ").startswith(word)), "")


def screen_of(app: EvotuiApp) -> SuiteScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, SuiteScreen)
    return screen


def test_boxes_are_ranked_among_the_agents_and_the_papers_entries(tmp_path: Path) -> None:
    view = FakeSuite(tmp_path, repeats=2).view
    search, claude, gpt, *others = columns_of(view, paper=True)
    means = (-500.0, -300.0, None, -90.0, -71.5)
    assert search.boxes[0] == Box("finished", means, -71.5, False, 1, "2/2")  # the mean of −71 and −72
    assert search.boxes[1] == Box("running", (12.5, 40.0, 88.25), 88.25, True, None, "0/2")
    assert claude.boxes[0] == Box("failed", (), None, True, None, "0/2")
    assert gpt.foreign and gpt.boxes[0].rank == 2 and gpt.boxes[1].rank == 2 and len(others) == 4
    assert search.score == 1.0 and claude.score is None
    alone = columns_of(view, paper=False)
    assert len(alone) == 2 and alone[0].boxes[0].rank is None and alone[0].score is None


async def test_the_matrix_says_how_each_cell_stands(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "acrobot" in text_of(app))
        row = line_of(app, "acrobot")
        assert all(words in row for words in ("✓", "-71", "#1", "✗", "-84.69 #2")), row
        assert "●" in line_of(app, "continuouscar") and "88.25" in line_of(app, "continuouscar")
        assert "1.000" in line_of(app, "rank score")
        assert "[3/12]" in text_of(app) and "40/128 episodes" in text_of(app) and "12:34 more" in text_of(app)
        assert "✗ 1 failed" in text_of(app) and "2/12 cells" in text_of(app)
        await pilot.press("l")
        assert "401: the key was refused" in text_of(app)
        await pilot.press("P")
        assert "#" not in line_of(app, "acrobot")


async def test_anchors_stand_beside_where_all_else_has_room(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    async with app.run_test(size=(200, 40)) as pilot:
        await settle(pilot, lambda: "reference" in line_of(app, "environment"))
        assert line_of(app, "acrobot").split()[-2:] == ["-79", "-500"]
        assert line_of(app, "continuouscar").split()[-2:] == ["–", "–"]  # nothing was measured there
        assert "paper's best" not in text_of(app) and "Baseline" in line_of(app, "environment")
        await pilot.resize_terminal(120, 40)  # the paper's entries need it all
        await settle(pilot, lambda: "reference" not in text_of(app))
        await pilot.press("P")
        await settle(pilot, lambda: "paper's best" in line_of(app, "environment"))
        assert line_of(app, "acrobot").split()[-3:] == ["-79", "-500", "-84.69"]
        assert line_of(app, "acrobot").rstrip().endswith("-84.69") and "rank score" in text_of(app)
        await pilot.resize_terminal(119, 40)
        await settle(pilot, lambda: "reference" not in text_of(app))
        await pilot.resize_terminal(160, 40)
        await settle(pilot, lambda: "reference" in text_of(app))
        await pilot.press("l", "l", "l", "l")  # an anchor is no cell
        assert screen_of(app).matrix.selected == (0, 1)


async def test_news_are_drawn_and_the_selection_stays(tmp_path: Path) -> None:
    app, feed = make(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "acrobot" in text_of(app))
        await pilot.press("j", "l")
        done = summary(feed.root, "bipedal", 123.0)
        feed.put(
            replace(feed.view, cells=(*feed.view.cells[:4], CellState(feed.view.cells[4].cell, "finished", "", done)))
        )
        await settle(pilot, lambda: "123" in line_of(app, "bipedal"))
        assert screen_of(app).matrix.selected == (1, 1)
        for key, at in (("G", (5, 1)), ("down", (5, 1)), ("h", (5, 0)), ("left", (5, 0)), ("g", (0, 0)), ("k", (0, 0))):
            await pilot.press(key)
            assert screen_of(app).matrix.selected == at


async def test_a_cell_is_opened_and_left(tmp_path: Path) -> None:
    app, _ = make(tmp_path, repeats=2)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "repeat 1 of 2" in text_of(app))
        await pilot.press("r")
        assert "repeat 2 of 2" in text_of(app)
        await pilot.press("enter")
        await settle(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("q")
        await settle(pilot, lambda: isinstance(app.screen, SuiteScreen))
        await pilot.press("G", "enter")
        assert "has not begun" in screen_of(app).keybar.said
        matrix = screen_of(app).matrix
        await pilot.click(matrix, offset=(20, 1))
        assert matrix.selected == (1, 0)
        await pilot.click(matrix, offset=(20, 1))
        await settle(pilot, lambda: isinstance(app.screen, RunScreen))


async def test_stopping_asks_and_leaving_a_live_suite_too(tmp_path: Path) -> None:
    app, feed = make(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "acrobot" in text_of(app))
        await pilot.press("q")
        await settle(pilot, lambda: "still going" in text_of(app))
        await pilot.press("n")
        await settle(pilot, lambda: isinstance(app.screen, SuiteScreen))
        assert feed.stopped == 0 and app.is_running
        await pilot.press("x")
        await settle(pilot, lambda: "Stop this suite?" in text_of(app))
        await pilot.press("y")
        await settle(pilot, lambda: feed.stopped == 1 and "q leaves" in text_of(app))
        await pilot.press("x")
        assert "nothing is run any more" in screen_of(app).keybar.said
        await pilot.press("q")
        await settle(pilot, lambda: not app.is_running or app._exit)
    assert feed.stopped == 1


async def test_a_question_about_a_suite_that_ends_meanwhile_goes(tmp_path: Path) -> None:
    app, feed = make(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: "acrobot" in text_of(app))
        await pilot.press("x")
        await settle(pilot, lambda: "Stop this suite?" in text_of(app))
        await feed.stop()  # as it does when its last cell is done
        await settle(pilot, lambda: isinstance(app.screen, SuiteScreen) and "ended by itself" in text_of(app))
        assert feed.stopped == 1 and app.is_running


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 20)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_looks(tmp_path: Path, snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make(tmp_path)

    async def drawn(pilot: Pilot[Any]) -> None:
        await settle(pilot, lambda: "acrobot" in text_of(app))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=drawn)
