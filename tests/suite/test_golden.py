"""Golden returns: plain episodes through the adapter reproduce known returns and lengths, bit for bit."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evotui.protocol.pools import paper_pools
from evotui.protocol.spaces import Schema, action_reader, default_action
from evotui.suite import worlds
from evotui.suite.catalog import find_task

GOLDEN = tomllib.loads((Path(__file__).parent.parent / "data" / "golden_returns.toml").read_text("utf-8"))


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
@pytest.mark.parametrize("slug", GOLDEN)
def test_golden_returns(slug: str, policy: str) -> None:
    task = find_task(slug)
    info = worlds.describe(task)
    read = action_reader(info.action_schema)
    for seed, expected in zip(paper_pools(16, 32).train, GOLDEN[slug][policy], strict=False):
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
        assert [total, t] == expected
