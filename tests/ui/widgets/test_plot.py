"""The score plot: what is drawn is in the data, the cursor reads it out, clicks pick submissions, nothing breaks it."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evotui.ui.widgets.plot import Mark, PostHocPoint, ScorePlot, ScoreSeries, SubmissionPoint
from evotui.ui.widgets.plotwords import GLYPHS, readout
from evotui.ui.widgets.raster import Raster, short, ticks, value_ticks
from tests.ui.widgets.stage import Stage, score_series, text_of


class PlotStage(Stage):
    """Keeps picked submissions."""

    def on_score_plot_point_picked(self, message: ScorePlot.PointPicked) -> None:
        self.keep(message)


async def test_every_mark_and_the_post_hoc_figures_are_drawn_and_explained() -> None:
    app = PlotStage(lambda: ScorePlot(score_series()), bare=True)
    async with app.run_test(size=(120, 30)):
        lines = text_of(app.widget)
        drawn = "".join(lines[1:-2])
        for mark in (Mark.BEST, Mark.FLAT, Mark.FAILED, Mark.RETEST, Mark.ROLLBACK):
            assert drawn.count(GLYPHS[mark]) == sum(p.mark is mark for p in score_series().submissions)
        assert drawn.count("◇") == 9
        assert drawn.count("◆") == 1
        assert "random 22" in drawn.replace("\N{NO-BREAK SPACE}", " ")
        legend = lines[-1]
        for words in ("episode", "mean ± se", "best so far", "post-hoc", "failed", "episodes consumed"):
            assert words in legend
        assert lines[0].startswith("return")
        axis = [float(word) for word in lines[-2].split()]
        assert axis[0] == 0
        assert axis[-1] == 128


async def test_the_words_of_a_reference_stand_whole_beside_every_cursor() -> None:
    series = score_series()
    app = PlotStage(lambda: ScorePlot(series), bare=True)
    async with app.run_test(size=(80, 24)) as pilot:
        for cursor in range(len(series.submissions)):
            app.widget.show(series, cursor)
            await pilot.pause()
            drawn = "\n".join(text_of(app.widget)[1:-2]).replace("\N{NO-BREAK SPACE}", " ")
            for reference in series.references:
                words = f" {reference.label} {short(reference.y)} "
                assert words in drawn or reference.label[:3] not in drawn, cursor


def test_a_readout_never_tells_an_error_without_its_mean() -> None:
    point = SubmissionPoint(8, 32, 0.71, 0.5, 0.92, Mark.FLAT)
    series = ScoreSeries(submissions=(point,), episodes=[(32, 0.9, 8)])
    said = ["".join(text for text, _ in readout(series, 8, room)) for room in range(60)]
    assert all("mean" in text for text in said if "±" in text or "no improvement" in text)
    assert said[25] == "○ s008  mean 0.71 ± 0.21" and said[-1] == "○ s008 no improvement  mean 0.71 ± 0.21  n 1"
    assert said[0] == "" and said[7] == "○ s008"


def test_an_upright_axis_has_two_figures_where_it_has_the_rows() -> None:
    assert value_ticks(-0.04, 0.96, 8) == [0.0, 0.5]  # one alone would say nothing of the scale
    assert value_ticks(0.0, 500.0, 12) == [0.0, 200.0, 400.0]
    for low, high in ((-0.04, 0.96), (-520.0, -60.0), (-33.2, 99.4), (0.0, 1e4), (-3.1, -2.9)):
        for rows in range(4, 40):
            assert len(value_ticks(low, high, rows)) >= 2


async def test_a_wide_legend_names_both_post_hoc_shapes() -> None:
    app = PlotStage(lambda: ScorePlot(score_series()), bare=True)
    async with app.run_test(size=(160, 30)):
        assert "◇ validation  ◆ held-out, both post-hoc" in text_of(app.widget)[-1]


async def test_without_post_hoc_figures_the_word_does_not_appear() -> None:
    app = PlotStage(lambda: ScorePlot(score_series(post_hoc=False)), bare=True)
    async with app.run_test(size=(120, 30)):
        assert "post-hoc" not in "".join(text_of(app.widget))


async def test_the_cursor_reads_the_selected_submission_out() -> None:
    app = PlotStage(lambda: ScorePlot(score_series()), bare=True)
    async with app.run_test(size=(120, 30)) as pilot:
        plot = app.widget
        assert isinstance(plot, ScorePlot)
        plot.cursor = 5
        await pilot.pause()
        head = text_of(plot)[0]
        assert "s005" in head
        assert "new best" in head
        assert "mean 260" in head
        assert "n 8" in head
        assert "validation post-hoc" in head
        plot.cursor = 4
        await pilot.pause()
        assert "✕ s004 failed" in text_of(plot)[0]


async def test_a_click_picks_the_submission_whose_episodes_lie_there() -> None:
    series = score_series()
    app = PlotStage(lambda: ScorePlot(series), bare=True)
    async with app.run_test(size=(120, 30)) as pilot:
        plot = app.widget
        assert isinstance(plot, ScorePlot)
        text_of(plot)
        frame = plot._frame
        assert frame is not None
        start = 0.0
        for point in series.submissions:
            middle = (start + point.x_end) / 2
            await pilot.click(ScorePlot, offset=(frame.left + round(middle / 128 * frame.width), 10))
            await pilot.pause()
            picked = app.messages[-1]
            assert isinstance(picked, ScorePlot.PointPicked)
            assert picked.index == point.index
            start = point.x_end
        count = len(app.messages)
        await pilot.click(ScorePlot, offset=(0, 10))  # the axis is no submission
        await pilot.pause()
        assert len(app.messages) == count


async def test_empty_says_what_will_come_and_a_new_theme_draws_anew() -> None:
    app = PlotStage(ScorePlot, bare=True)
    async with app.run_test(size=(60, 12)) as pilot:
        plot = app.widget
        assert isinstance(plot, ScorePlot)
        assert "scores appear here" in "".join(text_of(plot))
        plot.show(score_series())
        await pilot.pause()
        dark = plot.render_line(3)
        app.theme = "textual-light"
        await pilot.pause()
        assert [s.style for s in plot.render_line(3)] != [s.style for s in dark]


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(1, 12))
@settings(derandomize=True, deadline=None)
def test_ticks_are_round_even_and_inside(low: float, span: float, about: int) -> None:
    high = low + span
    marks = ticks(low, high, about)
    assert len(marks) <= about + 1 + (high <= low)
    off = span * 1e-6 + 16 * math.ulp(abs(low) + span)  # as near as numbers of that size can be
    for mark in marks:
        assert low - off <= mark <= high + off
        assert len(short(mark)) <= 10


def test_raster_puts_dots_where_they_belong() -> None:
    raster = Raster(4, 2, (0, 7), (0, 7))
    raster.dots(np.array([0.0, 7.0]), np.array([7.0, 0.0]), 3)
    assert [list(row) for row in raster.rows()] == [
        [("⠁", 3, 0), ("   ", 0, 0)],
        [("   ", 0, 0), ("⢀", 3, 0)],
    ]
    for x in (0.0, 1.4, 3.3, 7.0):
        assert raster.dot(x) == int(raster.px(x))
        assert raster.dot_down(x) == int(raster.py(x))


ANY = st.floats(allow_nan=True, allow_infinity=True)
MAYBE = st.none() | ANY
SERIES = st.builds(
    ScoreSeries,
    episodes=st.lists(st.tuples(ANY, ANY, st.integers(0, 4)), max_size=12),
    submissions=st.lists(
        st.builds(SubmissionPoint, st.integers(0, 6), ANY, MAYBE, MAYBE, MAYBE, st.sampled_from(Mark)), max_size=6
    ).map(tuple),
    best=st.lists(st.tuples(ANY, ANY), max_size=4).map(tuple),
    post_hoc=st.lists(st.builds(PostHocPoint, st.just("held-out"), ANY, ANY, MAYBE, MAYBE), max_size=3).map(tuple),
    post_hoc_best=st.lists(st.tuples(ANY, ANY), max_size=4).map(tuple),
    budget=st.integers(0, 10**6),
)
CASES = st.lists(st.tuples(SERIES, st.integers(1, 60), st.integers(1, 20), st.none() | st.integers(0, 6)), max_size=9)


@given(CASES)
@settings(derandomize=True, deadline=None, max_examples=15, phases=[Phase.generate])
def test_any_series_in_any_pane(cases: list[tuple[ScoreSeries, int, int, Any]]) -> None:
    async def run() -> None:
        app = PlotStage(ScorePlot, bare=True)
        async with app.run_test(size=(80, 30)) as pilot:
            plot = app.widget
            assert isinstance(plot, ScorePlot)
            for series, width, height, cursor in cases:
                plot.styles.width, plot.styles.height = width, height
                plot.show(series, cursor)
                await pilot.pause()
                lines = text_of(plot)
                assert len(lines) == height
                assert all(len(line) == width for line in lines)

    asyncio.run(run())


async def test_nan_and_infinity_are_left_out_but_the_rest_is_drawn() -> None:
    series = ScoreSeries(((1, math.nan, 0), (2, math.inf, 0), (3, 5.0, 0)), budget=4)
    app = PlotStage(lambda: ScorePlot(series), bare=True)
    async with app.run_test(size=(40, 10)):
        body = "".join(text_of(app.widget)[1:-2])
        assert sum(0x2800 < ord(char) < 0x2900 for char in body) == 1
