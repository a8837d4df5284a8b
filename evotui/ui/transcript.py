"""The transcript's facts as entries that a tail widget draws: each sorted in once, in order, and made when it is seen.

A transcript may hold fifty megabytes of which a screenful is read. A submission is one entry, when it is finished: the
agent's call for it, its acceptance and the answer to the call say the same thing four times. Until then it is a
*pending* entry, which stands last, as does what the agent is just saying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

from evotui.analysis.tools import Act, understand
from evotui.protocol.budget import format_cases
from evotui.protocol.verdict import Verdict
from evotui.protocol.words import counted, noun
from evotui.record import events as e
from evotui.record.grown import Grown
from evotui.record.state import RunState, Submission
from evotui.ui.select import PHASE_WORDS, plain_cases
from evotui.ui.widgets.tail import Entry, Kind
from evotui.ui.words import mean_of, number, short

_MOST = 100_000
"""Characters of one entry: a tool may return a book."""
_ANSWER = 100
"""Characters of an answer to a submission that its entry stands for; a longer one holds more than the figures."""
_RETURNS = 3
"""Episodes up to which each return is shown beside the mean; their standard deviation where there are more."""
_CASES = 16


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else text[:_MOST] + f" … ({len(text) - _MOST} more characters)"


def _who(by: str) -> str:
    return "" if by == "agent" else f" by {'you' if by == 'human' else by}"


def _cases(submission: Submission) -> str:
    """``case 4``, ``cases 0-7``, ``24 cases``; and whose submission it was, where it was not the agent's."""
    listed = format_cases(submission.cases)
    if len(listed) > _CASES:
        listed = f"{submission.cost} cases"
    else:
        listed = f"{noun(submission.cost, 'case')} {listed}"
    return listed + _who(submission.by)


def finished(submission: Submission, time: float) -> Entry:
    """A finished submission: its mean with returns or spread, or its verdict, and the cases."""
    ok = submission.mean is not None
    if submission.mean is not None:
        text = f"mean {number(submission.mean)}"
        if 1 < submission.cost <= _RETURNS:
            text += f" ({', '.join(number(episode.return_) for episode in submission.in_order)})"
        elif submission.std is not None and submission.cost > 1:
            text = f"mean {mean_of(submission.mean, submission.std, submission.cost)}"
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
        text = f"unfinished, {len(submission.episodes)}/{counted(submission.cost, 'episode')}"
    return Entry(Kind.UNDER_WAY, f"{text} · {_cases(submission)}", time, short(submission.index), submission.index)


def entry(record: e.Record, started_at: float, ahead: int) -> Entry | None:
    """One fact as an entry; None for facts that have their place elsewhere (usage). ``ahead`` is the submission that
    comes next, which edits and thoughts lead to."""
    time = record.time - started_at
    event = record.event
    match event:
        case e.AgentStarted():
            return Entry(Kind.NOTE, "it is your turn" if event.agent == "human" else f"{event.name} starts", time)
        case e.AgentSession():
            about = [event.model, event.version, f"session {event.session}" if event.session else ""]
            return Entry(Kind.ASIDE, " · ".join(part for part in about if part), time)
        case e.AgentRetried():
            title = f"retry {event.attempt}, in {seconds(event.seconds)}"
            return Entry(Kind.ASIDE, _cut(event.reason), time, title)
        case e.AgentRaw():
            start = " ".join(event.text[:200].split())
            return Entry(Kind.ASIDE, start, time, f"raw: {event.what}", detail=_cut(event.text))
        case e.WriteReverted():
            return Entry(Kind.ERROR, f"{event.path}: {event.what}", time, "write undone", ok=False)
        case e.MessageDelivered():
            what = f"your {len(event.texts)} messages" if len(event.texts) != 1 else "your message"
            return Entry(Kind.NOTE, f"{what} reached the agent {event.how}", time)
        case e.ApprovalAsked():
            return Entry(
                Kind.PERSON, f"may it submit cases {plain_cases(event.request)}? It waits for you", time, "asks"
            )
        case e.ApprovalGiven():
            said = "approved" if event.approved else "refused" + (f": {_cut(event.text)}" if event.text else "")
            return Entry(Kind.PERSON, said, time, "you")
        case e.AgentThought():
            return Entry(Kind.THOUGHT, _cut(event.text), time, submission=ahead)
        case e.AgentMessage():
            return Entry(Kind.MESSAGE, _cut(event.text), time)
        case e.ToolCalled():
            call = understand(event.name, event.arguments)
            # An edit's line says which file; a command's is its own first line.
            whole = f"{call.line}\n{call.whole}" if call.act is Act.EDIT and call.whole else call.whole
            return Entry(Kind.TOOL_CALL, call.line, time, event.name, submission=ahead, detail=_cut(whole))
        case e.ToolReturned():
            word = "denied" if event.denied else "" if event.ok else "failed"
            ok = event.ok and not event.denied
            return Entry(Kind.TOOL_RESULT, _cut(event.text), time, word, ahead, ok)
        case e.FileEdited(by="start"):
            return Entry(Kind.EDIT, f"{counted(event.added, 'line')} to start from", time, event.path)
        case e.FileEdited():
            text = f"+{event.added} −{event.removed}{_who(event.by)}" if event.sha256 else f"deleted{_who(event.by)}"
            return Entry(Kind.EDIT, text, time, event.path, ahead)
        case e.SubmissionRejected():
            return Entry(Kind.ERROR, f"{event.message} (asked for {event.request!r}; free)", time, "rejected", ok=False)
        case e.Intervened(what="message"):
            return Entry(Kind.PERSON, _cut(event.text), time, "you")
        case e.Intervened(what="hand over", text="you"):
            return Entry(Kind.NOTE, "you take over", time)
        case e.Intervened():
            done = {"edit": "edited", "submit": "submitted", "hand over": "handed over to"}.get(event.what, event.what)
            return Entry(Kind.NOTE, f"you {done} {event.text}".rstrip(), time)
        case e.IncidentNoted():
            return Entry(Kind.ERROR, event.text, time, "incident", ok=False)
        case e.AgentEnded():
            ok = event.reason != "failed"
            text = f"agent {event.reason.replace('_', ' ')}" + (f": {event.text}" if event.text else "")
            return Entry(Kind.NOTE if ok else Kind.ERROR, text, time, ok=ok)
        case e.FinalizationStarted():
            n = len(event.checkpoints)
            return Entry(Kind.NOTE, f"finalization: {counted(n, 'checkpoint')} to validate", time)
        case e.CheckpointSelected():
            return Entry(
                Kind.NOTE, f"post-hoc: {short(event.submission)} selected, validation {number(event.val_score)}", time,
                submission=event.submission,
            )  # fmt: skip
        case e.HeldoutScored():
            return Entry(
                Kind.NOTE, f"post-hoc: held-out {mean_of(event.mean, event.std, event.n)} (n={event.n})", time,
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


class _Source(NamedTuple):
    """What an entry is made from."""

    record: e.Record
    ahead: int
    submission: Submission | None = None


class Made(Sequence[Entry]):
    """Entries that are made when they are asked for; as long as its sources were when it was handed out."""

    def __init__(self, sources: Grown[_Source], started_at: float) -> None:
        self._sources = sources
        self._started_at = started_at

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._make(source) for source in self._sources[index]]
        return self._make(self._sources[index])

    def _make(self, source: _Source) -> Entry:
        if source.submission is not None:
            return finished(source.submission, source.record.time - self._started_at)
        made = entry(source.record, self._started_at, source.ahead)
        assert made is not None, "a fact without an entry is no source of one"
        return made


def _said_elsewhere(event: e.Event) -> bool:
    """Facts without an entry: usage stands in the pane's foot, a refusal with the approval that was not given."""
    match event:
        case e.UsageReported() | e.Intervened(what="refusal") | e.ApprovalGiven(approved=False, text="withdrawn"):
            return True
        case e.AgentThought() | e.AgentMessage():
            return not event.text or event.text.isspace()
    return False


_LEADS = (e.AgentThought, e.ToolCalled, e.ToolReturned, e.FileEdited)
"""Facts that lead to the next submission."""


class Entries:
    """Entries of a growing transcript. One instance a run and eye; ``of`` costs what is new."""

    def __init__(self, hide: bool = False) -> None:
        self._hide = hide
        self._anew()

    def _anew(self) -> None:
        self._seen = 0
        self._ahead = 0
        self._sources: Grown[_Source] = Grown()
        self._first: dict[int, int] = {}
        self._last: e.Record | None = None
        self._call: e.Record | None = None
        """A call for a submission that neither was accepted nor answered yet."""
        self._answers: dict[str, str] = {}
        """What the answer to a call need not repeat: "" for a submission's figures, else a refusal's words."""
        self._speech = {channel: Speech() for channel in CHANNELS}

    def of(self, state: RunState) -> Made:
        """The entries of a state that is not older than the one before (an older one starts anew)."""
        transcript = state.transcript
        if len(transcript) < self._seen:
            self._anew()
        for at in range(self._seen, len(transcript)):
            self._take(transcript[at], state)
        self._seen = len(transcript)
        return Made(self._sources, state.started_at)

    def first_of(self, submission: int) -> int | None:
        """The place of the first entry that led to a submission, or is about it."""
        return self._first.get(submission)

    def pending(self, state: RunState, live: bool, now: float = 0.0) -> tuple[Entry, ...]:
        """What is on its way in the state that ``of`` was given last: what the agent is saying, a submission or the
        agent's call for one, a model call that is about to be made again. ``now`` in seconds since the epoch."""
        found: list[Entry] = []
        active = state.active
        if active is not None:
            found.append(under_way(active, active.accepted_at - state.started_at, live))
        elif self._call is not None and (made := entry(self._call, state.started_at, self._ahead)) is not None:
            found.append(made)
        if not live:
            return tuple(found)
        for channel, pieces in state.streaming.items():
            kind, title = CHANNELS.get(channel, CHANNELS["text"])
            text = self._speech.setdefault(channel, Speech()).of(pieces)
            if channel == "tool":  # arguments come as JSON: their lines as lines
                text = text.replace("\\n", "\n").replace('\\"', '"')
            if text.strip():
                found.append(Entry(kind, text, None, title, growing=True))
        left = self.waits(now)
        if left > 0:
            found.append(Entry(Kind.UNDER_WAY, f"the model is asked again in {seconds(left)}", None))
        return tuple(found)

    def waits(self, now: float) -> float:
        """Seconds until a failed model call is made again; 0 where none is."""
        last = self._last
        return last.time + last.event.seconds - now if last and isinstance(last.event, e.AgentRetried) else 0.0

    def _take(self, record: e.Record, state: RunState) -> None:
        event = record.event
        self._last = record
        if self._hide and isinstance(event, HIDDEN_FACTS):
            return
        match event:
            case e.ToolCalled(name="submit"):
                self._release()
                self._call = record
                return
            case e.SubmissionAccepted():
                self._ahead = event.submission + 1
                if event.by == "agent":
                    self._settle("")
                return
            case e.SubmissionFinished():
                self._add(_Source(record, self._ahead, state.submissions[event.submission]), event.submission)
                return
            case e.SubmissionRejected():
                self._settle(event.message)
                if event.verdict is Verdict.REFUSED:
                    return  # the refusal itself has said it
            case e.ToolReturned() if self._is_said(event):
                return
            case e.ToolReturned() | e.AgentEnded() | e.FinalizationStarted() | e.RunResumed():
                self._release()  # nothing came of the call: it stands for itself
        if not _said_elsewhere(event):
            leads = isinstance(event, _LEADS) and not (isinstance(event, e.FileEdited) and event.by == "start")
            self._add(_Source(record, self._ahead), self._ahead if leads else getattr(event, "submission", None))

    def _add(self, source: _Source, submission: int | None) -> None:
        if submission is not None:
            self._first.setdefault(submission, len(self._sources))
        self._sources = self._sources.add(source)

    def _settle(self, said: str) -> None:
        """The pending call led to a submission or a refusal, which says all that it says."""
        if self._call is not None and isinstance(self._call.event, e.ToolCalled):
            self._answers[self._call.event.call] = said
            self._call = None

    def _is_said(self, event: e.ToolReturned) -> bool:
        said = self._answers.pop(event.call, None)
        return said is not None and said in event.text and len(event.text) <= _ANSWER + len(said)

    def _release(self) -> None:
        if self._call is not None:
            call, self._call = self._call, None
            self._add(_Source(call, self._ahead), self._ahead)


CHANNELS: dict[str, tuple[Kind, str]] = {
    "thought": (Kind.THOUGHT, ""), "text": (Kind.MESSAGE, ""), "tool": (Kind.TOOL_CALL, "calls a tool"),
}  # fmt: skip
"""What is streamed on each channel, and the title it has until it is whole."""

_TAIL = 4000
"""Characters of a growing text that are kept at hand: its end is on the screen, the whole is an entry soon."""


class Speech:
    """The end of a text that comes in pieces. Costs what is new."""

    def __init__(self) -> None:
        self._first: str | None = None
        self._seen = 0
        self._text = ""

    def of(self, pieces: Sequence[str]) -> str:
        """The last few thousand characters, beginning at a line or a word."""
        count = len(pieces)
        if not count:
            return ""
        if self._first is not pieces[0] or self._seen > count:
            self._first, self._text, at, room = pieces[0], "", count, _TAIL
            while at and room > 0:  # of a long one that was met late only the end is put together
                at -= 1
                room -= len(pieces[at])
            self._seen = at
        new = [pieces[at] for at in range(self._seen, count)]
        if new:
            self._seen = count
            text = self._text + "".join(new)
            if len(text) > 2 * _TAIL:
                start = len(text) - _TAIL
                for mark in ("\n", " "):
                    found = text.find(mark, start, start + _TAIL // 2)
                    if found >= 0:
                        start = found + 1
                        break
                text = text[start:]
            self._text = text
        return self._text


def seconds(value: float) -> str:
    """``3 s``, ``0.4 s``: how long a wait is."""
    return f"{value:.0f} s" if value >= 1 else f"{value:.1f} s"


_COPIED = 400_000
"""Characters that are handed to the terminal's clipboard at most."""


def plain(entries: Sequence[Entry]) -> str:
    """The transcript as text, to be copied; of a very long one the end."""
    lines: list[str] = []
    room = _COPIED
    for at in range(len(entries) - 1, -1, -1):
        item = entries[at]
        clock = f"{item.time:8.1f}s " if item.time is not None else ""
        lines.append(f"{clock}{item.kind.value}: {item.title + ' ' if item.title else ''}{item.detail or item.text}")
        room -= len(lines[-1])
        if room < 0:
            lines.append(f"… {at} earlier entries")
            break
    return "\n".join(reversed(lines))
