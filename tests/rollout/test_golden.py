"""Returns and lengths of two fixed policies, bit for bit, through workers and guests."""

from __future__ import annotations

import itertools

import pytest

from tests.golden_returns import POLICIES, SLUGS, golden

from .conftest import SEEDS, make_job, run_job

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Slow simulations go through each mode once, not with each policy.
LEFT_OUT = {
    ("gym/racing", "first", "batch"),
    ("gym/racing", "cycle", "episode"),
    ("gymnasium/parking-v0", "first", "batch"),
}

FIRST = """
import numpy as np
class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.space = action_space
    def reset(self, episode_index): pass
    def act(self, obs):
        return 0 if self.space["type"] == "Discrete" else np.zeros(self.space["shape"], self.space["dtype"])
"""

CYCLE = """
import numpy as np
class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.space = action_space
    def reset(self, episode_index):
        self.t = -1
    def act(self, obs):
        self.t += 1
        if self.space["type"] == "Discrete":
            return (self.t // 3) % self.space["n"]
        low, high = (np.asarray(self.space[side], float) for side in ("low", "high"))
        wave = np.sin(0.1 * self.t + np.arange(low.size)).reshape(low.shape)
        return ((low + high) / 2 + (high - low) / 2 * wave).astype(self.space["dtype"])
"""


CASES = [case for case in itertools.product(SLUGS, POLICIES, ("episode", "batch")) if case not in LEFT_OUT]


@pytest.mark.parametrize(("slug", "policy", "mode"), CASES)
async def test_golden_returns(pair, tmp_path, slug, policy, mode):
    task, expected = golden(slug, policy)
    job = make_job(tmp_path, {"first": FIRST, "cycle": CYCLE}[policy], len(expected), task, files=False, mode=mode)
    outcome = await run_job(pair, job)
    got = [[r.return_, r.length] for _, r in sorted(outcome.results.items())]
    assert outcome.load_fault is None and outcome.kinds == [None] * len(expected)
    assert got == expected
    assert [SEEDS[i] for i in range(len(expected))] == [case.seed for case in job.cases]
