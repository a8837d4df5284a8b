"""How each widget looks, at fixed sizes, dark and light. Look at the picture before accepting a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from textual.widget import Widget

from evotui.ui.widgets.budget import BudgetMeter
from evotui.ui.widgets.casemap import CaseMap
from evotui.ui.widgets.diff import DiffView
from evotui.ui.widgets.frame import FrameView
from evotui.ui.widgets.plot import ScorePlot
from evotui.ui.widgets.strip import ValuesStrip
from evotui.ui.widgets.tail import TranscriptTail
from tests.ui.widgets.stage import BUDGET, COLUMNS, DIFF, ENTRIES, STEP, Stage, score_series


class Still(FrameView):
    """A frame that is there from the beginning."""

    def on_mount(self) -> None:
        frame = np.full((60, 90, 3), 235, np.uint8)
        frame[40:44] = 120
        frame[30:40, 38:52] = (60, 70, 90)
        for k in range(20):
            frame[30 - k, 44 + k // 3 : 47 + k // 3] = (202, 152, 101)
        self.show(frame)


def frame() -> Widget:
    return Still(color_mode="truecolor")


def plot() -> Widget:
    widget = ScorePlot(score_series())
    widget.set_reactive(ScorePlot.cursor, 5)
    return widget


def diff() -> Widget:
    return DiffView(DIFF)


def side_by_side() -> Widget:
    widget = DiffView(DIFF)
    widget.set_reactive(DiffView.mode, "side-by-side")
    return widget


def tail() -> Widget:
    widget = TranscriptTail()
    widget.set_entries(ENTRIES)
    widget.highlight(1)
    return widget


def budget() -> Widget:
    widget = BudgetMeter(BUDGET)
    widget.styles.height = 3
    return widget


def cases() -> Widget:
    widget = CaseMap()
    widget.show(COLUMNS, 8, 12)
    return widget


def values() -> Widget:
    widget = ValuesStrip()
    widget.styles.height = 3
    widget.show(STEP)
    return widget


LOOKS = [
    (frame, (60, 20)), (plot, (100, 24)), (plot, (40, 12)), (diff, (80, 40)), (side_by_side, (120, 36)),
    (tail, (80, 24)), (tail, (40, 20)), (budget, (80, 8)), (cases, (60, 16)), (values, (80, 8)),
]  # fmt: skip


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize(("make", "size"), LOOKS, ids=[f"{make.__name__}-{w}x{h}" for make, (w, h) in LOOKS])
def test_looks(snap_compare: Any, make: Callable[[], Widget], size: tuple[int, int], theme: str) -> None:
    assert snap_compare(Stage(make, theme), terminal_size=size)
