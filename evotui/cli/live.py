"""A run that this process drives, as the screens see it: the session behind a feed and its controls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evotui.agents.again import Again, Diverged
from evotui.agents.base import Door, DoorUrls, Place, Teller, Workspace
from evotui.agents.catalog import agent_kind, make, preflight, warm_up
from evotui.agents.options import read_options
from evotui.analysis.story import story
from evotui.cli.errors import sentence
from evotui.kernel.config import RunConfig
from evotui.kernel.gate import Mode
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session, Turn
from evotui.record.events import IncidentNoted, Record
from evotui.record.log import read
from evotui.record.state import RunState
from evotui.suite.catalog import environment_folders, policy_folders
from evotui.ui.feed import Latest, Progress


class LiveFeed:
    """``ui.feed.Feed`` and ``ui.feed.Controls`` of a session. ``work`` is the edit loop, a task of this event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._slots: list[Latest] = []
        self.run = session.run_dir
        self.system: Path = session.run_dir.system
        self.work: asyncio.Task[str] | None = None
        self.failure = ""
        self._resting: asyncio.Task[None] | None = None
        session.watchers.append(self._wake)

    def _wake(self, state: RunState, record: Record) -> None:
        for slot in self._slots:
            slot.put()

    def begin(self, config: RunConfig, past: Sequence[Record] = ()) -> asyncio.Task[str]:
        """Start the agent's edit loop in the background."""
        self._session.patient = True
        work = drive(self._session, config.agent, config.seed, config.options, past)
        self.work = asyncio.create_task(work, name="edit loop")
        self.work.add_done_callback(self._ended)
        return self.work

    def _ended(self, work: asyncio.Task[str]) -> None:
        error = None if work.cancelled() else work.exception()
        if error is not None:
            self.failure = sentence(error)
        if not work.cancelled():
            self._resting = asyncio.create_task(self._session.rest(), name="workers end")
        for slot in self._slots:
            slot.close()

    # ── Feed ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> RunState:
        return self._session.state

    @property
    def live(self) -> bool:
        return self.work is not None and not self.work.done()

    @property
    def controls(self) -> LiveFeed | None:
        return self if self.live else None

    async def updates(self) -> AsyncIterator[RunState]:
        slot = Latest()
        self._slots.append(slot)
        try:
            yield self.state
            if self.work is not None and self.work.done():
                return
            while await slot.wait():
                yield self.state
            yield self.state
        finally:
            self._slots.remove(slot)

    def progress(self) -> Sequence[Progress]:
        return [Progress(s, p, step.step, step.return_) for (s, p), step in list(self._session.steps.items())]

    async def close(self) -> None:
        """Stop the run if it still goes on, and give its folder free."""
        await self.stop()
        if self._resting is not None:
            await self._resting
        await self._session.close()

    # ── Controls ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def pause(self) -> None:
        await self._session.gate.set(Mode.PAUSE)

    async def resume(self) -> None:
        await self._session.gate.set(Mode.RUN)

    async def step_iteration(self) -> None:
        await self._session.gate.set(Mode.ITERATION)

    async def step_phase(self) -> None:
        await self._session.gate.set(Mode.PHASE)

    async def submit(self, cases: str) -> dict[str, Any]:
        return await self._session.submit(cases, by="human")

    async def say(self, text: str) -> None:
        await self._session.say(text)

    async def approve_each(self, on: bool) -> None:
        await self._session.approve_each(on)

    async def decide(self, approved: bool, text: str = "") -> None:
        self._session.decide(approved, text)

    async def hand_over(self, agent: str, options: Mapping[str, str], program: Sequence[str] = ()) -> None:
        chosen = read_options(agent, options, program)
        await asyncio.to_thread(preflight, agent, chosen)
        self._session.hand_over(replace(turn_of(self._session, agent, 0, chosen), options=chosen))

    async def edited(self, before: Mapping[str, str]) -> list[str]:
        return await self._session.edited(before)

    async def stop(self) -> None:
        await self._wish("stop")
        if self.work is not None:
            await asyncio.wait({self.work})

    async def finalize(self) -> None:
        await self._wish("finalize")

    async def _wish(self, what: str) -> None:
        await asyncio.sleep(0)  # an edit loop that was begun just now hears wishes from its first step on
        self._session.wish(what)


async def drive(session: Session, kind: str, seed: int, options: Mapping[str, Any], past: Sequence[Record] = ()) -> str:
    """Let an agent evolve the policy of a session, to the final score. Returns the run's status, or ``stopped``.

    ``past`` are the records of an earlier process of the same run: an agent that repeats itself is led through them.
    """
    state = session.state
    handed = bool(past) and state.agent != "" and (state.agent != kind or bool(state.agent_options))
    if handed:  # whoever had the run last goes on with it
        kind, options, past = state.agent, state.agent_options, ()
    turn = turn_of(session, kind, seed, options, past)
    return await session.run(turn.kind, turn.name, turn.evolve, turn.grace, options if handed else None)


def turn_of(session: Session, kind: str, seed: int, options: Mapping[str, Any], past: Sequence[Record] = ()) -> Turn:
    """An agent's turn at a session: made now, so that what is wrong with it is told before anything begins.

    Raises UnknownAgent and AgentFailed.
    """
    which = agent_kind(kind)
    place = _place(session, kind) if which.placed else None
    agent = make(kind, seed, options, place)

    async def evolve() -> str:
        if past and which.repeats:
            again = Again(session.run_dir, past, session, session.tell, session.answer, session.info_at)
            await again.rewind()
            try:
                return await agent.run(workspace(again.tell), again, again.tell)
            except Diverged as difference:
                await again.give_up()
                await session.append(IncidentNoted(f"{agent.name} begins anew from here: {difference}"))
                return await make(kind, seed, options).run(workspace(session.tell), session, session.tell)
        return await agent.run(workspace(session.tell), session, session.tell)

    def workspace(tell: Teller) -> Workspace:
        return Workspace(session.run_dir.workspace, session.run_dir.blobs, tell)

    return Turn(agent.kind, agent.name, evolve, which.grace)


def _place(session: Session, kind: str) -> Place:
    run, state = session.run_dir, session.state

    def serve(door: Door | None = None) -> AbstractAsyncContextManager[DoorUrls]:
        from evotui.kernel.server import serve_door

        return serve_door(door or session)

    return Place(
        stream=run.logs / "agent_stream.jsonl",
        # Other runs and the host's part of this one; anchors; policies that somebody wrote already.
        closed=(run.collection(state.header.env), *environment_folders(), *policy_folders()),
        serve=serve,
        session=state.agent_session if kind == state.agent else "",
        past=story(state) if state.transcript else "",
        recorded=lambda: session.state.files,
    )


async def start(config: RunConfig, runs: Path, name: str | None) -> LiveFeed:
    """Open a run and begin to evolve; workers run at the lowest priority, since an interface shares the machine."""
    await asyncio.to_thread(preflight, config.agent, config.options)
    await warm_up(config.agent, config.options)
    feed = LiveFeed(await open_run(config, runs, name=name, background=True))
    if config.options.get("approve"):
        await feed.approve_each(True)
    feed.begin(config)
    return feed


async def resume(root: Path, weak: bool = False) -> LiveFeed:
    """Take an unfinished run up where its log ends. Raises what ``kernel.reopening.reopen_run`` raises."""
    session, config = await reopen_run(root, background=True, allow_weak_isolation=weak)
    feed = LiveFeed(session)
    feed.begin(config, await past_of(session))
    return feed


async def past_of(session: Session) -> list[Record]:
    """The records of a session's log so far."""
    return await asyncio.to_thread(read, session.run_dir.events)
