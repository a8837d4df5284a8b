"""The interface without a single colour, where ``NO_COLOR`` asks for that: grounds that mean something become reverse
video or an underline, faint inks become dim. What is drawn is the ``contrast`` theme, whose few grounds are far apart.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import ANSIToTruecolor, LineFilter, Monochrome, NoColor

_REVERSE, _UNDERLINE = 5.0, 1.5
"""Contrast with black from which a ground is a cursor, and from which it marks something, as changed words do."""
_FAINT = 10.0
"""Contrast of a grey with its ground below which it is dim."""
_GREY = 24
"""Between the greatest and the least part of a grey; an ink with more, such as that of an error, is never dim."""


def _luminance(color: RichColor | None) -> float:
    """Relative luminance, 0 to 1; a colour that is not known counts as the ground, black."""
    if color is None or color.triplet is None:
        return 0.0
    parts = [v / 255 for v in color.triplet]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@lru_cache(maxsize=4096)
def colorless(style: Style) -> Style:
    """A style without colours; what they said is said by reverse, underline and dim."""
    ground = _luminance(style.bgcolor)
    contrast = _contrast(ground, 0.0)
    ink = None if style.color is None else style.color.triplet
    grey = ink is not None and max(ink) - min(ink) <= _GREY
    said = Style(
        reverse=True if contrast >= _REVERSE and not style.reverse else None,
        underline=True if _UNDERLINE <= contrast < _REVERSE else None,
        dim=True if grey and contrast < _UNDERLINE and _contrast(_luminance(style.color), ground) < _FAINT else None,
    )
    plain = style.without_color + said
    return plain + Style.from_meta(style.meta) if style.meta else plain


class Colorless(LineFilter):
    """No colour leaves the application, not even a grey."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else colorless(style), control) for text, style, control in segments
        ]


def instead(filters: list[LineFilter]) -> list[LineFilter]:
    """Textual's filters with :class:`Colorless` in place of those that turn colours into others."""
    return [f for f in filters if not isinstance(f, ANSIToTruecolor | Monochrome | NoColor)] + [Colorless()]
