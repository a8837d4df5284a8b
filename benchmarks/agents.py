"""What an agent's run costs in our process, and what a fast stream loses: ``python -m benchmarks.agents``.

A run of the native agent on CartPole against the scripted model server, which is a process of its own: first the model
is silent (idle), then it streams ``--rate`` deltas a second for ``--seconds``. CPU is that of this process, which
drives the run and writes its log; the gateway's, which holds litellm, is told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evotui.agents.base import Workspace
from evotui.agents.llm.agent import ModelAgent
from evotui.agents.llm.client import GatewayClient
from evotui.cli.live import _place
from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.record import events as e
from evotui.record.log import read
from tests.servers.model_server import FLOOD_PIECE

AIM_IDLE = 0.03


@asynccontextmanager
async def model(script: list[dict[str, Any]], folder: Path) -> AsyncIterator[str]:
    """The scripted server as a process; gives its address."""
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": script, "aux": None}))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.servers.model_server", "--script", str(path), "--port", "0", "--print-port"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/v1"
    finally:
        process.terminate()
        await process.wait()


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Lag:
    """How late the event loop is, at worst."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def watch(self) -> None:
        while True:
            due = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - due)


async def measured(
    gateway: GatewayClient, script: list[dict[str, Any]], folder: Path, seconds: float
) -> tuple[dict[str, float], list[e.Event]]:
    """Shares of a core while the first answer goes on, and what the log holds in the end."""
    async with model(script, folder) as address:
        options = {"model": "openai/scripted", "api_base": address, "retries": [0, 1.0], "deadlines": [999, 999, 999]}
        config = resolve(env="cartpole", agent="litellm", budget=8, validation=1, heldout=1, workers=1, options=options)
        session = await open_run(config, folder / "runs")
        agent = ModelAgent(options, _place(session, "litellm"), gateway)
        workspace = Workspace(session.run_dir.workspace, session.run_dir.blobs, session.tell)
        run = asyncio.create_task(
            session.run(agent.kind, agent.name, lambda: agent.run(workspace, session, session.tell))
        )
        await asyncio.sleep(1.5)  # begun, and the request is out
        lag = Lag()
        watch = asyncio.create_task(lag.watch())
        assert gateway.pid is not None
        began, ours, theirs = time.monotonic(), time.process_time(), cpu_of(gateway.pid)
        await asyncio.sleep(seconds)
        wall = time.monotonic() - began
        shares = {
            "our process": (time.process_time() - ours) / wall,
            "gateway": (cpu_of(gateway.pid) - theirs) / wall,
            "worst lag of the loop, ms": lag.worst * 1000,
        }
        watch.cancel()
        if script[0].get("fail") == "hang":
            session.wish("stop")
        await run
        await session.close()
        return shares, [record.event for record in read(session.run_dir.events)]


async def main(rate: float, seconds: float, idle: float) -> dict[str, Any]:
    gateway = GatewayClient()
    began = time.monotonic()
    await gateway.ready()
    warm = time.monotonic() - began
    done = {"calls": [{"name": "submit", "arguments": {"cases": "0-7"}}]}
    try:
        with tempfile.TemporaryDirectory() as name:
            quiet, _ = await measured(gateway, [{"fail": "hang"}], Path(name), idle)
        with tempfile.TemporaryDirectory() as name:
            flood = {"fail": "flood", "rate": rate, "seconds": seconds}
            busy, events = await measured(gateway, [flood, done], Path(name), max(1.0, seconds - 2.0))
    finally:
        await gateway.close()
    whole = "".join(FLOOD_PIECE.format(number) for number in range(int(rate * seconds)))
    pieces = [event for event in events if isinstance(event, e.AgentDelta) and event.channel == "text"]
    return {
        "warm-up of the gateway, s": warm,
        "idle": quiet,
        "streaming": busy,
        "deltas sent": int(rate * seconds),
        "pieces in the log": len(pieces),
        "characters lost": len(whole) - len("".join(piece.text for piece in pieces)),
        "the message is whole": any(isinstance(event, e.AgentMessage) and event.text == whole for event in events),
    }


def show(figures: dict[str, Any]) -> None:
    for name in ("idle", "streaming"):
        for what, value in figures[name].items():
            shown = f"{value:8.1f}" if what.endswith("ms") else f"{100 * value:7.2f} % of a core"
            print(f"{name:<10} {what:<26} {shown}")
    for what in ("warm-up of the gateway, s", "deltas sent", "pieces in the log", "characters lost"):
        print(f"{what:<37} {figures[what]:8.4g}")
    print(f"{'the message is whole':<37} {figures['the message is whole']!s:>8}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rate", type=float, default=200.0, help="deltas a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it streams")
    parser.add_argument("--idle", type=float, default=10.0, help="how long the model is silent")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = asyncio.run(main(args.rate, args.seconds, args.idle))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    right = found["idle"]["our process"] < AIM_IDLE and not found["characters lost"] and found["the message is whole"]
    sys.exit(0 if right else 1)
