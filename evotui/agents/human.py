"""The person as an agent: edits and submits through the interface; this end only waits."""

from __future__ import annotations

import asyncio

from evotui.agents.base import Door, Teller, Workspace
from evotui.record.events import AgentMessage


class HumanAgent:
    """Holds the run open while a person works on it. Ends when the session ends it: budget spent, or asked to."""

    kind = "human"
    name = "you"

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        await tell(
            AgentMessage("It is your turn: press e to edit system/policy.py, then u to submit it on cases you choose.")
        )
        await asyncio.Event().wait()
        return ""
