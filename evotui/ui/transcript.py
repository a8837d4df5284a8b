"""The transcript's facts as entries that a tail widget draws; converted once each, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable

from evotui.record import events as e
from evotui.record.grown import Grown
from evotui.record.state import RunState
from evotui.ui.widgets.tail import Entry, Kind
from evotui.ui.words import number, short, spread

_MOST = 4000
"""Characters of one entry: a tool may return a book."""


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else text[:_MOST] + f" … ({len(text) - _MOST} more characters)"


def _arguments(call: e.ToolCalled) -> str:
    if not call.arguments:
        return ""
    values = dict(call.arguments)
    if len(values) == 1 and isinstance(next(iter(values.values())), str):
        return _cut(str(next(iter(values.values()))))
    try:
        return _cut(json.dumps(values, ensure_ascii=False))
    except (TypeError, ValueError):
        return _cut(str(values))


def _who(by: str) -> str:
    return "" if by == "agent" else f" by {'you' if by == 'human' else by}"


def entry(record: e.Record, started_at: float, ahead: int) -> Entry | None:
    """One fact as an entry; None for facts that have their place elsewhere (usage). ``ahead`` is the submission that
    comes next, which edits and thoughts lead to."""
    time = record.time - started_at
    event = record.event
    match event:
        case e.AgentStarted():
            return Entry(Kind.NOTE, f"{event.name} starts", time)
        case e.AgentThought():
            return Entry(Kind.THOUGHT, _cut(event.text), time, submission=ahead)
        case e.AgentMessage():
            return Entry(Kind.MESSAGE, _cut(event.text), time)
        case e.ToolCalled():
            return Entry(Kind.TOOL_CALL, _arguments(event), time, event.name, submission=ahead)
        case e.ToolReturned():
            return Entry(Kind.TOOL_RESULT, _cut(event.text), time, "" if event.ok else "failed", ahead, event.ok)
        case e.FileEdited(by="start"):
            return Entry(Kind.EDIT, f"{event.added} lines to start from", time, event.path)
        case e.FileEdited():
            text = f"+{event.added} −{event.removed}{_who(event.by)}" if event.sha256 else f"deleted{_who(event.by)}"
            return Entry(Kind.EDIT, text, time, event.path, ahead)
        case e.SubmissionAccepted():
            n = len(event.cases)
            return Entry(
                Kind.SUBMISSION, f"{n} case{'' if n == 1 else 's'}{_who(event.by)}", time, short(event.submission),
                event.submission,
            )  # fmt: skip
        case e.SubmissionFinished():
            ok = event.mean is not None
            text = f"mean {number(event.mean)}" if event.mean is not None else event.verdict.value.replace("_", " ")
            message = f": {_cut(event.message)}" if event.message else ""
            return Entry(Kind.SUBMISSION, text + message, time, short(event.submission), event.submission, ok)
        case e.SubmissionRejected():
            return Entry(Kind.ERROR, f"{event.message} (asked for {event.request!r}; free)", time, "rejected", ok=False)
        case e.Intervened():
            return Entry(Kind.NOTE, f"you: {event.what} {event.text}".rstrip(), time)
        case e.IncidentNoted():
            return Entry(Kind.ERROR, event.text, time, "incident", ok=False)
        case e.AgentEnded():
            return Entry(
                Kind.NOTE, f"agent {event.reason.replace('_', ' ')}" + (f": {event.text}" if event.text else ""), time
            )
        case e.FinalizationStarted():
            n = len(event.checkpoints)
            return Entry(Kind.NOTE, f"finalization: {n} checkpoint{'' if n == 1 else 's'} to validate", time)
        case e.CheckpointSelected():
            return Entry(
                Kind.NOTE, f"post-hoc: {short(event.submission)} selected, validation {number(event.val_score)}", time,
                submission=event.submission,
            )  # fmt: skip
        case e.HeldoutScored():
            return Entry(
                Kind.NOTE, f"post-hoc: held-out {number(event.mean)} ± {spread(event.std)} (n={event.n})", time,
                submission=event.submission,
            )  # fmt: skip
        case e.RunResumed():
            return Entry(Kind.NOTE, "run resumed", time)
        case e.RunEnded():
            ok = event.status == "completed"
            text = f"run ended: {event.status.replace('_', ' ')}" + (f" ({event.error})" if event.error else "")
            return Entry(Kind.NOTE if ok else Kind.ERROR, text, time, ok=ok)
        case e.Unknown():
            return Entry(Kind.NOTE, f"a fact of a newer evotui: {event.kind}", time)
    return None


HIDDEN_FACTS = (e.CheckpointSelected, e.HeldoutScored)
"""Facts that carry hidden figures: not in the agent's eye."""


class Entries:
    """Entries of a growing transcript. One instance a run and eye; ``of`` costs what is new."""

    def __init__(self, hide: bool = False) -> None:
        self._hide = hide
        self._seen = 0
        self._ahead = 0
        self._entries: Grown[Entry] = Grown()

    def of(self, state: RunState) -> Grown[Entry]:
        """The entries of a state that is not older than the one before (an older one starts anew)."""
        transcript = state.transcript
        if len(transcript) < self._seen:
            self._seen, self._ahead, self._entries = 0, 0, Grown()
        for at in range(self._seen, len(transcript)):
            record = transcript[at]
            if isinstance(record.event, e.SubmissionAccepted):
                self._ahead = record.event.submission + 1
            if self._hide and isinstance(record.event, HIDDEN_FACTS):
                continue
            made = entry(record, state.started_at, self._ahead)
            if made is not None:
                self._entries = self._entries.add(made)
        self._seen = len(transcript)
        return self._entries


def plain(entries: Iterable[Entry]) -> str:
    """The transcript as text, to be copied."""
    lines = []
    for item in entries:
        clock = f"{item.time:8.1f}s " if item.time is not None else ""
        lines.append(f"{clock}{item.kind.value}: {item.title + ' ' if item.title else ''}{item.text}")
    return "\n".join(lines)
