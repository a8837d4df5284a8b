"""The diff: both sides can be put together again from its rows, it folds, jumps and counts, and breaks on nothing."""

from __future__ import annotations

import asyncio

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from textual.geometry import Offset
from textual.selection import Selection

from evotui.ui.widgets import difflines, syntax
from evotui.ui.widgets.diff import ConstantRow, DiffInput, DiffStats, DiffView, FilePair
from tests.ui.widgets.stage import AFTER, BEFORE, DIFF, Stage, text_of

LINES = st.lists(
    st.sampled_from(["a = 1", "a = 2", "", "    b = 3.5", "def f(x):", "    return x", "# ü → é"]), max_size=25
)


class DiffStage(Stage):
    """Keeps what the view tells."""

    def on_diff_view_stats_changed(self, message: DiffView.StatsChanged) -> None:
        self.keep(message)


@given(LINES, LINES)
@settings(derandomize=True, deadline=None)
def test_both_sides_can_be_put_together_again(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    diff = difflines.compare(FilePair("p.py", before, after), 0, before, after)
    for rows in (diff.rows, difflines.unified(diff.rows)):
        left = [row.left for row in rows if row.left is not None]
        right = [row.right for row in rows if row.right is not None]
        assert left == list(range(len(diff.before)))
        assert right == list(range(len(diff.after)))
        for row in rows:
            if row.kind == "context":
                assert diff.before[row.left or 0] == diff.after[row.right or 0]
    assert diff.added - diff.removed == len(diff.after) - len(diff.before)
    assert diff.changed == (diff.before != diff.after)
    assert {row.hunk for row in diff.rows if row.hunk >= 0} == set(range(diff.hunks))


@given(LINES, LINES)
@settings(derandomize=True, deadline=None)
def test_folding_hides_only_unchanged_lines_and_counts_them(old: list[str], new: list[str]) -> None:
    before, after = "\n".join([*old, *["x"] * 12, *new]), "\n".join([*new, *["x"] * 12, *old])
    diff = difflines.compare(FilePair("p.py", before, after), 0, before, after)
    folded = difflines.fold(diff.rows, 0, frozenset(), True, diff.after)
    hidden = sum(int(row.text) for row in folded if row.kind == "fold")
    assert hidden + sum(row.kind != "fold" for row in folded) == len(diff.rows)
    assert [row for row in folded if row.kind not in ("fold", "context")] == [
        row for row in diff.rows if row.kind != "context"
    ]
    opened = difflines.fold(diff.rows, 0, frozenset(row.fold for row in folded), True, diff.after)
    assert opened == list(diff.rows)


def test_a_tuned_constant_stays_beside_its_old_self() -> None:
    before, after = "K = 1.0\nL = 2.0\n", "import math\nK = 1.5\nL = 2.5\n"
    diff = difflines.compare(FilePair("p.py", before, after), 0, before, after)
    pairs = [(row.left, row.right) for row in diff.rows if row.kind == "changed"]
    assert pairs == [(0, 1), (1, 2)]
    row = next(row for row in diff.rows if row.kind == "changed")
    assert ["K = 1.0"[a:b] for a, b in row.left_spans] == ["1.0"]
    assert ["K = 1.5"[a:b] for a, b in row.right_spans] == ["1.5"]


@given(st.text(max_size=60), st.text(max_size=60))
@settings(derandomize=True, deadline=None)
def test_emphasis_stays_inside_the_line(old: str, new: str) -> None:
    for line, spans in zip((old, new), difflines.emphasis(old, new), strict=True):
        assert all(0 <= a < b <= len(line) for a, b in spans)


@given(st.text(max_size=200))
@settings(derandomize=True, deadline=None)
def test_syntax_spans_stay_inside_their_lines(code: str) -> None:
    code = "".join(char for char in code if char.isprintable() or char == "\n")
    lines = code.split("\n")
    for line, spans in zip(lines, syntax.spans(code, "policy.py"), strict=False):
        assert all(0 <= a < b <= len(line) and kind in syntax.CATEGORIES for a, b, kind in spans)


def test_syntax_names_what_the_code_is_made_of() -> None:
    line = syntax.spans("def act(self):  # go\n    return 'x', 1.5\n", "policy.py")[0]
    kinds = {"def act(self):  # go"[a:b]: kind for a, b, kind in line}
    assert kinds["def"] == "keyword"
    assert kinds["act"] == "function"
    assert kinds["# go"] == "comment"
    assert syntax.spans("def act(): pass", "notes.md") == ()


async def test_changes_are_shown_with_constants_on_top_and_files_headed() -> None:
    app = DiffStage(lambda: DiffView(DIFF), bare=True)
    async with app.run_test(size=(100, 60)):
        lines = text_of(app.widget)
        text = "\n".join(lines)
        assert "3 constants" in lines[0]
        assert "K_ANGLE" in lines[1]
        assert "12 → 14.5" in " ".join(lines[1].split())
        assert "▲ +21 %" in lines[1]
        assert "new" in lines[3]
        assert any("system/policy.py" in line and "+8" in line and "−5" in line for line in lines)
        assert any("system/energy.py" in line and "new file" in line for line in lines)
        assert any("− K_ANGLE = 12.0" in line for line in lines)
        assert any("+ K_ANGLE = 14.5" in line for line in lines)
        assert "unchanged lines" in text
        assert "nothing to see here" not in text
        told = app.messages[-1]
        assert isinstance(told, DiffView.StatsChanged)
        assert told.stats == DiffStats(added=9, removed=5, hunks=3, files=2, hunk=0)


async def test_the_change_of_a_constant_is_shown_whole_or_not_at_all() -> None:
    rows = (
        ConstantRow("ANGULAR_VELOCITY_GAIN", 1.234, 2.36),
        ConstantRow("POSITION_GAIN", 12.05, 10.69),
        ConstantRow("BIAS", 1.0, 1.0123),
        ConstantRow("SCALE", 0.1, 23.45),
    )
    app = DiffStage(lambda: DiffView(DiffInput((), rows)), bare=True)
    whole = ("▲ +91 %", "▼ -11 %", "▲ +1.2 %", "▲ ×234")
    async with app.run_test(size=(70, 20)) as pilot:
        for width in (70, 58, 50, 40, 36, 30, 24):
            await pilot.resize_terminal(width, 20)
            lines = [line.rstrip() for line in text_of(app.widget)[1:5]]
            told = [line.endswith(words) for line, words in zip(lines, whole, strict=True)]
            assert all(told) if width >= 36 else not any(told) or all(told), lines
            assert all(told) or not any(arrow in line for line in lines for arrow in "▲▼%×"), lines
            name = lines[0].split()[0]
            assert name == "ANGULAR_VELOCITY_GAIN" or name.endswith("…"), lines


async def test_side_by_side_shows_old_left_and_new_right() -> None:
    app = DiffStage(lambda: DiffView(DIFF), bare=True)
    async with app.run_test(size=(100, 60)) as pilot:
        view = app.widget
        assert isinstance(view, DiffView)
        view.toggle_mode()
        await pilot.pause()
        line = next(line for line in text_of(view) if "K_ANGLE = " in line)
        left, right = line.split("│")
        assert "K_ANGLE = 12.0" in left
        assert "K_ANGLE = 14.5" in right


async def test_a_fold_opens_on_a_click_and_whole_files_can_be_shown() -> None:
    app = DiffStage(lambda: DiffView(DIFF), bare=True)
    async with app.run_test(size=(100, 60)) as pilot:
        view = app.widget
        assert isinstance(view, DiffView)
        row = next(y for y, line in enumerate(text_of(view)) if "unchanged lines" in line)
        await pilot.click(DiffView, offset=(10, row))
        await pilot.pause()
        assert "nothing to see here" in "\n".join(text_of(view))
        assert "unchanged lines" not in "\n".join(text_of(view))
        view.show(DiffInput((FilePair("p.py", BEFORE, BEFORE),), (), "s004", "s005"))
        assert "s005 and s004 have the same code" in "\n".join(text_of(view))
        view.toggle_changes_only()
        await pilot.pause()
        assert "class Policy" in "\n".join(text_of(view))


async def test_next_and_previous_hunk_bring_each_hunk_into_view_and_go_round() -> None:
    before = "\n".join(f"line_{i} = {i}" for i in range(120))
    after = before.replace("line_10 = 10", "line_10 = 11").replace("line_60 = 60", "x = 1").replace("line_119", "last")
    app = DiffStage(lambda: DiffView(DiffInput((FilePair("p.py", before, after),))), bare=True)
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.widget
        assert isinstance(view, DiffView)
        view.changes_only = False
        view.focus()
        await pilot.pause()
        seen = []
        for key in ("n", "n", "n", "n", "N"):
            await pilot.press(key)
            await pilot.pause()
            seen.append(view.stats.hunk)
            needle = {1: "line_10 = 11", 2: "x = 1", 3: "last = 119"}[view.stats.hunk]
            assert needle in "\n".join(text_of(view))
        assert seen == [1, 2, 3, 1, 3]


async def test_long_lines_scroll_and_text_can_be_selected() -> None:
    long = "value = " + " + ".join(f"term_{i}" for i in range(30))
    app = DiffStage(lambda: DiffView(DiffInput((FilePair("p.py", "a = 1\n", f"a = 1\n{long}\n"),))), bare=True)
    async with app.run_test(size=(50, 8)) as pilot:
        view = app.widget
        assert isinstance(view, DiffView)
        assert text_of(view)[1].rstrip().endswith("›")
        view.scroll_to(x=60, animate=False)
        await pilot.pause()
        assert "term_9" in text_of(view)[1]
        assert "value" not in text_of(view)[1]
        assert view.get_selection(Selection(Offset(0, 0), Offset(5, 1))) == ("a = 1\nvalue", "\n")


async def test_large_comparisons_are_made_apart() -> None:
    before = "\n".join(f"line_{i} = {i}" for i in range(3000))
    diff = DiffInput((FilePair("p.py", before, before.replace("line_2000 ", "other ")),))
    app = DiffStage(DiffView, bare=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.widget
        assert isinstance(view, DiffView)
        assert "the first edit appears here" in "\n".join(text_of(view))
        view.show(diff)
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert view.stats == DiffStats(1, 1, 1, 1, 0)
        assert "other = 2000" in "\n".join(text_of(view))


async def test_foreign_text_is_harmless() -> None:
    evil = "a = '\x1b[31m[bold]red[/bold]'\x00\r\nb\t= 1\u202e\n"
    app = DiffStage(lambda: DiffView(DiffInput((FilePair("p\x1b[2J.py", None, evil),))), bare=True)
    async with app.run_test(size=(60, 8)):
        text = "\n".join(text_of(app.widget))
        assert "[bold]red[/bold]" in text
        assert not any(char in text for char in "\x1b\x00\r\t\u202e")


FILES = st.lists(
    st.builds(FilePair, st.sampled_from(["policy.py", "notes.txt", ""]), st.none() | st.text(), st.none() | st.text()),
    max_size=3,
).map(tuple)
NUMBERS = st.none() | st.floats()
DIFFS = st.builds(
    DiffInput, FILES, st.lists(st.builds(ConstantRow, st.text(max_size=9), NUMBERS, NUMBERS), max_size=12).map(tuple)
)


@given(st.lists(st.tuples(DIFFS, st.integers(1, 90), st.integers(1, 20), st.booleans(), st.booleans()), max_size=8))
@settings(derandomize=True, deadline=None, max_examples=12, phases=[Phase.generate])
def test_any_diff_in_any_pane(cases: list[tuple[DiffInput, int, int, bool, bool]]) -> None:
    async def run() -> None:
        app = DiffStage(DiffView, bare=True)
        async with app.run_test(size=(100, 30)) as pilot:
            view = app.widget
            assert isinstance(view, DiffView)
            for diff, width, height, split, folded in cases:
                view.styles.width, view.styles.height = width, height
                view.mode = "side-by-side" if split else "unified"
                view.changes_only = folded
                view.show(diff)
                await pilot.pause()
                view.next_hunk()
                view.previous_hunk()
                await pilot.pause()
                assert all(strip.cell_length == width for strip in view.render_lines(view.size.region))

    asyncio.run(run())


def test_the_fixture_differs() -> None:
    assert BEFORE != AFTER
