"""Episodes leave nothing behind: no memory, no file descriptor."""

from __future__ import annotations

import pytest

from benchmarks.memory import FALL, grow


@pytest.mark.asyncio(loop_scope="session")
async def test_many_episodes_take_no_more_memory_than_a_few(engine):
    """What is kept of an episode would show: 700 episodes at 16 KB each are more than what a heap breathes."""
    early, *_, late = await grow(engine, "episode", FALL, 800, 8)
    assert late.worker < 160
    assert late.worker - early.worker < 10 and late.here - early.here < 10
    assert late.descriptors == early.descriptors
