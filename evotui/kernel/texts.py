"""What an agent reads: the rules of the workspace (``AGENTS.md``), the task document, the ``/info`` document."""

from __future__ import annotations

from typing import Any

from evotui.protocol.imports import ALLOWED_IMPORTS, DENIED_IMPORTS
from evotui.protocol.spaces import to_jsonable
from evotui.protocol.task import TaskSpec
from evotui.protocol.words import counted
from evotui.record.state import AgentView, RunState
from evotui.rollout.limits import Limits

PROTOCOL_VERSION = "protocol/v2.0"

CONTRACT = """\
## The policy

`system/policy.py` defines a class `Policy`. You may add modules and data files beside it and import them.

```python
class Policy:
    def __init__(self, obs_space: dict, action_space: dict, env_meta: dict): ...
    def reset(self, episode_index: int): ...   # before each episode
    def act(self, obs): ...                    # returns one action
```

- `obs_space` and `action_space` describe the spaces (`{{"type": "Box", "shape": [4], "dtype": "float32", "low": …}}`).
  Arrays reach `act` as numpy arrays of the environment's own dtype.
- `env_meta` has `env`, `env_version`, `submit_index`, `n_episodes_this_submit`, `remaining_budget_after`,
  `max_episode_steps`, `n_env_instances`, `obs_space`, `action_space`, `obs_storage`, `reward_components`,
  `allowed_imports`. It never holds a seed.
- Use the standard library and numpy. Simulators, model hubs, HTTP clients and process spawners are denied: rollouts
  outside the budget are not allowed, and there is no network.
- `random` and numpy's global generator are seeded before each episode.
- An action outside the space is clipped into it; one that cannot be read (wrong shape, NaN, wrong type) becomes zeros.
  Both are counted as invalid and marked in the trajectory.
- An exception in `reset` or `act` ends that episode as failed; the submission goes on.
- Limits: {load:g} s to import, {load:g} s to construct, {reset:g} s for `reset`, {act:g} s for each `act`, {cpu:g} s of
  processor time an episode, {memory:g} GiB of memory.
- {lifetime}
"""

_LIFETIMES = {
    "episode": "Each episode gets a fresh process and a fresh `Policy`: nothing is remembered from one to the next.",
    "submission": "One `Policy` object serves all episodes of a submission, in order: its attributes survive.",
}

AGENTS_MD = """\
# Rules of this workspace

You improve an executable policy for **{title}** (`{env}`). You work in this folder:

- `system/` is yours: write the policy here. Its entry point is `system/policy.py`.
- `feedback/` is what you paid for: read it. `feedback/submit_NNN/summary.json` sums a submission up;
  `feedback/submit_NNN/episodes/ep_XXX/trajectory.jsonl` has one line for each environment step (observation, action,
  reward), `stdout.txt` and `stderr.txt` what the policy printed, `error.txt` why an episode failed.
- Nothing else is to be written, and nothing outside this folder read.

## The budget

You have **{budget}** in all. A submission rolls the current `system/` out on train cases that you name
(`0` to `{last_case}`), between {min_submit} and {max_submit} of them, and costs one episode each, repeats included.
Acceptance is the charge: a policy that fails to load has spent its episodes too. A request that is refused (bad ids,
too many) costs nothing. The same case is the same start every time, so two versions can be compared on it.

## The end

When the budget is spent, every submission that ended `ok` is validated on hidden cases. The best of them is scored on
other hidden cases; that score counts. You never see either, and you cannot choose the submission; where two are equal,
the later one is taken.
"""


def agents_md(state: RunState, task: TaskSpec) -> str:
    """``workspace/AGENTS.md``."""
    budget = state.budget
    return AGENTS_MD.format(
        title=task.title,
        env=state.header.env,
        budget=counted(budget.total, "episode"),
        last_case=state.header.n_train - 1,
        min_submit=budget.min_submit,
        max_submit=min(budget.max_submit, budget.total),
    )


def task_document(task: TaskSpec, limits: Limits, lifetime: str) -> str:
    """The answer to ``GET /task``: the task's text, then the policy contract. Markdown."""
    contract = CONTRACT.format(
        load=limits.load_seconds,
        reset=limits.reset_seconds,
        act=limits.act_seconds,
        cpu=limits.episode_cpu_seconds,
        memory=limits.memory_bytes / 2**30,
        lifetime=_LIFETIMES[lifetime],
    )
    return task.text.rstrip() + "\n\n" + contract


def info_document(view: AgentView, limits: Limits) -> dict[str, Any]:
    """The answer to ``GET /info``, made from what the agent may know and nothing else. Strict JSON."""
    meta = {
        "env": view.env,
        "env_version": view.env_version,
        "n_env_instances": view.n_train,
        "max_episode_steps": view.max_episode_steps,
        "obs_space": view.obs_space,
        "action_space": view.action_space,
        "obs_storage": obs_storage(view.obs_space),
        "reward_components": list(view.reward_components),
        "observation_fields": list(view.observation_fields),
        "action_names": list(view.action_names),
    }
    document = {
        "protocol_version": PROTOCOL_VERSION,
        "state": {
            "remaining_budget": view.budget.remaining,
            "n_submits": view.n_submits,
            "is_finalized": view.finalized,
        },
        "env_meta": meta,
        "episode_budget": view.budget.total,
        "min_episodes_per_submit": view.budget.min_submit,
        "max_episodes_per_submit": min(view.budget.max_submit, view.budget.total),
        "resource_limits": {
            "load_seconds": limits.load_seconds,
            "reset_seconds": limits.reset_seconds,
            "act_seconds": limits.act_seconds,
            "episode_cpu_seconds": limits.episode_cpu_seconds,
            "memory_bytes": limits.memory_bytes,
        },
        "allowed_imports": list(ALLOWED_IMPORTS),
        "denied_imports": list(DENIED_IMPORTS),
    }
    result: dict[str, Any] = to_jsonable(document)
    return result


def obs_storage(obs_space: Any) -> str:
    """Where a trajectory keeps observations: ``external`` (``observations.npy``) for images, else ``inline``."""
    return "external" if obs_space.get("type") == "Image" else "inline"


def env_meta(
    view: AgentView, submit_index: int, n_episodes: int, remaining_after: int, obs_space: Any, action_space: Any
) -> dict[str, Any]:
    """What ``Policy(obs_space, action_space, env_meta)`` gets. Never a seed, a case, or anything hidden."""
    return {
        "env": view.env,
        "env_version": view.env_version,
        "submit_index": submit_index,
        "n_episodes_this_submit": n_episodes,
        "remaining_budget_after": remaining_after,
        "max_episode_steps": view.max_episode_steps,
        "n_env_instances": view.n_train,
        "obs_space": obs_space,
        "action_space": action_space,
        "obs_storage": obs_storage(obs_space),
        "reward_components": list(view.reward_components),
        "allowed_imports": list(ALLOWED_IMPORTS),
    }
