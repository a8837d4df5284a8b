"""What the terminal can show, as the interface will find it."""

from __future__ import annotations

from rich.console import Console

_DEPTHS = {"truecolor": "16 million colors", "256": "256 colors", "standard": "16 colors", "windows": "16 colors"}


def color_depth() -> str:
    """How many colors the console's own detection finds; "no colors" without a terminal or with one that has none."""
    return _DEPTHS.get(Console().color_system or "", "no colors")
