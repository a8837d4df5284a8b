"""The built-in ``search`` agent: no model, no key, no network; an optimiser that writes readable policy code."""

from __future__ import annotations

from evotui.agents.base import Door, DoorClosed, Teller, Workspace
from evotui.agents.search.session import Session, Spent, number
from evotui.agents.search.spaces import read_situation
from evotui.agents.search.stages import Search
from evotui.protocol.words import counted


class SearchAgent:
    """Evolves ``system/policy.py``: chooses controller forms, tunes their constants. Deterministic for ``seed``."""

    kind = "search"

    def __init__(self, seed: int = 0) -> None:
        self.name = "search"
        self.seed = int(seed)

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        """Spend the whole budget; returns a sentence on what came out."""
        try:
            info, task = await door.info(), await door.task()
        except DoorClosed:
            return "The run was closed before it began."
        situation = read_situation(info, task)
        session = Session(situation, workspace, door, tell)
        search = Search(session, self.seed)
        try:
            await search.run()
            reason = "the search is done"
        except Spent as spent:
            reason = str(spent)
        best = search.best
        if best is None:
            return f"Ended without a policy that ran: {reason}."
        return (
            f"Ended: {reason}. Best here: '{best.form.title}' with a mean of {number(best.mean())} "
            f"over {counted(len(best.results), 'episode')}."
        )
