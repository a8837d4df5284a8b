"""Tokens and money: by turn, by submission, by improvement. Pure functions of a state; never episodes.

A turn is one model call that was told of. What an agent spends before a submission is accepted belongs to that
submission, what it spends after the last one to none yet. Money is known only where a price is: a sum says of how many
turns it is the sum, and whether any of them was estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evotui.record import events as e
from evotui.record.state import RunState


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call. ``leads_to`` is the submission that came next (its index, whether it exists yet or not);
    ``time`` in seconds since the epoch."""

    time: float
    leads_to: int
    model: str
    fresh: int
    cached: int
    written: int
    output: int
    cost_usd: float | None
    estimated: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """A sum over turns. ``fresh``: input tokens that no cache held; ``written`` were put into one.

    ``cost_usd`` is None where no turn had a price, else the sum over the ``priced`` ones; ``estimated``: some figure in
    it was counted here and not told by a server.
    """

    turns: int = 0
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost_usd: float | None = None
    priced: int = 0
    estimated: bool = False

    @property
    def tokens_in(self) -> int:
        return self.fresh + self.cached + self.written

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.output

    @property
    def about(self) -> bool:
        """Whether the money is not exact: estimated, or some turns had no price."""
        return self.estimated or self.priced < self.turns

    def plus(self, turn: Turn) -> Spent:
        cost = self.cost_usd
        if turn.cost_usd is not None:
            cost = (cost or 0.0) + turn.cost_usd
        return Spent(
            self.turns + 1,
            self.fresh + turn.fresh,
            self.cached + turn.cached,
            self.written + turn.written,
            self.output + turn.output,
            cost,
            self.priced + (turn.cost_usd is not None),
            self.estimated or turn.estimated,
        )


def total(turns: Iterable[Turn]) -> Spent:
    """The sum of turns."""
    spent = Spent()
    for turn in turns:
        spent = spent.plus(turn)
    return spent


class Ledger:
    """The turns of a growing transcript, each taken once. ``of`` costs what is new; an older state starts anew."""

    def __init__(self) -> None:
        self._anew()

    def _anew(self) -> None:
        self._seen = 0
        self._ahead = 0
        self.turns: list[Turn] = []
        self.total = Spent()
        self.by_submission: dict[int, Spent] = {}

    def of(self, state: RunState) -> Ledger:
        transcript = state.transcript
        if len(transcript) < self._seen:
            self._anew()
        for at in range(self._seen, len(transcript)):
            record = transcript[at]
            event = record.event
            if isinstance(event, e.SubmissionAccepted):
                self._ahead = event.submission + 1
            elif isinstance(event, e.UsageReported):
                turn = Turn(
                    record.time, self._ahead, event.model, event.input_tokens, event.cached_tokens,
                    event.cache_write_tokens, event.output_tokens, event.cost_usd, event.estimated,
                )  # fmt: skip
                self.turns.append(turn)
                self.total = self.total.plus(turn)
                self.by_submission[turn.leads_to] = self.by_submission.get(turn.leads_to, Spent()).plus(turn)
        self._seen = len(transcript)
        return self

    def leading_to(self, submission: int) -> Spent:
        """What was spent on the way from the submission before to this one."""
        return self.by_submission.get(submission, Spent())

    def since(self, submission: int) -> Spent:
        """What was spent after a submission was accepted."""
        return total(turn for turn in self.turns if turn.leads_to > submission)


def turns(state: RunState) -> tuple[Turn, ...]:
    """Every model call, in order."""
    return tuple(Ledger().of(state).turns)


def by_submission(state: RunState) -> dict[int, Spent]:
    """What led to each submission; the key after the last one holds what led to none yet. Without turns: no key."""
    return dict(Ledger().of(state).by_submission)


def improvements(state: RunState) -> tuple[int, ...]:
    """Submissions that raised the best mean train return, in order; the first scored one is the first."""
    found: list[int] = []
    best: float | None = None
    for submission in state.submissions:
        if submission.ok and submission.mean is not None and (best is None or submission.mean > best):
            best = submission.mean
            found.append(submission.index)
    return tuple(found)


def by_improvement(state: RunState, ledger: Ledger | None = None) -> tuple[tuple[int, Spent], ...]:
    """(submission, spent since the improvement before it) for each improvement; what came after the last one is in
    none of them."""
    known = ledger or Ledger().of(state)
    rows: list[tuple[int, Spent]] = []
    before = -1
    for index in improvements(state):
        rows.append((index, total(turn for turn in known.turns if before < turn.leads_to <= index)))
        before = index
    return tuple(rows)
