"""How good is the built-in ``search`` agent? Real headless runs, one line a run, medians, against what must be reached.

    python -m benchmarks.search_agent                          # the four classic tasks, seeds 0–4, secret pools
    python -m benchmarks.search_agent --envs Pendulum-v1 --seeds 0,1 --budget 64
    python -m benchmarks.search_agent --json > table.json

Every run is ``evotui run … --headless --json`` in a process of its own, one after the other, in a temporary folder that
is removed afterwards (``--runs DIR`` keeps them). The exit code is 1 if a run fails or a median misses its mark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Mark:
    """A task, the episodes it gets and the median held-out mean it must reach (None: nothing promised)."""

    env: str
    budget: int
    reach: float | None


MARKS = (
    Mark("CartPole-v1", 64, 475.0),
    Mark("MountainCarContinuous-v0", 128, 90.0),
    Mark("Acrobot-v1", 128, -100.0),
    Mark("Pendulum-v1", 128, -300.0),
)
"""The table of the README."""


@dataclass(frozen=True)
class Outcome:
    """One run. ``error`` is empty where it completed; figures are None where it did not."""

    env: str
    budget: int
    seed: int
    status: str
    submissions: int | None
    val_score: float | None
    heldout: float | None
    seconds: float
    error: str = ""


def run_once(mark: Mark, seed: int, runs: Path, extra: list[str]) -> Outcome:
    """One headless run through the command line."""
    command = [sys.executable, "-m", "evotui", "run", mark.env, "--agent", "search", "--budget", str(mark.budget)]
    command += ["--seed", str(seed), "--headless", "--json", "--runs", str(runs), *extra]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        tail = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return Outcome(mark.env, mark.budget, seed, "failed", None, None, None, seconds, tail)
    best, heldout, count = document.get("best") or {}, document.get("heldout") or {}, document.get("submissions")
    return Outcome(
        mark.env,
        mark.budget,
        seed,
        str(document.get("status")),
        len(count) if isinstance(count, list) else count,
        best.get("val_score"),
        heldout.get("mean"),
        seconds,
        "" if heldout.get("mean") is not None else f"no held-out score (exit {done.returncode})",
    )


def seeds_of(text: str) -> list[int]:
    """``"0-4"`` or ``"0,3,7"`` as a list."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def marks_of(envs: str | None, budget: int | None) -> list[Mark]:
    """The tasks asked for, with their marks where they have one."""
    known = {mark.env.lower(): mark for mark in MARKS}
    chosen = [known.get(e.lower(), Mark(e, 128, None)) for e in envs.split(",")] if envs else list(MARKS)
    return [Mark(m.env, budget, None) if budget and budget != m.budget else m for m in chosen]


def row_of(mark: Mark, outcomes: list[Outcome]) -> dict[str, Any]:
    """The line of the table for one task."""
    scores = [o.heldout for o in outcomes if o.heldout is not None]
    median = statistics.median(scores) if scores else None
    complete = len(scores) == len(outcomes)
    reached = None if mark.reach is None else bool(complete and median is not None and median >= mark.reach)
    return {
        "env": mark.env,
        "budget": mark.budget,
        "heldout": [o.heldout for o in outcomes],
        "median": median,
        "reach": mark.reach,
        "reached": reached,
        "seconds": statistics.median(o.seconds for o in outcomes),
        "runs": [asdict(o) for o in outcomes],
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| environment | episodes | held-out mean of each seed | median | must reach | seconds a run |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        each = ", ".join("failed" if h is None else f"{h:.4g}" for h in row["heldout"])
        median = "—" if row["median"] is None else f"**{row['median']:.4g}**"
        reach = "—" if row["reach"] is None else f"{row['reach']:g}{'' if row['reached'] else ' (missed)'}"
        lines.append(f"| {row['env']} | {row['budget']} | {each} | {median} | {reach} | {row['seconds']:.0f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the table and print it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_agent", description=__doc__.split("\n")[0])
    parser.add_argument("--envs", help="comma-separated names; default: the four with a mark")
    parser.add_argument("--seeds", default="0-4", help="such as 0-4 or 0,2,5")
    parser.add_argument("--budget", type=int, help="episodes of every run instead of each task's own")
    parser.add_argument("--runs", type=Path, help="keep the runs in this folder")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("rest", nargs="*", metavar="-- OPTION", help="options passed on to evotui run")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="search-agent-") as temporary:
        runs = options.runs or Path(temporary)
        for mark in marks_of(options.envs, options.budget):
            outcomes = []
            for seed in seeds_of(options.seeds):
                outcome = run_once(mark, seed, runs, options.rest)
                shown = outcome.error or f"held-out {outcome.heldout:.4g}, {outcome.submissions} submissions"
                print(f"{mark.env} seed {seed}: {shown}, {outcome.seconds:.0f} s", file=sys.stderr, flush=True)
                outcomes.append(outcome)
            rows.append(row_of(mark, outcomes))
    if options.json:
        print(json.dumps({"schema_version": 1, "rows": rows}, indent=2))
    else:
        print(table(rows))
    failed = any(o["error"] for row in rows for o in row["runs"])
    return 1 if failed or any(row["reached"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
