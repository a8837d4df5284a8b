"""Works out, beside the screen, what each transition was and what stood behind it, whenever there are new ones.

It reads checkpoints and lists feedback in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evotui.analysis.edits import Edit, constant_changes, edits, load_bundles
from evotui.analysis.evidence import Evidence, evidence, feedback_files
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
        self._constants: dict[int, int] = {}
        self._known: tuple[object, ...] = ()
        self._busy = False

    def request(self, screen: RunView, state: RunState) -> None:
        """Study a state unless nothing that matters is new."""
        if not self._busy and _matter(state) != self._known and state.submissions:
            self._busy = True
            screen.run_worker(self._work(screen, state), group="study")

    async def _work(self, screen: RunView, state: RunState) -> None:
        def work() -> tuple[Mapping[int, Edit], Mapping[int, Evidence]]:
            self._bundles = load_bundles(self._run, state, self._bundles)
            found = {edit.submission: edit for edit in edits(state, self._bundles)}
            moved = {edit.submission: self._moved(edit) for edit in found.values()}
            rows = evidence(state, feedback_files(self._run, state), found, moved)
            return found, {row.submission: row for row in rows}

        try:
            found, rows = await asyncio.to_thread(work)
        except OSError as error:
            screen.say(f"a checkpoint cannot be read: {error.strerror}", "error")
            found, rows = {}, {}
        self._busy = False
        self._known = _matter(state)
        screen.studied(found, rows)
        self.request(screen, screen.newest)

    def _moved(self, edit: Edit) -> int:
        """How many constants an edit moved; each pair is compared once."""
        if edit.submission not in self._constants:
            before, after = self._bundles.get(edit.previous or 0), self._bundles.get(edit.submission)
            if edit.previous is None or before is None or after is None:
                return 0
            self._constants[edit.submission] = len(constant_changes(before, after))
        return self._constants[edit.submission]


def _matter(state: RunState) -> tuple[object, ...]:
    """What the classes depend on."""
    return tuple((bool(s.tree_hash), s.verdict) for s in state.submissions)
