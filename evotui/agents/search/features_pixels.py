"""What pictures in the feedback say: where the world, the controlled thing and the gauges are, which ground it is on.

Pure functions of picture sequences and actions. They take the view to be from above or behind and to move with the
thing that is controlled, so that this thing stays at its place in the picture; where that is not so, nothing is found.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evotui.agents.search.feedback import Episode
from evotui.agents.search.spaces import Situation

MOST_PICTURES = 1200
"""Pictures of one episode that are read; they take 28 kB each at 96 × 96."""
STILL = 0.8
"""A pixel that keeps its colour in this share of the pictures belongs to the thing itself or to a strip of gauges."""
SAME = 12
"""Colours that differ by less than this in every channel are one colour."""
LEAST_FIT = 0.5
"""Least correlation of a gauge with the motion of the picture."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A part of the picture, rows ``top:bottom`` and columns ``left:right``, whose brightness tells the speed.

    ``fastest``: its mean brightness (0 to 255) at the highest speed seen; ``fit``: correlation with the motion.
    """

    top: int
    bottom: int
    left: int
    right: int
    fastest: float
    fit: float


@dataclass(frozen=True, slots=True)
class Sight:
    """What was learned from pictures of ``shape`` (rows, columns, channels).

    The world is in rows ``top:bottom``; the thing's front is at ``row``, its middle at ``column``. ``ground``: colour
    it starts on; ``contrast``: largest channel difference to the nearest other common colour. ``steer``, ``gas`` and
    ``brake`` are action dimensions (−1: none; brake = gas: its lower side brakes); ``turn`` is +1 where higher values
    of ``steer`` turn right. ``fastest``: the mean change of a picture per step at high speed, where there is no gauge.
    """

    shape: tuple[int, int, int]
    top: int
    bottom: int
    row: int
    column: float
    ground: tuple[int, ...]
    contrast: float
    steer: int
    turn: float
    gas: int
    brake: int
    gauge: Gauge | None
    fastest: float


def read_pictures(folder: Path, shape: Sequence[int]) -> np.ndarray | None:
    """An episode's pictures [T, rows, columns, channels] uint8, None where there are no readable ones of ``shape``."""
    for name in ("observations.npz", "observations.npy"):
        try:
            stored = np.load(folder / name, allow_pickle=False)
            found = stored if isinstance(stored, np.ndarray) else stored[stored.files[0]]
        except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile):
            continue  # missing or torn: the other name, or less evidence
        if found.dtype == np.uint8 and found.shape[1:] == tuple(shape) and len(found):
            return np.asarray(found[:MOST_PICTURES])
    return None


def flow(pictures: np.ndarray) -> np.ndarray:
    """How the scene moves from each picture to the next: [T−1, 2] pixels right and down, by least squares on gradients.

    Good for small motions only, of which it tells direction and order well enough.
    """
    grey = pictures.mean(axis=3, dtype=np.float32)
    rows, columns = grey.shape[1] // 3 * 3, grey.shape[2] // 3 * 3
    # cells of 3 × 3 pixels: smooth enough for gradients, and a ninth of the work
    small = grey[:, :rows, :columns].reshape(len(grey), rows // 3, 3, columns // 3, 3).mean(axis=(2, 4))
    middle = 0.5 * (small[1:] + small[:-1])
    change = (small[1:] - small[:-1])[:, 1:-1, 1:-1]
    right = 0.5 * (middle[:, 1:-1, 2:] - middle[:, 1:-1, :-2])
    down = 0.5 * (middle[:, 2:, 1:-1] - middle[:, :-2, 1:-1])

    def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray((a * b).sum(axis=(1, 2), dtype=np.float64))

    xx, yy, xy = dot(right, right) + 1.0, dot(down, down) + 1.0, dot(right, down)
    xt, yt = -dot(right, change), -dot(down, change)
    size = xx * yy - xy * xy
    return 3.0 * np.stack([(yy * xt - xy * yt) / size, (xx * yt - xy * xt) / size], axis=1)


def trailing_mean(series: np.ndarray, steps: int) -> np.ndarray:
    """The mean over the last ``steps`` rows at each row of ``series`` [T, k] (fewer rows at the beginning)."""
    total = np.vstack([np.zeros((1, series.shape[1])), np.cumsum(series, axis=0)])
    at = np.arange(1, len(series) + 1)
    first = np.maximum(at - steps, 0)
    return np.asarray((total[at] - total[first]) / (at - first)[:, None])


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's; 0 where one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).mean() * (b * b).mean()))
    return float((a * b).mean()) / size if size > 1e-12 else 0.0


def still_pixels(pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(share of the pictures in which a pixel has its usual colour [rows, columns], that colour [rows, columns, c])."""
    usual = np.median(pictures, axis=0)
    return (np.abs(pictures - usual.astype(np.int16)).max(axis=3) < SAME).mean(axis=0), usual


def world_rows(still: np.ndarray) -> tuple[int, int]:
    """(first, last + 1) row of the world: without the strips at the edges in which most pixels never change."""
    strip = (still >= STILL).mean(axis=1) > 0.5
    top, bottom = 0, len(strip)
    while top < bottom and strip[top]:
        top += 1
    while bottom > top and strip[bottom - 1]:
        bottom -= 1
    return (top, bottom) if bottom - top >= len(strip) // 2 else (0, len(strip))


def own_place(
    still: np.ndarray, usual: np.ndarray, colours: Sequence[np.ndarray], top: int, bottom: int
) -> tuple[int, float] | None:
    """(row of the front, column of the middle) of what keeps its place in the world and has none of the world's common
    ``colours``; None where there is no such thing. ``usual`` [rows, columns, channels]: each pixel's colour."""
    strange = still >= STILL
    for colour in colours:
        strange &= np.abs(usual - colour).max(axis=2) > 2 * SAME
    rows, columns = np.nonzero(strange[top:bottom])
    if not 3 <= len(rows) <= 0.1 * still[top:bottom].size:
        return None
    return int(rows.min()) + top, float(np.median(columns))


def common_colours(pixels: np.ndarray, most: int = 6) -> list[tuple[np.ndarray, float]]:
    """(colour, share) of the most frequent colours of ``pixels`` [n, channels], in steps of 16, most frequent first."""
    bins, where, counts = np.unique(pixels // 16, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    where = where.reshape(-1)
    return [(np.median(pixels[where == i], axis=0), float(counts[i] / len(pixels))) for i in order if len(bins)]


def find_gauge(strips: np.ndarray, motion: np.ndarray, first_row: int, ends: Sequence[int] = ()) -> Gauge | None:
    """The bar in the gauges' strip [T, rows, columns] (brightness) that goes best with ``motion`` [T].

    A bar is a run of neighbouring columns that rise and fall together. ``ends``: where one episode ends and another
    begins; the fastest speed is the mean of the episodes' highest ones, since one alone says little.
    """
    columns = strips.mean(axis=1)
    fits = [correlation(columns[:, j], motion) for j in range(columns.shape[1])]
    least = 0.7 * max(fits)
    if max(fits) < LEAST_FIT:
        return None
    bars: list[list[int]] = []
    for j, fit in enumerate(fits):
        if fit < least:
            continue
        if bars and bars[-1][-1] == j - 1 and correlation(columns[:, j], columns[:, j - 1]) > 0.9:
            bars[-1].append(j)
        else:
            bars.append([j])
    levels = [columns[:, bar].mean(axis=1) for bar in bars]
    rated = [correlation(level, motion) for level in levels]
    best = int(np.argmax(rated))
    fastest = float(np.mean([np.quantile(part, 0.98) for part in np.split(levels[best], ends) if len(part)]))
    bottom = first_row + strips.shape[1]
    return Gauge(first_row, bottom, bars[best][0], bars[best][-1] + 1, fastest, rated[best]) if fastest > 0.5 else None


def study_pictures(episodes: Sequence[Episode], situation: Situation) -> Sight | None:
    """All facts from the pictures of these episodes; None where there is no moving world with a thing that steers."""
    kind, shape = situation.actions, situation.view.picture_shape
    if kind.kind != "box" or len(shape) != 3:
        return None
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    for episode in episodes:
        pictures = read_pictures(episode.folder, shape) if episode.folder is not None else None
        if pictures is not None and len(pictures) > 60 and episode.actions.shape[1] == kind.n:
            n = min(len(pictures), len(episode))
            seen.append((pictures[:n], episode.actions[:n]))
    if not seen:
        return None
    # cameras often swing into place at the start: a tenth is left out
    later = [(p[len(p) // 10 :], a[len(a) // 10 :]) for p, a in seen]
    pictures = np.concatenate([p[::4] for p, _ in later])
    change = np.concatenate([np.r_[0.0, _changes(p)][::4] for p, _ in later])
    moving = pictures[change >= np.median(change)]
    still, usual = still_pixels(moving)
    top, bottom = world_rows(still)
    world = moving[:: max(1, len(moving) // 60), top:bottom, ::2].reshape(-1, shape[2])
    colours = [colour for colour, share in common_colours(world) if share > 0.02]
    row, column = own_place(still, usual, colours, top, bottom) or (
        top + int(0.75 * (bottom - top)),
        0.5 * (shape[1] - 1),
    )
    half = max(2, shape[1] // 32)
    ahead = slice(max(top, row - shape[0] // 10), max(top + 1, row - 1))
    beside = slice(max(0, int(column) - half), int(column) + half + 1)
    early = np.concatenate([p[5:40, ahead, beside].reshape(-1, shape[2]) for p, _ in seen])
    ground = common_colours(early)[0][0]
    others = [float(np.abs(colour - ground).max()) for colour in colours]
    contrast = min((d for d in others if d >= 2 * SAME), default=4.0 * SAME)
    flows = [flow(p[:, top:bottom]) for p, _ in later]
    motion = np.concatenate(flows)
    speed = np.concatenate([trailing_mean(np.abs(m[:, 1:]), 9)[:, 0] for m in flows])
    acts = np.concatenate([trailing_mean(a, 10)[:-1] for _, a in later])
    slow = np.concatenate([trailing_mean(a, 30)[:-1] for _, a in later])
    roles = _roles(motion, acts, slow, kind.low)
    if roles is None:
        return None
    steer, turn, gas, brake = roles
    gauges: list[Gauge] = []
    for first, last in ((0, top), (bottom, shape[0])):
        if last > first:
            strips = np.concatenate([p[1:, first:last].mean(axis=3, dtype=np.float32) for p, _ in later])
            found = find_gauge(strips, speed, first, np.cumsum([len(m) for m in flows])[:-1].tolist())
            gauges += [found] if found is not None else []
    gauge = max(gauges, key=lambda g: g.fit, default=None)
    fastest = max(float(np.quantile(change, 0.95)), 1e-3)
    colour = tuple(int(c) for c in ground)
    return Sight(
        (shape[0], shape[1], shape[2]), top, bottom, row, column, colour, contrast,
        steer, turn, gas, brake, gauge, fastest,
    )  # fmt: skip


def _changes(pictures: np.ndarray) -> np.ndarray:
    """Mean absolute change of a pixel from each picture to the next, [T−1]."""
    few = pictures[:, ::3, ::3].astype(np.int16)
    return np.asarray(np.abs(np.diff(few, axis=0)).mean(axis=(1, 2, 3)))


def _roles(
    motion: np.ndarray, acts: np.ndarray, slow: np.ndarray, low: Sequence[float]
) -> tuple[int, float, int, int] | None:
    """(steering dimension, its sign, gas, brake) from the motion [T, 2] of the scene and the mean recent actions."""
    n = acts.shape[1]
    sideways = [correlation(acts[:, d], motion[:, 0]) if low[d] < 0.0 else 0.0 for d in range(n)]
    steer = max(range(n), key=lambda d: abs(sideways[d]))
    if abs(sideways[steer]) < 0.1 or n < 2:
        return None
    others = [d for d in range(n) if d != steer]
    forward = {d: correlation(slow[:, d], motion[:, 1]) for d in others}
    gas = max(others, key=lambda d: forward[d])
    rest = [d for d in others if d != gas and low[d] >= 0.0]
    brake = gas if low[gas] < 0.0 else min(rest, key=lambda d: forward[d], default=-1)
    return steer, -1.0 if sideways[steer] > 0.0 else 1.0, gas, brake
