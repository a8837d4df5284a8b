"""A language model's transcript at its worst: ``python -m benchmarks.transcript [--json]``.

Opening: a synthetic log of 50 MB (streamed pieces and their wholes, tool calls with results of kilobytes, usage) is
read and folded, its entries are sorted in, and the whole screen is drawn by ``evotui open`` on a terminal; then it is
scrolled. Streaming: 200 pieces a second are written to the log and folded in the event loop of the interface, as a live
run does; a key that changes one label is typed meanwhile, and afterwards every piece must be in the record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from benchmarks.interface import LABELS, percentile
from benchmarks.terminal import Terminal
from evotui.record import events as e
from evotui.record.fold import fold, fold_all
from evotui.record.log import Reader, Writer, encode, read
from evotui.record.rundir import RunDir, create
from evotui.record.state import RunState

SENTENCE = "the pole leans right and its angular velocity grows so the cart must be pushed further to the right"
WORDS = tuple(SENTENCE.split())
RATE = 200


def opening(run: RunDir) -> e.RunOpened:
    box = {"type": "Box", "shape": [4], "dtype": "float32", "low": -1.0, "high": 1.0}
    return e.RunOpened(
        schema_version=e.SCHEMA_VERSION, run=run.root.name, env="gym/cartpole", env_name="cartpole",
        env_version="CartPole-v1", agent="litellm", model="synthetic", agent_seed=0, profile="default", pools="secret",
        pool_hashes={}, n_train=1024, n_validation=16, n_heldout=32, budget=128, min_submit=1, max_submit=128,
        policy_lifetime="episode", max_episode_steps=500, obs_space=box,
        action_space={"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"},
    )  # fmt: skip


def words(at: int, count: int) -> str:
    return " ".join(WORDS[(at + i) % len(WORDS)] for i in range(count))


def turn(number: int) -> Iterator[e.Event]:
    """One model call: a thought and a message in pieces and whole, an edit of two kilobytes, a result, usage."""
    for channel, whole, pieces in (
        ("thought", e.AgentThought(words(number, 120)), 40),
        ("text", e.AgentMessage(words(number + 3, 60)), 20),
    ):
        for i in range(pieces):
            yield e.AgentDelta(channel, words(number + 3 * i, 3) + " ")
        yield whole
    arguments = {"path": "system/policy.py", "content": "\n".join(f"GAIN_{i} = {number + i}" for i in range(120))}
    for i in range(30):
        yield e.AgentDelta("tool", f"GAIN_{i} = {number + i}\\n" * 4)
    yield e.ToolCalled(f"t{number}", "write_file", arguments)
    yield e.ToolReturned(f"t{number}", True, "\n".join(f"step {i} angle {i * 0.003:+.4f}" for i in range(120)))
    yield e.UsageReported(900, 12_000, 300, 420, 0.011, False, "synthetic")


def write_log(run: RunDir, megabytes: float) -> int:
    """A log of that size; returns the number of facts."""
    facts: list[e.Event] = [opening(run), e.AgentStarted("litellm", "synthetic"), e.AgentSession("s", "synthetic")]
    size = seq = number = 0
    with run.events.open("wb") as file:
        while size < megabytes * 1e6:
            for fact in facts:
                line = encode(e.Record(seq, 1_790_000_000 + seq / 15, fact))
                file.write(line)
                size, seq = size + len(line), seq + 1
            facts = list(turn(number))
            number += 1
    return seq


def opened(megabytes: float) -> dict[str, float]:
    from evotui.ui.transcript import Entries

    with tempfile.TemporaryDirectory(prefix="evotui-transcript-") as name:
        run = create(Path(name), "synthetic", "gym/cartpole", 128, "big000")
        facts = write_log(run, megabytes)
        began = time.process_time()
        state = fold_all(Reader(run.events).poll(skim=True), skimmed=True)
        folded = time.process_time()
        entries = Entries().of(state)
        sorted_in = time.process_time()
        count = len(entries)
        del state, entries
        command = [sys.executable, "-m", "evotui", "open", str(run.root)]
        with Terminal(command, 120, 40) as terminal:
            seen = terminal.until(b"write_file", 60.0)
            if seen is None:
                raise SystemExit("the transcript was not drawn")
            drawn, worked = seen - terminal.started, _cpu(terminal.process.pid)
            terminal.drain(2.0)
            terminal.type(b"3m")
            terminal.drain(1.0)
            took = []
            for key in (b"\x15", b"\x04") * 20 + (b"k", b"g", b"G", b"k") * 10:
                before = terminal.written
                typed = terminal.type(key)
                while terminal.written == before and time.perf_counter() - typed < 2.0:
                    terminal.read(0.5)
                took.append(1000 * (time.perf_counter() - typed))
                terminal.drain(0.06)
        return {
            "megabytes": megabytes,
            "facts": facts,
            "entries": count,
            "read_cpu_seconds": round(folded - began, 2),
            "sort_in_cpu_seconds": round(sorted_in - folded, 3),
            "drawn_seconds": round(drawn, 2),
            "drawn_cpu_seconds": round(worked, 2),
            "scroll_p50_ms": round(percentile(took, 0.5), 1),
            "scroll_p99_ms": round(percentile(took, 0.99), 1),
        }


class Streaming:
    """A live run of nobody: facts are written to a log and folded here, 200 pieces a second."""

    controls = None
    failure = ""

    def __init__(self, run: RunDir, seconds: float) -> None:
        from evotui.ui.feed import Latest

        self.run = run
        self.state = RunState()
        self.live = True
        self._slot = Latest()
        self._seconds = seconds
        self._log = Writer(run.events, self._take)

    def _take(self, record: e.Record) -> None:
        self.state = fold(self.state, record)
        self._slot.put()

    async def work(self) -> None:
        began, told = time.monotonic(), 0
        while told < self._seconds * RATE:
            due = int((time.monotonic() - began) * RATE)
            for at in range(told, due):
                await self._log.append(e.AgentDelta(("text", "thought")[at // 4000 % 2], f"{at} {words(at, 2)} "))
            told = max(told, due)
            await asyncio.sleep(1 / RATE)
        self.live = False
        self._slot.close()

    async def updates(self) -> AsyncIterator[RunState]:
        while await self._slot.wait():
            yield self.state
        yield self.state

    def progress(self) -> Sequence[object]:
        return ()

    async def start(self) -> None:
        await self._log.append(opening(self.run), e.AgentStarted("litellm", "synthetic"))
        self.task = asyncio.create_task(self.work())

    async def close(self) -> None:
        await self._log.close()


class NoFrames:
    async def close(self) -> None:
        pass


def child(root: Path, seconds: float) -> None:
    from evotui.cli.launcher import RunLauncher
    from evotui.ui.app import EvotuiApp

    async def main() -> None:
        feed = Streaming(RunDir(root), seconds)
        await feed.start()
        app = EvotuiApp(RunLauncher(root.parent), (feed, NoFrames()))  # type: ignore[arg-type]
        await app.run_async()

    asyncio.run(main())


def streamed(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="evotui-stream-") as name:
        run = create(Path(name), "synthetic", "gym/cartpole", 128, "live00")
        command = [sys.executable, "-m", "benchmarks.transcript", "--child", str(run.root), "--seconds", str(seconds)]
        with Terminal(command, 120, 40) as terminal:
            if terminal.until(b"following", 30.0) is None:
                raise SystemExit("the interface did not come up")
            terminal.drain(1.0)
            took, at = [], 0
            ticks = _cpu(terminal.process.pid)
            began = time.perf_counter()
            while time.perf_counter() - began < seconds - 2:
                typed = terminal.type(b"d")
                seen = terminal.until(LABELS[at % len(LABELS)], 5.0)
                took.append(1000 * ((seen or typed + 5.0) - typed))
                at += 1
                terminal.drain(0.08)
            busy = (_cpu(terminal.process.pid) - ticks) / (time.perf_counter() - began)
            terminal.drain(4.0)
        state = fold_all(read(run.events))
        numbers = sorted(int(piece.split(" ", 1)[0]) for pieces in state.streaming.values() for piece in pieces)
        lost = len(set(range(numbers[-1] + 1)) - set(numbers)) if numbers else round(seconds * RATE)
    return {
        "rate": RATE, "seconds": seconds, "pieces_recorded": len(numbers), "pieces_lost": lost,
        "p50_ms": round(percentile(took, 0.5), 1), "p99_ms": round(percentile(took, 0.99), 1), "presses": len(took),
        "cores": round(busy, 2),
    }  # fmt: skip


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--megabytes", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=["open", "stream"])
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.seconds)
        return 0
    document: dict[str, object] = {"schema_version": 1, "load_before": round(os.getloadavg()[0], 2)}
    if options.only != "stream":
        document["open"] = opened(options.megabytes)
    if options.only != "open":
        document["stream"] = streamed(options.seconds)
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    for name, figures in document.items():
        said = figures if not isinstance(figures, dict) else "   ".join(f"{k} {v}" for k, v in figures.items())
        print(f"{name:<16}{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
