"""How the facts of a run lead to its state, one handler a fact.

``fold`` never looks at a clock, a file or a screen, so a live run, a run of another process and a finished one are
the same thing. A fact that cannot follow from the ones before it raises FoldError: the record is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from evotui.protocol.budget import Budget
from evotui.protocol.pools import Split
from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from evotui.record.grown import Grown
from evotui.record.state import FoldError, Heldout, RunState, Submission, Usage

_Handler = Callable[[RunState, e.Record, Any], RunState]
_HANDLERS: dict[type[e.Event], _Handler] = {}
_E = TypeVar("_E", bound=e.Event)


def _on(cls: type[_E]) -> Callable[[Callable[[RunState, e.Record, _E], RunState]], None]:
    def register(handler: Callable[[RunState, e.Record, _E], RunState]) -> None:
        _HANDLERS[cls] = handler

    return register


IN_TRANSCRIPT = (
    e.AgentStarted, e.AgentThought, e.AgentMessage, e.ToolCalled, e.ToolReturned, e.FileEdited, e.UsageReported,
    e.AgentSession, e.AgentRetried, e.AgentRaw, e.WriteReverted, e.MessageDelivered, e.ApprovalAsked, e.ApprovalGiven,
    e.AgentEnded, e.SubmissionRejected, e.SubmissionAccepted, e.SubmissionFinished, e.Intervened, e.IncidentNoted,
    e.FinalizationStarted, e.CheckpointSelected, e.HeldoutScored, e.RunResumed, e.RunEnded, e.Unknown,
)  # fmt: skip
"""Kinds that the transcript shows, in the order they happened."""
_TRANSCRIPT_KINDS = frozenset(IN_TRANSCRIPT)


def fold(state: RunState, record: e.Record) -> RunState:
    """The state after one more fact. Raises FoldError where the fact cannot follow."""
    event = record.event
    if record.seq != state.seq + 1:
        raise FoldError(f"event {record.seq} follows event {state.seq}")
    if state.opened is None and not isinstance(event, e.RunOpened):
        raise FoldError(f"the log begins with {type(event).__name__}, not with RunOpened")
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        state = handler(state, record, event)
    transcript = state.transcript.add(record) if isinstance(event, IN_TRANSCRIPT) else state.transcript
    return replace(state, seq=record.seq, last_at=record.time, transcript=transcript)


def fold_all(records: Iterable[e.Record], state: RunState | None = None, skimmed: bool = False) -> RunState:
    """``fold`` over many facts, from the empty state or from ``state``; what only adds to the transcript or to what the
    agent is saying, most of a long log, is gathered and put into the state once.

    ``skimmed``: the records come from a reader that checked their numbers and left out pieces of speech.
    """
    state = state if state is not None else RunState()
    seq, last_at, transcript = state.seq, state.last_at, state.transcript
    streaming: dict[str, Grown[str]] | None = None
    for record in records:
        event = record.event
        if record.seq != seq + 1 and not skimmed:
            raise FoldError(f"event {record.seq} follows event {seq}")
        kind = type(event)
        if state.opened is None and kind is not e.RunOpened:
            raise FoldError(f"the log begins with {kind.__name__}, not with RunOpened")
        seq, last_at = max(seq, record.seq), max(last_at, record.time) if skimmed else record.time
        if kind is e.AgentDelta:
            if streaming is None:
                streaming = dict(state.streaming)
            streaming[event.channel] = streaming.get(event.channel, Grown()).add(event.text)  # type: ignore[attr-defined]
            continue
        handler = _HANDLERS.get(kind)
        if handler is not None:
            if streaming is not None:
                state, streaming = replace(state, streaming=streaming), None
            state = handler(state, record, event)
        if kind in _TRANSCRIPT_KINDS:
            transcript = transcript.add(record)
    if streaming is not None:
        state = replace(state, streaming=streaming)
    return replace(state, seq=seq, last_at=last_at, transcript=transcript)


def _with(state: RunState, index: int, **changes: Any) -> RunState:
    old = state.submission(index)
    items = state.submissions
    return replace(state, submissions=(*items[:index], replace(old, **changes), *items[index + 1 :]))


@_on(e.RunOpened)
def _(state: RunState, record: e.Record, event: e.RunOpened) -> RunState:
    if state.opened is not None:
        raise FoldError("the run is opened twice")
    try:
        budget = Budget(event.budget, 0, event.min_submit, event.max_submit)
    except ValueError as error:
        raise FoldError(str(error)) from None
    return replace(state, opened=event, started_at=record.time, budget=budget)


@_on(e.GateMoved)
def _(state: RunState, record: e.Record, event: e.GateMoved) -> RunState:
    return replace(state, gate=event.mode)


@_on(e.GateHeld)
def _(state: RunState, record: e.Record, event: e.GateHeld) -> RunState:
    return replace(state, held=event.where)


@_on(e.Intervened)
def _(state: RunState, record: e.Record, event: e.Intervened) -> RunState:
    messages = (*state.messages, event.text) if event.what == "message" else state.messages
    return replace(state, interventions=state.interventions + 1, messages=messages)


@_on(e.AgentStarted)
def _(state: RunState, record: e.Record, event: e.AgentStarted) -> RunState:
    if state.finalizing is not None:
        raise FoldError("an agent starts after finalization began")
    session = state.agent_session if event.agent == state.agent else ""
    return replace(
        state,
        agent=event.agent,
        agent_name=event.name,
        agent_options=event.options,
        agent_live=True,
        agent_ended="",
        agent_session=session,
    )


@_on(e.AgentEnded)
def _(state: RunState, record: e.Record, event: e.AgentEnded) -> RunState:
    return replace(state, agent_live=False, agent_ended=event.reason, streaming={}, asked=None)


@_on(e.FileEdited)
def _(state: RunState, record: e.Record, event: e.FileEdited) -> RunState:
    files = dict(state.files)
    if event.sha256:
        files[event.path] = event.sha256
    else:
        files.pop(event.path, None)
    return replace(state, files=files)


@_on(e.AgentSession)
def _(state: RunState, record: e.Record, event: e.AgentSession) -> RunState:
    return replace(state, agent_session=event.session, agent_model=event.model or state.agent_model)


@_on(e.AgentDelta)
def _(state: RunState, record: e.Record, event: e.AgentDelta) -> RunState:
    pieces = state.streaming.get(event.channel, Grown()).add(event.text)
    return replace(state, streaming={**state.streaming, event.channel: pieces})


def _said(state: RunState, channel: str) -> RunState:
    """What was streamed on a channel has become a whole."""
    if channel not in state.streaming:
        return state
    return replace(state, streaming={key: pieces for key, pieces in state.streaming.items() if key != channel})


@_on(e.AgentMessage)
def _(state: RunState, record: e.Record, event: e.AgentMessage) -> RunState:
    return _said(state, "text")


@_on(e.AgentThought)
def _(state: RunState, record: e.Record, event: e.AgentThought) -> RunState:
    return _said(state, "thought")


@_on(e.ToolCalled)
def _(state: RunState, record: e.Record, event: e.ToolCalled) -> RunState:
    return _said(state, "tool")


@_on(e.AgentRetried)
def _(state: RunState, record: e.Record, event: e.AgentRetried) -> RunState:
    return replace(state, streaming={}) if state.streaming else state


@_on(e.ApprovalSet)
def _(state: RunState, record: e.Record, event: e.ApprovalSet) -> RunState:
    return replace(state, approval=event.on)


@_on(e.ApprovalAsked)
def _(state: RunState, record: e.Record, event: e.ApprovalAsked) -> RunState:
    return replace(state, asked=event.request)


@_on(e.ApprovalGiven)
def _(state: RunState, record: e.Record, event: e.ApprovalGiven) -> RunState:
    return replace(state, asked=None)


@_on(e.MessageDelivered)
def _(state: RunState, record: e.Record, event: e.MessageDelivered) -> RunState:
    return replace(state, messages=state.messages[len(event.texts) :])


@_on(e.UsageReported)
def _(state: RunState, record: e.Record, event: e.UsageReported) -> RunState:
    was = state.usage
    cost = was.cost_usd
    if event.cost_usd is not None:
        cost = (cost or 0.0) + event.cost_usd
    return replace(
        state,
        usage=Usage(
            was.calls + 1,
            was.input_tokens + event.input_tokens,
            was.cached_tokens + event.cached_tokens,
            was.cache_write_tokens + event.cache_write_tokens,
            was.output_tokens + event.output_tokens,
            cost,
        ),
    )


@_on(e.SubmissionRejected)
def _(state: RunState, record: e.Record, event: e.SubmissionRejected) -> RunState:
    return replace(state, rejected=(*state.rejected, record))


@_on(e.SubmissionAccepted)
def _(state: RunState, record: e.Record, event: e.SubmissionAccepted) -> RunState:
    if event.submission != len(state.submissions):
        raise FoldError(f"submission {event.submission} is accepted where {len(state.submissions)} was due")
    if state.active is not None:
        raise FoldError(f"submission {event.submission} is accepted while {state.active.index} is on its way")
    if event.first_episode != state.budget.used:
        raise FoldError(
            f"submission {event.submission} begins at episode {event.first_episode}, not {state.budget.used}"
        )
    if state.finalizing is not None:
        raise FoldError("a submission is accepted after finalization began")
    least, most = state.budget.min_submit, state.budget.max_submit
    if not least <= len(event.cases) <= most:
        raise FoldError(f"submission {event.submission} has {len(event.cases)} cases, where {least} to {most} may be")
    if not all(0 <= case < state.header.n_train for case in event.cases):
        raise FoldError(f"submission {event.submission} names a case that does not exist")
    try:
        budget = state.budget.charge(len(event.cases))
    except ValueError as error:
        raise FoldError(f"submission {event.submission}: {error}") from None
    new = Submission(event.submission, event.cases, event.first_episode, event.by, record.time)
    return replace(state, budget=budget, submissions=(*state.submissions, new))


def _under_way(state: RunState, index: int) -> Submission:
    """The submission, if it has no verdict yet."""
    was = state.submission(index)
    if was.verdict is not None:
        raise FoldError(f"submission {index} goes on after it finished")
    return was


@_on(e.PhaseEntered)
def _(state: RunState, record: e.Record, event: e.PhaseEntered) -> RunState:
    was = _under_way(state, event.submission)
    return _with(state, event.submission, phase=event.phase, phases=(*was.phases, (event.phase, record.time)))


@_on(e.SnapshotTaken)
def _(state: RunState, record: e.Record, event: e.SnapshotTaken) -> RunState:
    _under_way(state, event.submission)
    return _with(state, event.submission, tree_hash=event.tree_hash, metrics=event.metrics)


def _place(was: Submission, event: e.EpisodeStarted | e.EpisodeFinished) -> None:
    if not 0 <= event.position < was.cost or was.cases[event.position] != event.case:
        raise FoldError(f"submission {was.index} has no case {event.case} at position {event.position}")
    if event.episode != was.first_episode + event.position:
        raise FoldError(f"submission {was.index}: episode {event.episode} at position {event.position}")


@_on(e.EpisodeStarted)
def _(state: RunState, record: e.Record, event: e.EpisodeStarted) -> RunState:
    was = _under_way(state, event.submission)
    _place(was, event)
    if was.finished_mask >> event.position & 1:
        raise FoldError(f"submission {was.index}: position {event.position} starts after it finished")
    running = (*(p for p in was.running if p != event.position), event.position)
    return _with(state, event.submission, running=running)


@_on(e.EpisodeFinished)
def _(state: RunState, record: e.Record, event: e.EpisodeFinished) -> RunState:
    was = _under_way(state, event.submission)
    _place(was, event)
    if was.finished_mask >> event.position & 1:
        raise FoldError(f"submission {was.index}: episode {event.episode} finishes twice")
    return _with(
        state,
        event.submission,
        running=tuple(p for p in was.running if p != event.position),
        episodes=was.episodes.add(event),
        finished_mask=was.finished_mask | 1 << event.position,
    )


@_on(e.SubmissionFinished)
def _(state: RunState, record: e.Record, event: e.SubmissionFinished) -> RunState:
    was = state.submission(event.submission)
    if was.verdict is not None:
        raise FoldError(f"submission {was.index} finishes twice")
    if event.verdict is Verdict.OK and len(was.episodes) != was.cost:
        raise FoldError(f"submission {was.index} is ok with {len(was.episodes)} of {was.cost} episodes")
    return _with(
        state,
        event.submission,
        verdict=event.verdict,
        phase=event.phase,
        message=event.message,
        mean=event.mean,
        std=event.std,
        running=(),
        finished_at=record.time,
    )


@_on(e.FinalizationStarted)
def _(state: RunState, record: e.Record, event: e.FinalizationStarted) -> RunState:
    if state.agent_live:
        raise FoldError("finalization begins while the agent lives")
    if state.finalizing is not None:
        raise FoldError("finalization begins twice")
    for index in event.checkpoints:
        if not state.submission(index).ok:
            raise FoldError(f"submission {index} is validated but not ok")
    return replace(state, finalizing=event.checkpoints, finalize_reason=event.reason)


@_on(e.HiddenEpisodeFinished)
def _(state: RunState, record: e.Record, event: e.HiddenEpisodeFinished) -> RunState:
    if state.finalizing is None:
        raise FoldError("a hidden episode before finalization")
    if event.split not in (Split.VALIDATION, Split.HELDOUT):
        raise FoldError(f"a hidden episode of the {event.split} cases")
    if event.split == Split.HELDOUT:
        if state.selected is None or event.submission != state.selected:
            raise FoldError(f"a held-out episode of submission {event.submission}, which is not the selected one")
        held = state.heldout or Heldout(event.submission)
        if any(ep.position == event.position for ep in held.episodes):
            raise FoldError(f"held-out case {event.position} finishes twice")
        return replace(state, heldout=replace(held, episodes=(*held.episodes, event)))
    was = state.submission(event.submission)
    if event.submission not in state.finalizing:
        raise FoldError(f"submission {event.submission} is not among those to validate")
    if any(ep.position == event.position for ep in was.validation):
        raise FoldError(f"submission {was.index}: validation case {event.position} finishes twice")
    return _with(state, event.submission, validation=(*was.validation, event))


@_on(e.CheckpointValidated)
def _(state: RunState, record: e.Record, event: e.CheckpointValidated) -> RunState:
    if state.finalizing is None or event.submission not in state.finalizing:
        raise FoldError(f"submission {event.submission} is not among those to validate")
    return _with(state, event.submission, val_score=event.mean, val_std=event.std)


@_on(e.CheckpointSelected)
def _(state: RunState, record: e.Record, event: e.CheckpointSelected) -> RunState:
    if state.finalizing is None or state.submission(event.submission).val_score is None:
        raise FoldError(f"submission {event.submission} is selected before it was validated")
    return replace(state, selected=event.submission)


@_on(e.HeldoutScored)
def _(state: RunState, record: e.Record, event: e.HeldoutScored) -> RunState:
    if state.heldout is None:
        raise FoldError("a held-out score without held-out episodes")
    return replace(state, heldout=replace(state.heldout, score=event))


@_on(e.WorkspaceMirrored)
def _(state: RunState, record: e.Record, event: e.WorkspaceMirrored) -> RunState:
    return replace(state, mirrored=event.submission)


@_on(e.PoolsRevealed)
def _(state: RunState, record: e.Record, event: e.PoolsRevealed) -> RunState:
    if state.finalizing is None:
        raise FoldError("the pools are revealed before finalization")
    return replace(state, pools_revealed=True)


@_on(e.RunEnded)
def _(state: RunState, record: e.Record, event: e.RunEnded) -> RunState:
    if state.ended is not None:
        raise FoldError("the run ends twice")
    return replace(state, ended=event, agent_live=False)
