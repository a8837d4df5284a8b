"""What the terminal can show, as the interface will find it, and colours for one that has 256 of them."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color, ColorSystem, ColorType
from rich.console import Console

_DEPTHS = {"truecolor": "16 million colors", "256": "256 colors", "standard": "16 colors", "windows": "16 colors"}
_VIVID = 44
"""Between a colour's greatest and least part: from there it means something, and must not become grey."""
_rich_downgrade = Color.downgrade


def color_depth() -> str:
    """How many colors the console's own detection finds; "no colors" without a terminal or with one that has none."""
    return _DEPTHS.get(Console().color_system or "", "no colors")


def nearest(red: int, green: int, blue: int) -> int:
    """The colour of the 256 (16 to 255) that is nearest: of the cube, or of the grey ramp unless it is a vivid one.

    Else what ``halfblock.pack`` does for a picture, so that pictures and what is around them have the same grounds.
    """
    rgb = red, green, blue
    steps = [0 if v < 48 else 1 if v < 115 else (v - 35) // 40 for v in rgb]
    grey_index = min(max(int((sum(rgb) / 3 - 3) // 10), 0), 23)
    off_cube = sum((55 * bool(s) + 40 * s - v) ** 2 for s, v in zip(steps, rgb, strict=True))
    off_grey = sum((8 + 10 * grey_index - v) ** 2 for v in rgb)
    if off_grey < off_cube and max(rgb) - min(rgb) <= _VIVID:
        return 232 + grey_index
    return 16 + 36 * steps[0] + 6 * steps[1] + steps[2]


@lru_cache(maxsize=4096)
def _downgrade(color: Color, system: ColorSystem) -> Color:
    if system is ColorSystem.EIGHT_BIT and color.type is ColorType.TRUECOLOR and color.triplet is not None:
        return Color(color.name, ColorType.EIGHT_BIT, number=nearest(*color.triplet))
    return _rich_downgrade(color, system)


def keep_grounds() -> None:
    """Let rich take the nearest of 256 colours. Its own choice makes a nearly white ground pink, and nearly black ones
    all black, so that nothing stands out from anything. Only output with 256 colours changes."""
    Color.downgrade = _downgrade  # type: ignore[method-assign]
