"""`FrameView`: an environment's frame in half-block pixels, or its text drawing, or the reason why there is none.

Owns when a frame is painted: only rows that changed, and not at all while the terminal is behind (the newest frame
waits, none is queued). `halfblock` owns how.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from evotui.ui.widgets import halfblock
from evotui.ui.widgets.paint import InkedWidget, centre, colours_only, one_line, text_strip

ColorMode = Literal["auto", "truecolor", "256", "ascii"]

_RETRY_SECONDS = 1 / 30


def writes_waiting(driver: Any) -> int:
    """Writes that the terminal has not taken yet; 0 for drivers without a queue (tests, the web)."""
    queue = getattr(getattr(driver, "_writer_thread", None), "_queue", None)
    return queue.qsize() if queue is not None else 0


class FrameView(InkedWidget):
    """Shows frames at a watchable speed. A cell is 1 x 2 pixels; a frame is centred, its aspect kept.

    Give it no border or padding of its own (put them on its parent): its rows go to the terminal as they are.
    """

    DEFAULT_CSS = """
    FrameView {
        width: 1fr; height: 1fr;
        & > .frame--text { color: $foreground; }
        & > .frame--notice { color: $text-muted; }
        & > .frame--notice-glyph { color: $text-disabled; }
    }
    """
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"frame--text", "frame--notice", "frame--notice-glyph"}

    class PixelSizeChanged(Message):
        """The pane was resized: frames should be sent to fit `pixel_size` (width, height) from now on."""

        def __init__(self, view: FrameView, pixel_size: tuple[int, int]) -> None:
            super().__init__()
            self.view = view
            self.pixel_size = pixel_size

        @property
        def control(self) -> FrameView:
            return self.view

    def __init__(
        self,
        *,
        color_mode: ColorMode = "auto",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._color_mode: ColorMode = color_mode
        self.shown = 0
        """Frames painted so far."""
        self.dropped = 0
        """Frames given up for a newer one because the terminal was behind."""
        self._pixels: np.ndarray | None = None
        self._cells: np.ndarray | None = None
        self._strips: list[Strip] = []
        self._text = ""
        self._notice = ""
        self._retry: Timer | None = None

    @property
    def pixel_size(self) -> tuple[int, int]:
        """Width and height in pixels that fill the pane: what the renderer should fit its frames into."""
        width, height = self.size
        return width, 2 * height

    @property
    def color_mode(self) -> ColorMode:
        """How colours are written; "auto" resolves to what the terminal can do. May be set at any time."""
        if self._color_mode != "auto":
            return self._color_mode
        if self.app.no_color:
            return "ascii"
        return "256" if self.app.console.color_system in ("256", "standard", "windows") else "truecolor"

    @color_mode.setter
    def color_mode(self, mode: ColorMode) -> None:
        self._color_mode = mode
        self.restyle()

    def show(self, pixels: np.ndarray | None) -> bool:
        """Show a frame (uint8, H x W x 3), of any size; None clears.

        Returns False if the terminal is behind. The frame then waits, and a newer one takes its place.
        """
        if pixels is not None and (pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size):
            raise ValueError(f"a frame is H x W x 3, not {pixels.shape}")
        self._text = self._notice = ""
        waiting = self._retry is not None
        self._pixels = pixels
        if pixels is not None and self.is_attached and writes_waiting(self.app._driver) > 1:
            self.dropped += waiting
            if not waiting:
                self._retry = self.set_timer(_RETRY_SECONDS, self._try_again)
            return False
        self._stop_waiting()
        self._paint()
        return True

    def show_text(self, text: str) -> None:
        """Show an environment's text drawing, centred as one block. ANSI colours stay, other escapes go."""
        self._only(text=text)

    def show_notice(self, text: str) -> None:
        """Show one quiet sentence, such as "no frame: the environment has no renderer"."""
        self._only(notice=one_line(text))

    def _only(self, text: str = "", notice: str = "") -> None:
        self._stop_waiting()
        self._pixels = None
        self._text, self._notice = text, notice
        self._paint()

    def _stop_waiting(self) -> None:
        if self._retry is not None:
            self._retry.stop()
            self._retry = None

    def _try_again(self) -> None:
        self._retry = None
        if self._pixels is not None:
            self.show(self._pixels)

    def restyle(self) -> None:
        self._cells = None
        if self.is_attached:
            self._paint()
        super().restyle()

    def on_resize(self, event: events.Resize) -> None:
        self._cells = None
        self._paint()
        self.post_message(self.PixelSizeChanged(self, self.pixel_size))

    def _paint(self) -> None:
        width, height = self.size
        if not self.is_attached or not width or not height:
            return
        if self._pixels is None:
            self._cells = None
            self._strips = self._text_strips() if self._text else self._notice_strips() if self._notice else []
            self.refresh()
            return
        self.shown += 1
        mode = self.color_mode
        pixels = halfblock.fit(np.ascontiguousarray(self._pixels, np.uint8), self.pixel_size)
        if mode == "ascii":
            self._cells = None
            lines = [Text(line) for line in halfblock.ascii_rows(pixels)]
            self._strips = self._block(lines)
            self.refresh()
        elif mode == "256" or mode == "truecolor":
            self._paint_cells(pixels, mode)

    def _paint_cells(self, pixels: np.ndarray, depth: halfblock.Depth) -> None:
        width, height = self.size
        cells = halfblock.letterbox(halfblock.pack(pixels, depth), (width, height), self._ground(depth))
        old, self._cells = self._cells, cells
        if old is None or old.shape != cells.shape or len(self._strips) != height:
            self._strips = [
                halfblock.PixelStrip(row, text, depth)
                for row, text in zip(cells, halfblock.encode(cells, depth), strict=True)
            ]
            self.refresh()
            return
        changed = np.flatnonzero((cells != old).any(axis=1))
        if not len(changed):
            return
        texts = halfblock.encode(np.ascontiguousarray(cells[changed]), depth)
        for row, text in zip(changed.tolist(), texts, strict=True):
            self._strips[row] = halfblock.PixelStrip(cells[row], text, depth)
        breaks = np.flatnonzero(np.diff(changed) > 1) + 1
        self.refresh(*(Region(0, int(r[0]), width, len(r)) for r in np.split(changed, breaks)))

    def _ground(self, depth: halfblock.Depth) -> int:
        ground = self.background_colors[1]
        if ground.ansi is not None or self.app.native_ansi_color:
            return halfblock.TERMINAL_DEFAULT
        return int(halfblock.pack(np.array([[ground.rgb]], np.uint8), depth)[0, 0])

    def _text_strips(self) -> list[Strip]:
        return self._block([Text.from_ansi(colours_only(line)) for line in self._text.splitlines()])

    def _block(self, lines: list[Text]) -> list[Strip]:
        """Lines as one centred block, cut to the pane."""
        width, height = self.size
        ink = self.ink("frame--text")
        block = max((cell_len(line.plain) for line in lines), default=0)
        left, top = max(0, (width - block) // 2), max(0, (height - len(lines)) // 2)
        margin = Segment(" " * left, ink)
        strips = [Strip.blank(width, ink)] * top
        for line in lines[: height - top]:
            parts = [Segment(s.text, ink + (s.style or Style())) for s in line.render(self.app.console) if s.text]
            strips.append(Strip([margin, *parts] if left else parts).adjust_cell_length(width, ink))
        return strips

    def _notice_strips(self) -> list[Strip]:
        width, height = self.size
        ink, glyph = self.ink("frame--notice"), self.ink("frame--notice-glyph")
        lines = [str(line) for line in Text(self._notice).wrap(self.app.console, max(1, min(width - 4, 60)))]
        lines = lines[: max(1, height)]
        top = max(0, (height - len(lines)) // 2)
        strips = [Strip.blank(width, ink)] * top
        if top > 1:
            strips[top - 2] = text_strip([(" " * ((width - 1) // 2) + "◌", glyph)], width, glyph)
        for line in lines:
            strips.append(text_strip([(centre(line.rstrip(), width), ink)], width, ink))
        return strips

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.ink("frame--text"))

    def render_lines(self, crop: Region) -> list[Strip]:
        # Rows with their text ready go to the compositor as they are: the usual way would rebuild each from segments.
        if self._cells is None or self.styles.gutter != (0, 0, 0, 0) or len(self._strips) < crop.bottom:
            return super().render_lines(crop)
        strips = self._strips[crop.y : crop.bottom]
        start, end = crop.column_span
        return strips if (start, end) == (0, self.size.width) else [strip.crop(start, end) for strip in strips]
