"""Colours for terminals that have 256 of them."""

from __future__ import annotations

import numpy as np
import pytest
from rich.color import Color, ColorSystem, ColorType
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.theme import Theme

from evotui.ui.terminal import keep_grounds, nearest
from evotui.ui.theme import THEMES
from evotui.ui.widgets import halfblock


def shown(index: int) -> tuple[int, int, int]:
    """What the terminal shows for one of its 256 colours."""
    return Color(str(index), ColorType.EIGHT_BIT, number=index).get_truecolor(DEFAULT_TERMINAL_THEME)


def test_a_color_that_is_there_stays() -> None:
    for index in range(16, 256):
        assert shown(nearest(*shown(index))) == shown(index)


def test_a_vivid_color_does_not_become_grey() -> None:
    red, green, blue = shown(nearest(31, 80, 28))
    assert green > max(red, blue)


def test_pictures_and_grounds_take_the_same() -> None:
    draws = np.random.default_rng(0)
    some = np.clip(draws.integers(0, 256, (1, 2000, 1)) + draws.integers(-20, 21, (1, 2000, 3)), 0, 255)
    packed = halfblock.pack(some.astype(np.uint8), "256")[0]
    assert [nearest(*map(int, rgb)) for rgb in some[0]] == packed.tolist()


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_grounds_have_no_tint_and_stand_apart(theme: Theme) -> None:
    keep_grounds()
    grounds = []
    for name in ("background", "panel"):
        color = Color.parse(getattr(theme, name)).downgrade(ColorSystem.EIGHT_BIT)
        assert color.number is not None and color.number >= 16
        grounds.append(shown(color.number))
    assert all(max(ground) - min(ground) <= 10 for ground in grounds)
    assert grounds[0] != grounds[1]


def test_other_depths_are_left_as_they_are() -> None:
    keep_grounds()
    color = Color.parse("#eceae4")
    assert color.downgrade(ColorSystem.TRUECOLOR) == color
    assert color.downgrade(ColorSystem.STANDARD).type is ColorType.STANDARD
