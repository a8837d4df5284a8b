"""The values of a step: the head comes first, bars tell the place within bounds, what does not fit is counted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from evotui.ui.widgets.paint import centre, colours_only, cut, harmless, pad
from evotui.ui.widgets.strip import Reading, StepValues, ValuesStrip
from tests.ui.widgets.stage import STEP, Stage, text_of


def strip(values: StepValues | None, height: int) -> ValuesStrip:
    """A strip of so many lines."""
    widget = ValuesStrip()
    widget.styles.height = height
    widget.show(values)
    return widget


async def test_head_and_readings() -> None:
    app = Stage(lambda: strip(STEP, 3), bare=True)
    async with app.run_test(size=(90, 10)):
        head, first, second = text_of(app.widget)
        assert head.split() == ["t", "213", "action", "→", "right", "return", "213", "reward", "+1.000"]
        assert first.startswith("cart position")
        assert "-0.812" in first
        assert "●" in first
        assert "pole angle" in first
        assert second.startswith("cart velocity")
        assert "●" not in second.split("angular")[0]  # no finite bounds, no bar


async def test_whole_numbers_and_texts_are_shown_as_they_are() -> None:
    mission = "use the key to open the door and then get to the goal"
    values = replace(STEP, observation=(Reading("direction", 3), Reading("mission", mission)))
    app = Stage(lambda: strip(values, 3), bare=True)
    async with app.run_test(size=(90, 10)):
        _, first, second = text_of(app.widget)
        assert first.split() == ["direction", "3"] and second.split(maxsplit=1)[1].strip() == mission
    app = Stage(lambda: strip(values, 3), bare=True)
    async with app.run_test(size=(40, 10)):
        assert text_of(app.widget)[2].rstrip().endswith("…")


async def test_a_bar_points_at_the_value_and_says_when_it_is_outside() -> None:
    app = Stage(lambda: strip(STEP, 3), bare=True)
    async with app.run_test(size=(90, 10)):
        widget = app.widget
        assert isinstance(widget, ValuesStrip)

        def bar(value: float) -> str:
            return "".join(text for text, _ in widget._bar(Reading("x", value, -1.0, 1.0), 9, "values--bar"))

        assert bar(-1) == "●━━━┿────"
        assert bar(0) == "────●────"
        assert bar(1) == "────┿━━━●"
        assert bar(2)[-1] == "▶"
        assert bar(-5)[0] == "◀"
        assert bar(float("nan")) == "─" * 9


async def test_repairs_and_ends_are_words_and_what_does_not_fit_is_counted() -> None:
    many = tuple(Reading(f"joint {i} angle", i / 40, -1, 1) for i in range(40))
    values = replace(STEP, observation=many, invalid=True, ended="terminated")
    app = Stage(lambda: strip(values, 4), bare=True)
    async with app.run_test(size=(100, 10)):
        lines = text_of(app.widget)
        assert "! action repaired" in lines[0]
        assert "■ terminated" in lines[0]
        shown = sum(line.count("+0.") for line in lines[1:])
        more = int(next(line for line in lines if "more" in line).split("+ ")[-1].split()[0])
        assert shown + more == 40


async def test_one_line_and_nothing() -> None:
    app = Stage(lambda: strip(STEP, 1), bare=True)
    async with app.run_test(size=(90, 10)):
        widget = app.widget
        assert isinstance(widget, ValuesStrip)
        assert len(text_of(widget)) == 1
        widget.show(None)
        assert not "".join(text_of(widget)).strip()


BOUND = st.none() | st.floats()
READINGS = st.lists(
    st.builds(Reading, st.text(max_size=20), st.floats() | st.text(max_size=9), BOUND, BOUND), max_size=30
).map(tuple)
VALUES = st.builds(
    StepValues, st.integers(0, 10**9), READINGS, READINGS, st.text(max_size=9), st.none() | st.floats(),
    st.none() | st.floats(), st.booleans(), st.text(max_size=9),
)  # fmt: skip


@given(st.lists(st.tuples(VALUES, st.integers(1, 120), st.integers(1, 7)), max_size=8))
@settings(derandomize=True, deadline=None, max_examples=12, phases=[Phase.generate])
def test_any_step_in_any_pane(cases: list[tuple[StepValues, int, int]]) -> None:
    async def run() -> None:
        widget = ValuesStrip()
        app = Stage(lambda: widget, bare=True)
        async with app.run_test(size=(130, 10)) as pilot:
            for values, width, height in cases:
                widget.styles.width, widget.styles.height = width, height
                widget.show(values)
                await pilot.pause()
                assert all(line.cell_length == width for line in widget.render_lines(widget.size.region))

    asyncio.run(run())


@given(st.text(max_size=60))
@settings(derandomize=True, deadline=None)
def test_harmless_text_has_no_controls_and_is_stable(text: str) -> None:
    for foreign in (text, f"\x1b[31m{text}\x1b]0;{text}\x07\x1b"):
        clean = harmless(foreign)
        assert harmless(clean) == clean
        assert not any((ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 for char in clean)


@given(st.text(alphabet="ab 語é", max_size=40), st.integers(0, 20))
@settings(derandomize=True, deadline=None)
def test_padding_and_centring_are_exact(text: str, width: int) -> None:
    assert cell_len(pad(text, width)) == width
    assert cell_len(centre(text, width)) == width
    assert cell_len(cut(text, width)) <= width


def test_only_colours_pass() -> None:
    assert colours_only("\x1b[31ma\x1b[2J\x1b]8;;http://x\x07b\x1b[0m\x07") == "\x1b[31mab\x1b[0m"


def test_figures_have_no_negative_nought_and_returns_no_empty_places() -> None:
    from evotui.ui.widgets.strip import _figure

    assert _figure(-0.0) == "+0.000" and _figure(0.0) == "+0.000"
    assert _figure(188.0, signed=False) == "188" and _figure(-3.25, signed=False) == "-3.250"


async def test_a_tall_strip_has_a_head_of_lines_whole_names_and_whole_texts() -> None:
    mission = "use the key to open the door and then get to the goal"
    values = replace(STEP, observation=(Reading("pole angular velocity", -0.295), Reading("mission", mission)))
    app = Stage(lambda: strip(values, 14), bare=True)
    async with app.run_test(size=(34, 14)):
        lines = [line.rstrip() for line in text_of(app.widget)]
        assert lines[0].split() == ["t", "213"]
        assert lines[1].split() == ["return", "213", "reward", "+1.000"]
        assert lines[2].split() == ["action", "→", "right"]
        assert lines[3].startswith("pole angular velocity") and lines[3].endswith("-0.295")
        assert lines[4] == "mission" and " ".join(lines[5:]).strip() == mission


async def test_names_take_the_room_that_there_is() -> None:
    readings = tuple(Reading(f"left front ankle speed {k}", 0.1) for k in range(4))
    app = Stage(lambda: strip(replace(STEP, observation=readings), 3), bare=True)
    async with app.run_test(size=(72, 3)):
        assert all("left front ankle speed" in line for line in text_of(app.widget)[1:])


async def test_where_not_all_fits_the_roomiest_of_what_shows_as_many() -> None:
    readings = tuple(Reading(f"object velocity {k}", 0.1) for k in range(40))
    app = Stage(lambda: strip(replace(STEP, observation=readings), 12), bare=True)
    async with app.run_test(size=(26, 12)):
        lines = text_of(app.widget)
        assert "object velocity 0" in lines[3] and lines[-1].startswith("+ 32 more")


async def test_names_that_are_cut_end_in_an_ellipsis_and_stay_apart() -> None:
    for family, shown in (
        (("cart position", "pole angular velocity"), ("cart position", "pole angular ve…")),
        (("left front ankle speed", "left front ankle angle"), ("lef fro ank spe…", "lef fro ank ang…")),
    ):
        readings = tuple(Reading(name, 0.1) for name in family)
        app = Stage(lambda r=readings: strip(replace(STEP, observation=r), 3), bare=True)  # type: ignore[misc]
        async with app.run_test(size=(25, 3)):
            assert tuple(line.split(" +")[0].rstrip() for line in text_of(app.widget)[1:]) == shown
