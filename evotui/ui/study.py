"""Works out, beside the screen, what each transition was: reads checkpoints in a thread whenever there are new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evotui.analysis.edits import Edit, edits, load_bundles
from evotui.analysis.source import Bundle
from evotui.record.rundir import RunDir
from evotui.record.state import RunState

if TYPE_CHECKING:
    from evotui.ui.screens.runview import RunView


class Study:
    """One at a time; what came meanwhile is looked at next."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._bundles: dict[int, Bundle] = {}
        self._known: tuple[object, ...] = ()
        self._busy = False

    def request(self, screen: RunView, state: RunState) -> None:
        """Study a state unless nothing that matters is new."""
        if not self._busy and _matter(state) != self._known and state.submissions:
            self._busy = True
            screen.run_worker(self._work(screen, state), group="study")

    async def _work(self, screen: RunView, state: RunState) -> None:
        def work() -> Mapping[int, Edit]:
            self._bundles = load_bundles(self._run, state, self._bundles)
            return {edit.submission: edit for edit in edits(state, self._bundles)}

        try:
            found = await asyncio.to_thread(work)
        except OSError as error:
            screen.say(f"a checkpoint cannot be read: {error.strerror}", "error")
            found = {}
        self._busy = False
        self._known = _matter(state)
        screen.studied(found)
        self.request(screen, screen.newest)


def _matter(state: RunState) -> tuple[object, ...]:
    """What the classes depend on."""
    return tuple((bool(s.tree_hash), s.verdict) for s in state.submissions)
