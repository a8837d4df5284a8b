"""A finished run's folder against what the protocol promises to others' scripts (``tests.layout``)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.record.check import check
from evotui.suite.catalog import availability, find_task
from tests.kernel import scripts
from tests.kernel.conftest import Opener
from tests.layout import ENV_META, answers, deviations

FIRST_STEPS = """\
class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.idle = [0.0] * action_space["shape"][0]

    def reset(self, episode_index):
        self.left = 3

    def act(self, obs):
        print("seen", obs.shape)
        self.left -= 1
        return self.idle if self.left > 0 else 1 / 0
"""
WORLDS: dict[str, tuple[dict[str, Any], list[tuple[str | None, Any]]]] = {
    "a warm-up, everything that can go wrong": (
        {"env": "cartpole", "budget": 12},
        [
            (None, "0-1"),
            (scripts.GOOD, [0, 1, 0]),
            (scripts.SYNTAX, [0]),
            (scripts.INIT, [0]),
            (scripts.ACT, [1, 2]),
            (scripts.LEFT, "5000"),
            (scripts.NAN, [2]),
            (scripts.GOOD, [3, 4]),
        ],
    ),
    "no submission that loads": ({"env": "cartpole", "budget": 2}, [(scripts.DENIED, [0]), (scripts.IMPORT, [1])]),
    "a thousand episodes": ({"env": "cartpole", "budget": 1000}, [(scripts.LEFT, [0]), (scripts.LEFT, [1])]),
    "one of the sixteen, as in the paper": (
        {"env": "acrobot", "budget": 3, "profile": "core16-paper"},
        [(None, [0]), (scripts.LEFT, [0, 1])],
    ),
    "reward components": ({"env": "reacher5", "budget": 2, "profile": "core16-paper"}, [(None, [0, 1])]),
    "images": ({"env": "racing", "budget": 2}, [(FIRST_STEPS, [0, 1])]),
}


async def finished(runs: Path, wishes: dict[str, Any], moves: list[tuple[str | None, Any]]) -> Path:
    session = await open_run(resolve(**{"validation": 2, "heldout": 3, "workers": 1} | wishes), runs)
    try:
        agent = scripts.Scripted(moves)
        await session.run("script", "script", lambda: agent.play(session))
        return session.run_dir.root
    finally:
        await session.close()


@pytest.mark.parametrize("world", WORLDS)
async def test_a_finished_run_is_laid_out_as_the_protocol_says(tmp_path: Path, world: str) -> None:
    wishes, moves = WORLDS[world]
    if why := availability(find_task(wishes["env"])):
        pytest.skip(why)
    run = await finished(tmp_path / "runs", wishes, moves)
    assert deviations(run) == []
    assert check(run) == []


TELLS = scripts.GOOD.replace("pass\n\n    def reset", "self.meta = env_meta\n\n    def reset", 1).replace(
    "return", "print(sorted(self.meta), self.meta['remaining_budget_after'], obs.dtype)\n        return", 1
)


async def test_the_doors_answers_and_what_a_policy_is_told(open_session: Opener) -> None:
    session = await open_session(budget=3)
    assert answers(await session.info()) == []
    agent = scripts.Scripted([(TELLS, [5])])
    told: list[Any] = []

    async def play() -> str:
        await agent.play(session)
        told.append(await session.info())
        return "played"

    await session.run("script", "script", play)
    assert answers(told[0]) == [] and told[0]["state"] == {"remaining_budget": 2, "n_submits": 1, "is_finalized": False}
    answer, run = agent.answers[0], session.run_dir
    assert list(answer) == ["submit_id", "status", "summary"]
    assert (answer["submit_id"], answer["status"]) == ("submit_000", "ok")
    assert answer["summary"] == json.loads((run.feedback_of(0) / "summary.json").read_text())
    said = (run.episode(0, 0) / "stdout.txt").read_text().splitlines()[0]
    assert said == f"{sorted(ENV_META)} 2 float32"
    assert (await session.info())["state"]["is_finalized"] is True


def rewritten(name: str, change: Callable[[Any], object]) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        document = json.loads((run / name).read_text())
        change(document)
        (run / name).write_text(json.dumps(document))

    return damage


def appended(name: str, text: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        with (run / name).open("a") as file:
            file.write(text)

    return damage


SUMMARY = "workspace/feedback/submit_001/summary.json"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a field less": (rewritten(SUMMARY, lambda d: d.pop("timeouts")), "timeouts is missing"),
    "a number as a text": (rewritten(SUMMARY, lambda d: d.update(n_episodes="3")), "n_episodes is '3'"),
    "seconds without milliseconds": (
        rewritten(SUMMARY, lambda d: d.update(submit_started_at="2026-01-01T00:00:00Z")),
        "submit_started_at",
    ),
    "a sample's deviation": (rewritten(SUMMARY, lambda d: d.update(std_return=9.0)), "std_return is 9.0"),
    "empty instead of null": (
        rewritten("workspace/feedback/submit_002/summary.json", lambda d: d.update(returns=[])),
        "returns is []",
    ),
    "no metrics of code": (rewritten("checkpoints/submit_003/metrics.json", lambda d: d.pop("classes")), "classes"),
    "another program": (appended("checkpoints/submit_001/policy.py", "import os\n"), "import_count is 0, not 1"),
    "other rules": (appended("workspace/AGENTS.md", "x"), "agents_md_hash"),
    "another workspace": (appended("workspace/system/policy.py", "#"), "differs from submit_006"),
    "a log that is not there": (lambda run: (run / "logs/env.log").unlink(), "names logs/env.log"),
    "a trend of the wrong length": (
        rewritten("run.json", lambda d: d["outcome"]["auxiliary"]["code_metrics_trend"]["bytes"].pop()),
        "code_metrics_trend bytes",
    ),
    "the earlier of two equals": (
        rewritten("run.json", lambda d: d["outcome"].update(best_submit_index=1)),
        "best_submit_index is 1",
    ),
}


async def test_each_deviation_is_seen(tmp_path: Path) -> None:
    wishes, moves = WORLDS["a warm-up, everything that can go wrong"]
    run = await finished(tmp_path / "runs", wishes, moves)
    runs, place = tmp_path / "runs", run.relative_to(tmp_path / "runs")
    for number, (name, (damage, sentence)) in enumerate(DAMAGES.items()):
        copy = tmp_path / str(number) / place
        shutil.copytree(runs, tmp_path / str(number))
        damage(copy)
        found = deviations(copy)
        assert any(sentence in one for one in found), (name, found)
