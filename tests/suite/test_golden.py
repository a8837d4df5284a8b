"""Golden returns: plain episodes through the adapter reproduce known returns and lengths, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evotui.protocol.pools import paper_pools
from evotui.protocol.spaces import Schema, action_reader, default_action
from evotui.suite import worlds
from tests.golden_returns import SLUGS, golden

SLOW = ("gym/racing", "gymnasium/parking-v0")
"""Half a minute together: these are left to the same test of the rollouts."""


def first(schema: Schema, t: int) -> Any:
    return default_action(schema)


def cycle(schema: Schema, t: int) -> Any:
    if schema["type"] == "Discrete":
        return (t // 3) % schema["n"]
    low, high = np.asarray(schema["low"], "float64"), np.asarray(schema["high"], "float64")
    phases = 0.1 * t + np.arange(low.size).reshape(low.shape)
    return ((low + high) / 2 + (high - low) / 2 * np.sin(phases)).astype(schema["dtype"])


POLICIES: dict[str, Callable[[Schema, int], Any]] = {"first": first, "cycle": cycle}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("slug", [slug for slug in SLUGS if slug not in SLOW])
def test_golden_returns(slug: str, policy: str) -> None:
    task, expected = golden(slug, policy)
    info = worlds.describe(task)
    read = action_reader(info.action_schema)
    for seed, figures in zip(paper_pools(16, 32).train, expected, strict=False):
        world = worlds.make(task)
        world.reset(seed)
        total, t, over = 0.0, 0, False
        while not over:
            action, invalid = read(POLICIES[policy](info.action_schema, t))
            assert not invalid
            _obs, reward, terminated, truncated, _info = world.step(action)
            total += reward
            t += 1
            over = terminated or truncated
        world.close()
        assert [total, t] == figures
