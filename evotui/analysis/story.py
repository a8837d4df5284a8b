"""What happened in a run so far, as text for an agent that takes it up: from the record, without a model."""

from __future__ import annotations

from evotui.protocol.budget import format_cases
from evotui.protocol.words import counted
from evotui.record.state import RunState

_MOST = 40
"""Submissions told one by one; of a longer history the latest."""


def story(state: RunState) -> str:
    """Submissions with cases, verdicts and mean returns, and what is left. Train figures only."""
    lines = [
        f"So far {state.budget.used} of {state.budget.total} episodes were spent, "
        f"in {counted(len(state.submissions), 'submission')}.",
    ]
    told = state.submissions[-_MOST:]
    if len(told) < len(state.submissions):
        lines.append(f"The latest {len(told)}:")
    for submission in told:
        result = "under way" if submission.verdict is None else str(submission.verdict)
        if submission.mean is not None:
            result = f"mean return {submission.mean:.6g}"
        lines.append(f"- submit {submission.index}: cases {format_cases(submission.cases)}: {result}")
    best = state.best_in_loop
    if best is not None and best.mean is not None:
        lines.append(f"The best mean so far is that of submit {best.index}: {best.mean:.6g}.")
    lines.append("system/policy.py is as it was left; the feedback of every submission is below feedback/.")
    return "\n".join(lines)
