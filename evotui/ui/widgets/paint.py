"""Ink for line-API widgets: rich styles from the theme's component classes, remembered until the theme changes.

Owns the step from CSS (component classes, so that a theme or a user's stylesheet decides) to the rich styles that
segments carry, and the two things every widget does with foreign text: make it harmless and make it fit. Creating
styles is what costs in a live pane, so each is made once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|.?)")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff0-\uffff]"
)


def harmless(text: str) -> str:
    """Foreign text without escape sequences, control, bidirectional and zero-width characters; tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").expandtabs(4)
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def colours_only(text: str) -> str:
    """Foreign text whose only escape sequences are colours (SGR); control characters go as in `harmless`."""
    text = _ESCAPES.sub(lambda m: m[0] if m[0].startswith("\x1b[") and m[0].endswith("m") else "", text.expandtabs(4))
    return _CONTROLS.sub(lambda m: m[0] if m[0] == "\x1b" else "", text)


def one_line(text: str) -> str:
    """Harmless text on one line."""
    return " ".join(harmless(text).split())


def cut(text: str, width: int) -> str:
    """Text of at most `width` cells, with an ellipsis where something is missing."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def pad(text: str, width: int) -> str:
    """Text of exactly `width` cells: cut, or filled with spaces on the right."""
    text = cut(text, width)
    return text + " " * (width - cell_len(text))


def centre(text: str, width: int) -> str:
    """Text cut to `width` cells and centred in them."""
    text = cut(text, width)
    return pad(" " * ((width - cell_len(text)) // 2) + text, width)


class InkedWidget(Widget):
    """A widget that draws strips with inks named after its component classes."""

    _inks: dict[tuple[str, str, float], Style] | None = None

    def ink(self, name: str, tint: str = "", strength: float = 0.0) -> Style:
        """The style of component class `name`, on the pane's background or a tint of it.

        Args:
            name: a component class of the widget.
            tint: a component class whose text colour tints the background; "" for none.
            strength: share of that tint, 0..1.
        """
        if self._inks is None:
            self._inks = {}
        key = (name, tint, strength)
        style = self._inks.get(key)
        if style is None:
            style = self.get_component_rich_style(name)
            if self.app.native_ansi_color:
                # ANSI colours cannot be blended: a tint that means something becomes an underline.
                style += Style(underline=strength > 0.3 or None)
            elif tint:
                color = self.get_component_styles(tint).color
                ground = self.background_colors[1].blend(Color(color.r, color.g, color.b), strength)
                style += Style(bgcolor=ground.rich_color)
            self._inks[key] = style
        return style

    def notify_style_update(self) -> None:
        """The theme, a pseudo class or a stylesheet changed: forget the inks and draw anew."""
        super().notify_style_update()
        self._inks = None
        self.restyle()

    def restyle(self) -> None:
        """Drop whatever was drawn with old inks. Override and call `super().restyle()`."""
        self.refresh()


def runs(chars: Sequence[str], styles: Sequence[Style]) -> Iterable[Segment]:
    """Segments for cells of one character each, neighbours of one style joined: few segments are cheap segments."""
    start = 0
    for at in range(1, len(chars) + 1):
        if at == len(chars) or styles[at] is not styles[start]:
            yield Segment("".join(chars[start:at]), styles[start])
            start = at


def text_strip(parts: Iterable[tuple[str, Style]], width: int, fill: Style) -> Strip:
    """A strip of exactly `width` cells: texts with styles, cut on the right or filled with `fill`."""
    return Strip([Segment(text, style) for text, style in parts if text]).adjust_cell_length(width, fill)
