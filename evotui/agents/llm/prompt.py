"""What the model is told before its first turn, and by us between turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evotui.protocol.words import counted

SYSTEM = """\
You improve an executable policy for a control task. The policy is Python code in system/policy.py. You never run the \
environment yourself: you submit the code, it is rolled out on cases that you name, and you read what happened.

How to work:
1. Read the task, the present policy and, once there is any, the feedback.
2. Decide what limits the return, and say so in a sentence or two. Prefer evidence: look into trajectories with \
run_python (what were the observations before it failed?) instead of guessing.
3. Change the policy with write_file (a whole file) or, for a small change, str_replace.
4. Submit it on few cases first. The same case always starts the same way, so two versions can be compared on it; more \
cases say more about how good a version really is.
5. Read the result and go on, until the budget of episodes is spent.

Rules:
- Each submitted case costs one episode of the budget, also when the policy fails. Refused requests cost nothing.
- You may write below system/ only, and read below system/ and feedback/. Simulators, network and other processes are \
not available, neither to you nor to the policy: standard library and numpy.
- The final score comes from hidden cases: make the policy good in general, not for single cases.
- Call tools; do not describe calls. A reply without a tool call means that you have nothing more to do.
- {limits}
"""

EMPTY = "Your reply was empty. Call a tool, or say why you are done."
LOOKS_LIKE_A_CALL = (
    "That looks like a tool call, but it cannot be read. Use the tool-calling interface, or write one JSON object: "
    '{"name": "read_file", "arguments": {"path": "system/policy.py"}}'
)
GO_ON = (
    "{remaining} episodes of the budget are left. Go on with a tool call; if you are sure that nothing more can be "
    "won, say so once more."
)
OPERATOR = "A message from the person who watches this run:\n\n{}"
CUT_OFF = "The reply was cut off at the output limit, in the middle of the arguments. Send a shorter call."


def system_prompt(turns: int, seconds: float, cost: float) -> str:
    """``cost`` 0 and ``seconds`` infinite mean no limit."""
    limits = [f"You have at most {counted(turns, 'turn')}"]
    if seconds < float("inf"):
        limits.append(f"{seconds / 60:.3g} minutes")
    if cost:
        limits.append(f"${cost:g} of model calls")
    return SYSTEM.format(limits=", ".join(limits) + ". Several tool calls in one turn count once.")


def first_prompt(
    task: str, info: Mapping[str, Any], files: Mapping[str, str], past: str, notes: Sequence[str], scores: str
) -> str:
    """The task, the budget, the present policy, and what happened before."""
    meta = info.get("env_meta") or {}
    state = info.get("state") or {}
    left, total = state.get("remaining_budget", info.get("episode_budget")), info.get("episode_budget")
    last = int(meta.get("n_env_instances") or 1) - 1
    fields = {
        "observation": meta.get("obs_space"), "observation fields": meta.get("observation_fields"),
        "action": meta.get("action_space"), "action names": meta.get("action_names"),
        "steps of an episode, at most": meta.get("max_episode_steps"),
    }  # fmt: skip
    parts = [
        task.strip(),
        "## The budget\n\n"
        f"{left} of {total} episodes are left. "
        f"Train cases: 0 to {last}. A submission takes {info.get('min_episodes_per_submit')} to "
        f"{info.get('max_episodes_per_submit')} of them.",
        "## The spaces\n\n" + "\n".join(f"- {k}: {_short(v)}" for k, v in fields.items() if v),
    ]
    if past:
        parts.append("## What happened before\n\nThis run was begun earlier; you take it up.\n\n" + past.strip())
    if scores:
        parts.append("## Scores so far\n\n" + scores)
    if notes:
        parts.append("## Your notes\n\n" + "\n".join(f"- {note}" for note in notes[-40:]))
    for path, text in files.items():
        parts.append(f"## system/{path} at present\n\n```python\n{text.rstrip()}\n```")
    return "\n\n".join(parts)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 800 else text[:800] + " …"
