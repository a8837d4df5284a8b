"""Coding agents on real runs, by fakes that speak their dialects: good ones, and each kind of bad one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evotui.agents.cli import agent as cli_agent
from evotui.record import events as e
from tests.agents.cli.conftest import Fakes, facts, of
from tests.kernel.scripts import GOOD, LEFT
from tests.patience import PATIENCE

KINDS = ["claude", "opencode", "mine", "half"]
POLICY = "system/policy.py"
TWO_TURNS = (
    [["think", "What is this?"], ["say", "I look first."], ["run", "cat AGENTS.md"], ["write", POLICY, LEFT],
     ["run", "evotui submit 0-2"], ["run", "cat feedback/submit_000/summary.json"]],
    [["say", "Better now."], ["write", POLICY, GOOD], ["run", "evotui submit 3-5"], ["say", "That was all."]],
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_in_two_turns_to_the_end(fakes: Fakes, kind: str, monkeypatch: pytest.MonkeyPatch):
    if kind == "half":
        monkeypatch.setenv("FAKE_AGENT_NO_ACP", "1")
    fakes.plan(*TWO_TURNS)
    found = await fakes.run(kind)
    assert found[-1] == e.RunEnded("completed")
    (ended,) = of(found, e.AgentEnded)
    assert (ended.reason, "spent the budget" in ended.text) == ("done", True)
    assert [s.cases for s in of(found, e.SubmissionAccepted)] == [(0, 1, 2), (3, 4, 5)]
    assert [f.path for f in of(found, e.FileEdited) if f.by == "agent"] == ["policy.py", "policy.py"]
    assert [f.text for f in of(found, e.AgentMessage)] == ["I look first.", "Better now.", "That was all."]
    assert [f.text for f in of(found, e.AgentThought)] == ["What is this?"]
    returned = of(found, e.ToolReturned)
    assert all(f.ok for f in returned) and len(returned) == 6
    assert any("mean_return" in f.text for f in returned)
    assert of(found, e.AgentSession) and of(found, e.UsageReported)
    if kind in ("claude", "opencode"):
        pieces = "".join(f.text for f in of(found, e.AgentDelta) if f.channel == "text")
        assert pieces == "I look first.Better now.That was all."
        first_piece = next(at for at, f in enumerate(found) if isinstance(f, e.AgentDelta) and f.channel == "text")
        assert first_piece < found.index(e.AgentMessage("I look first."))
    if kind == "claude":  # each result tells the total so far
        assert [u.cost_usd for u in of(found, e.UsageReported) if u.cost_usd] == [0.01, 0.01]
    first, second = fakes.prompts
    assert "evotui submit" in first and "# The task" in first and "6 episodes" in first
    assert "3 of 6 episodes are left" in second and "# The task" not in second


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("claude", [["deny", "Edit"]]),
        ("opencode", [["write", "AGENTS.md", "mine now"], ["run", "rm -rf feedback"], ["run", "evotui submit 0 > x"]]),
    ],
)
async def test_what_is_refused_is_told_as_denied_and_nothing_happens(fakes: Fakes, kind: str, steps: list[Any]):
    fakes.plan([*steps, ["write", POLICY, GOOD], ["run", "evotui submit 0-5"]])
    found = await fakes.run(kind)
    denied = [f for f in of(found, e.ToolReturned) if f.denied]
    assert len(denied) == len(steps) and not any(f.ok for f in denied)
    workspace = fakes.sessions[0].run_dir.workspace
    assert "mine now" not in (workspace / "AGENTS.md").read_text() and (workspace / "feedback").is_dir()
    assert of(found, e.RunEnded) == [e.RunEnded("completed")]
    if kind == "opencode":
        outcomes = [m["outcome"]["optionId"] for m in fakes.heard if "outcome" in m]
        assert outcomes == ["reject_once"] * 3 + ["allow_once"] * 2


@pytest.mark.parametrize("kind", ["claude", "opencode"])
async def test_what_nobody_understands_is_kept_and_the_run_goes_on(fakes: Fakes, kind: str):
    odd = [["raw", "this is no JSON \x1b[31m"], ["raw", '{"type": "new_thing", "method": "new/thing", "x": 1}'],
           ["raw", "[[["], ["raw", "\x00\x01"], ["line", 3_000_000]]  # fmt: skip
    fakes.plan([*odd, ["write", POLICY, GOOD], ["run", "evotui submit 0-5"]])
    found = await fakes.run(kind)
    assert of(found, e.RunEnded) == [e.RunEnded("completed")]
    raw = of(found, e.AgentRaw)
    assert len(raw) >= 5 and "this is no JSON" in raw[0].text and "\x1b" not in raw[0].text
    stream = (fakes.sessions[0].run_dir.logs / "agent_stream.jsonl").read_bytes()
    assert b"this is no JSON \x1b[31m\n" in stream and len(stream) > 3_000_000


@pytest.mark.parametrize("kind", KINDS[:3])
async def test_a_crash_in_the_middle_of_a_turn_leaves_the_run_open(fakes: Fakes, kind: str):
    fakes.plan([["say", "I begin."], ["write", POLICY, GOOD], ["run", "evotui submit 0-1"], ["die", 7]])
    found = await fakes.run(kind)
    (ended,) = of(found, e.AgentEnded)
    assert ended.reason == "failed" and "7" in ended.text and "something went very wrong" in ended.text
    assert not of(found, e.RunEnded) and len(of(found, e.SubmissionFinished)) == 1


async def test_a_program_that_ends_before_its_first_turn_is_told(fakes: Fakes):
    fakes.plan([["die", 3]])
    fakes.program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 9.9 && exit 0\necho no license >&2; exit 3\n')
    for kind in ("claude", "mine"):
        (ended,) = of(await fakes.run(kind), e.AgentEnded)
        assert ended.reason == "failed" and "no license" in ended.text


@pytest.mark.parametrize("kind", ["claude", "opencode"])
async def test_one_that_never_answers_is_ended(fakes: Fakes, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli_agent, "IDLE", 1.0)
    fakes.plan([["hang"]])
    (ended,) = of(await fakes.run(kind), e.AgentEnded)
    assert ended.reason == "failed" and "said nothing for 1 s" in ended.text


@pytest.mark.parametrize("kind", KINDS[:3])
async def test_a_limit_of_time_interrupts_the_turn(fakes: Fakes, kind: str):
    fakes.plan([["say", "I think for ever."], ["hang"]])
    for wall in (4.0, 16.0, 64.0):  # a busy machine may not have started the program at the first limit
        found = await fakes.run(kind, max_wall=wall)
        if of(found, e.AgentMessage):
            break
    (ended,) = of(found, e.AgentEnded)
    assert (ended.reason, ended.text) == ("limit", f"the limit of {wall:g} s is reached")
    assert of(found, e.RunEnded) == [e.RunEnded("no_ok_submit")]
    asked = {"claude": "control_request", "opencode": "session/cancel"}.get(kind)
    assert asked is None or any(asked in (m.get("type"), m.get("method")) for m in fakes.heard)


@pytest.mark.parametrize("kind", ["claude", "opencode"])
async def test_a_limit_of_turns_lets_the_last_tool_end(fakes: Fakes, kind: str):
    fakes.plan([["write", POLICY, GOOD], ["run", "evotui submit 0-1"], ["hang"]])
    found = await fakes.run(kind, max_turns=2)
    (ended,) = of(found, e.AgentEnded)
    assert (ended.reason, ended.text) == ("limit", "the limit of 2 turns is reached")
    assert of(found, e.RunEnded) == [e.RunEnded("completed")]  # what was submitted is scored


async def test_a_limit_of_money_stops_claude(fakes: Fakes):
    fakes.plan([["write", POLICY, GOOD], ["run", "evotui submit 0"]])
    found = await fakes.run("claude", max_cost=0.015)
    (ended,) = of(found, e.AgentEnded)
    assert ended.reason == "limit" and "$0.015" in ended.text and "$0.0200 spent" in ended.text
    arguments = fakes.heard[0]["arguments"]
    assert arguments[arguments.index("--max-budget-usd") + 1] == "0.015"


async def test_a_limit_of_money_that_cannot_be_kept_is_told(fakes: Fakes):
    fakes.plan([["write", POLICY, GOOD], ["run", "evotui submit 0-2"]])
    found = await fakes.run("opencode", max_cost=1.0)
    assert [f.text for f in of(found, e.AgentRaw) if f.what == "limit"] == [
        "opencode tells no price: no limit of money can be kept"
    ]


async def test_two_turns_without_a_submission_ask_for_a_person(fakes: Fakes):
    fakes.plan([["say", "I am done."]])
    (ended,) = of(await fakes.run("opencode"), e.AgentEnded)
    assert ended.reason == "failed" and "2 turns without submitting" in ended.text
    assert "nothing counts that was not submitted" in fakes.prompts[1]


@pytest.mark.parametrize(
    ("status", "words"), [(401, "log in"), (404, "does not know the model"), (429, "limit"), (500, "server fails")]
)
@pytest.mark.parametrize("kind", KINDS[:2])
async def test_a_refused_model_call_becomes_the_sentence_that_helps(fakes: Fakes, kind: str, status: int, words: str):
    fakes.plan([["error", status, f"status {status}, said the server"]])
    (ended,) = of(await fakes.run(kind), e.AgentEnded)
    assert ended.reason == "failed" and words in ended.text.replace("auth login", "log in")


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def test_claude_is_spoken_to_in_the_middle_of_its_turn(fakes: Fakes, tmp_path: Path):
    gate = tmp_path / "go"
    fakes.plan([["say", "Thinking."], ["wait", str(gate)]], [["write", POLICY, GOOD], ["run", "evotui submit 0-5"]])
    session = await fakes.open("claude")
    playing = asyncio.create_task(fakes.play(session, "claude"))
    await _until(lambda: fakes.prompts and of(facts(session), e.AgentMessage))
    await session.say("use the pole's speed")
    await _until(lambda: len(fakes.prompts) == 2)
    gate.touch()
    await playing
    assert fakes.prompts[1] == "The operator says: use the pole's speed\n\n"
    assert of(facts(session), e.MessageDelivered) == [e.MessageDelivered(("use the pole's speed",), "at once")]
    assert of(facts(session), e.RunEnded) == [e.RunEnded("completed")]
    assert len(fakes.prompts) == 2  # the second turn was the message's own


async def test_an_acp_agent_hears_it_with_the_next_prompt(fakes: Fakes, tmp_path: Path):
    gate = tmp_path / "go"
    fakes.plan([["say", "Thinking."], ["wait", str(gate)]], [["write", POLICY, GOOD], ["run", "evotui submit 0-5"]])
    session = await fakes.open("opencode")
    playing = asyncio.create_task(fakes.play(session, "opencode"))
    await _until(lambda: fakes.prompts)
    await session.say("use the pole's speed")
    gate.touch()
    await playing
    assert fakes.prompts[1].startswith("The operator says: use the pole's speed\n")
    assert [m.how for m in of(facts(session), e.MessageDelivered)] == ["at the gate"]


async def test_a_stop_leaves_no_process_and_takes_no_second(fakes: Fakes):
    fakes.plan([["hang"]])
    session = await fakes.open("claude")
    playing = asyncio.create_task(fakes.play(session, "claude"))
    await _until(lambda: fakes.prompts)
    session.wish("stop")
    async with asyncio.timeout(10):
        assert await playing == "stopped"


@pytest.mark.parametrize("kind", KINDS[:3])
async def test_a_conversation_is_taken_up(fakes: Fakes, kind: str):
    fakes.plan([["write", POLICY, LEFT], ["run", "evotui submit 0-2"], ["die", 1]])
    session = await fakes.open(kind)
    assert await fakes.play(session, kind) == "failed"
    name = of(facts(session), e.AgentSession)[-1].session
    fakes.plan([["write", POLICY, GOOD], ["run", "evotui submit 3-5"]])
    before = len(fakes.prompts)
    assert await fakes.play(session, kind) == "completed"
    taken_up = {
        "claude": lambda m: ["--resume", name] == m.get("arguments", [])[-2:],
        "mine": lambda m: ["--resume", name] == m.get("arguments", [])[-2:],
        "opencode": lambda m: m.get("method") == "session/load" and m["params"]["sessionId"] == name,
    }[kind]
    assert any(taken_up(message) for message in fakes.heard)
    assert "3 of 6 episodes are left" in fakes.prompts[before] and "# The task" not in fakes.prompts[before]
    assert "said long ago" not in [m.text for m in of(facts(session), e.AgentMessage)]


@pytest.mark.parametrize("kind", ["claude", "opencode"])
async def test_a_conversation_that_is_gone_begins_anew_with_what_happened(fakes: Fakes, kind: str):
    fakes.plan([["write", POLICY, LEFT], ["run", "evotui submit 0-2"], ["die", 1]])
    session = await fakes.open(kind)
    await fakes.play(session, kind)
    await session.tell(e.AgentSession("gone-for-good"))
    fakes.plan([["write", POLICY, GOOD], ["run", "evotui submit 3-5"]])
    assert await fakes.play(session, kind) == "completed"
    raw = [f.text for f in of(facts(session), e.AgentRaw) if f.what == "session"]
    assert raw == ["gone-for-good cannot be taken up; a new one begins"]
    assert "So far 3 of 6 episodes were spent" in fakes.prompts[-1] and "# The task" in fakes.prompts[-1]


async def test_a_key_is_in_no_fact(fakes: Fakes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret-indeed")
    monkeypatch.setenv("OTHER_API_KEY", "sk-nobodys-business")
    look = "echo key $ANTHROPIC_API_KEY other ${OTHER_API_KEY:-none}"
    fakes.plan([["run", look], ["write", POLICY, GOOD], ["run", "evotui submit 0-5"]])
    found = await fakes.run("claude")
    assert of(found, e.ToolReturned)[0].text == "key [key] other none\n"
    assert b"sk-very" not in fakes.sessions[0].run_dir.events.read_bytes()
