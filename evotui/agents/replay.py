"""A recorded run, re-enacted: its edits and submissions made again, at any speed, on this run's cases and budget.

What was said is said again; what was submitted is really rolled out, so its results are this run's own. With the same
pools and the same policies they are the same, which is a check of both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evotui.agents.base import AgentFailed, Door, Place, Rejected, Teller, Workspace
from evotui.protocol.budget import format_cases
from evotui.protocol.words import counted
from evotui.record import events as e
from evotui.record.log import LogError, read
from evotui.record.rundir import RunDir

_SPOKEN = (e.AgentThought, e.AgentMessage, e.ToolCalled, e.ToolReturned, e.UsageReported)
_LONGEST_PAUSE = 30.0
"""Seconds that a pause of the recorded agent lasts at most, whatever the speed."""


def ready(options: Mapping[str, Any]) -> None:
    """Raises AgentFailed where there is no such record."""
    root = Path(str(options["source"]))
    if not (root / "events.jsonl").is_file():
        raise AgentFailed(f"{root} is no run: it holds no events.jsonl")


class ReplayAgent:
    """``options``: ``source`` is the run's folder, ``speed`` how much faster than recorded (0: without pauses)."""

    kind = "replay"

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        ready(options)
        self._run = RunDir(Path(str(options["source"])))
        self._speed = float(options.get("speed", 0.0))
        self.name = f"replay of {self._run.root.name}"

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        try:
            records = await asyncio.to_thread(read, self._run.events)
        except LogError as error:
            raise AgentFailed(f"the record cannot be replayed: {error}") from None
        done = (await door.info())["state"]["n_submits"]
        before = records[0].time if records else 0.0
        again = 0
        for record in records:
            event = record.event
            # What was submitted before this run was resumed has been re-enacted: edits lead there, in silence.
            past = again < done
            if not past and self._speed > 0:
                await asyncio.sleep(min((record.time - before) / self._speed, _LONGEST_PAUSE))
            before = record.time
            if isinstance(event, e.FinalizationStarted):
                break
            if isinstance(event, e.FileEdited):
                await self._edit(workspace, event)
            elif isinstance(event, e.SubmissionAccepted):
                again += 1
                if not past and not await self._submit(door, tell, event):
                    return "this run takes no more of what was recorded"
            elif isinstance(event, _SPOKEN) and not past:
                await tell(event)
        return f"replayed {counted(again, 'submission')} of {self._run.root.name}"

    async def _edit(self, workspace: Workspace, event: e.FileEdited) -> None:
        if not event.sha256:
            if workspace.resolve(event.path).exists():
                await workspace.delete(event.path)
            return
        try:
            text = await asyncio.to_thread(self._run.blob(event.sha256).read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AgentFailed(
                f"the record of {self._run.root.name} misses a version of {event.path}: {error}"
            ) from None
        await workspace.write(event.path, text)

    async def _submit(self, door: Door, tell: Teller, event: e.SubmissionAccepted) -> bool:
        try:
            await door.submit(event.cases)
        except Rejected as refused:
            await tell(e.AgentMessage(f"cases {format_cases(event.cases)} were not taken: {refused}"))
            return False
        return True
