"""The agent before a model that fails in every way that we know of: what it tells, what it sends back, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

import pytest

from evotui.agents.base import AgentFailed, LimitReached
from evotui.record import events as e
from tests.agents.llm.conftest import DIALECTS, Scene, call
from tests.patience import Stopwatch, until
from tests.servers.model_server import FLOOD_PIECE, ModelServer
from tests.servers.script import Request

pytestmark = pytest.mark.asyncio(loop_scope="session")
READ = call("read_file", path="system/policy.py")
SPEND = {"text": "I spend it all.", "calls": [call("submit", cases="0-11", why="as it is")]}


def sent(scene: Scene, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a request in the chat dialect."""
    messages: list[dict[str, Any]] = scene.server.requests[number].body["messages"]
    return messages


# ── what is worth another try ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fail", ["429", "500", "502", "hang", "stall", "cut", "nodone"])
async def test_it_is_tried_again_and_the_run_goes_on(scene: Scene, dialect: str, fail: str) -> None:
    turn = SPEND | {"fail": fail, "times": 2, "retry_after": 0.05 if fail == "429" else None}
    deadlines = [0.7, 0.7, 30] if fail in ("hang", "stall") else [30, 30, 60]
    assert await scene.run([turn], dialect, deadlines=deadlines) == "the budget is spent"
    retries = scene.facts(e.AgentRetried)
    assert [r.attempt for r in retries] == [1, 2] and all(r.reason for r in retries)
    if fail == "429":
        assert [r.seconds for r in retries] == [0.1, 0.1] or [r.seconds for r in retries] == [0.0, 0.0]
    assert [m.text for m in scene.facts(e.AgentMessage)] == [SPEND["text"]]  # partial text is void
    assert len(scene.facts(e.UsageReported)) == 1 and scene.door.budget.remaining == 0
    bodies = [request.body for request in scene.server.requests]
    assert bodies[0] == bodies[1] == bodies[2]


async def test_retry_after_is_obeyed_and_shown(scene: Scene) -> None:
    began = time.monotonic()
    await scene.run([SPEND | {"fail": "429", "times": 1, "retry_after": 1.2}], retries=[3, 60.0])
    assert time.monotonic() - began >= 1.2
    (retry,) = scene.facts(e.AgentRetried)
    assert retry.seconds == 1.2 and "slow down" in retry.reason


async def test_a_server_that_never_recovers_ends_the_agent_with_a_sentence(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match=r"boom.*after 4 tries"):
        await scene.run([{"fail": "500"}])
    assert len(scene.server.requests) == 4 and scene.door.budget.remaining == 12


async def test_a_server_that_asks_for_hours_is_not_waited_for(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match="asks to wait 7200 s"):
        await scene.run([{"fail": "429", "retry_after": 7200}])


FATAL = {"401": "key", "404": "no model", "quota": "quota", "422": "refuses", "400": "refuses"}


@pytest.mark.parametrize("fail", FATAL)
async def test_what_no_try_will_mend_is_not_tried_again(scene: Scene, fail: str) -> None:
    with pytest.raises(AgentFailed, match=FATAL[fail]):
        await scene.run([{"fail": fail}])
    assert len(scene.server.requests) == 1 and not scene.facts(e.AgentRetried)


async def test_a_name_without_a_provider_is_explained(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match="smol has no provider: write openai/smol"):
        await scene.run([SPEND], model="smol", api_base="")


async def test_another_model_goes_on(scene: Scene) -> None:
    def script(request: Request) -> Any:
        return {"fail": "404"} if request.model == "first" else {"fail": "500"} if request.model == "second" else SPEND

    await scene.run(script, model="first", models=["second", "third"])
    assert [r.model for r in scene.server.requests] == ["first", *["second"] * 4, "third"]
    assert [s.model for s in scene.facts(e.AgentSession)] == ["openai/first", "openai/second", "openai/third"]
    assert "openai/second goes on instead of openai/first" in scene.facts(e.AgentRetried)[0].reason
    assert scene.facts(e.UsageReported)[-1].model == "openai/third"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_long_conversation_is_shortened_once(scene: Scene, dialect: str) -> None:
    (scene.root / "feedback" / "long.txt").write_text("long " * 3000)
    look = {"calls": [call("read_file", path="feedback/long.txt"), call("note", text="keep this in mind")]}
    turns = [look, look | {"text": "again"}, look | {"text": "and again"}, SPEND | {"fail": "context", "times": 1}]
    assert await scene.run([{"calls": [READ]}, *turns], dialect) == "the budget is spent"
    (retry,) = scene.facts(e.AgentRetried)
    assert "shortened" in retry.reason
    long, short = scene.server.requests[-2], scene.server.requests[-1]
    assert len(short.text) < len(long.text) - 5000
    assert "keep this in mind" in short.text and "Balance it." in short.text


async def test_a_conversation_that_stays_too_long_ends_the_agent(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match="too long"):
        await scene.run([{"calls": [READ]}, {"calls": [READ]}, {"fail": "context"}])
    assert len(scene.server.requests) == 4


# ── answers in strange shapes ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fail", ["malformed", "truncated"])
async def test_bad_arguments_are_answered_and_become_empty_ones(scene: Scene, dialect: str, fail: str) -> None:
    await scene.run([{"text": "I read.", "calls": [READ], "fail": fail}, SPEND], dialect)
    returned = scene.facts(e.ToolReturned)[0]
    assert not returned.ok and ("not valid JSON" if fail == "malformed" else "cut off") in returned.text
    body = scene.server.requests[1].body
    assert scene.server.requests[1].results == [returned.text]
    if dialect == "chat":
        assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fail", ["no_ids", "same_index", "object_arguments"])
async def test_two_calls_are_two_whatever_their_marks(scene: Scene, dialect: str, fail: str) -> None:
    if (dialect, fail) in (("anthropic", "object_arguments"), ("responses", "object_arguments")):
        pytest.skip("litellm drops these arguments")
    await scene.run(
        [{"text": "I read.", "calls": [READ, call("list_files", path="system")], "fail": fail}, SPEND], dialect
    )
    called = scene.facts(e.ToolCalled)[:2]
    assert [(c.name, dict(c.arguments)) for c in called] == [("read_file", READ["arguments"]), ("list_files", {"path": "system"})]  # fmt: skip # noqa: E501
    assert all(r.ok for r in scene.facts(e.ToolReturned)[:2]) and called[0].call != called[1].call
    assert len(scene.server.requests[1].results) == 2


@pytest.mark.parametrize("style", ["fenced", "xml", "bare"])
async def test_calls_written_in_the_text_are_carried_out(scene: Scene, style: str) -> None:
    turn = {"text": "" if style == "bare" else "I read.", "calls": [READ], "fail": "text_call", "style": style}
    await scene.run([turn, SPEND])
    assert scene.facts(e.ToolCalled)[0].name == "read_file" and scene.facts(e.ToolReturned)[0].ok
    assert sent(scene)[-1]["role"] == "user" and "Result of read_file" in sent(scene)[-1]["content"]


async def test_thoughts_in_the_text_are_thoughts(scene: Scene) -> None:
    await scene.run([SPEND | {"thinking": "Shall I? <b> & so on", "fail": "inline_thinking", "piece": 3}])
    assert [t.text for t in scene.facts(e.AgentThought)] == ["Shall I? <b> & so on"]
    assert [m.text for m in scene.facts(e.AgentMessage)] == [SPEND["text"]]
    spoken = {"text": "", "thought": ""}
    for delta in scene.facts(e.AgentDelta):
        if delta.channel in spoken:
            spoken[delta.channel] += delta.text
    assert spoken == {"text": SPEND["text"], "thought": "Shall I? <b> & so on"}


async def test_one_empty_reply_is_asked_about_and_three_end_the_agent(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match="3 replies in a row"):
        await scene.run([{"fail": "empty"}, SPEND | {"calls": [READ]}, {"fail": "empty"}])
    assert len(scene.server.requests) == 5
    assert "empty" in sent(scene, 1)[-1]["content"]


async def test_wrong_names_and_missing_arguments_are_format_errors(scene: Scene) -> None:
    wrong = [call("bash", command="ls"), call("read_file"), call("submit")]
    with pytest.raises(AgentFailed, match="cannot be used"):
        await scene.run([{"calls": [one]} for one in wrong])
    assert len(scene.server.requests) == 3 and all(not r.ok for r in scene.facts(e.ToolReturned))


async def test_a_loop_is_noticed_at_the_fourth_time(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match=r"stuck.*read_file 4 times"):
        await scene.run([{"calls": [READ], "fail": "loop"}])
    assert len(scene.server.requests) == 4


async def test_reading_again_after_each_edit_is_no_loop(scene: Scene) -> None:
    look = [READ, call("list_files", path="feedback")]
    pairs = [(f"return {n % 2}", f"return {(n + 1) % 2}") for n in range(6)]
    edits = [{"calls": [call("str_replace", path=READ["arguments"]["path"], old=a, new=b), *look]} for a, b in pairs]
    assert await scene.run([*edits, SPEND]) == "the budget is spent"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_usage_that_nobody_tells_is_marked(scene: Scene, dialect: str) -> None:
    await scene.run([SPEND | {"fail": "no_usage"}], dialect)
    (usage,) = scene.facts(e.UsageReported)
    assert usage.estimated and usage.input_tokens > 500 and usage.cost_usd is None


async def test_a_flood_reaches_the_record_whole(scene: Scene) -> None:
    await scene.run([{"fail": "flood", "rate": 200, "seconds": 3}, SPEND])
    whole = "".join(FLOOD_PIECE.format(n) for n in range(600))
    assert scene.facts(e.AgentMessage)[0].text == whole
    deltas = [d for d in scene.facts(e.AgentDelta) if d.channel == "text"]
    assert "".join(d.text for d in deltas).startswith(whole) and len(deltas) < 60


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_turns_end_it_between_two_turns(scene: Scene) -> None:
    look = [{"calls": [call("list_files"), call("note", text=str(n))]} for n in range(3)]
    with pytest.raises(LimitReached, match="3 turns"):
        await scene.run(look, max_turns=3)
    assert len(scene.facts(e.ToolReturned)) == 6


async def test_cost_ends_it_between_two_turns(scene: Scene) -> None:
    look = [{"calls": [call("note", text=str(n))]} for n in range(9)]
    each = (140 * 3 + 25 * 15) / 1e6
    with pytest.raises(LimitReached, match="spent, after 3 turns"):
        await scene.run(look, price=[3.0, 15.0], max_cost=2.5 * each)
    assert [u.cost_usd for u in scene.facts(e.UsageReported)] == [pytest.approx(each)] * 3


async def test_the_cost_of_a_run_that_is_taken_up_counts_on(scene: Scene) -> None:
    each = (140 * 3 + 25 * 15) / 1e6
    look = [{"calls": [call("note", text=str(n))]} for n in range(9)]
    with pytest.raises(LimitReached):
        await scene.run(look, price=[3.0, 15.0], max_turns=2)
    with (scene.root / "agent_stream.jsonl").open("a") as stream:
        stream.write('{"cost": null}\n[1]\n{"cost": 1')
    with pytest.raises(LimitReached, match=r"spent, after 1 turn$"):
        await scene.run(look, price=[3.0, 15.0], max_cost=2.5 * each)


async def test_a_limit_that_cannot_be_kept_is_said(scene: Scene) -> None:
    with pytest.raises(AgentFailed, match="no price of openai/scripted"):
        await scene.run([SPEND], max_cost=1.0)
    assert scene.door.budget.remaining == 12


async def test_time_ends_it(scene: Scene) -> None:
    look = [{"calls": [call("note", text=str(n))], "text": "slow " * 20, "delay": 0.03} for n in range(40)]
    with pytest.raises(LimitReached, match="the time of 1 s"):
        await scene.run(look, max_wall=1.0)
    with pytest.raises(LimitReached, match="the time of 5 s"):
        await scene.run([{"fail": "429", "retry_after": 60}], max_wall=5.0)


# ── words between turns ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_model_that_only_talks_is_asked_once_and_then_believed(scene: Scene) -> None:
    assert await scene.run([{"text": "I think we are done."}]) == "I think we are done."
    assert len(scene.server.requests) == 2
    assert "12 episodes of the budget are left" in sent(scene)[-1]["content"]


async def test_a_persons_words_are_told_at_the_next_turn(scene: Scene) -> None:
    def script(request: Request) -> Any:
        if request.index == 0:
            scene.door.said = ("Mind the spin.",)
            return {"calls": [READ]}
        return SPEND

    await scene.run(script)
    assert "Mind the spin." not in json.dumps(sent(scene, 0)) and "Mind the spin." in sent(scene, 1)[-1]["content"]
    assert list(scene.door.asked) == ["at the gate", "at once"]


async def test_words_for_a_model_that_would_stop_go_on_with_it(scene: Scene) -> None:
    def script(request: Request) -> Any:
        if request.index == 1:
            scene.door.said = ("Not yet: submit it.",)
        return {"text": "Done."} if request.index < 2 else SPEND

    assert await scene.run(script) == "the budget is spent"


async def test_a_run_that_takes_no_more_ends_it(scene: Scene) -> None:
    scene.door.closed_after = 0
    assert await scene.run([{"calls": [call("submit", cases="0"), READ]}]) == "finalized"
    assert not scene.facts(e.ToolReturned)[1].ok


async def test_the_past_and_the_notes_are_in_the_first_prompt(scene: Scene) -> None:
    scene.past = "So far 4 of 12 episodes were spent."
    (scene.root / "agent_notes.md").write_text("the spin matters\n\nuse few cases\n\n")
    await scene.run([SPEND])
    first = sent(scene, 0)[1]["content"]
    for text in (scene.past, "the spin matters", "use few cases", "Balance it.", "class Policy:", "12 of 12 episodes"):
        assert text in first


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stopped_in_the_middle_it_is_gone_within_a_tenth_of_a_second(scene: Scene, dialect: str) -> None:
    async with ModelServer([{"text": "word " * 2000, "delay": 0.01}]) as scene.server:
        running = asyncio.create_task(scene.agent(dialect).run(scene.workspace, scene.door, scene.told))
        while not scene.facts(e.AgentDelta):
            await asyncio.sleep(0.005)
        watch = Stopwatch(os.getpid(), scene.gateway.pid)
        running.cancel()
        await asyncio.wait({running})
        assert watch.seconds < 0.1
        request = scene.server.requests[0]
        assert await until(lambda: request.gone is not None) and watch.at(request.gone) < 0.1


async def test_thinking_goes_back_with_its_signature(scene: Scene) -> None:
    await scene.run([{"thinking": "Let me look.", "calls": [READ]}, SPEND], "anthropic")
    blocks = scene.server.requests[1].body["messages"][1]["content"]
    assert blocks[0]["type"] == "thinking" and blocks[0]["signature"] == "c2lnbmF0dXJl"


async def test_what_stays_the_same_is_cached_where_it_must_be_asked_for(scene: Scene) -> None:
    await scene.run([{"calls": [READ]}, SPEND], "anthropic")
    assert scene.server.requests[0].text.count("cache_control") == 2
