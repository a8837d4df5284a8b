"""What a coding agent is told: once in full, then after each turn that ended with budget left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FIRST = """\
You improve an executable policy, `system/policy.py`, in the folder you are in. Read AGENTS.md first: it has the rules.

How to work, again and again until the budget is spent:
1. Look at what the last submission taught you: `feedback/submit_NNN/summary.json` and the trajectories below it.
2. Edit `system/policy.py` (you may write below `system/` and nowhere else).
3. Run `evotui submit 0-3` in your shell: it rolls the policy out on the cases that you name, one episode each, waits
   for the result by itself and prints it. `evotui info` tells the budget that is left, `evotui task` this task again.

You have {remaining} episodes, cases 0 to {last}, at most {most} a submission. Do not ask questions: nobody answers.
What a person who watches has to say comes with the answer to a submission, and stands in `feedback/operator.md`.
{past}
# The task

{task}
"""

NEXT = """\
{notes}{remaining} of {budget} episodes are left. Go on: look at the feedback, edit `system/policy.py`, and run
`evotui submit CASES` until the budget is spent.{hint}
"""

_NOTHING = " You submitted nothing in your last turn; nothing counts that was not submitted."
_REFUSED = " These tools were refused: {tools}. Write below `system/` only, and run `evotui submit` alone in a command."


def first_prompt(task: str, info: Mapping[str, Any], past: str, notes: Sequence[str]) -> str:
    """The first prompt of a conversation. ``past`` is what an earlier one did, ``notes`` what a person said."""
    state = info["state"]
    earlier = f"\nSomebody worked on this before you.\n{past}\n" if past else ""
    return noted(notes) + FIRST.format(
        remaining=state["remaining_budget"], last=info["env_meta"]["n_env_instances"] - 1,
        most=info["max_episodes_per_submit"], past=earlier, task=task,
    )  # fmt: skip


def next_prompt(info: Mapping[str, Any], notes: Sequence[str], submitted: bool, denials: Sequence[str]) -> str:
    """The prompt after a turn; ``submitted``: whether anything was in it, ``denials``: tools that were refused."""
    hint = "" if submitted else _NOTHING
    if denials and not submitted:
        hint += _REFUSED.format(tools=", ".join(sorted(set(denials))[:8]))
    return NEXT.format(
        notes=noted(notes), remaining=info["state"]["remaining_budget"], budget=info["episode_budget"], hint=hint
    )


def noted(notes: Sequence[str]) -> str:
    """What a person said, set off from the rest; ``""`` where nobody said anything."""
    return "".join(f"The operator says: {note.strip()}\n" for note in notes) + ("\n" if notes else "")
