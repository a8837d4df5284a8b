"""Returns and lengths of two fixed policies, bit for bit, through workers and guests."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from evotui.suite import catalog

from .conftest import SEEDS, make_job, run_job

pytestmark = pytest.mark.asyncio(loop_scope="session")
GOLDEN = tomllib.loads((Path(__file__).parents[1] / "data" / "golden_returns.toml").read_text())

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


@pytest.mark.parametrize("mode", ["episode", "batch"])
@pytest.mark.parametrize("policy", ["first", "cycle"])
@pytest.mark.parametrize("slug", [slug for slug, entry in GOLDEN.items() if isinstance(entry, dict)])
async def test_golden_returns(pair, tmp_path, slug, policy, mode):
    try:
        task = catalog.find_task(slug)
    except catalog.UnknownEnvironment:
        pytest.skip(f"{slug} is not shipped yet")
    if missing := catalog.availability(task):
        pytest.skip(missing)
    expected = GOLDEN[slug][policy]
    job = make_job(tmp_path, {"first": FIRST, "cycle": CYCLE}[policy], len(expected), task, files=False, mode=mode)
    outcome = await run_job(pair, job)
    got = [[r.return_, r.length] for _, r in sorted(outcome.results.items())]
    assert outcome.load_fault is None and outcome.kinds == [None] * len(expected)
    assert got == expected
    assert [SEEDS[i] for i in range(len(expected))] == [case.seed for case in job.cases]
