"""Taking a deterministic agent up where its record ends.

The agent is begun anew and led through its own past: what it tells is compared with what it told and not recorded
twice, what it submits is answered from the record. Where the record ends it goes on live, in the state it had. An agent
that takes another course than the recorded one is noticed (:class:`Diverged`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evotui.agents.base import Door, Teller
from evotui.protocol.budget import Rejected, parse_cases
from evotui.record import events as e
from evotui.record.fold import fold
from evotui.record.log import decode, encode
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.record.tree import read_tree, restore

TOLD = (e.AgentThought, e.AgentMessage, e.ToolCalled, e.ToolReturned, e.FileEdited, e.UsageReported)


class Diverged(Exception):
    """The agent does not repeat what its record says; the message says where."""


class Again:
    """A door and a teller that replay ``records`` and then hand over to the real ones.

    ``answer(index)`` gives a committed submission's answer, ``info_at(state)`` the ``/info`` document of a past state.
    """

    def __init__(
        self,
        run: RunDir,
        records: Sequence[e.Record],
        door: Door,
        tell: Teller,
        answer: Callable[[int], dict[str, Any]],
        info_at: Callable[[RunState], dict[str, Any]],
    ) -> None:
        self._run, self._door, self._tell = run, door, tell
        self._answer, self._info_at = answer, info_at
        self._past = [record for record in records if _is_agents(record.event)]
        self._next = 0
        self._records, self._folded, self._state = records, 0, RunState()
        self._fold_to(self._past[0].seq - 1 if self._past else -1)
        last = self._past[-1].seq if self._past else -1
        self._persons_edit = any(
            isinstance(r.event, e.FileEdited) and r.event.by == "human" and r.seq > last for r in records
        )
        self._present: dict[str, bytes] = {}

    @property
    def live(self) -> bool:
        """Whether the past is over."""
        return self._next >= len(self._past)

    async def rewind(self) -> None:
        """Put the starting policy back, so that the agent's own writes lead to where it was. Call before it begins."""
        self._present = await asyncio.to_thread(read_tree, self._run.system)
        start: dict[str, bytes] = {}
        for record in self._records:
            event = record.event
            if isinstance(event, e.FileEdited) and event.by == "start":
                start[event.path] = await asyncio.to_thread(self._blob, event.sha256)
        if not self.live:
            await asyncio.to_thread(restore, start, self._run.system)

    def _blob(self, sha256: str) -> bytes:
        path: Path = self._run.blob(sha256)
        return path.read_bytes()

    async def give_up(self) -> None:
        """Put back what was there before :meth:`rewind`, for an agent that is to begin anew from there."""
        await asyncio.to_thread(restore, self._present, self._run.system)

    # ── teller ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def tell(self, fact: e.Event) -> None:
        if self.live:
            await self._tell(fact)
            return
        if isinstance(fact, e.FileEdited):
            # A person's edits may lie between: lines added and removed, and whether there was a change, may differ.
            due = self._past[self._next].event
            if isinstance(due, e.FileEdited) and (due.path, due.sha256) == (fact.path, fact.sha256):
                await self._advance()
            return
        await self._pass_edits()
        if self.live:
            await self._tell(fact)
            return
        due = self._past[self._next].event
        if decode(encode(e.Record(0, 0.0, fact))).event != due:
            raise Diverged(f"event {self._past[self._next].seq} is a {type(due).__name__} that it does not repeat")
        await self._advance()

    async def _pass_edits(self) -> None:
        while not self.live and isinstance(self._past[self._next].event, e.FileEdited):
            await self._advance()

    async def _advance(self) -> None:
        self._fold_to(self._past[self._next].seq)
        self._next += 1
        if self.live and self._persons_edit:
            await asyncio.to_thread(restore, self._present, self._run.system)

    # ── door ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def task(self) -> str:
        return await self._door.task()

    async def info(self) -> dict[str, Any]:
        return await self._door.info() if self.live else self._info_at(self._state)

    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
        if not self.live:
            await self._pass_edits()
        if self.live:
            return await self._door.submit(cases)
        due = self._past[self._next].event
        if isinstance(due, e.SubmissionRejected):
            await self._advance()
            raise Rejected(due.verdict, due.message)
        if (
            not isinstance(due, e.SubmissionAccepted)
            or parse_cases(cases if isinstance(cases, str) else list(cases), self._state.header.n_train) != due.cases
        ):
            raise Diverged(f"event {self._past[self._next].seq} is a {type(due).__name__} that it does not repeat")
        answer = await asyncio.to_thread(self._answer, due.submission)
        await self._advance_past(due.submission)
        return answer

    async def messages(self, how: str = "at the gate") -> list[str]:
        return await self._door.messages(how) if self.live else []

    async def spoken_to(self) -> None:
        await self._door.spoken_to()

    def _fold_to(self, seq: int) -> None:
        while self._folded < len(self._records) and self._records[self._folded].seq <= seq:
            self._state = fold(self._state, self._records[self._folded])
            self._folded += 1

    async def _advance_past(self, submission: int) -> None:
        """Move on, with the state as it was once the submission had finished."""
        await self._advance()
        while self._folded < len(self._records) and (active := self._state.active) is not None:
            if active.index != submission:
                break
            self._fold_to(self._records[self._folded].seq)


def _is_agents(event: e.Event) -> bool:
    if isinstance(event, (e.FileEdited, e.SubmissionAccepted, e.SubmissionRejected)):
        return event.by == "agent"
    return isinstance(event, TOLD)
