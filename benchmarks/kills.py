"""Kill a headless run at random moments and check what it leaves: ``python -m benchmarks.kills [-n 200] [--json]``.

Each round starts a real ``evotui run … --headless`` in a folder of its own and sends SIGKILL to it some milliseconds
after its log has reached a number of bytes, both drawn from a fixed seed, so that kills fall into every stage however
fast the machine is. Then it demands of the record: it opens, ``evotui check`` finds no breach, what was accepted is
what is charged, and no process of the run is left. A round in which no record was begun yet counts as ``before``.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from evotui.record.check import check
from evotui.record.log import read
from evotui.record.rundir import scan
from evotui.record.state import fold_all

LOG_BYTES = 80_000  # about what a whole run of the size below writes: the last kills find it ended
AFTER = 0.1  # seconds, at most, between the log's reaching that size and the kill: more than one append takes


@dataclass
class Tally:
    kills: int = 0
    stages: collections.Counter[str] = field(default_factory=collections.Counter)
    breaches: list[str] = field(default_factory=list)
    survivors: int = 0


def one(runs: Path, size: int, delay: float, seed: int, tally: Tally) -> None:
    """One run, one kill ``delay`` seconds after its log holds ``size`` bytes, one check of what is left."""
    command = [
        sys.executable, "-m", "evotui", "run", "cartpole", "--agent", "search", "--budget", "24", "--seed", str(seed),
        "--validation", "3", "--heldout", "4", "--headless", "--quiet", "--runs", str(runs),
    ]  # fmt: skip
    mark = f"{os.getpid()}-{seed}-{time.monotonic_ns()}"
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"EVOTUI_KILL_MARK": mark},
    )  # fmt: skip
    log: Path | None = None
    while process.poll() is None:
        log = log or next((path / "events.jsonl" for path in scan(runs)), None)
        if size == 0 or (log is not None and log.stat().st_size >= size):
            break
        time.sleep(0.002)
    try:
        process.wait(delay)
        ended = True
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended = False
    tally.kills += not ended
    tally.survivors += _survivors(mark)
    found = list(scan(runs))
    if not found:
        tally.stages["before"] += 1
        return
    state = fold_all(read(found[0] / "events.jsonl"))
    tally.stages["ended" if ended else state.stage if state.opened else "before"] += 1
    for breach in check(found[0]):
        tally.breaches.append(f"round {seed}, {size} bytes: {breach}")
    if state.opened is not None and state.budget.used != sum(s.cost for s in state.submissions):
        tally.breaches.append(f"round {seed}, {size} bytes: {state.budget.used} used is not what was charged")


def _survivors(mark: str) -> int:
    """Processes of the run that are still there ten seconds after its death: they follow their parent."""
    needle = f"EVOTUI_KILL_MARK={mark}".encode()
    deadline = time.monotonic() + 10.0
    while True:
        left = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    left += needle in (entry / "environ").read_bytes()
                except OSError:
                    continue
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tally = Tally()
    began = time.monotonic()
    for i in range(options.n):
        with tempfile.TemporaryDirectory(prefix="evotui-kills-") as folder:
            # One round in twenty is killed before its log exists: opening a run must leave nothing half made either.
            early = rng.random() < 0.05
            size, delay = (0, rng.uniform(0.0, 2.0)) if early else (rng.randrange(LOG_BYTES), rng.uniform(0.0, AFTER))
            one(Path(folder), size, delay, i, tally)
        spent = time.monotonic() - began
        left = spent / (i + 1) * (options.n - i - 1)
        line = f"{i + 1}/{options.n}  {dict(tally.stages)}  {len(tally.breaches)} breaches  {left:.0f}s left"
        print(f"\r{line}", end="", file=sys.stderr)
    print(file=sys.stderr)
    document = {
        "schema_version": 1, "rounds": options.n, "kills": tally.kills, "stages": dict(tally.stages),
        "breaches": tally.breaches, "survivors": tally.survivors, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        print(f"{tally.kills} kills in {options.n} rounds, by stage: {dict(tally.stages)}")
        print(f"breaches: {len(tally.breaches)}   processes left over: {tally.survivors}")
        print("\n".join(tally.breaches))
    return 1 if tally.breaches or tally.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
