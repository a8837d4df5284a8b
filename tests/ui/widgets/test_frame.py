"""Frames: what the ready text says is what the segments say, only changed rows are painted, a slow terminal waits."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.color import Color
from textual.geometry import Region

from evotui.ui.widgets import halfblock
from evotui.ui.widgets.frame import FrameView
from tests.ui.widgets.stage import Stage, text_of


def colour(color: Color | None) -> Any:
    """A colour as a comparable value."""
    if color is None or color.is_default:
        return None
    return tuple(color.triplet) if color.triplet else color.number


def interpret(ansi: str) -> list[tuple[Any, Any]]:
    """What a terminal shows for a row of half blocks: the colours of the upper and the lower half of each cell."""
    fore: Any = None
    back: Any = None
    cells = []
    for code, char in re.findall(r"\x1b\[([\d;]*)m|(.)", ansi):
        if char:
            upper = fore if char == "▀" else back
            lower = fore if char == "▄" else back
            cells.append((upper, lower))
            continue
        numbers = [int(n) for n in code.split(";")]
        value = tuple(numbers[2:]) if len(numbers) == 5 else numbers[2] if len(numbers) == 3 else None
        if numbers[0] in (38, 39):
            fore = value
        elif numbers[0] in (48, 49):
            back = value
        else:
            fore = back = None
    return cells


def from_segments(strip: halfblock.PixelStrip) -> list[tuple[Any, Any]]:
    """The same from a strip's segments."""
    cells = []
    for segment in strip:
        assert segment.style is not None
        fore, back = colour(segment.style.color), colour(segment.style.bgcolor)
        cells += [(fore if char == "▀" else back, fore if char == "▄" else back) for char in segment.text]
    return cells


@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)), elements=st.integers(0, 255)),
    st.sampled_from(["truecolor", "256"]),
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_ready_text_and_segments_show_the_same_cells(pixels: np.ndarray, depth: Any, default: bool) -> None:
    ground = halfblock.TERMINAL_DEFAULT if default else 0
    packed = halfblock.pack(pixels, depth)
    cells = halfblock.letterbox(packed, (11, 6), ground)
    for row, text in zip(cells, halfblock.encode(cells, depth), strict=True):
        strip = halfblock.PixelStrip(row, text, depth)
        shown = interpret(text)
        assert len(shown) == 11
        assert shown == from_segments(strip)
        assert strip.crop(2, 7).cell_length == 5
    # Every pixel is in its place: centred, on a whole cell from the top.
    top, left = (12 - pixels.shape[0]) // 2 & ~1, (11 - pixels.shape[1]) // 2
    for y, x in np.ndindex(packed.shape):
        upper, lower = interpret(halfblock.encode(cells, depth)[(top + y) // 2])[left + x]
        half = lower if (top + y) % 2 else upper
        expected = tuple(pixels[y, x].tolist()) if depth == "truecolor" else int(packed[y, x])
        assert half == expected


@given(st.tuples(st.integers(1, 900), st.integers(1, 900)), st.tuples(st.integers(1, 300), st.integers(1, 300)))
@settings(derandomize=True, deadline=None)
def test_a_fitted_frame_stays_inside_and_keeps_its_aspect(size: tuple[int, int], into: tuple[int, int]) -> None:
    width, height = halfblock.fit_size(*size, into)
    assert 1 <= width <= into[0]
    assert 1 <= height <= into[1]
    scale = min(into[0] / size[0], into[1] / size[1])
    assert abs(width - size[0] * scale) <= 1
    assert abs(height - size[1] * scale) <= 1


def test_256_colours_are_the_nearest_of_the_palette() -> None:
    pixels = np.array([[[255, 0, 0], [0, 0, 0], [255, 255, 255], [118, 118, 118], [95, 135, 175]]], np.uint8)
    assert halfblock.pack(pixels, "256").tolist() == [[196, 16, 231, 243, 67]]


class Spy(FrameView):
    """Remembers which regions were asked to be painted."""

    def __init__(self) -> None:
        super().__init__(color_mode="truecolor")
        self.painted: list[tuple[Region, ...]] = []
        self.watched = False

    def refresh(self, *regions: Region, **options: Any) -> Any:
        if getattr(self, "watched", False):
            self.painted.append(regions)
            assert not options.get("layout")
        return super().refresh(*regions, **options)


async def test_only_changed_rows_are_painted() -> None:
    app = Stage(Spy, bare=True)
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.widget
        assert isinstance(view, Spy)
        frame = np.full((20, 40, 3), 90, np.uint8)
        view.show(frame)
        view.watched = True
        view.show(frame.copy())
        assert view.painted == []
        other = frame.copy()
        other[4:6] = 200  # cell row 2
        other[13, 3] = 10  # cell row 6
        view.show(other)
        assert view.painted == [(Region(0, 2, 40, 1), Region(0, 6, 40, 1))]
        await pilot.pause()
        assert "#c8c8c8" in app.export_screenshot()


async def test_the_terminal_gets_the_ready_text_and_no_segment_is_made() -> None:
    app = Stage(lambda: FrameView(color_mode="truecolor"))
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.widget
        assert isinstance(view, FrameView)
        for shade in (40, 200):
            view.show(np.full((20, 36, 3), shade, np.uint8))
            await pilot.pause()
            update = app.screen._compositor.render_update(full=True)
            written = update.render_segments(app.console)  # type: ignore[union-attr]
            assert f"\x1b[48;2;{shade};{shade};{shade}m" in written
            strips = [strip for strip in view._strips if isinstance(strip, halfblock.PixelStrip)]
            assert len(strips) == 10
            assert all(strip._made is None or strip._made == [] for strip in strips)


async def test_a_frame_waits_while_the_terminal_is_behind_and_only_the_newest_is_painted() -> None:
    app = Stage(Spy, bare=True)
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.widget
        assert isinstance(view, Spy)
        behind = [5]
        app._driver._writer_thread = SimpleNamespace(  # type: ignore[union-attr]
            _queue=SimpleNamespace(qsize=lambda: behind[0])
        )
        assert not view.show(np.zeros((20, 40, 3), np.uint8))
        assert not view.show(np.full((20, 40, 3), 7, np.uint8))
        assert (view.shown, view.dropped) == (0, 1)
        behind[0] = 0
        for _ in range(200):
            if view.shown:
                break
            await asyncio.sleep(0.01)
            await pilot.pause()
        assert view.shown == 1
        assert view._cells is not None
        assert (view._cells & 0xFFFFFF == 0x070707).all()


async def test_pixel_size_is_told_and_text_and_notice_are_centred_and_harmless() -> None:
    app = Stage(lambda: FrameView(color_mode="truecolor"), bare=True)
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.widget
        assert isinstance(view, FrameView)
        assert view.pixel_size == (40, 20)
        view.show_text("\x1b[31mab\x1b[0m\x1b]0;title\x07\n\x9b2Jcd")
        lines = text_of(view)
        assert [line.strip() for line in lines if line.strip()] == ["ab", "2Jcd"]
        assert "\x1b" not in "".join(lines)
        view.show_notice("no frame: the environment has no renderer")
        assert "no renderer" in " ".join(" ".join(text_of(view)).split())
        view.show(None)
        assert not "".join(text_of(view)).strip()
        await pilot.pause()
        with pytest.raises(ValueError, match="H x W x 3"):
            view.show(np.zeros((4, 4), np.uint8))


async def test_without_colour_contrast_becomes_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Stage(FrameView, bare=True)
    async with app.run_test(size=(20, 10)) as pilot:
        view = app.widget
        assert isinstance(view, FrameView)
        assert view.color_mode == "ascii"
        frame = np.full((20, 20, 3), 255, np.uint8)
        frame[8:12, 8:12] = 0
        view.show(frame)
        lines = text_of(view)
        assert lines[0].strip() == ""
        assert lines[4].strip() == lines[5].strip() == "@@@@"
        await pilot.pause()
        app.export_screenshot()


@given(
    st.lists(st.tuples(st.integers(1, 70), st.integers(1, 30), st.integers(1, 50), st.integers(1, 50)), max_size=8),
    st.sampled_from(["truecolor", "256", "ascii"]),
)
@settings(derandomize=True, deadline=None, max_examples=6, phases=[Phase.generate])
def test_any_frame_in_any_pane(sizes: list[tuple[int, int, int, int]], mode: Any) -> None:
    async def run() -> None:
        app = Stage(lambda: FrameView(color_mode=mode), bare=True)
        async with app.run_test(size=(80, 30)) as pilot:
            view = app.widget
            assert isinstance(view, FrameView)
            for width, height, rows, columns in sizes:
                view.styles.width, view.styles.height = width, height
                view.show(np.full((rows, columns, 3), rows, np.uint8))
                await pilot.pause()
                view.show(np.full((rows, columns, 3), columns, np.uint8))
                lines = text_of(view)
                assert len(lines) == height
                assert all(len(line) == width for line in lines)

    asyncio.run(run())
