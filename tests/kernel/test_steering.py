"""A person beside the agent: messages, approval, hand-over, and agents that cannot go on."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from evotui.cli.branching import branched
from evotui.cli.live import drive
from evotui.kernel.config import ConfigError
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session, Turn
from evotui.protocol.budget import Rejected
from evotui.protocol.turns import AgentFailed, LimitReached
from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from evotui.record.log import read
from tests.kernel import scripts
from tests.kernel.conftest import Opener
from tests.kernel.test_session import until


def told(session: Session, kind: type[e.Event]) -> list[e.Event]:
    return [record.event for record in read(session.run_dir.events) if isinstance(record.event, kind)]


async def test_a_message_reaches_the_agent_once_and_marks_the_run(open_session: Opener) -> None:
    session = await open_session(budget=2)
    heard: list[str] = []

    async def agent() -> str:
        await session.submit([0])
        while len(heard) < 2:
            await session.spoken_to()
            heard.extend(await session.messages("at once"))
        heard.extend(await session.messages())
        await session.submit([1])
        return ""

    running = asyncio.create_task(session.run("script", "script", agent))
    await until(session, lambda state: len(state.submissions) == 1 and state.submissions[0].ok)
    await session.say("try a longer lever\n")
    await session.say("and [bold]watch[/] the cart")
    assert await running == "completed"
    assert heard == ["try a longer lever\n", "and [bold]watch[/] the cart"]
    assert session.state.assisted and session.state.messages == ()
    assert (session.run_dir.messages).read_text() == "try a longer lever\n\nand [bold]watch[/] the cart\n\n"


async def test_approval_lets_through_or_refuses_for_free(open_session: Opener) -> None:
    session = await open_session(budget=3)
    await session.approve_each(True)
    answers: list[object] = []

    async def agent() -> str:
        for cases in ("0", "1", "2", "1-2"):
            try:
                answers.append((await session.submit(cases))["status"])
            except Rejected as refused:
                answers.append(refused)
        return ""

    running = asyncio.create_task(session.run("script", "script", agent))
    await until(session, lambda state: state.asked == "0")
    assert session.state.budget.used == 0
    session.decide(True)
    await until(session, lambda state: state.asked == "1")
    session.decide(False, "it forgets the velocity")
    await until(session, lambda state: state.asked == "2")
    await session.approve_each(False)  # what waits goes on
    assert await running == "completed"
    assert answers[0] == answers[2] == "ok"
    assert isinstance(answers[1], Rejected) and answers[1].verdict is Verdict.REFUSED
    assert "it forgets the velocity" in str(answers[1])
    assert isinstance(answers[3], Rejected)  # one episode was left
    assert session.state.budget.used == 2 and session.state.assisted


async def test_an_agent_that_leaves_while_it_is_looked_at_withdraws(open_session: Opener) -> None:
    session = await open_session(budget=2)
    await session.approve_each(True)
    waiting = asyncio.create_task(session.submit([0]))
    await until(session, lambda state: state.asked is not None)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert session.state.asked is None and session.state.budget.used == 0
    await session.approve_each(False)
    assert (await session.submit([0]))["status"] == "ok"


async def test_another_agent_goes_on_and_nothing_is_lost(open_session: Opener) -> None:
    session = await open_session(budget=4)

    async def first() -> str:
        await session.submit([0, 1])
        await asyncio.Event().wait()
        return ""

    async def second() -> str:
        (session.run_dir.system / "policy.py").write_text(scripts.GOOD)
        await session.submit([2, 3])
        return "done by the second"

    running = asyncio.create_task(session.run("one", "the first", first))
    await until(session, lambda state: state.active is not None)  # the submission under way is not lost
    session.hand_over(Turn("two", "the second", second))
    assert await running == "completed"
    state = session.state
    assert [s.verdict for s in state.submissions] == [Verdict.OK, Verdict.OK] and state.budget.spent
    assert state.agent == "two" and state.agent_name == "the second" and state.assisted
    ends = [event.reason for event in told(session, e.AgentEnded) if isinstance(event, e.AgentEnded)]
    assert ends == ["handed_over", "done"]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(AgentFailed("the key was refused"), "failed", "failed"), (LimitReached("1 $ is spent"), "completed", "limit")],
)
async def test_an_agent_that_cannot_go_on(open_session: Opener, error: Exception, status: str, reason: str) -> None:
    session = await open_session(budget=4)

    async def agent() -> str:
        await session.submit([0])
        raise error

    assert await session.run("script", "script", agent) == status
    assert session.state.agent_ended == reason
    # A failed agent leaves the run open, so that it can be resumed; a limit is an end like any other.
    assert (session.state.ended is None) == (status == "failed")
    if status == "completed":
        assert session.state.finalize_reason == "limit"


async def test_a_patient_run_waits_for_what_a_person_wants_next(open_session: Opener) -> None:
    session = await open_session(budget=4)
    session.patient = True

    async def fails() -> str:
        raise AgentFailed("no login")

    async def leaves() -> str:
        await session.submit([0])
        return "enough"

    running = asyncio.create_task(session.run("one", "one", fails))
    await until(session, lambda state: state.held.startswith("what next, with 4 episodes"))
    session.hand_over(Turn("two", "two", leaves))
    await until(session, lambda state: state.held.startswith("what next, with 3 episodes"))
    session.wish("finalize")
    assert await running == "completed"
    assert session.state.finalize_reason == "finalized by hand" and session.state.held == ""


async def test_a_branch_begins_where_its_parent_stood(open_session: Opener, tmp_path: Path) -> None:
    parent = await open_session(budget=5)
    agent = scripts.Scripted([(None, "0-1"), (scripts.GOOD, "0"), (scripts.LEFT, "1-2")])
    assert await parent.run("script", "script", lambda: agent.play(parent)) == "completed"
    runs = tmp_path / "runs"
    config = branched(str(parent.run_dir.root), 1, runs, None, {"workers": 1})
    assert config.budget == 2
    child = await open_run(config, runs)
    try:
        head = child.state.header
        assert (head.branched_from, head.branched_at) == (parent.run_dir.root.name, 1)
        assert child.run_dir.system.joinpath("policy.py").read_text() == scripts.GOOD
        assert sorted(p.name for p in child.run_dir.system.iterdir()) == ["policy.py"]
        # Same train cases; the parent has ended, so its hidden cases lie open and are drawn anew.
        assert head.pool_hashes["train"] == parent.state.header.pool_hashes["train"]
        assert head.pool_hashes["validation"] != parent.state.header.pool_hashes["validation"]
        assert (await child.submit([0]))["summary"]["returns"] == [500.0]
    finally:
        await child.close()


async def test_a_branch_of_a_run_that_lives_shares_its_hidden_cases(open_session: Opener, tmp_path: Path) -> None:
    parent = await open_session(budget=5)
    await parent.submit([0])
    child = await open_run(branched(str(parent.run_dir.root), None, tmp_path / "runs"), tmp_path / "runs")
    try:
        assert child.state.header.pool_hashes == parent.state.header.pool_hashes
    finally:
        await child.close()


async def test_what_cannot_be_branched_is_said(open_session: Opener, tmp_path: Path) -> None:
    parent = await open_session(budget=1)
    runs, root = tmp_path / "runs", str(parent.run_dir.root)
    with pytest.raises(ConfigError, match="no checkpoint to branch from"):
        branched(root, None, runs)
    await parent.submit([0])
    with pytest.raises(ConfigError, match="no checkpoint of submission 7"):
        branched(root, 7, runs)
    with pytest.raises(ConfigError, match="no episode left"):
        branched(root, 0, runs)
    with pytest.raises(ConfigError, match="cannot be on acrobot"):
        branched(root, 0, runs, "acrobot")


async def test_nobody_is_asked_for_a_submission_that_cannot_be(open_session: Opener) -> None:
    session = await open_session(budget=2)
    await session.approve_each(True)
    with pytest.raises(Rejected) as refused:
        await session.submit("0-5")
    assert refused.value.verdict is Verdict.BUDGET_INVALID and told(session, e.ApprovalAsked) == []


async def test_a_resumed_run_goes_on_with_whom_it_was_handed_to(open_session: Opener, tmp_path: Path) -> None:
    session = await open_session(budget=4)
    started = asyncio.Event()

    async def first() -> str:
        await asyncio.Event().wait()
        return ""

    async def second() -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    running = asyncio.create_task(session.run("search", "search", first))
    await until(session, lambda state: state.agent_live)
    session.hand_over(Turn("human", "you", second, options={"limit": 3}))
    await started.wait()
    session.wish("stop")
    assert await running == "stopped"
    assert (session.state.agent, dict(session.state.agent_options)) == ("human", {"limit": 3})
    await session.close()
    copy = shutil.copytree(session.run_dir.root, tmp_path / "copy")
    again, config = await reopen_run(copy)
    try:
        driven = asyncio.create_task(
            drive(again, config.agent, config.seed, config.options, read(again.run_dir.events))
        )
        await until(again, lambda state: state.agent_live)
        assert config.agent == "search" and again.state.agent == "human"
        assert dict(again.state.agent_options) == {"limit": 3}
        await asyncio.sleep(0)
        again.wish("stop")
        assert await driven == "stopped"
    finally:
        await again.close()
