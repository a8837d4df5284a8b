"""The transcript's facts as entries that a tail widget draws; converted once each, in order.

A submission is one entry, made when it is finished: the agent's call for it, its acceptance and the answer to the call
say the same thing four times. Until then it is the *pending* entry, which stands last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from evotui.protocol.budget import format_cases
from evotui.record import events as e
from evotui.record.grown import Grown
from evotui.record.state import RunState, Submission
from evotui.ui.select import PHASE_WORDS
from evotui.ui.widgets.tail import Entry, Kind
from evotui.ui.words import number, short, spread

_MOST = 4000
"""Characters of one entry: a tool may return a book."""
_ANSWER = 100
"""Characters of an answer to a submission that its entry stands for; a longer one holds more than the figures."""
_RETURNS = 3
"""Episodes up to which each return is shown beside the mean; their standard deviation where there are more."""
_CASES = 16


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


def _cases(submission: Submission) -> str:
    """``case 4``, ``cases 0-7``, ``24 cases``; and whose submission it was, where it was not the agent's."""
    listed = format_cases(submission.cases)
    if len(listed) > _CASES:
        listed = f"{submission.cost} cases"
    else:
        listed = f"case{'' if submission.cost == 1 else 's'} {listed}"
    return listed + _who(submission.by)


def finished(submission: Submission, time: float) -> Entry:
    """A finished submission: its mean with returns or spread, or its verdict, and the cases."""
    ok = submission.mean is not None
    if submission.mean is not None:
        text = f"mean {number(submission.mean)}"
        if 1 < submission.cost <= _RETURNS:
            text += f" ({', '.join(number(episode.return_) for episode in submission.in_order)})"
        elif submission.std is not None and submission.cost > 1:
            text += f" ± {spread(submission.std)}"
    else:
        text = (submission.verdict.value if submission.verdict is not None else "").replace("_", " ")
    message = f": {_cut(submission.message)}" if submission.message else ""
    return Entry(
        Kind.SUBMISSION, f"{text} · {_cases(submission)}{message}", time, short(submission.index), submission.index, ok
    )


def under_way(submission: Submission, time: float, live: bool) -> Entry:
    """A submission that is on its way, or was when the run broke off."""
    text = PHASE_WORDS.get(submission.phase, f"rolling out {len(submission.episodes)}/{submission.cost}")
    if not live:
        text = f"unfinished, {len(submission.episodes)}/{submission.cost} episodes"
    return Entry(Kind.UNDER_WAY, f"{text} · {_cases(submission)}", time, short(submission.index), submission.index)


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
        self._anew()

    def _anew(self) -> None:
        self._seen = 0
        self._ahead = 0
        self._entries: Grown[Entry] = Grown()
        self._call: e.Record | None = None
        """A call for a submission that neither was accepted nor answered yet."""
        self._answers: dict[str, str] = {}
        """What the answer to a call need not repeat: "" for a submission's figures, else a refusal's words."""

    def of(self, state: RunState) -> Grown[Entry]:
        """The entries of a state that is not older than the one before (an older one starts anew)."""
        transcript = state.transcript
        if len(transcript) < self._seen:
            self._anew()
        for at in range(self._seen, len(transcript)):
            self._take(transcript[at], state)
        self._seen = len(transcript)
        return self._entries

    def pending(self, state: RunState, live: bool) -> Entry | None:
        """What is on its way in the state that ``of`` was given last: a submission, or the agent's call for one."""
        active = state.active
        if active is not None:
            return under_way(active, active.accepted_at - state.started_at, live)
        return entry(self._call, state.started_at, self._ahead) if self._call is not None else None

    def _take(self, record: e.Record, state: RunState) -> None:
        event = record.event
        if self._hide and isinstance(event, HIDDEN_FACTS):
            return
        match event:
            case e.ToolCalled(name="submit"):
                self._release(state)
                self._call = record
                return
            case e.SubmissionAccepted():
                self._ahead = event.submission + 1
                if event.by == "agent":
                    self._settle("")
                return
            case e.SubmissionFinished():
                made: Entry | None = finished(state.submissions[event.submission], record.time - state.started_at)
            case e.SubmissionRejected():
                self._settle(event.message)
                made = entry(record, state.started_at, self._ahead)
            case e.ToolReturned() if self._is_said(event):
                return
            case _:
                if isinstance(event, (e.ToolReturned, e.AgentEnded, e.FinalizationStarted, e.RunResumed)):
                    self._release(state)  # nothing came of the call: it stands for itself
                made = entry(record, state.started_at, self._ahead)
        if made is not None:
            self._entries = self._entries.add(made)

    def _settle(self, said: str) -> None:
        """The pending call led to a submission or a refusal, which says all that it says."""
        if self._call is not None and isinstance(self._call.event, e.ToolCalled):
            self._answers[self._call.event.call] = said
            self._call = None

    def _is_said(self, event: e.ToolReturned) -> bool:
        said = self._answers.pop(event.call, None)
        return said is not None and said in event.text and len(event.text) <= _ANSWER + len(said)

    def _release(self, state: RunState) -> None:
        if self._call is not None:
            made = entry(self._call, state.started_at, self._ahead)
            self._call = None
            if made is not None:
                self._entries = self._entries.add(made)


def plain(entries: Iterable[Entry]) -> str:
    """The transcript as text, to be copied."""
    lines = []
    for item in entries:
        clock = f"{item.time:8.1f}s " if item.time is not None else ""
        lines.append(f"{clock}{item.kind.value}: {item.title + ' ' if item.title else ''}{item.text}")
    return "\n".join(lines)
