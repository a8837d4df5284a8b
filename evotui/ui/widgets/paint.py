"""Ink for line-API widgets: rich styles from the theme's component classes, remembered until the theme changes.

Owns the step from CSS (component classes, so that a theme or a user's stylesheet decides) to the `rich` styles that
segments carry. Creating styles is what costs in a live pane, so each is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget


class InkedWidget(Widget):
    """A widget that draws strips with inks named after its component classes."""

    _inks: dict[tuple[str, str, float], Style] | None = None

    def ink(self, name: str, over: str = "", strength: float = 0.0) -> Style:
        """The style of component class `name`.

        Args:
            name: a component class of the widget.
            over: a component class whose *text* colour tints the background.
            strength: share of that tint, 0..1.
        """
        if self._inks is None:
            self._inks = {}
        key = (name, over, strength)
        style = self._inks.get(key)
        if style is None:
            style = self.get_component_rich_style(name)
            if over:
                ground = self.background_colors[1]
                tint = self.get_component_styles(over).color
                if not self.app.native_ansi_color:
                    style += Style(bgcolor=ground.blend(Color(tint.r, tint.g, tint.b), strength).rich_color)
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


def spans(cells: Iterable[tuple[str, Style]]) -> Iterator[Segment]:
    """Join neighbours of one style: few segments are cheap segments."""
    text = ""
    last: Style | None = None
    for char, style in cells:
        if style is last:
            text += char
            continue
        if text:
            yield Segment(text, last)
        text, last = char, style
    if text:
        yield Segment(text, last)


def line(parts: Sequence[tuple[str, Style]], width: int, fill: Style) -> Strip:
    """A strip of exactly `width` cells from texts with styles; cut on the right or filled with `fill`."""
    strip = Strip([Segment(text, style) for text, style in parts if text])
    return strip.adjust_cell_length(width, fill) if strip.cell_length <= width else strip.crop(0, width)
