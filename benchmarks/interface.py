"""How fast the interface is on a real terminal: ``python -m benchmarks.interface [--json]``.

First paint: from the start of the process to a full screen, ``evotui`` in turn with an empty Textual application; the
ratio is of medians. Key to paint: while a real run rolls out on every core, a key that changes one label is typed again
and again, and the time is taken until the label has been written to the terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.terminal import Terminal

EMPTY = "from textual.app import App\nApp().run()"
COLUMNS, ROWS = 120, 40
FULL = COLUMNS * ROWS // 2  # bytes: an empty screen is written with at least a character a cell, text with far more
LABELS = (b"side by side", b"whole file", b"unified")  # what `d` steps the policy pane through


def first_paint(command: list[str], folder: Path) -> float:
    """Seconds from start to a whole screen."""
    with Terminal(command, COLUMNS, ROWS, {"EVOTUI_RUNS": str(folder)}) as terminal:
        while terminal.written < FULL:
            if not terminal.read(20.0):
                raise SystemExit(f"{command} drew nothing")
        return time.perf_counter() - terminal.started


def key_to_paint(folder: Path, presses: int) -> tuple[list[float], float]:
    """Milliseconds from key to label for each press, and the share of both cores that was busy meanwhile."""
    command = [
        sys.executable,
        "-m",
        "evotui",
        "run",
        "acrobot",
        "--budget",
        "100000",
        "--submit-min",
        "200",
        "--runs",
        str(folder),
    ]
    with Terminal(command, COLUMNS, ROWS) as terminal:
        if terminal.until(b"rolling out", 60.0) is None:
            raise SystemExit("the run did not begin to roll out")
        terminal.drain(2.0)
        busy, took = _busy(), []
        for i in range(presses):
            typed = terminal.type(b"d")
            seen = terminal.until(LABELS[i % len(LABELS)], 5.0)
            took.append(1000 * ((seen or typed + 5.0) - typed))
            terminal.drain(0.05)
        now = _busy()
        return took, (now[0] - busy[0]) / max(now[1] - busy[1], 1)


def _busy() -> tuple[int, int]:
    """(busy, all) clock ticks of the machine since it started; (0, 0) where that cannot be known."""
    try:
        fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return 0, 0
    return sum(fields) - fields[3] - fields[4], sum(fields)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--starts", type=int, default=9)
    parser.add_argument("--presses", type=int, default=300)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="evotui-interface-") as name:
        folder = Path(name)
        empty, ours = [], []
        for _ in range(options.starts):
            empty.append(first_paint([sys.executable, "-c", EMPTY], folder))
            ours.append(first_paint([sys.executable, "-m", "evotui"], folder))
        took, busy = key_to_paint(folder, options.presses)
    document = {
        "schema_version": 1,
        "load_before": round(load, 2),
        "first_paint": {
            "empty_seconds": round(statistics.median(empty), 3),
            "evotui_seconds": round(statistics.median(ours), 3),
            "ratio": round(statistics.median(ours) / statistics.median(empty), 2),
            "n": options.starts,
        },
        "key_to_paint_ms": {
            "p50": round(percentile(took, 0.5), 1),
            "p90": round(percentile(took, 0.9), 1),
            "p99": round(percentile(took, 0.99), 1),
            "n": len(took),
            "cores_busy": round(busy, 2),
        },
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    print(f"load before: {load:.2f}")
    for name, figures in document.items():
        if isinstance(figures, dict):
            print(f"{name:<17}" + "   ".join(f"{key} {value}" for key, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
