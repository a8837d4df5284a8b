"""States as the values that the score, budget and case widgets draw; pure, and blind to what the eye may not see."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from evotui.protocol.words import counted
from evotui.record.state import RunState, Submission, train_stats
from evotui.ui.select import Eye
from evotui.ui.widgets.budget import BudgetFigures, CaseColumn, Charge
from evotui.ui.widgets.plot import Mark, PostHocPoint, ReferenceLine, ScoreSeries, SubmissionPoint
from evotui.ui.words import mean_of, number, short, standard_error


def best_index(state: RunState, upto: int) -> int | None:
    """The ok submission of the greatest mean return among the first ``upto``: a proxy; ties go to the latest."""
    scored = [s for s in state.submissions[:upto] if s.ok and s.mean is not None]
    best = max(scored, key=lambda s: (s.mean, s.index), default=None)
    return None if best is None else best.index


def marks(state: RunState, classes: Mapping[int, str] | None = None, live: bool = True) -> list[Mark]:
    """A mark for each submission. ``classes`` are edit classes by submission ("retest", …), as far as known; of a run
    that is not ``live`` a submission without a verdict is no longer under way."""
    found: list[Mark] = []
    best = -math.inf
    for sub in state.submissions:
        kind = (classes or {}).get(sub.index, "")
        if sub.verdict is None:
            found.append(Mark.RUNNING if live else Mark.UNFINISHED)
        elif not sub.ok or sub.mean is None:
            found.append(Mark.FAILED)
        elif sub.mean > best:
            best = sub.mean
            found.append(Mark.BEST)
        elif kind == "rollback":
            found.append(Mark.ROLLBACK)
        elif kind == "retest":
            found.append(Mark.RETEST)
        else:
            found.append(Mark.FLAT)
    return found


def _rows(sub: Submission) -> np.ndarray:
    rows = np.empty((len(sub.episodes), 3))
    for i, ep in enumerate(sub.episodes):
        rows[i] = (ep.episode + 1, ep.return_, sub.index)
    return rows


class EpisodeRows:
    """Every episode as (consumed episodes, return, submission); finished submissions are turned into rows once."""

    def __init__(self) -> None:
        self._done: dict[int, np.ndarray] = {}

    def of(self, state: RunState) -> np.ndarray:
        """Float array of shape (n, 3)."""
        parts = []
        for sub in state.submissions:
            rows = self._done.get(sub.index)
            if rows is None or len(rows) != len(sub.episodes):
                rows = _rows(sub)
                if sub.verdict is not None:
                    self._done[sub.index] = rows
            parts.append(rows)
        return np.concatenate(parts) if parts else np.empty((0, 3))


def _interval(mean: float, std: float, n: int) -> tuple[float | None, float | None]:
    """Mean ± standard error; nothing for a single value, of which no spread is known."""
    if n < 2:
        return None, None
    se = standard_error(std, n)
    return mean - se, mean + se


def _point(sub: Submission, mark: Mark) -> SubmissionPoint:
    s = train_stats(sub)
    if sub.mean is not None and s is not None:
        low, high = _interval(sub.mean, s.std, s.n)
        return SubmissionPoint(sub.index, sub.consumed_after, sub.mean, low, high, mark, short(sub.index))
    mean = s.mean if s is not None and sub.verdict is None else None
    return SubmissionPoint(sub.index, sub.consumed_after, mean, None, None, mark, short(sub.index))


def post_hoc(state: RunState, eye: Eye) -> tuple[PostHocPoint, ...]:
    """Validation and held-out figures; nothing in the agent's eye."""
    if eye is Eye.AGENT:
        return ()
    points = []
    for sub in state.submissions:
        if sub.val_score is not None:
            low, high = _interval(sub.val_score, sub.val_std or 0.0, len(sub.validation))
            points.append(PostHocPoint("validation", sub.consumed_after, sub.val_score, low, high, sub.index))
    score = state.heldout.score if state.heldout else None
    if score is not None:
        low, high = _interval(score.mean, score.std, score.n)
        points.append(PostHocPoint("held-out", state.budget.total, score.mean, low, high, score.submission))
    return tuple(points)


def validation_best(state: RunState, eye: Eye) -> tuple[tuple[float, float], ...]:
    """The course of the best validation mean over consumed episodes; nothing in the agent's eye."""
    best: list[tuple[float, float]] = []
    for sub in state.submissions if eye is Eye.OBSERVER else ():
        if sub.val_score is not None and (not best or sub.val_score > best[-1][1]):
            best.append((float(sub.consumed_after), sub.val_score))
    return tuple(best)


def score_series(
    state: RunState, eye: Eye, rows: np.ndarray, classes: Mapping[int, str] | None = None, live: bool = True
) -> ScoreSeries:
    """The score history. Anchors are never shown to the agent, so not in its eye."""
    found = marks(state, classes, live)
    best: list[tuple[float, float]] = []
    for sub in state.submissions:
        if sub.ok and sub.mean is not None and (not best or sub.mean > best[-1][1]):
            best.append((float(sub.consumed_after), sub.mean))
    anchors = dict(state.opened.anchors) if state.opened is not None and eye is Eye.OBSERVER else {}
    return ScoreSeries(
        rows,
        tuple(_point(sub, mark) for sub, mark in zip(state.submissions, found, strict=True)),
        tuple(best),
        post_hoc(state, eye),
        post_hoc_best=validation_best(state, eye),
        budget=state.budget.total if state.opened is not None else 0,
        references=tuple(ReferenceLine(name, value) for name, value in sorted(anchors.items())),
    )


def since_best(state: RunState) -> int:
    """Episodes consumed since the submission of the best mean was charged."""
    best = state.best_in_loop
    return state.budget.used - best.consumed_after if best is not None else state.budget.used


def budget_figures(state: RunState, selected: int | None, live: bool = True) -> BudgetFigures:
    """Where the episodes went."""
    charges = tuple(
        Charge(s.index, s.cost, s.verdict is not None and not s.ok, s.verdict is None, len(s.episodes))
        for s in state.submissions
    )
    n = len(charges)
    facts = [counted(n, "submission")]
    if state.best_in_loop is not None and state.stage == "evolving" and since_best(state):
        facts.append(f"{since_best(state)} since best")
    total = state.budget.total if state.opened is not None else 0
    return BudgetFigures(total, charges, tuple(facts), selected, len(state.rejected), live)


def case_columns(state: RunState) -> tuple[CaseColumn, ...]:
    """Returns by case for each submission; an episode that ended in a fault has none."""
    return tuple(
        CaseColumn(
            sub.index,
            tuple((ep.case, None if ep.fault is not None else ep.return_) for ep in sub.in_order),
            short(sub.index),
        )
        for sub in state.submissions
    )


def latest_returns(state: RunState) -> list[tuple[int, float | None]]:
    """Each case that was rolled out, by its number, with its latest return; None where that episode had a fault."""
    found: dict[int, float | None] = {}
    for sub in state.submissions:
        for ep in sub.in_order:
            found[ep.case] = None if ep.fault is not None else ep.return_
    return sorted(found.items())


def verdict(state: RunState, eye: Eye) -> list[tuple[str, int]]:
    """Selection, held-out mean ± standard error n and final score after the run, each with how much it matters.

    Empty before, and in the agent's eye.
    """
    if eye is Eye.AGENT or state.selected is None:
        return []
    selected = state.submissions[state.selected]
    said = [("◆ post-hoc", 90), (short(state.selected), 40)]
    score = state.heldout.score if state.heldout else None
    if score is None:
        return [*said, (f"validation {number(selected.val_score or 0.0)}", 70)]
    raw = "" if score.final_score_kind == "normalized" else f" ({score.final_score_kind})"
    held = f"held-out {mean_of(score.mean, score.std, score.n)} n {score.n}"
    return [
        *said,
        (held, 80),
        (f"final {score.final_score:.1f}" if not raw else f"final {number(score.final_score)}{raw}", 75),
    ]
