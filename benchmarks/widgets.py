"""What the widgets cost: `python -m benchmarks.widgets` prints milliseconds of processor time an update.

Each figure is the least of several, headless at 120 x 40, drawing included, the terminal's own work excluded.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from evotui.ui.widgets.diff import DiffInput, DiffView, FilePair, compare_files
from evotui.ui.widgets.frame import FrameView
from evotui.ui.widgets.plot import Mark, ScorePlot, ScoreSeries, SubmissionPoint
from evotui.ui.widgets.tail import Entry, Kind, TranscriptTail


class Bench(App[None]):
    """One widget, full screen."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


async def measure(name: str, widget: Widget, update: Callable[[int], object], times: int = 8) -> None:
    """Print the cost of `update(n)` and the paint after it."""
    app = Bench(widget)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        costs = []
        for n in range(times):
            start = time.process_time()
            update(n)
            for strip in widget.render_lines(widget.size.region):
                strip.render(app.console)
            costs.append((time.process_time() - start) * 1000)
    print(f"{name:<42} least {min(costs):7.2f} ms   first {costs[0]:7.2f} ms")


def series(points: int) -> ScoreSeries:
    """A run of so many episodes, sixteen a submission."""
    rng = np.random.default_rng(0)
    returns = np.clip(500 * (1 - np.exp(-np.arange(points) / (points / 4))) + rng.normal(0, 60, points), 0, 500)
    episodes = tuple((float(i + 1), float(returns[i]), i // 16) for i in range(points))
    submissions = []
    best: list[tuple[float, float]] = []
    for start in range(0, points, 16):
        part = returns[start : start + 16]
        mean, half = float(part.mean()), float(part.std() / len(part) ** 0.5)
        mark = Mark.FLAT
        if not best or mean > best[-1][1]:
            best.append((start + len(part), mean))
            mark = Mark.BEST
        submissions.append(SubmissionPoint(start // 16, start + len(part), mean, mean - half, mean + half, mark))
    return ScoreSeries(episodes, tuple(submissions), tuple(best), budget=points)


def source(lines: int, seed: int) -> str:
    """A Python file."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(lines // 5):
        k = int(rng.integers(0, 3))
        out += [f"def step_{number}(obs):", f'    """Step {number}."""', f"    gain = {k}.5", "    x, v = obs[:2]"]
        out.append("    return gain * x + v")
    return "\n".join(out) + "\n"


async def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    flat = np.full((80, 120, 3), 200, np.uint8)
    moving = [flat.copy() for _ in range(8)]
    for n, frame in enumerate(moving):
        frame[30:50, 10 + 8 * n : 20 + 8 * n] = (200, 80, 40)
    noise = [rng.integers(0, 255, (80, 120, 3), dtype=np.uint8) for _ in range(8)]
    view = FrameView(color_mode="truecolor")
    await measure("frame, a few rows change", view, lambda n: view.show(moving[n % 8]))
    view2 = FrameView(color_mode="truecolor")
    await measure("frame, noise (the worst case)", view2, lambda n: view2.show(noise[n % 8]))
    for points in (128, 1_000, 10_000):
        plot = ScorePlot()
        await measure(f"plot, {points:,} episodes", plot, partial(plot.show, series(points)))
    diffs = [DiffInput((FilePair("policy.py", source(500, 0), source(500, seed)),)) for seed in range(1, 9)]
    await measure("comparing two files of 500 lines (thread)", Static(), lambda n: compare_files(diffs[n % 8]))
    diff = DiffView(diffs[0])
    await measure("diff, a screenful of it scrolled", diff, lambda n: diff.scroll_to(y=40 * n, animate=False))
    tail = TranscriptTail()
    entries = [Entry(Kind.THOUGHT, f"entry {i}: " + "some words of a thought " * 6, float(i)) for i in range(50_000)]

    def grow(n: int) -> None:
        entries.extend(Entry(Kind.TOOL_RESULT, "line\n" * 40, float(n)) for _ in range(14))
        tail.set_entries(entries)

    await measure("transcript, 50,000 entries and 14 more", tail, grow)


if __name__ == "__main__":
    os.environ.setdefault("COLORTERM", "truecolor")
    asyncio.run(main())
