"""The person as an agent: edits and submits through the interface, or without a screen through the door."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from evotui.agents.base import Door, DoorUrls, Place, Teller, Workspace
from evotui.agents.station import Station
from evotui.record.events import AgentMessage


class HumanAgent:
    """Holds the run open while a person works on it. Ends when the session ends it: budget spent, or asked to.

    With ``headless`` among the options the door is opened, what a shell needs for it is written to stderr, and edits
    are followed as those of a program.
    """

    kind = "human"
    name = "you"

    def __init__(self, options: Mapping[str, Any] | None = None, place: Place | None = None) -> None:
        self._place = place if (options or {}).get("headless") else None

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        if self._place is None:
            await tell(
                AgentMessage(
                    "It is your turn: press e to edit system/policy.py, then u to submit it on cases you choose."
                )
            )
            await asyncio.Event().wait()
            return ""
        await tell(AgentMessage("It is your turn: edit system/policy.py, then `evotui submit CASES`."))
        async with Station(workspace, door, tell, self._place, wall=None, by="human") as station:
            sys.stderr.write(how_to(workspace, station.urls))
            sys.stderr.flush()
            await asyncio.Event().wait()
        return ""


def how_to(workspace: Workspace, urls: DoorUrls) -> str:
    """What a person without a screen has to know, as lines to be read and pasted into a shell."""
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in urls.environment().items())
    return (
        f"The workspace is {workspace.root.resolve()}\n"
        "Edit system/policy.py there; in another shell, to submit, to see the budget, to read the task:\n\n"
        f"cd {shlex.quote(str(workspace.root.resolve()))}\n{exports}\n"
        "evotui submit 0-3\nevotui info\nevotui task\n\n"
        "The run goes on until the budget is spent; Ctrl-C here stops it, and --resume takes it up.\n"
    )
