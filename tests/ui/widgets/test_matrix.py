"""The matrix: names of entries take the room that there is, and no more."""

from __future__ import annotations

from evotui.ui.widgets.matrix import Box, Column, Matrix
from tests.ui.widgets.stage import Stage, text_of

ENTRIES = ("DeepSeek-V4-Pro-Max", "Gemini-3.1-Pro-Preview", "GPT-5.5")


async def test_names_of_entries_are_whole_where_there_is_room() -> None:
    boxes = (Box("finished", (1.0, 2.0, 3.0), 91.5, rank=2),)
    columns = [Column("search", boxes, 0.5)]
    columns += [Column(name, (Box(value=12.25, rank=1),), 1.0, foreign=True) for name in ENTRIES]
    app = Stage(Matrix, bare=True)
    async with app.run_test(size=(120, 10)) as pilot:
        matrix = app.widget
        assert isinstance(matrix, Matrix)
        matrix.show(["cartpole"], columns)
        for width, whole in ((200, True), (120, True), (94, False), (86, False)):
            await pilot.resize_terminal(width, 10)
            await pilot.pause()
            head = matrix.heading().text
            assert len(head) == len(text_of(matrix)[0]) == width
            assert "GPT-5.5" in head  # no column goes for a name
            assert all(name in head for name in ENTRIES) is whole, head
            assert head.count("…") == (0 if whole else 2 if width == 86 else 1), head
            ends = [at + 5 for at in range(width) if text_of(matrix)[0].startswith("12.25", at)]
            assert len(ends) == 3 and matrix.footing().text.count("1.000") == 3
            assert all(matrix.footing().text[:end].endswith("1.000") for end in ends)
