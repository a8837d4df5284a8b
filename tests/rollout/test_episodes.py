"""Episodes through the whole path: files, lifetimes, determinism, events, what a guest may see."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evotui.protocol.task import TaskSpec
from evotui.protocol.verdict import Phase, Verdict
from evotui.rollout.engine import Engine
from evotui.rollout.limits import CaseSeed
from evotui.rollout.recorder import load_actions
from evotui.rollout.workers import EngineError
from evotui.suite import worlds

from .conftest import CARTPOLE, GOOD, SEEDS, make_job, run_job

pytestmark = pytest.mark.asyncio(loop_scope="session")
PENDULUM = TaskSpec("pendulum", "gymnasium/Pendulum-v1", "Pendulum-v1", "Pendulum", "warm-up")
MINIGRID = TaskSpec("empty", "x/empty", "MiniGrid-Empty-5x5-v0", "Empty", "MiniGrid", packages=("minigrid",))


def trajectory(tmp_path: Path, name: str = "ep_000") -> list[dict]:
    return [json.loads(line) for line in (tmp_path / "episodes" / name / "trajectory.jsonl").read_text().splitlines()]


async def test_files_are_complete_when_a_result_is_told(pair, tmp_path):
    from evotui.protocol.results import EpisodeResult
    from evotui.rollout.engine import evaluate

    async for told in evaluate(pair, make_job(tmp_path, GOOD, 4)):
        if isinstance(told, EpisodeResult):
            name = f"ep_{told.position:03}"
            rows = trajectory(tmp_path, name)
            assert len(rows) == told.length == 500 and told.return_ == 500.0 and told.success is True
            assert sum(row["reward"] for row in rows) == told.return_
            assert [row["t"] for row in rows] == list(range(500))
            assert rows[-1]["truncated"] and not rows[-1]["terminated"]
            assert len(rows[0]["obs"]) == 4 and rows[0]["action"] in (0, 1)
            assert sorted(os.listdir(tmp_path / "episodes" / name)) == ["stderr.txt", "stdout.txt", "trajectory.jsonl"]
            assert np.load(tmp_path / "actions" / f"{name}.npy").tolist() == [row["action"] for row in rows]


async def test_engines_beside_each_other_start_on_different_cores():
    cores = os.sched_getaffinity(0)
    firsts = {Engine(workers=1)._cores[0] for _ in range(200)}
    assert firsts <= cores and len(firsts) >= min(len(cores), 2)
    assert set(Engine()._cores) == cores and Engine(workers=len(cores) + 1)._cores == [-1] * (len(cores) + 1)


async def test_without_record_nothing_is_written(roll, tmp_path):
    outcome = await roll(GOOD, 3, files=False)
    assert [r.return_ for r in outcome.results.values()] == [500.0] * 3
    assert sorted(os.listdir(tmp_path)) == ["snapshot"]


async def test_recorded_actions_replay_to_the_bit(roll, tmp_path):
    source = """
    import numpy as np
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index): pass
        def act(self, obs): return [np.random.uniform(-3, 3)]
    """
    outcome = await roll(source, 1, task=PENDULUM)
    result = outcome.results[0]
    info = worlds.describe(PENDULUM)
    world = worlds.make(PENDULUM)
    world.reset(SEEDS[0])
    actions = load_actions(tmp_path / "actions" / "ep_000", info.action_schema)
    return_ = 0.0
    for action in actions:  # not sum(): since 3.12 it compensates for rounding
        return_ += world.step(action)[1]
    assert return_ == result.return_
    rows = trajectory(tmp_path)
    assert result.invalid_actions == sum(row["info"].get("action_invalid", False) for row in rows) > 0
    outside = [row["action"][0] for row in rows if row["info"].get("action_invalid")]
    assert max(map(abs, outside)) > 2.0  # as returned; executed it was clipped
    assert float(np.abs(np.array(actions)).max()) == 2.0


async def test_dictionary_observations_reach_the_policy_typed(roll, tmp_path):
    source = """
    import numpy as np
    class Policy:
        def __init__(self, obs_space, action_space, env_meta):
            assert obs_space["type"] == "Dict" and action_space["n"] == 7 and env_meta["env"] == "x/empty"
        def reset(self, index): pass
        def act(self, obs):
            assert obs["image"].dtype == np.uint8 and obs["image"].shape == (7, 7, 3)
            assert type(obs["direction"]) is int and isinstance(obs["mission"], str)
            return 2
    """
    outcome = await roll(source, 1, task=MINIGRID)
    assert outcome.kinds == [None]
    assert trajectory(tmp_path)[0]["obs"]["mission"] == "get to the green goal square"


STATEFUL = """
import random
import numpy as np
print("imported")
count = 0
weights = np.random.rand()
class Policy:
    def __init__(self, *given):
        self.drawn = random.random()
        self.n = 0
    def reset(self, index):
        global count
        count += 1
        self.n += 1
        print("reset", index, count, self.n, weights, self.drawn, random.random(), np.random.rand())
    def act(self, obs): return 0
"""


def printed(tmp_path: Path, n: int) -> list[list[str]]:
    return [(tmp_path / "episodes" / f"ep_{i:03}" / "stdout.txt").read_text().splitlines() for i in range(n)]


async def test_episode_lifetime_isolates_module_state(roll, tmp_path):
    await roll(STATEFUL, 4)
    first = printed(tmp_path, 4)
    assert all(lines[0] == "imported" and lines[1].split()[1:4] == [str(i), "1", "1"] for i, lines in enumerate(first))
    drawn = [lines[1].split()[4:] for lines in first]
    assert len({(d[0], d[1]) for d in drawn}) == 1  # import and constructor see the same numbers every time
    assert len({(d[2], d[3]) for d in drawn}) == 4  # an episode's numbers come from its case
    await roll(STATEFUL, 4)
    assert printed(tmp_path, 4) == first


async def test_jobs_of_one_object_each_take_different_workers(pair, tmp_path):
    one, other = (pair.open(make_job(tmp_path, GOOD, lifetime="submission", files=False)) for _ in range(2))
    async with one, other:
        assert len(one.workers) == len(other.workers) == 1 and one.workers != other.workers


async def test_submission_lifetime_keeps_one_object_in_order(roll, tmp_path):
    outcome = await roll(STATEFUL, 4, lifetime="submission")
    lines = printed(tmp_path, 4)
    assert lines[0][0] == "imported" and [len(x) for x in lines] == [2, 1, 1, 1]
    assert [x[-1].split()[1:4] for x in lines] == [[str(i), str(i + 1), str(i + 1)] for i in range(4)]
    assert list(outcome.results) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("source", "phase", "verdict", "words"),
    [
        ("def broken(:", Phase.COMPILE, Verdict.IMPORT_ERROR, "SyntaxError"),
        ("import no_such_module", Phase.COMPILE, Verdict.IMPORT_ERROR, "no_such_module"),
        ("x = 1", Phase.COMPILE, Verdict.IMPORT_ERROR, "no class Policy"),
        ("import subprocess", Phase.COMPILE, Verdict.IMPORT_ERROR, "denied"),
        ("import importlib; importlib.import_module('subprocess')", Phase.COMPILE, Verdict.IMPORT_ERROR, "denied"),
        ("exec('import gymnasium.envs')", Phase.COMPILE, Verdict.IMPORT_ERROR, "denied"),
        ("import evotui", Phase.COMPILE, Verdict.IMPORT_ERROR, "evotui"),
        ("raise SystemExit(3)", Phase.COMPILE, Verdict.IMPORT_ERROR, "SystemExit"),
        ("import os; os._exit(7)", Phase.COMPILE, Verdict.IMPORT_ERROR, "status 7"),
        ("while True: pass", Phase.COMPILE, Verdict.IMPORT_ERROR, "longer than"),
        ("class Policy:\n  def __init__(self): pass", Phase.INITIALIZE, Verdict.INIT_ERROR, "TypeError"),
        ("class Policy:\n  def __init__(self, *a): 1 / 0", Phase.INITIALIZE, Verdict.INIT_ERROR, "ZeroDivision"),
    ],
)
async def test_load_faults(roll, source, phase, verdict, words):
    outcome = await roll(source, 2, files=False)
    fault = outcome.load_fault
    assert fault is not None and (fault.phase, fault.verdict) == (phase, verdict) and words in fault.message
    assert not outcome.results and "/guest/" not in fault.traceback and "/tmp" not in fault.traceback


async def test_tracebacks_name_the_policys_own_file_and_line(roll, tmp_path):
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "helper.py").write_text("def fail(x):\n    return x / 0\n")
    source = """
    from helper import fail
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index): pass
        def act(self, obs): return fail(1)
    """
    outcome = await roll(source, 2)
    fault = outcome.results[0].fault
    assert fault is not None and fault.message == "ZeroDivisionError: division by zero"
    assert 'File "helper.py", line 2, in fail' in fault.traceback and 'File "policy.py", line 6' in fault.traceback
    rows = trajectory(tmp_path)
    assert len(rows) == outcome.results[0].length == 1 and rows[0]["info"]["action_sampled"]
    assert "act_error at step 0" in (tmp_path / "episodes" / "ep_000" / "error.txt").read_text()


PEEK = """
import gc, json, os, sys
class Policy:
    def __init__(self, *given): self.given = given
    def reset(self, index): pass
    def act(self, obs):
        found = {
            "environ": dict(os.environ), "argv": sys.argv, "path": sys.path, "cwd": os.getcwd(),
            "fds": sorted(int(n) for n in os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
            "objects": [repr(o)[:20000] for o in gc.get_objects() if type(o) in (dict, list, tuple)],
            "cmdline": open("/proc/self/cmdline").read() if os.path.exists("/proc/self/cmdline") else "",
        }
        frame = sys._getframe()
        while frame:
            found["objects"] += [repr(v)[:2000] for k, v in frame.f_locals.items() if k != "found"]
            frame = frame.f_back
        for start in range(0, len(json.dumps(found)), 4000):
            print(json.dumps(found)[start:start + 4000])
        return 0
"""


async def test_no_seed_is_in_the_guest(roll, tmp_path):
    seeds = [0x1234567890ABCDEF1234567890ABCDEF + i for i in range(2)]
    outcome = await roll(PEEK.replace("[:20000]", "[:300]").replace("print(", "sys.stderr.write("), 2, seeds=seeds)
    assert outcome.kinds == [None, None]
    told = (tmp_path / "episodes" / "ep_000" / "stderr.txt").read_text()
    assert "environ" in told and len(told) > 1000
    for seed in seeds:
        assert str(seed) not in told and f"{seed:x}" not in told
    names = set(json.loads(told[: told.index('}, "argv"') + 1].removeprefix('{"environ": ')))
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "PYTHONHASHSEED", "LC_CTYPE"} | {
        f"{lib}_NUM_THREADS" for lib in ("OMP", "OPENBLAS", "MKL")
    }


async def test_guests_see_neither_evotui_nor_the_session(roll, tmp_path):
    source = """
    import os, sys
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index):
            print([p for p in sys.path if os.path.isdir(os.path.join(p, "evotui"))], "evotui" in sys.modules)
            f = sys.flags
            print(f.safe_path, f.dont_write_bytecode, f.no_user_site, os.environ["PYTHONHASHSEED"])
            print(os.path.realpath(sys.path[0]) == os.path.realpath(os.getcwd()), os.path.exists("policy.py"))
        def act(self, obs): return 0
    """
    await roll(source)
    lines = printed(tmp_path, 1)[0]
    assert lines[1:] == ["True 1 1 0", "True True"]
    assert lines[0].endswith("False")


async def test_steps_are_told_at_most_about_ten_times_a_second(roll):
    source = """
    import time
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index): pass
        def act(self, obs):
            time.sleep(0.004)
            return int(obs[2] + 0.5 * obs[3] > 0)
    """
    outcome = await roll(source, 1)
    seconds = outcome.results[0].wall_seconds
    assert 5 <= len(outcome.steps) <= seconds * 10 + 1
    assert [s.step for s in outcome.steps] == sorted(s.step for s in outcome.steps)
    assert all(s.return_ == s.step for s in outcome.steps)


async def test_leaving_a_rollout_calls_its_episodes_off(pair, tmp_path):
    slow = GOOD.replace("return int", "__import__('time').sleep(0.01); return int")
    job = make_job(tmp_path, slow, 4)
    async with pair.open(job) as rollout:
        assert await rollout.compile() is None and await rollout.initialize() is None
        async for _ in rollout.episodes():
            break
    outcome = await run_job(pair, make_job(tmp_path, GOOD, 2))
    assert outcome.kinds == [None, None]


async def test_two_rollouts_at_once(pair, tmp_path):
    import asyncio

    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    jobs = [make_job(folder, GOOD, 4, seeds=SEEDS[4 * i :]) for i, folder in enumerate(folders)]
    outcomes = await asyncio.gather(*(run_job(pair, job) for job in jobs))
    assert [sorted(o.results) for o in outcomes] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("mode", ["episode", "batch"])
async def test_the_rest_of_a_submission_keeps_its_episode_indices(engine, tmp_path, mode):
    source = GOOD.replace("episode_index): pass", "episode_index): self.index = episode_index")
    source = source.replace("return int", "return self.index % 2 if self.index < 9 else int")
    job = make_job(tmp_path, source, 3, mode=mode)
    cases = tuple(CaseSeed(c.position, c.label, c.seed, index) for c, index in zip(job.cases, (1, 4, 9), strict=True))
    outcome = await run_job(engine, replace(job, cases=cases))
    assert "index" not in repr(outcome.results[0].fault)
    for name, first in (("ep_000", 1), ("ep_001", 0)):
        assert {row["action"] for row in trajectory(tmp_path, name)} == {first}
    assert outcome.results[2].return_ == 500.0


async def test_128_bit_seeds(roll):
    outcome = await roll(GOOD, 2, seeds=[2**128 - 1, 2**127 + 12345])
    assert outcome.kinds == [None, None]


async def test_a_job_is_checked(tmp_path):
    job = make_job(tmp_path, GOOD, 2)
    with pytest.raises(ValueError, match="names"):
        type(job)(**{f: getattr(job, f) for f in job.__slots__} | {"names": ("ep_000",)})
    assert str(SEEDS[0]) not in repr(job)
    assert job.task is CARTPOLE


@pytest.mark.parametrize("mode", ["episode", "batch"])
async def test_what_cannot_be_written_is_the_hosts_failure_and_the_engine_lives_on(
    engine, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "episodes").write_text("a file where a folder must be, as a full disk would refuse it")
    with pytest.raises(EngineError, match=r"cannot be recorded: .*episodes"):
        await run_job(engine, make_job(tmp_path, GOOD, 3, mode=mode))
    (tmp_path / "episodes").unlink()
    assert [r.return_ for r in (await run_job(engine, make_job(tmp_path, GOOD, 2, mode=mode))).results.values()] == [
        500.0,
        500.0,
    ]


async def test_numpys_global_generator_is_seeded_however_it_is_reached(roll, tmp_path):
    source = """
import numpy as np
import sys
{before}
class Policy:
    def __init__(self, obs_space, action_space, env_meta): pass
    def reset(self, episode_index):
        print("early" if "numpy.ran" "dom" in sys.modules else "late", {module}.rand(2).tolist())
    def act(self, obs): return 0
"""
    drawn = []
    for before, module in (("", "np.random"), ("", 'getattr(np, "ran" "dom")'), ("import numpy.random as r", "r")):
        await roll(source.format(before=before, module=module), 2)
        drawn.append([(tmp_path / "episodes" / f"ep_00{i}" / "stdout.txt").read_text().split(" ", 1) for i in (0, 1)])
    assert [first[0] for first, _ in drawn] == ["early", "late", "early"]
    assert len({str([numbers for _, numbers in runs]) for runs in drawn}) == 1
    assert drawn[0][0][1] != drawn[0][1][1]
