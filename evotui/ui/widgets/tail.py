"""`TranscriptTail`: what the agent thinks, says and does, as a tail of bounded cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from evotui.ui.widgets.paint import InkedWidget


class Kind(StrEnum):
    """What an entry is: decides glyph and colour."""

    THOUGHT = "thought"
    MESSAGE = "message"
    TOOL_CALL = "tool call"
    TOOL_RESULT = "tool result"
    EDIT = "edit"
    SUBMISSION = "submission"
    NOTE = "note"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `time`: seconds since the run began, or None. `submission`: the one it led to or speaks of."""

    kind: Kind
    text: str
    time: float | None = None
    title: str = ""
    """Short head in the kind's colour: a tool's name, a path, "s005"."""
    submission: int | None = None
    ok: bool = True
    """False draws a tool result or submission as failed."""


class TranscriptTail(InkedWidget):
    """Follows the end until scrolled up; wraps only what is in view, so that any length costs the same."""

    DEFAULT_CSS = "TranscriptTail { width: 1fr; height: 1fr; }"

    class EntryPicked(Message):
        """The user clicked on an entry that belongs to a submission."""

        def __init__(self, tail: TranscriptTail, index: int, entry: Entry) -> None:
            super().__init__()
            self.tail = tail
            self.index = index
            self.entry = entry

        @property
        def control(self) -> TranscriptTail:
            return self.tail

    def __init__(
        self,
        *,
        empty: str = "the agent's transcript appears here",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.following = True
        self._empty = empty
        self._entries: Sequence[Entry] = ()

    def set_entries(self, entries: Sequence[Entry], streaming: Entry | None = None) -> None:
        """Show `entries`, which only grow between calls (anything else starts anew); `streaming` is still changing."""
        self._entries = entries
        self.refresh()

    def highlight(self, submission: int | None) -> None:
        """Mark the entries of one submission; when not following, scroll to the first of them."""

    def follow(self) -> None:
        """Go to the end and stay there."""

    def render(self) -> str:
        return self._empty
