"""The transcript: follows, waits when scrolled, folds, and costs a screenful whatever its length."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Offset
from textual.selection import Selection

from evotui.ui.widgets.tail import Entry, Kind, TranscriptTail, wrap
from tests.ui.widgets.stage import ENTRIES, Stage, text_of


class TailStage(Stage):
    """Keeps picked entries."""

    def on_transcript_tail_entry_picked(self, message: TranscriptTail.EntryPicked) -> None:
        self.keep(message)


def notes(count: int, start: int = 0) -> list[Entry]:
    """One-line entries."""
    return [Entry(Kind.NOTE, f"entry {i}", float(i)) for i in range(start, start + count)]


async def test_every_kind_has_its_glyph_time_and_text_and_long_output_is_folded() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(70, 24)) as pilot:
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        assert "transcript appears here" in "\n".join(text_of(tail))
        tail.set_entries(ENTRIES)
        text = "\n".join(text_of(tail))
        for glyph in "·∴±▸└✕●◆":
            assert glyph in text
        assert "00:02  ± system/policy.py  linear" in text
        assert "1h01" in text
        assert "step   2" in text
        assert "step   3" not in text
        assert "⋯ 37 more lines" in text
        row = next(y for y, line in enumerate(text_of(tail)) if "more lines" in line)
        await pilot.click(TranscriptTail, offset=(12, row))
        await pilot.pause()
        tail.action_go_home()
        assert "step   3" in "\n".join(text_of(tail))


async def test_follows_the_end_and_waits_when_scrolled_up() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(50, 10)) as pilot:
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        entries = notes(50)
        tail.set_entries(entries)
        assert "entry 49" in text_of(tail)[-1]
        tail.focus()
        await pilot.press("up", "up")
        assert not tail.following
        assert "entry 47" in text_of(tail)[-1]
        entries += notes(3, 50)
        tail.set_entries(entries)
        assert "▼ 3 new" in text_of(tail)[-1]
        assert "entry 38" in text_of(tail)[0]
        await pilot.press("G")
        assert tail.following
        assert "entry 52" in text_of(tail)[-1]
        await pilot.press("g")
        assert "entry 0" in text_of(tail)[0]
        await pilot.press(*["pagedown"] * 6)
        assert tail.following  # whoever reaches the end follows again
        await pilot.press("k")
        entries += notes(1, 53)
        tail.set_entries(entries)
        await pilot.click(TranscriptTail, offset=(25, 9))
        assert "entry 53" in text_of(tail)[-1]
        tail.set_entries(notes(3, 900))  # another transcript
        assert "entry 900" in text_of(tail)[0]


async def test_scrolling_visits_every_line_once() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(40, 6)) as pilot:
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        tail.set_entries(
            [Entry(Kind.MESSAGE, f"m{i}\n" + "\n".join(f"m{i}.{k}" for k in range(i % 4))) for i in range(9)]
        )
        await pilot.pause()
        expected = [line for i in range(9) for line in (f"m{i}", *(f"m{i}.{k}" for k in range(i % 4)))]
        tail.action_go_home()
        seen = [text_of(tail)[0]]
        while not tail.following:
            tail.action_scroll_lines(1)
            seen.append(text_of(tail)[0])
        lines = [line.strip(" ●│┃") for line in [*seen, *text_of(tail)[1:]]]
        assert lines == expected
        back = [text_of(tail)[-1]]
        for _ in range(len(expected) - 6):
            tail.action_scroll_lines(-1)
            back.append(text_of(tail)[-1])
        assert [line.strip(" ●│┃") for line in back] == expected[5:][::-1]


class Counting(TranscriptTail):
    """Counts drawn entries and refuses layouts."""

    drawn = 0
    watched = False

    def _draw(self, index: int, entry: Entry) -> Any:
        self.drawn += 1
        return super()._draw(index, entry)

    def refresh(self, *regions: Any, **options: Any) -> Any:
        assert not (self.watched and options.get("layout"))
        return super().refresh(*regions, **options)


async def test_fifty_thousand_entries_cost_a_screenful_and_no_layout() -> None:
    app = TailStage(Counting, bare=True)
    async with app.run_test(size=(60, 20)) as pilot:
        tail = app.widget
        assert isinstance(tail, Counting)
        await pilot.pause()
        tail.watched = True
        entries = notes(50_000)
        tail.set_entries(entries)
        text_of(tail)
        assert tail.drawn <= 21
        for _ in range(20):
            entries += notes(10)
            tail.set_entries(entries)
            text_of(tail)
        assert tail.drawn <= 21 + 200
        tail.action_go_home()
        text_of(tail)
        tail.action_scroll_pages(3)
        text_of(tail)
        assert tail.drawn <= 21 + 200 + 100
        assert len(tail._blocks) <= 1000


async def test_a_streaming_entry_changes_in_place_and_then_becomes_one() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(60, 6)):
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        entries = notes(2)
        for words in ("a", "a b", "a b c"):
            tail.set_entries(entries, [Entry(Kind.THOUGHT, words, growing=True)])
            assert text_of(tail)[2].split("∴")[1].strip() == words + "▍"
        entries.append(Entry(Kind.THOUGHT, "a b c d"))
        tail.set_entries(entries)
        assert [line for line in text_of(tail) if "∴" in line] == [text_of(tail)[2]]
        assert "a b c d" in text_of(tail)[2]


async def test_the_selected_submission_is_marked_and_clicks_pick_it() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(70, 24)) as pilot:
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        tail.set_entries(ENTRIES)
        tail.highlight(2)
        marked = [line for line in text_of(tail) if line.startswith("▌")]
        assert len(marked) == 2
        assert "One field too far" in marked[0]
        row = text_of(tail).index(marked[1])
        await pilot.click(TranscriptTail, offset=(20, row))
        await pilot.pause()
        picked = app.messages[-1]
        assert isinstance(picked, TranscriptTail.EntryPicked)
        assert picked.entry.submission == 2


async def test_text_can_be_selected_across_entries() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(70, 24)):
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        tail.set_entries(notes(5))
        assert tail.get_selection(Selection(Offset(2, 4096), Offset(7, 3 * 4096))) == ("try 1\nentry 2\nentry 3", "\n")
        whole = tail.get_selection(Selection(None, None))
        assert whole is not None
        assert whole[0].splitlines() == [f"entry {i}" for i in range(5)]


async def test_a_title_is_selected_with_its_text_and_shown_as_chosen() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(70, 24)) as pilot:
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        tail.set_entries(ENTRIES[2:3])
        await pilot.pause()
        await pilot.mouse_down(TranscriptTail, offset=(10, 0))
        await pilot.hover(TranscriptTail, offset=(33, 0))
        await pilot.mouse_up(TranscriptTail, offset=(33, 0))
        await pilot.pause()
        assert app.screen.get_selected_text() == "system/policy.py  linear"
        chosen = app.screen.get_component_rich_style("screen--selection").bgcolor
        marked = [s.text for s in tail.render_line(0) if s.style and s.style.bgcolor == chosen]
        assert "".join(marked) == "system/policy.py  linear"


async def test_foreign_text_is_harmless() -> None:
    app = TailStage(TranscriptTail, bare=True)
    async with app.run_test(size=(60, 6)):
        tail = app.widget
        assert isinstance(tail, TranscriptTail)
        tail.set_entries(
            [Entry(Kind.TOOL_RESULT, "\x1b[31m[red]x[/red]\x1b]0;t\x07\x07\u202e\t!", title="\x1b[2Jrm\n-rf")]
        )
        text = "\n".join(text_of(tail))
        assert "[red]x[/red]" in text
        assert "rm -rf" in text
        assert not any(char in text for char in "\x1b\x07\u202e\t")


@pytest.mark.parametrize("limit", [1, 3, 100])
@given(text=st.text(alphabet="ab ü語\n", max_size=300), width=st.integers(2, 30))
@settings(derandomize=True, deadline=None)
def test_wrapping_loses_nothing_and_fits(text: str, width: int, limit: int) -> None:
    whole, none = wrap(text, width, 10_000)
    assert none == 0
    assert len(whole) >= text.count("\n") + 1
    assert all(cell_len(line) <= width for line in whole)
    assert "".join("".join(whole).split()) == "".join(text.split())
    lines, more = wrap(text, width, limit)
    assert lines == whole[:limit]
    assert (more > 0) == (len(whole) > limit)


def test_wrapping_a_megabyte_is_as_cheap_as_a_page() -> None:
    lines, more = wrap("x" * 10**6, 40, 3)
    assert lines == ["x" * 40] * 3
    assert more
    assert wrap("line\n" * 100_000, 40, 3) == (["line"] * 3, 100_000 - 3 + 1)


ENTRY = st.builds(
    Entry, st.sampled_from(Kind), st.text(max_size=200), st.none() | st.floats(), st.text(max_size=30),
    st.none() | st.integers(0, 3), st.booleans(),
)  # fmt: skip


@given(st.lists(st.tuples(st.lists(ENTRY, max_size=9), st.integers(1, 60), st.integers(1, 15)), max_size=8))
@settings(derandomize=True, deadline=None, max_examples=12, phases=[Phase.generate])
def test_any_transcript_in_any_pane(cases: list[tuple[list[Entry], int, int]]) -> None:
    async def run() -> None:
        app = TailStage(TranscriptTail, bare=True)
        async with app.run_test(size=(80, 20)) as pilot:
            tail = app.widget
            assert isinstance(tail, TranscriptTail)
            for entries, width, height in cases:
                tail.styles.width, tail.styles.height = width, height
                tail.set_entries(entries)
                tail.highlight(len(entries) % 3)
                await pilot.pause()
                for lines in (-3, 2, -100, 50):
                    tail.action_scroll_lines(lines)
                    assert all(strip.cell_length == width for strip in tail.render_lines(tail.size.region))

    asyncio.run(run())
