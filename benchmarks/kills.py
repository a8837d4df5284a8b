"""Kill a headless run at random moments and check what it leaves: ``python -m benchmarks.kills [-n 200] [--json]``.

Each round starts a real ``evotui run … --headless`` in a folder of its own and sends SIGKILL to it some milliseconds
after its log has reached a number of bytes, both drawn from a fixed seed, so that kills fall into every stage however
fast the machine is. Then it demands of the record: it opens, ``evotui check`` finds no breach, what was accepted is
what is charged, and no process of the run is left. A round in which no record was begun yet counts as ``before``.

With ``--resume`` each round goes on with ``evotui run --resume`` to the end, killed again on its way every third time,
and the final record must equal that of a run that nobody disturbed, made first with the same cases and seed.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
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
from evotui.record.events import IncidentNoted
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.rundir import scan

AFTER = 0.1  # seconds, at most, between the log's reaching that size and the kill: more than one append takes


SIZE = ["--agent", "search", "--budget", "14", "--validation", "2", "--heldout", "3", "--headless", "--quiet"]
FORGET = {  # what two equal runs may differ in: when and how fast
    "submit_started_at", "submit_completed_at", "wall_time_seconds", "timing", "exp_id", "snapshot_at",
}  # fmt: skip


@dataclass
class Tally:
    kills: int = 0
    stages: collections.Counter[str] = field(default_factory=collections.Counter)
    breaches: list[str] = field(default_factory=list)
    equal: int = 0
    survivors: int = 0


def start(runs: Path, seed: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "evotui", "run", "cartpole", *SIZE, "--seed", str(seed), "--runs", str(runs), *more]


def killed(command: list[str], runs: Path, size: int, delay: float, seed: int, tally: Tally) -> Path | None:
    """One process, one kill ``delay`` seconds after its log holds ``size`` bytes, one check of what is left.

    Returns the run's folder if there is one.
    """
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
        return None
    state = fold_all(read(found[0] / "events.jsonl"))
    tally.stages["ended" if ended else state.stage if state.opened else "before"] += 1
    for breach in check(found[0]):
        tally.breaches.append(f"round {seed}, {size} bytes: {breach}")
    if state.opened is not None and state.budget.used != sum(s.cost for s in state.submissions):
        tally.breaches.append(f"round {seed}, {size} bytes: {state.budget.used} used is not what was charged")
    return found[0] if state.opened is not None else None


def resumed(root: Path, rng: random.Random, whole: int, seed: int, tally: Tally) -> None:
    """Go on to the end, killed again on the way every third time."""
    command = [sys.executable, "-m", "evotui", "run", "--resume", str(root), "--headless", "--quiet"]
    runs = root.parents[3]
    while rng.random() < 1 / 3 and fold_all(read(root / "events.jsonl")).ended is None:
        size = (root / "events.jsonl").stat().st_size + rng.randrange(whole // 2)
        killed(command, runs, size, rng.uniform(0.0, AFTER), seed, tally)
    if fold_all(read(root / "events.jsonl")).ended is None:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            told = [r.event.text for r in read(root / "events.jsonl") if isinstance(r.event, IncidentNoted)]
            why = done.stderr.strip()[-300:] or "; ".join(told)
            tally.breaches.append(f"round {seed}: resume exits {done.returncode}: {why}")
    tally.breaches += [f"round {seed}, resumed: {breach}" for breach in check(root)]


def record_of(root: Path) -> dict[str, object]:
    """The final record of a run without times: outcome, summaries, checkpoints, trajectories, by path."""
    found: dict[str, object] = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        if name.startswith(("events.jsonl", "logs/", ".host/", "run.toml", "blobs/.")):
            continue
        data = path.read_bytes()
        found[name] = _without_times(json.loads(data)) if name.endswith(".json") else hashlib.sha256(data).hexdigest()
    return found


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in FORGET}
    return [_without_times(v) for v in value] if isinstance(value, list) else value


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


def _where(a: object, b: object) -> str:
    """The first key in which two documents differ, with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if a.get(key) != b.get(key):
                return f".{key}" + _where(a.get(key), b.get(key))
    return f": {str(a)[:80]} and {str(b)[:80]}"


def reference(home: Path) -> tuple[Path, dict[str, object], int]:
    """Cases from a first run's revealed pools; the record of an undisturbed run on them, and the size of its log."""
    subprocess.run(start(home / "first", 0), check=True, stdout=subprocess.DEVNULL)
    pools = next(scan(home / "first")) / "pools"
    subprocess.run(start(home / "second", 0, "--pools", str(pools)), check=True, stdout=subprocess.DEVNULL)
    root = next(scan(home / "second"))
    return pools, record_of(root), (root / "events.jsonl").stat().st_size


def _progress(done: int, n: int, began: float, tally: Tally) -> None:
    left = (time.monotonic() - began) / done * (n - done)
    line = f"{done}/{n}  {dict(tally.stages)}  {len(tally.breaches)} breaches  {left:.0f}s left"
    print(f"\r{line}", end="", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tally = Tally()
    began = time.monotonic()
    home = tempfile.TemporaryDirectory(prefix="evotui-kills-")
    pools, undisturbed, whole = reference(Path(home.name))
    for i in range(options.n):
        with tempfile.TemporaryDirectory(prefix="evotui-kills-") as folder:
            # One round in twenty is killed before its log exists: opening a run must leave nothing half made either.
            early = rng.random() < 0.05
            size, delay = (0, rng.uniform(0.0, 2.0)) if early else (rng.randrange(whole), rng.uniform(0.0, AFTER))
            runs = Path(folder)
            if not options.resume:
                killed(start(runs, i), runs, size, delay, i, tally)
                _progress(i + 1, options.n, began, tally)
                continue
            root = killed(start(runs, 0, "--pools", str(pools)), runs, size, delay, i, tally)
            if root is not None:
                resumed(root, rng, whole, i, tally)
                now = record_of(root)
                differing = [n for n in sorted(now.keys() | undisturbed.keys()) if now.get(n) != undisturbed.get(n)]
                tally.breaches += [
                    f"round {i}, {size} bytes: {name} differs" + _where(undisturbed.get(name), now.get(name))
                    for name in differing[:5]
                ]
                tally.equal += not differing
        _progress(i + 1, options.n, began, tally)
    print(file=sys.stderr)
    document = {
        "schema_version": 1,
        "rounds": options.n,
        "kills": tally.kills,
        "stages": dict(tally.stages),
        "equal_to_undisturbed": tally.equal if options.resume else None,
        "breaches": tally.breaches,
        "survivors": tally.survivors,
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        print(f"{tally.kills} kills in {options.n} rounds, by stage: {dict(tally.stages)}")
        if options.resume:
            print(f"records equal to the undisturbed run's: {tally.equal}")
        print(f"breaches: {len(tally.breaches)}   processes left over: {tally.survivors}")
        print("\n".join(tally.breaches))
    return 1 if tally.breaches or tally.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
