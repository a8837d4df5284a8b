"""What one tiny turn says of a coding agent: its program, its version, its login, its answer, its tokens."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evotui.agents.base import AgentFailed, DoorClosed, DoorUrls, Place, Workspace
from evotui.agents.cli.adapter import NotResumed, Work
from evotui.agents.cli.agent import extra_environment, opened, row_of
from evotui.agents.cli.detect import look
from evotui.agents.station import Station
from evotui.record.events import AgentMessage, Event, UsageReported

Finding = tuple[str, bool | None, str]
PROMPT = "Answer with the one word: ready. Use no tools."
_PATIENCE = 120.0


async def check(kind: str, options: Mapping[str, Any]) -> list[Finding]:
    """Findings as (what, whether it works, a word on it); None is neither good nor bad."""

    try:
        row = row_of(kind)
        extra = extra_environment(row, options)
    except AgentFailed as wrong:
        return [("row", False, str(wrong))]
    found = await asyncio.to_thread(look, row, str(options.get("cli") or ""), {**os.environ, **extra})
    if not found.ok:
        return [("program", False, found.wrong)]
    least = f", at least {row.least} is needed" if row.least else ""
    findings: list[Finding] = [
        ("program", True, found.program),
        ("version", True if found.version else None, f"{found.version or 'not told'}{least}"),
        ("login", True if found.login else None, found.login or found.hint or "nothing is known of it"),
    ]
    return findings + await _ask(kind, found.program, options, extra)


async def _ask(kind: str, program: str, options: Mapping[str, Any], extra: dict[str, str]) -> list[Finding]:
    """One turn in an empty workspace."""
    told: list[Event] = []

    async def tell(fact: Event) -> None:
        told.append(fact)

    async def uncounted(fact: Event) -> None:
        return None

    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="evotui-check-") as folder:
        root = Path(folder) / "workspace"
        for part in ("system", "feedback"):
            (root / part).mkdir(parents=True)
        (Path(folder) / "blobs").mkdir()
        workspace = Workspace(root, Path(folder) / "blobs", tell)
        place = Place(Path(folder) / "stream.jsonl", (), _nowhere)
        try:
            async with asyncio.timeout(_PATIENCE), Station(workspace, _Shut(), tell, place) as station:
                work = Work(
                    row_of(kind),
                    program,
                    station,
                    tell,
                    uncounted,
                    options=options,
                    env=extra,
                    keys=tuple(extra),
                    idle=60.0,
                )
                async with await opened(work) as adapter:
                    offered = adapter.work.row.adapter
                    await adapter.turn(PROMPT)
                    failure = adapter.stream.reason if adapter.stream.is_error else ""
        except (AgentFailed, NotResumed) as wrong:
            return [("answer", False, str(wrong))]
        except TimeoutError:
            return [("answer", False, f"no answer in {_PATIENCE:g} s")]
    if failure:
        return [("answer", False, failure)]
    said = " ".join(fact.text for fact in told if isinstance(fact, AgentMessage))
    used = [fact for fact in told if isinstance(fact, UsageReported)]
    output, put_in = sum(u.output_tokens for u in used), sum(u.input_tokens + u.cached_tokens for u in used)
    costs = [u.cost_usd for u in used if u.cost_usd is not None]
    return [
        ("answer", bool(said), f"{' '.join(said.split())[:80]!r} after {time.monotonic() - begun:.1f} s, by {offered}"),
        ("usage", True if used else None, f"{put_in} tokens in, {output} out" if used else "it tells no tokens"),
        ("price", True if costs else None, f"${sum(costs):.6f}" if costs else "it tells no price"),
    ]


@asynccontextmanager
async def _nowhere(door: Any = None) -> AsyncIterator[DoorUrls]:
    base = "http://127.0.0.1:9/check"
    yield DoorUrls(f"{base}/info", f"{base}/task", f"{base}/submit")


class _Shut:
    """A door behind which there is no run."""

    async def task(self) -> str:
        return ""

    async def info(self) -> dict[str, Any]:
        return {"state": {"n_submits": 0, "remaining_budget": 0, "is_finalized": True}}

    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
        raise DoorClosed("this is a check: nothing can be submitted")

    async def messages(self, how: str = "at the gate") -> list[str]:
        return []

    async def spoken_to(self) -> None:
        await asyncio.Event().wait()
