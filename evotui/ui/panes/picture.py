"""What every pane is handed: one state, the cursor on it, and what is known besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evotui.analysis.edits import Edit
from evotui.analysis.evidence import Evidence
from evotui.analysis.usage import Ledger
from evotui.record.state import RunState
from evotui.ui.costs import Limits
from evotui.ui.select import Cursor, View, resolve


@dataclass(frozen=True, slots=True)
class Picture:
    """``edits`` are the transitions known so far by submission; ``live`` says whether facts may still come, ``frozen``
    whether the display stands still."""

    state: RunState
    cursor: Cursor
    live: bool = False
    frozen: bool = False
    edits: Mapping[int, Edit] = field(default_factory=dict)
    now: float = 0.0
    """Seconds since the epoch."""
    ledger: Ledger = field(default_factory=Ledger)
    """What the agent spent up to this state."""
    limits: Limits = field(default_factory=Limits)
    evidence: Mapping[int, Evidence] = field(default_factory=dict)
    """What stood behind each submission, as far as it is known."""

    @property
    def view(self) -> View:
        return resolve(self.state, self.cursor)

    @property
    def kinds(self) -> dict[int, str]:
        """Edit classes by submission, as words."""
        return {index: edit.kind.value for index, edit in self.edits.items()}
