"""Half-block pixels: from an RGB array to terminal rows, as cheap as they get.

Owns the packing of two pixels into a cell, the run-length encoded ANSI text of a row, and `PixelStrip`, a strip whose
text is ready and whose segments are made only for those who ask (a screenshot, a crop, an overlap). Making segments
and styles is what costs in a live frame; writing text is cheap.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from PIL import Image
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Depth = Literal["truecolor", "256"]

TERMINAL_DEFAULT = 1 << 24
"""Packed colour that means the terminal's own background (themes that use ANSI colours)."""
_SHIFT = 32
_MASK = (1 << _SHIFT) - 1
_RAMP = " .:-=+*#%@"

_foreground: dict[tuple[Depth, int], str] = {}
_background: dict[tuple[Depth, int], str] = {}
_styles: dict[tuple[Depth, int], Style] = {}


def fit_size(width: int, height: int, into: tuple[int, int]) -> tuple[int, int]:
    """The largest size of the same aspect that fits `into` (width, height), at least 1 x 1."""
    scale = min(into[0] / width, into[1] / height)
    return max(1, min(into[0], round(width * scale))), max(1, min(into[1], round(height * scale)))


def fit(pixels: np.ndarray, into: tuple[int, int]) -> np.ndarray:
    """Resize an RGB frame (uint8, H x W x 3) to fit `into`: box filter down, nearest up."""
    height, width = pixels.shape[:2]
    size = fit_size(width, height, into)
    if size == (width, height):
        return pixels
    smaller = size[0] < width or size[1] < height
    image = Image.fromarray(pixels).resize(size, Image.Resampling.BOX if smaller else Image.Resampling.NEAREST)
    return np.asarray(image)


def pack(pixels: np.ndarray, depth: Depth) -> np.ndarray:
    """RGB (uint8, H x W x 3) to one int64 a pixel: 0xRRGGBB, or the index in the 256-colour palette."""
    rgb = pixels.astype(np.int64)
    if depth == "truecolor":
        return (rgb[..., 0] << 16) | (rgb[..., 1] << 8) | rgb[..., 2]
    # The palette's cube has the levels 0, 95, 135, ..., 255; its grey ramp 8, 18, ..., 238. The nearer one wins.
    step = np.where(rgb < 48, 0, np.where(rgb < 115, 1, (rgb - 35) // 40))
    level = np.where(step == 0, 0, 55 + 40 * step)
    grey_index = np.clip((rgb.mean(axis=-1) - 3) // 10, 0, 23).astype(np.int64)
    grey = 8 + 10 * grey_index
    off_cube = ((level - rgb) ** 2).sum(axis=-1)
    off_grey = ((grey[..., None] - rgb) ** 2).sum(axis=-1)
    return np.where(off_grey < off_cube, 232 + grey_index, 16 + 36 * step[..., 0] + 6 * step[..., 1] + step[..., 2])


def letterbox(packed: np.ndarray, size: tuple[int, int], ground: int) -> np.ndarray:
    """Centre packed pixels in cells of `size` (width, height): int64 rows x columns, top pixel in the high half."""
    width, rows = size
    canvas = np.full((2 * rows, width), ground, np.int64)
    height, wide = packed.shape
    top, left = (2 * rows - height) // 2 & ~1, (width - wide) // 2
    canvas[top : top + height, left : left + wide] = packed
    return (canvas[0::2] << _SHIFT) | canvas[1::2]


def encode(cells: np.ndarray, depth: Depth) -> list[str]:
    """ANSI text of each row of cells. numpy finds the runs, Python walks over the runs only."""
    rows, width = cells.shape
    starts = np.ones((rows, width), bool)
    np.not_equal(cells[:, 1:], cells[:, :-1], out=starts[:, 1:])
    index = np.flatnonzero(starts)
    runs = cells.ravel()[index]
    tops, bottoms = (runs >> _SHIFT).tolist(), (runs & _MASK).tolist()
    lengths = np.diff(index, append=rows * width).tolist()
    edges = np.searchsorted(index, np.arange(0, (rows + 1) * width, width)).tolist()
    if len(_foreground) + len(_background) > 100_000:
        _foreground.clear()
        _background.clear()
    lines: list[str] = []
    for row in range(rows):
        out: list[str] = []
        fore = back = -1
        for run in range(edges[row], edges[row + 1]):
            top, bottom, glyph = tops[run], bottoms[run], "▀"
            if top == TERMINAL_DEFAULT and bottom != top:  # the default colour exists as a background only
                top, bottom, glyph = bottom, top, "▄"
            if bottom != back:
                out.append(_background.get((depth, bottom)) or _background_code(depth, bottom))
                back = bottom
            if top == bottom:
                out.append(" " * lengths[run])
                continue
            if top != fore:
                out.append(_foreground.get((depth, top)) or _foreground_code(depth, top))
                fore = top
            out.append(glyph * lengths[run])
        out.append("\x1b[0m")
        lines.append("".join(out))
    return lines


def ascii_rows(pixels: np.ndarray) -> list[str]:
    """Contrast as characters, for terminals without colour: one line of text for two rows of pixels.

    What is drawn is the distance from the commonest luminance, so that an empty background stays empty.
    """
    if pixels.shape[0] % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    luminance = pixels.astype(np.float64) @ (0.299, 0.587, 0.114)
    cells = (luminance[0::2] + luminance[1::2]) / 2
    distance = np.abs(cells - np.bincount(cells.ravel().astype(int)).argmax())
    levels = np.ceil(distance / max(float(distance.max()), 16.0) * (len(_RAMP) - 1)).astype(int)
    levels[distance < 4] = 0
    return ["".join(_RAMP[level] for level in row) for row in levels.tolist()]


class PixelStrip(Strip):
    """A row of cells with its ANSI text ready; segments are made when somebody asks for them."""

    __slots__ = ("_cells", "_depth", "_made")

    def __init__(self, cells: np.ndarray, ansi: str, depth: Depth) -> None:
        self._cells = cells
        self._depth: Depth = depth
        super().__init__((), len(cells))
        self._made: list[Segment] | None = None
        self._render_cache = ansi

    @property
    def _segments(self) -> list[Segment]:
        if self._made is None:
            self._made = segments(self._cells, self._depth)
        return self._made

    @_segments.setter
    def _segments(self, made: list[Segment]) -> None:
        self._made = made


def segments(cells: np.ndarray, depth: Depth) -> list[Segment]:
    """The segments of one row of cells."""
    if not len(cells):
        return []
    starts = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1))
    lengths = np.diff(starts, append=len(cells)).tolist()
    made = []
    for cell, length in zip(cells[starts].tolist(), lengths, strict=True):
        top, bottom = cell >> _SHIFT, cell & _MASK
        glyph = "▄" if top == TERMINAL_DEFAULT and bottom != top else " " if top == bottom else "▀"
        made.append(Segment(glyph * length, _style(depth, cell)))
    return made


def _style(depth: Depth, cell: int) -> Style:
    style = _styles.get((depth, cell))
    if style is None:
        if len(_styles) > 50_000:
            _styles.clear()
        top, bottom = cell >> _SHIFT, cell & _MASK
        if top == TERMINAL_DEFAULT:
            top, bottom = bottom, top
        style = _styles[depth, cell] = Style.from_color(_color(depth, top), _color(depth, bottom))
    return style


def _color(depth: Depth, packed: int) -> Color:
    if packed == TERMINAL_DEFAULT:
        return Color.default()
    if depth == "256":
        return Color.from_ansi(packed)
    return Color.from_rgb(packed >> 16, packed >> 8 & 255, packed & 255)


def _code(depth: Depth, packed: int, layer: int) -> str:
    if packed == TERMINAL_DEFAULT:
        return f"\x1b[{layer + 1}m"
    if depth == "256":
        return f"\x1b[{layer};5;{packed}m"
    return f"\x1b[{layer};2;{packed >> 16};{packed >> 8 & 255};{packed & 255}m"


def _foreground_code(depth: Depth, packed: int) -> str:
    code = _foreground[depth, packed] = _code(depth, packed, 38)
    return code


def _background_code(depth: Depth, packed: int) -> str:
    code = _background[depth, packed] = _code(depth, packed, 48)
    return code
