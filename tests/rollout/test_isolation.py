"""What a policy can reach: a hundred attacks at every level there is, and without walls, where they succeed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pytest

from evotui.rollout import attacks, selftest
from evotui.rollout.engine import Engine
from evotui.rollout.selftest import AttackOutcome, self_test

from .conftest import make_job, run_job

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(sys.platform != "linux", reason="walls are Linux's"),
]
LEVELS = {
    "A": {"namespaces", "landlock", "seccomp"},
    "B": {"landlock", "seccomp"},
    "C": {"namespaces", "seccomp"},
    "D": set(),
}


async def attacked(level: str, seed: int | None = None) -> list[AttackOutcome]:
    """What each attack came to at one level; skips where this machine cannot have the level."""
    async with Engine(workers=1, walls=frozenset(LEVELS[level])) as engine:
        if engine.isolation.level != level:
            pytest.skip(f"level {level} cannot be had here: {engine.isolation.missing}")
        return await self_test(engine, seed)


@pytest.fixture
def left_behind(monkeypatch) -> Callable[[], list[str]]:
    """Tells what this test's attacks left on this host; other self-tests may be under way on it."""
    marks = []

    def marked(size: int) -> str:
        marks.append(token_hex(size))
        return marks[-1]

    monkeypatch.setattr(selftest.secrets, "token_hex", marked)
    places = ("/tmp", "/dev/shm", os.path.dirname(os.__file__))

    def left() -> list[str]:
        assert marks
        return [str(path) for place in places for mark in marks for path in Path(place).glob(f"*{mark}*")]

    return left


@pytest.mark.parametrize("level", ["A", "B", "C"])
async def test_no_attack_gets_through(level, left_behind):
    outcomes = await attacked(level)
    assert len(outcomes) >= 100 and len({o.name for o in outcomes}) == len(outcomes)
    assert {o.group for o in outcomes} == set(attacks.GROUPS)
    assert [(o.name, o.outcome) for o in outcomes if o.got_through] == []
    assert left_behind() == []


async def test_nothing_on_the_host_was_touched(monkeypatch):
    """Not only what the attacks say of themselves: the canaries as the host sees them afterwards."""
    seen = {}
    judged = selftest._judged

    def look(results, episodes):
        run = episodes.parent / "run"
        seen["names"] = sorted(path.name for path in run.iterdir())
        seen["texts"] = {(run / name).read_text() for name in ("secret", "moved", "heldout.json")}
        seen["mode"] = run.stat().st_mode & 0o777
        return judged(results, episodes)

    monkeypatch.setattr(selftest, "_judged", look)
    async with Engine(workers=1) as engine:
        if engine.isolation.level == "D":
            pytest.skip("no walls here")
        await self_test(engine)
    assert seen["names"] == ["heldout.json", "link", "moved", "secret", "socket"]
    assert seen["texts"] == {"canary"} and seen["mode"] == 0o755


async def test_without_walls_the_attacks_succeed(left_behind):
    """The control: else the tests above might prove nothing. What the host itself sees to holds even so."""
    through = {o.name for o in await attacked("D") if o.got_through}
    assert len(through) >= 50, sorted(through)
    assert {"read the hidden cases", "connect by TCP", "write into a run", "signal the worker", "fork"} <= through
    assert not through & {*attacks.IN_ACT, "find the seed in memory", "guess the seed", "20 GB of memory"}
    assert left_behind() == []


async def test_a_small_seed_is_guessed():
    """Why secret pools have 128 bits: no wall stops a policy from trying numbers."""
    assert "guess the seed" in {o.name for o in await attacked("A", seed=321) if o.got_through}


async def test_episodes_find_no_traces_of_each_other(tmp_path):
    source = """
    import os
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index):
            scratch = os.environ.get("TMPDIR")
            print(os.listdir(scratch))
            os.makedirs(scratch + "/deep/er"); open(scratch + "/deep/er/mark", "w").write("x")
        def act(self, obs): return 0
    """
    async with Engine(workers=1) as engine:
        if engine.isolation.level not in "AC":
            pytest.skip("no scratch space at this level")
        await run_job(engine, make_job(tmp_path, source, 3))
    assert [(tmp_path / "episodes" / f"ep_{i:03}" / "stdout.txt").read_text() for i in range(3)] == ["[]\n"] * 3


async def test_isolation_says_what_is_missing():
    async with Engine(workers=1, walls=frozenset({"landlock", "seccomp"})) as engine:
        assert engine.isolation.level in "BCD"
        assert "namespaces" not in engine.isolation.layers
    async with Engine(workers=1, walls=frozenset()) as engine:
        assert (engine.isolation.level, engine.isolation.layers) == ("D", ("rlimits",))


PRIVATE = """
import asyncio, ctypes, sys
from evotui.rollout.engine import Engine
async def main():
    for private in (False, True):
        async with Engine(workers=1, private=private): pass
        async with Engine(workers=1, private=private) as engine:  # started once more from a process that is private
            print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), engine.isolation.level)
asyncio.run(main())
"""


async def test_who_holds_hidden_seeds_cannot_be_looked_into():
    done = subprocess.run([sys.executable, "-c", PRIVATE], capture_output=True, text=True)
    before, level, after, again = done.stdout.split()
    assert (before, after, again) == ("1", "0", level), done
