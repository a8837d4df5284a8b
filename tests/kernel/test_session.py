"""Sessions on real rollouts: charges, verdicts, records, gate, people, stops."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from evotui.kernel.gate import Mode
from evotui.kernel.session import Session
from evotui.protocol.budget import DoorClosed, Rejected
from evotui.protocol.pools import Split
from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.state import FoldError, RunState
from tests.kernel import scripts
from tests.kernel.conftest import Opener


async def until(session: Session, truth: object) -> RunState:
    """Wait for a fact that makes ``truth(state)`` true."""
    done = asyncio.Event()

    def watch(state: RunState, record: e.Record) -> None:
        if truth(state):  # type: ignore[operator]
            done.set()

    session.watchers.append(watch)
    if not truth(session.state):  # type: ignore[operator]
        await done.wait()
    session.watchers.remove(watch)
    return session.state


def summary(session: Session, index: int) -> dict[str, object]:
    document: dict[str, object] = json.loads((session.run_dir.feedback_of(index) / "summary.json").read_text())
    return document


async def test_a_whole_run(open_session: Opener) -> None:
    session = await open_session()
    agent = scripts.Scripted(
        [
            (None, "0-1"),
            (scripts.GOOD, [0, 1, 0]),
            (scripts.SYNTAX, [0]),
            (scripts.LEFT, "5000"),
            (scripts.LEFT, [3, 4]),
        ]
    )
    assert await session.run("script", "script", lambda: agent.play(session)) == "completed"
    state, run = session.state, session.run_dir
    assert [s.verdict for s in state.submissions] == [Verdict.OK, Verdict.OK, Verdict.IMPORT_ERROR, Verdict.OK]
    assert state.budget.used == state.budget.total == 8 == sum(s.cost for s in state.submissions)
    assert isinstance(agent.answers[3], Rejected) and len(state.rejected) == 1
    assert agent.answers[1]["summary"]["returns"] == [500.0, 500.0, 500.0]
    assert state.selected == 1 and state.heldout is not None
    assert [ep.return_ for ep in state.heldout.episodes] == [500.0] * 3
    assert summary(session, 1)["episode_lengths"] == [500, 500, 500]
    assert summary(session, 2)["returns"] is None and (run.feedback_of(2) / "errors.txt").exists()
    assert not (run.feedback_of(1) / "errors.txt").exists()
    rows = (run.episode(1, 2) / "trajectory.jsonl").read_text().splitlines()
    assert len(rows) == 500 and json.loads(rows[0])["t"] == 0
    assert (run.system / "policy.py").read_text() == scripts.GOOD
    record = json.loads(run.run_json.read_text())
    assert record["outcome"]["best_submit_index"] == 1 and record["outcome"]["heldout_returns"] == [500.0] * 3
    assert set(record["outcome"]["val_scores"]) == {"0", "1", "3"}
    assert record["versions"]["data_heldout_hash"] == state.header.pool_hashes["heldout"]
    assert (run.pools / "heldout.json").exists() and state.pools_revealed
    with pytest.raises(DoorClosed):
        await session.submit([0])


@pytest.mark.parametrize(
    ("source", "verdict", "why"),
    [
        (scripts.IMPORT, Verdict.IMPORT_ERROR, "there_is_no_such_module"),
        (scripts.INIT, Verdict.INIT_ERROR, "no init today"),
        (scripts.DENIED, Verdict.DENIED_IMPORT, "line 2"),
    ],
)
async def test_a_failed_submission_is_charged_and_says_why(
    open_session: Opener, source: str, verdict: Verdict, why: str
) -> None:
    session = await open_session(budget=2)
    agent = scripts.Scripted([(source, [0, 1])])
    assert await session.run("script", "script", lambda: agent.play(session)) == "no_ok_submit"
    was = session.state.submission(0)
    assert was.verdict is verdict and why in was.message and session.state.budget.used == 2
    assert json.loads(session.run_dir.run_json.read_text())["outcome"]["final_score"] == 0.0
    errors = (session.run_dir.feedback_of(0) / "errors.txt").read_text().splitlines()
    assert json.loads(errors[0])["category"] == verdict and why in json.loads(errors[0])["message"]


async def test_raising_policies_end_their_episodes_only(open_session: Opener) -> None:
    session = await open_session(budget=6)
    agent = scripts.Scripted([(scripts.RESET, [0, 1]), (scripts.ACT, [0, 1]), (scripts.NAN, [0, 1])])
    await session.run("script", "script", lambda: agent.play(session))
    assert [s.verdict for s in session.state.submissions] == [Verdict.OK] * 3
    assert summary(session, 0)["errors"] == [0, 1] and summary(session, 1)["errors"] == [0, 1]
    nan = summary(session, 2)
    assert nan["errors"] == [] and nan["invalid_actions"] == nan["episode_lengths"]
    row = json.loads((session.run_dir.episode(2, 4) / "trajectory.jsonl").read_text().splitlines()[0])
    assert row["info"]["action_invalid"] is True and row["action"] == "NaN"


async def test_the_same_files_are_validated_once_unless_they_can_tell_their_submissions_apart(
    open_session: Opener,
) -> None:
    dice = scripts.GOOD.replace("return int(", "return os.urandom(1)[0] % 2 + 0 * int(").replace(
        "class", "import os\n\n\nclass"
    )
    counts = dice.replace(
        "        pass\n\n    def reset", "        self.n = env_meta['submit_index']\n\n    def reset", 1
    )
    session = await open_session(budget=6, validation=4)
    agent = scripts.Scripted([(dice, [0]), (scripts.LEFT, [0]), (dice, [1, 2]), (counts, [0]), (counts, [0])])
    assert await session.run("script", "script", lambda: agent.play(session)) == "completed"
    ran = [{ep.position: ep.return_ for ep in s.validation} for s in session.state.submissions]
    assert all(len(returns) == 4 for returns in ran)
    assert ran[0] == ran[2], "thrown once"
    assert ran[3] != ran[4], "both were thrown"
    log = [
        x
        for x in map(json.loads, session.run_dir.events.read_text().splitlines())
        if x["kind"] == "CheckpointValidated"
    ]
    assert [x["same_as"] for x in log] == [None, None, 0, None, None]


async def test_checkpoints_validated_side_by_side_leave_the_same_record(open_session: Opener) -> None:
    """With one Policy object a submission, each worker takes a checkpoint; its counter shows that none is shared."""
    counting = scripts.GOOD.replace("        pass\n\n    def reset", "        self.n = 0\n\n    def reset", 1).replace(
        "return int(", "self.n += 1\n        return 0 if self.n > 700 else int(", 1
    )
    records = []
    for workers in (1, 2):
        session = await open_session(
            budget=4, validation=4, workers=workers, policy_lifetime="submission", pools="paper"
        )
        agent = scripts.Scripted([(scripts.GOOD, [0]), (counting, [1]), (scripts.LEFT, [2]), (counting, [3])])
        assert (
            await session.run("script", "script", lambda agent=agent, session=session: agent.play(session))
            == "completed"
        )
        log = map(json.loads, session.run_dir.events.read_text().splitlines())
        hidden = ("HiddenEpisodeFinished", "CheckpointValidated", "CheckpointSelected", "HeldoutScored")
        records.append([{k: v for k, v in x.items() if k not in ("seq", "time")} for x in log if x["kind"] in hidden])
    assert records[0] == records[1]
    assert len({x["mean"] for x in records[0] if x["kind"] == "CheckpointValidated"}) == 3


async def test_hidden_figures_have_no_place_in_the_door_or_the_workspace(open_session: Opener) -> None:
    session = await open_session(budget=2)
    seeds = [str(s) for split in Split for s in session.arena.pools.of(split)]
    assert session.arena.pools.seed_bits > 100

    async def spy() -> str:
        served = json.dumps(await session.info()) + await session.task() + json.dumps(await session.submit([0, 1]))
        files = [p for p in session.run_dir.workspace.rglob("*") if p.is_file()]
        served += "".join(p.read_text(errors="replace") for p in files) + session.run_dir.events.read_text()
        assert not any(seed in served for seed in seeds)
        assert "reference" not in json.dumps(await session.info())
        assert stat.S_IMODE(session.run_dir.host.stat().st_mode) == 0o700
        assert stat.S_IMODE((session.run_dir.host_pools / "heldout.json").stat().st_mode) == 0o600
        assert not session.run_dir.pools.exists()
        return "spied"

    assert await session.run("script", "script", spy) == "completed"
    assert session.state.agent_ended == "done"


async def test_pause_holds_the_next_submission_and_step_lets_one_through(open_session: Opener) -> None:
    session = await open_session()
    await session.gate.set(Mode.PAUSE)
    agent = scripts.Scripted([(scripts.GOOD, [0]), (None, [1]), (None, [2])])
    work = asyncio.create_task(session.run("script", "script", lambda: agent.play(session)))
    await until(session, lambda s: s.held == "submission 0")
    assert session.state.gate == "pause" and session.state.budget.used == 0
    await session.gate.set(Mode.ITERATION)
    state = await until(session, lambda s: s.held == "submission 1")
    assert state.budget.used == 1 and state.submission(0).ok and state.gate == "pause"
    await session.gate.set(Mode.PHASE)
    await until(session, lambda s: s.held == "snapshot of submission 1")
    assert session.state.budget.used == 2  # acceptance is the charge, whatever comes next
    await session.gate.set(Mode.PHASE)
    state = await until(session, lambda s: s.held == "validate of submission 1")
    assert state.submission(1).tree_hash
    await session.gate.set(Mode.RUN)
    assert await work == "completed"
    assert session.state.held == ""


async def test_a_persons_submission_passes_the_gate_and_the_agents_version_comes_back(open_session: Opener) -> None:
    session = await open_session()
    await session.gate.set(Mode.PAUSE)
    agent = scripts.Scripted([(scripts.LEFT, [0])])
    work = asyncio.create_task(session.run("script", "script", lambda: agent.play(session)))
    await until(session, lambda s: s.held == "submission 0")
    before = {"policy.py": scripts.LEFT}
    (session.run_dir.system / "policy.py").write_text(scripts.GOOD)
    assert await session.edited(before) == ["policy.py"]
    answer = await session.submit("0", by="human")
    assert answer["summary"]["returns"] == [500.0] and session.state.submission(0).by == "human"
    await session.gate.set(Mode.RUN)
    await work
    state = session.state
    assert state.assisted and [s.by for s in state.submissions] == ["human", "agent"]
    assert (session.run_dir.checkpoint(1) / "policy.py").read_text() == scripts.LEFT
    assert state.selected == 0


async def test_stop_leaves_a_valid_unfinished_record(open_session: Opener) -> None:
    session = await open_session(budget=8)
    endless = scripts.GOOD.replace(
        "        return int", "        while len(obs) == 4:\n            pass\n        return int"
    )
    agent = scripts.Scripted([(endless, [0, 1])])
    work = asyncio.create_task(session.run("script", "script", lambda: agent.play(session)))
    await until(session, lambda s: s.active is not None and bool(s.active.running))
    session.wish("stop")
    assert await work == "stopped"
    state = session.state
    assert state.ended is None and state.budget.used == 2 and state.submission(0).verdict is None
    assert not session.run_dir.run_json.exists()
    with pytest.raises(DoorClosed):
        await session.submit([0])


async def test_a_stop_that_was_asked_for_before_the_run_began_is_heard(open_session: Opener) -> None:
    session = await open_session()
    agent = scripts.Scripted([(scripts.GOOD, [0])])
    session.wish("stop")  # a signal, while the run was being opened
    assert await session.run("script", "script", lambda: agent.play(session)) == "stopped"
    assert session.state.submissions == () and session.state.finalizing is None


async def test_finalize_scores_what_there_is(open_session: Opener) -> None:
    session = await open_session()

    async def evolve() -> str:
        await session.submit([0])
        session.wish("finalize")
        await asyncio.Event().wait()
        return ""

    assert await session.run("script", "script", evolve) == "completed"
    assert session.state.finalize_reason == "finalized by hand" and session.state.selected == 0


async def test_an_agent_that_fails_does_not_fail_the_run(open_session: Opener) -> None:
    session = await open_session()

    async def evolve() -> str:
        await session.submit([0])
        raise RuntimeError("the agent is broken")

    assert await session.run("script", "script", evolve) == "completed"
    assert session.state.agent_ended == "failed"


async def test_parallel_submissions_queue(open_session: Opener) -> None:
    session = await open_session()

    async def evolve() -> str:
        await asyncio.gather(*(session.submit([i]) for i in range(4)))
        return ""

    await session.run("script", "script", evolve)
    assert [s.cases for s in session.state.submissions] == [(0,), (1,), (2,), (3,)]


async def test_an_agent_that_dies_in_the_middle_of_a_request_changes_nothing(open_session: Opener) -> None:
    session = await open_session()

    async def evolve() -> str:
        asking = asyncio.create_task(session.submit([0, 1]))
        await until(session, lambda s: s.active is not None)
        asking.cancel()
        await until(session, lambda s: s.submissions[0].verdict is not None)
        return ""

    await session.run("script", "script", evolve)
    assert session.state.submission(0).ok and session.state.budget.used == 2


async def test_an_agent_that_leaves_early_still_gets_what_it_paid_for(open_session: Opener) -> None:
    session = await open_session()

    async def evolve() -> str:
        asking = asyncio.create_task(session.submit([0, 1]))
        await until(session, lambda s: s.active is not None)
        asking.cancel()
        return "gone"

    assert await session.run("script", "script", evolve) == "completed"
    assert session.state.finalizing == (0,) and session.state.selected == 0


async def test_a_starting_policy_comes_over_byte_for_byte(open_session: Opener, tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "policy.py").write_text(scripts.GOOD)
    (start / "weights.bin").write_bytes(bytes(range(256)))
    session = await open_session(start=str(start))
    assert (session.run_dir.system / "weights.bin").read_bytes() == bytes(range(256))
    assert (session.run_dir.blob(session.state.files["weights.bin"])).read_bytes() == bytes(range(256))


async def test_an_agent_tells_only_what_is_its_own(open_session: Opener) -> None:
    session = await open_session()
    with pytest.raises(TypeError):
        await session.tell(e.SubmissionAccepted(0, (0,), 0))


async def test_a_full_log_stops_the_run_with_a_clear_error(open_session: Opener, tmp_path: Path) -> None:
    session = await open_session()

    class Full:
        async def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        async def close(self) -> None: ...

    seq = session.state.seq
    real, session.ledger._log._file = session.ledger._log._file, Full()
    with pytest.raises(OSError, match="No space"):
        await session.submit([0])
    assert session.state.seq == seq and session.state.budget.used == 0
    await real.close()


async def test_a_fact_that_cannot_follow_is_never_written(open_session: Opener) -> None:
    session = await open_session()
    before = session.run_dir.events.read_bytes()
    with pytest.raises(FoldError):
        await session.append(e.GateMoved("pause"), e.PhaseEntered(7, Phase.SNAPSHOT))
    assert session.run_dir.events.read_bytes() == before and session.state.gate == "run"
    await session.append(e.GateMoved("run"))
