"""Where an agent's program works: the door over HTTP, its edits followed, its workspace guarded, all in one context.

::

    async with Station(workspace, door, tell, place) as station:
        async with await station.program([...]) as program:
            async for line in program.lines():
                …

Whatever an earlier process of the run left behind is ended first. Before each submission the edits are told; after the
program's end they are told once more, and what it wrote where it may not is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from evotui.agents import confine
from evotui.agents.base import AgentFailed, Door, DoorUrls, Place, Teller, Workspace
from evotui.agents.guard import Guard
from evotui.agents.process import AgentProcess
from evotui.agents.sweep import sweep_leftovers
from evotui.agents.watch import SystemWatch
from evotui.record.events import AgentRaw


class Station:
    """See the module. ``urls`` is the door; ``accepted`` how many submissions were made through it.

    ``wall`` False: programs run without Landlock, because they have to mount (bubblewrap); None: nothing is guarded
    either, since it is a person who works here. ``by`` is whose edits they are.
    """

    urls: DoorUrls

    def __init__(
        self, workspace: Workspace, door: Door, tell: Teller, place: Place, wall: bool | None = True, by: str = "agent"
    ) -> None:
        self.workspace, self.door, self.tell, self.place = workspace, door, tell, place
        self.accepted = 0
        self.wall = wall
        self.watch = SystemWatch(workspace, tell, place.recorded, by=by)
        self.guard: Guard | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Station:
        try:
            return await self._open()
        except OSError as error:
            raise AgentFailed(f"there is no place for the agent to work: {error.strerror or error}") from error

    async def _open(self) -> Station:
        left = await asyncio.to_thread(sweep_leftovers, self.workspace.root)
        if left:
            await self.tell(AgentRaw("process", f"{left} processes that an earlier agent had left behind were ended"))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.watch)
            why = "the agent's program needs to mount"
            if self.wall and (why := await asyncio.to_thread(confine.why_not)):
                self.wall = False
            if self.wall is False:
                self.guard = await stack.enter_async_context(Guard(self.workspace, self.tell))
                words = f"no wall around the agent ({why}): what it writes outside of system/ is undone afterwards"
                await self.tell(AgentRaw("process", words))
            stack.push_async_callback(self._last_look)
            self.urls = await stack.enter_async_context(self.place.serve(_Watched(self)))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._stack.__aexit__(*exc)

    async def program(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, writable: Sequence[Path] = (), **how: Any
    ) -> AgentProcess:
        """Start a program here; ``how`` as :meth:`AgentProcess.start` takes it. Raises AgentFailed."""
        program = await AgentProcess.start(
            command, self.workspace, self.place, self.urls, tell=self.tell, env=env, writable=writable,
            wall=bool(self.wall), busy=self.urls.busy, **how,
        )  # fmt: skip
        if not program.walls["seccomp"]:
            why = program.walls.get("why_no_filter") or "unknown"
            try:
                await self.tell(AgentRaw("process", f"no filter of system calls around the agent ({why})"))
            except BaseException:
                await program.stop()
                raise
        return program

    async def look(self) -> None:
        """Tell what was edited by now, and undo what was written where it may not be."""
        await self.watch.look()
        if self.guard is not None:
            info = await self.door.info()
            await self.guard.mend(info["state"]["n_submits"])

    async def _last_look(self) -> None:
        # Also when the run is being stopped: the edits are on disk, and the record should have them.
        look = asyncio.ensure_future(self.look())
        try:
            await asyncio.shield(look)
        except asyncio.CancelledError:
            await asyncio.wait({look})
            raise
        except OSError as error:
            raise AgentFailed(f"what the agent wrote cannot be recorded: {error.strerror or error}") from error


class _Watched:
    """The door as the program sees it: each submission is of what was told."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._door = station.door

    async def task(self) -> str:
        return await self._door.task()

    async def info(self) -> dict[str, Any]:
        return await self._door.info()

    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
        looking = asyncio.ensure_future(self._station.look())  # to its end, though the client may be gone
        looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(looking)
        answer = await self._door.submit(cases)
        self._station.accepted += 1
        if self._station.guard is not None:
            await self._station.guard.adopt(f"feedback/{answer['submit_id']}")
        return answer

    async def messages(self, how: str = "at the gate") -> list[str]:
        return await self._door.messages(how)

    async def spoken_to(self) -> None:
        await self._door.spoken_to()
