"""Lockstep gives what episodes run alone give, for every policy: or it is not used."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotui.protocol.task import TaskSpec
from evotui.rollout import recorder
from evotui.rollout.limits import (
    FIRST_LOCKSTEP,
    LEAST_WIDTH,
    LOCKSTEP_WIDTH,
    EpisodeStarted,
    Limits,
    lockstep_width,
)
from evotui.rollout.recorder import Sample
from evotui.rollout.sharing import shares_nothing_obvious

from .conftest import CARTPOLE, GOOD, Outcome, make_job, run_job

on_session_loop = pytest.mark.asyncio(loop_scope="session")
PENDULUM = TaskSpec("pendulum", "gymnasium/Pendulum-v1", "Pendulum-v1", "Pendulum", "warm-up")
MINIGRID = TaskSpec("empty", "x/empty", "MiniGrid-Empty-5x5-v0", "Empty", "MiniGrid", packages=("minigrid",))

TORQUE = """
import numpy as np
class Policy:
    def __init__(self, obs_space, action_space, env_meta): self.last = 0.0
    def reset(self, index): self.index = index
    def act(self, obs):
        self.last = 0.9 * self.last - 2.5 * float(obs[1]) * (1 + self.index / 10)
        return np.array([self.last])
"""
WALK = """
class Policy:
    def __init__(self, *given): self.t = 0
    def act(self, obs):
        self.t += 1
        return int(obs["image"].sum() + self.t) % 3
"""
COUNTING = """
calls = []
class Policy:
    def __init__(self, *given): pass
    def reset(self, index): pass
    def act(self, obs):
        calls.append(1)
        return len(calls) // 3 % 2
"""
LATE = GOOD.replace("return int", "seen.append(1)\n        return 0 if len(seen) > 3000 else int") + "seen = []\n"
IN_CLASS = GOOD.replace("    def act", "    n = 0\n    def act").replace(
    "return int(obs[2] + 0.5 * obs[3] > 0)", "Policy.n += 1\n        return Policy.n % 3 == 0"
)
RANDOM = """
import random
class Policy:
    def __init__(self, *given): pass
    def reset(self, index): pass
    def act(self, obs): return random.randrange(2)
"""
PRINTING = GOOD.replace("return int", "print('step')\n        return int")
RAISING = GOOD.replace("return int", "assert abs(obs[0]) < 0.3\n        return int")
ODD = GOOD.replace("return int", "return None if abs(obs[0]) > 0.3 else int")
LEAVING = GOOD.replace("return int", "__import__('posix')._exit(1) if abs(obs[0]) > 0.3 else 0\n        return int")


def facts(outcome: Outcome) -> list[Any]:
    return [
        (r.position, r.return_, r.length, r.terminated, r.truncated, r.success, r.invalid_actions, r.fault)
        for _, r in sorted(outcome.results.items())
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for part in ("episodes", "actions")
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


@on_session_loop
@pytest.mark.parametrize(
    ("source", "task", "together"),
    [
        (GOOD, CARTPOLE, True),
        (TORQUE, PENDULUM, True),
        (WALK, MINIGRID, True),
        (COUNTING, CARTPOLE, False),
        (LATE, CARTPOLE, False),
        (IN_CLASS, CARTPOLE, False),
        (RANDOM, CARTPOLE, False),
        (PRINTING, CARTPOLE, False),
        (RAISING, CARTPOLE, False),
        (ODD, CARTPOLE, False),
        (LEAVING, CARTPOLE, False),
    ],
    ids=[
        "cartpole",
        "torque",
        "minigrid",
        "module state",
        "late",
        "class state",
        "random",
        "prints",
        "raises",
        "odd",
        "exits",
    ],
)
async def test_both_modes_give_the_same_files_and_results(engine, tmp_path, source, task, together):
    told = {}
    for mode in ("episode", "batch"):
        folder = tmp_path / mode
        folder.mkdir()
        job = make_job(folder, source, 7, task, mode=mode, limits=Limits(act_seconds=2.0))
        async with engine.open(job) as rollout:
            assert await rollout.compile() is None and await rollout.initialize() is None
            outcome = Outcome()
            async for event in rollout.episodes():
                if hasattr(event, "length"):
                    outcome.results[event.position] = event
        told[mode] = facts(outcome), files(folder)
        if mode == "batch":
            assert (rollout.isolation.mode == "batch") == together, rollout.notes
            assert bool(rollout.notes) != together
    assert told["episode"][0] == told["batch"][0]
    assert told["episode"][1].keys() == told["batch"][1].keys()
    assert told["episode"][1] == told["batch"][1]


@on_session_loop
async def test_more_episodes_than_one_lockstep_on_two_workers(pair, tmp_path):
    outcome = await run_job(pair, make_job(tmp_path, GOOD, 75, mode="auto"))
    assert sorted(outcome.results) == list(range(75)) and outcome.kinds == [None] * 75
    assert len(os.listdir(tmp_path / "episodes")) == 75
    assert all(r.return_ == 500.0 and 0 < r.cpu_seconds < 5 for r in outcome.results.values())


@on_session_loop
async def test_a_single_episode_is_not_compared_with_itself(engine, tmp_path):
    async with engine.open(make_job(tmp_path, GOOD, 1, mode="auto")) as rollout:
        events = [event async for event in rollout.episodes()]
    assert rollout.isolation.mode == "episode" and not rollout.notes
    assert sum(isinstance(event, EpisodeStarted) for event in events) == 1


def test_what_a_sample_saw_may_be_too_much_to_keep(monkeypatch):
    sample = Sample(bytes)
    monkeypatch.setattr(recorder, "_SPOOL_BYTES", 10)
    for t in range(4):
        sample.add(b"1234", t)
    assert sample.too_large and sample.returned == [0, 1, 2]


@given(st.floats(1e-7, 10.0))
def test_the_longer_a_step_the_narrower_the_lockstep(seconds):
    width = lockstep_width(seconds)
    assert LEAST_WIDTH <= width <= LOCKSTEP_WIDTH and width >= lockstep_width(2 * seconds)
    assert lockstep_width(math.inf) == FIRST_LOCKSTEP


@on_session_loop
async def test_a_hopeless_policy_is_given_up_in_batch_mode_too(engine, tmp_path):
    endless = GOOD.replace("return int", "while True: pass\n        return int")
    outcome = await run_job(engine, make_job(tmp_path, endless, 12, mode="batch"))
    assert outcome.kinds == ["act_timeout"] * 12
    assert sum("not tried" in r.fault.message for r in outcome.results.values()) >= 8


def test_names_that_hint_at_shared_state(tmp_path):
    (tmp_path / "policy.py").write_text('"""No random numbers, not even os."""\nx = 1  # time\n')
    assert shares_nothing_obvious(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("import numpy as np\nr = np.random.rand()\n")
    assert not shares_nothing_obvious(tmp_path)
    (tmp_path / "lib" / "helper.py").write_text("def broken(:\n  '''")
    assert not shares_nothing_obvious(tmp_path)


SHARING = [
    "class C:\n    n = 0\ndef f(): C.n += 1",
    "class Policy:\n    def act(self, obs): type(self).n = 1",
    "class Policy:\n    def act(self, obs): self.__class__.n = 1",
    "class Policy:\n    @classmethod\n    def f(cls): cls.n = 1",
    "class Policy:\n    seen = []",
    "class Policy:\n    def act(self, obs, seen={}): seen[1] = 2",
    "seen = [1]\ndef f(): seen.append(2)",
    "seen = {'a': 1}\ndef f():\n    for seen['a'] in (1, 2): pass",
    "table = [[1]]\ndef f(): table[0][0] += 1",
    "import numpy as np\nw = np.zeros(3)\ndef f(x): np.add(w, x, out=w)",
    "from itertools import count\nnumbers = count()\ndef f(): return next(numbers)",
    "numbers = (n for n in range(9))",
    "from functools import lru_cache\n@lru_cache(maxsize=9)\ndef f(x): return x",
    "import functools\nf = functools.cache(abs)",
    "class Pid:\n    def step(self, x): self.sum = x\npid = Pid()",
    "import helper\ndef f(): helper.calls.append(1)",
    "n = 0\ndef f():\n    global n\n    n += 1",
    "from numpy.random import rand",
]
SHARING_NOTHING = [
    "import numpy as np\nW = np.array([[1.0]])\nNAMES = ['a', 'b']\ndef f(x): return W @ x, NAMES[0]",
    "class Policy:\n    def reset(self, i):\n        self.time, self.seen = 0, []\n        self.seen.append(i)",
    "import numpy as np\ndef f(x):\n    y = [x]\n    y[0] = np.append(x, 1)\n    return next(v for v in y)",
    "def f(x):\n    def g(y): x.append(y)\n    g(1)",
]


@pytest.mark.parametrize("source", [*SHARING, *SHARING_NOTHING])
def test_what_objects_would_share(tmp_path, source):
    (tmp_path / "policy.py").write_text(source)
    assert shares_nothing_obvious(tmp_path) == (source in SHARING_NOTHING)
