"""The meter shares its cells as the budget was shared; the case map shows each episode once."""

from __future__ import annotations

import asyncio

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evotui.ui.widgets.budget import BudgetFigures, BudgetMeter, Charge
from evotui.ui.widgets.casemap import CaseColumn, CaseMap
from tests.ui.widgets.stage import BUDGET, COLUMNS, Stage, text_of


class BudgetStage(Stage):
    """Keeps what was picked."""

    def on_budget_meter_charge_picked(self, message: BudgetMeter.ChargePicked) -> None:
        self.keep(message)

    def on_case_map_cell_picked(self, message: CaseMap.CellPicked) -> None:
        self.keep(message)


def meter(height: int, figures: BudgetFigures = BUDGET) -> BudgetMeter:
    """A meter of so many lines."""
    widget = BudgetMeter(figures)
    widget.styles.height = height
    return widget


def test_figures_add_up() -> None:
    assert (BUDGET.used, BUDGET.reserved, BUDGET.remaining) == (48, 16, 64)
    assert BUDGET.used + BUDGET.reserved + BUDGET.remaining == BUDGET.total


async def test_the_bar_is_shared_as_the_budget_was() -> None:
    app = BudgetStage(lambda: meter(3), bare=True)
    async with app.run_test(size=(71, 10)):
        bar, names, facts = text_of(app.widget)
        assert bar.endswith(" 64/128")
        cells = bar.removesuffix(" 64/128")
        assert len(cells) == 64
        assert cells == "█" * 4 + "█" * 8 + "╱" * 4 + "█" * 8 + "▓" * 3 + "▒" * 5 + "░" * 32
        assert names.split() == ["0", "1", "2", "▲", "s003", "4"]
        assert names.index("▲") == 16
        assert facts.startswith("64 left · 16 running · ╱ 8 failed · 1 rejected (free) · 5 submissions")


async def test_one_line_is_the_bar_and_a_click_picks_a_submission() -> None:
    app = BudgetStage(lambda: meter(1), bare=True)
    async with app.run_test(size=(71, 10)) as pilot:
        assert len(text_of(app.widget)) == 1
        for x, submission in ((0, 0), (5, 1), (13, 2), (20, 3), (30, 4)):
            await pilot.click(BudgetMeter, offset=(x, 0))
            await pilot.pause()
            picked = app.messages[-1]
            assert isinstance(picked, BudgetMeter.ChargePicked)
            assert picked.submission == submission
        count = len(app.messages)
        await pilot.click(BudgetMeter, offset=(60, 0))
        await pilot.pause()
        assert len(app.messages) == count


async def test_every_episode_has_its_cell_and_a_click_picks_it() -> None:
    columns = (CaseColumn(0, ((3, 1.0), (7, 2.0))), CaseColumn(1, ((7, None), (9, 100.0))))
    app = BudgetStage(CaseMap, bare=True)
    async with app.run_test(size=(60, 10)) as pilot:
        cases = app.widget
        assert isinstance(cases, CaseMap)
        assert "cases appear here" in "\n".join(text_of(cases))
        cases.show(columns, selected=1, case=9)
        lines = text_of(cases)
        assert [line.split() for line in lines[1:4]] == [
            ["3", "▂", "1", "·"],
            ["7", "▄", "2", "✕", "failed"],
            ["9", "·", "▆", "100"],
        ]
        assert lines[0].split() == ["case", "s000", "s001"]
        assert lines[-1].startswith("s001 · case 9 · return 100")
        await pilot.click(CaseMap, offset=(16, 2))
        await pilot.pause()
        picked = app.messages[-1]
        assert isinstance(picked, CaseMap.CellPicked)
        assert (picked.submission, picked.case) == (1, 7)
        await pilot.click(CaseMap, offset=(7, 3))  # not run
        await pilot.pause()
        assert len(app.messages) == 1


async def test_the_cursor_is_kept_in_view_and_the_map_scrolls() -> None:
    app = BudgetStage(CaseMap, bare=True)
    async with app.run_test(size=(16, 8)) as pilot:
        cases = app.widget
        assert isinstance(cases, CaseMap)
        cases.show(COLUMNS, selected=11, case=29)
        lines = text_of(cases)
        assert "11" in lines[0]
        assert any(line.startswith(" 29") for line in lines)
        cases.focus()
        await pilot.press(*["k"] * 40, *["h"] * 40)
        assert text_of(cases)[1].startswith("  0")
        assert text_of(cases)[0].split()[0] == "0"


CHARGES = st.lists(
    st.builds(Charge, st.integers(0, 99), st.integers(0, 40), st.booleans(), st.booleans(), st.integers(0, 50)),
    max_size=40,
).map(tuple)
BUDGETS = st.builds(
    BudgetFigures, st.integers(0, 200), CHARGES, st.lists(st.text(max_size=9), max_size=4).map(tuple),
    st.none() | st.integers(0, 9),
)  # fmt: skip
RETURNS = st.lists(st.tuples(st.integers(0, 300), st.none() | st.floats()), max_size=9).map(tuple)
MAPS = st.lists(st.builds(CaseColumn, st.integers(0, 99), RETURNS), max_size=9)
SIZE = st.tuples(st.integers(1, 90), st.integers(1, 12))


@given(st.lists(st.tuples(BUDGETS, MAPS, SIZE), max_size=8))
@settings(derandomize=True, deadline=None, max_examples=12, phases=[Phase.generate])
def test_any_figures_in_any_pane(cases: list[tuple[BudgetFigures, list[CaseColumn], tuple[int, int]]]) -> None:
    async def run(widget: BudgetMeter | CaseMap) -> None:
        app = BudgetStage(lambda: widget, bare=True)
        async with app.run_test(size=(100, 20)) as pilot:
            for figures, columns, (width, height) in cases:
                widget.styles.width, widget.styles.height = width, height
                if isinstance(widget, BudgetMeter):
                    widget.show(figures)
                else:
                    widget.show(columns, figures.selected, figures.total)
                await pilot.pause()
                assert all(strip.cell_length == width for strip in widget.render_lines(widget.size.region))

    asyncio.run(run(BudgetMeter()))
    asyncio.run(run(CaseMap()))
