"""The real litellm in its process, against the scripted server: three dialects, faults, cancelling, keys, floods."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from evotui.agents.llm.check import check
from evotui.agents.llm.client import Delta, GatewayClient, Reply, Request, warm_up, warmed
from evotui.agents.llm.faults import ModelFault
from evotui.agents.llm.tools import TOOLS
from tests.agents.llm.conftest import DIALECTS, KEY, OTHER_KEY, call
from tests.patience import Stopwatch, running, until
from tests.servers.model_server import FLOOD_PIECE, ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="session")
ASK = [{"role": "user", "content": "Go."}]
READ = call("read_file", path="system/policy.py")
SAID = {"thinking": "Let me look at this.", "text": "I read it — naïvely.", "calls": [READ, call("list_files")]}


async def ask(gateway: GatewayClient, dialect: str, turn: Any, **more: Any) -> tuple[list[Delta], Reply]:
    model, path = DIALECTS[dialect]
    async with ModelServer([turn]) as server:
        request = Request(model, ASK, TOOLS, server.url + path, **more)
        async with aclosing(gateway.call(request)) as stream:
            items = [item async for item in stream]
    assert isinstance(items[-1], Reply)
    return [item for item in items[:-1] if isinstance(item, Delta)], items[-1]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_each_dialect_is_streamed_whole(gateway: GatewayClient, dialect: str) -> None:
    deltas, reply = await ask(gateway, dialect, SAID, price=[3.0, 15.0])
    assert (reply.thought, reply.text) == (SAID["thinking"], SAID["text"])
    assert [(c.name, c.arguments()) for c in reply.calls] == [("read_file", READ["arguments"]), ("list_files", {})]
    assert "".join(d.text for d in deltas if d.channel == "text") == SAID["text"]
    assert "".join(d.text for d in deltas if d.channel == "thought") == SAID["thinking"]
    assert "".join(d.text for d in deltas if d.channel == "tool") == "".join(c.text for c in reply.calls)
    assert (reply.input, reply.cached, reply.written, reply.output) == (100, 40, 0, 25) and not reply.estimated
    assert reply.cost == pytest.approx((140 * 3 + 25 * 15) / 1e6)


async def test_the_process_that_holds_the_keys_imports_nothing_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "http", "asyncio", "litellm"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    keys = tmp_path / ".env"
    keys.write_text(f"OPENAI_API_KEY={OTHER_KEY}\n")
    gateway = GatewayClient(str(keys))
    try:
        await ask(gateway, "chat", {"text": "Yes."})
    finally:
        await gateway.close()
    assert not (tmp_path / "ran").exists()


async def test_cache_writes_are_told_apart(gateway: GatewayClient) -> None:
    usage = {"input": 100, "cached": 40, "written": 30, "output": 25}
    _, reply = await ask(gateway, "anthropic", {"text": "Yes.", "usage": usage})
    assert (reply.input, reply.cached, reply.written, reply.output) == (100, 40, 30, 25)


async def test_thinking_is_kept_with_its_signature(gateway: GatewayClient) -> None:
    _, reply = await ask(gateway, "anthropic", SAID)
    assert reply.blocks == ({"type": "thinking", "thinking": SAID["thinking"], "signature": "c2lnbmF0dXJl"},)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_usage_it_is_counted_and_marked(gateway: GatewayClient, dialect: str) -> None:
    _, reply = await ask(gateway, dialect, SAID | {"fail": "no_usage"})
    assert reply.estimated and reply.input > 50 and reply.output > 5 and reply.cost is None


async def test_a_server_that_tells_bare_numbers_is_believed(gateway: GatewayClient) -> None:
    _, reply = await ask(gateway, "chat", SAID | {"usage": {"input": 1234, "cached": 0, "output": 3}})
    assert (reply.input, reply.cached, reply.output, reply.estimated) == (1234, 0, 3, False)


async def test_one_tiny_call_says_what_works(gateway: GatewayClient) -> None:
    async with ModelServer([{"text": "Right.", "calls": [call("say", word="pendulum")]}]) as server:
        options = {"model": "m", "api_base": server.url + "/v1", "price": [3.0, 15.0]}
        findings = await check(options, gateway)
        assert len(server.requests) == 1
    assert [(what, ok) for what, ok, _ in findings] == [
        (what, True) for what in ("answer", "streaming", "tools", "usage", "price")
    ]
    assert findings[4][2].startswith("$0.000795")
    ((what, ok, text),) = await check(options, gateway)
    assert (what, ok) == ("answer", False) and "is the server running?" in text


async def test_no_price_is_made_up_for_a_server_of_ones_own(gateway: GatewayClient) -> None:
    async with ModelServer(["Yes."]) as server:
        request = Request("openai/gpt-4o", ASK, [], server.url + "/v1")
        async with aclosing(gateway.call(request)) as stream:
            reply = [item async for item in stream][-1]
    assert isinstance(reply, Reply) and reply.cost is None


KINDS = {
    "401": "auth", "403": "auth", "404": "not_found", "quota": "quota", "422": "bad_request", "context": "context",
    "429": "rate_limit", "500": "server", "502": "server", "503": "server", "529": "server", "cut": "cut",
    "nodone": "cut", "hang": "timeout", "stall": "timeout",
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fail", KINDS)
async def test_each_fault_has_its_kind(gateway: GatewayClient, dialect: str, fail: str) -> None:
    if (dialect, fail) == ("anthropic", "quota"):
        pytest.skip("Anthropic has no such error")
    turn = SAID | {"fail": fail, "retry_after": 7.0 if fail == "429" else None}
    with pytest.raises(ModelFault) as caught:
        await ask(gateway, dialect, turn, first=0.6, idle=0.6)
    fault = caught.value
    assert fault.kind == KINDS[fail], (fault.kind, fault.message)
    assert fault.message and "litellm" not in fault.message and "Exception" not in fault.message
    assert fault.partial == (fail in ("cut", "nodone", "stall"))
    assert fault.retry_after == (7.0 if fail == "429" else None)


async def test_llamacpp_has_its_own_word_for_a_long_conversation(gateway: GatewayClient) -> None:
    with pytest.raises(ModelFault) as caught:
        await ask(gateway, "chat", {"fail": "context_llamacpp"})
    assert caught.value.kind == "context"


@pytest.mark.parametrize("fail", ["garbage", "mid_error"])
async def test_a_broken_stream_is_no_answer(gateway: GatewayClient, fail: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await ask(gateway, "chat", SAID | {"fail": fail})
    assert caught.value.kind in ("cut", "server") and caught.value.partial


async def test_what_a_model_does_not_take_is_left_out(gateway: GatewayClient) -> None:
    params = {"temperature": 0.5, "reasoning_effort": "high", "no_such_thing": 1}
    async with ModelServer(["Yes."]) as server:
        async with aclosing(gateway.call(Request("openai/x", ASK, [], server.url + "/v1", params))) as stream:
            _ = [item async for item in stream]
        body = server.requests[0].body
    assert body["temperature"] == 0.5 and "no_such_thing" not in body


async def test_nobody_there(gateway: GatewayClient) -> None:
    async with ModelServer(["Yes."]) as server:
        gone = server.url
    with pytest.raises(ModelFault) as caught:
        async with aclosing(gateway.call(Request("openai/x", ASK, [], gone + "/v1"))) as stream:
            _ = [item async for item in stream]
    assert caught.value.kind == "connection"


async def test_an_answer_that_goes_on_for_ever_ends_at_the_wall(gateway: GatewayClient) -> None:
    watch = Stopwatch(os.getpid(), gateway.pid)
    with pytest.raises(ModelFault) as caught:
        await ask(gateway, "chat", {"text": "and " * 500, "delay": 0.05}, wall=0.8)
    assert caught.value.kind == "timeout" and watch.seconds < 3


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_cancelled_within_a_tenth_of_a_second(gateway: GatewayClient, dialect: str) -> None:
    model, path = DIALECTS[dialect]
    async with ModelServer([{"text": "word " * 2000, "delay": 0.01}]) as server:
        stream = gateway.call(Request(model, ASK, TOOLS, server.url + path))
        async for item in stream:
            assert isinstance(item, Delta)
            break
        watch = Stopwatch(os.getpid(), gateway.pid)
        await stream.aclose()
        assert watch.seconds < 0.05
        assert await until(lambda: server.requests[0].gone is not None) and watch.at(server.requests[0].gone) < 0.1
    assert (await ask(gateway, dialect, SAID))[1].text  # and it goes on with the next call


async def test_a_flood_loses_nothing_and_comes_in_few_pieces(gateway: GatewayClient) -> None:
    seconds, rate = 3.0, 200.0
    began = time.monotonic()
    deltas, reply = await ask(gateway, "chat", {"fail": "flood", "rate": rate, "seconds": seconds})
    took = time.monotonic() - began  # longer than it should where the machine is busy
    whole = "".join(FLOOD_PIECE.format(n) for n in range(int(rate * seconds)))
    assert reply.text == whole and "".join(d.text for d in deltas) == whole
    assert len(deltas) <= took * 15 + 5


async def test_no_key_comes_out_of_it(gateway: GatewayClient) -> None:
    words = f"bad key {KEY}, another: {OTHER_KEY}, and sk-proj-abcdefghijklmnop1234"
    async with ModelServer([{"fail": "401", "message": words}]) as server:
        with pytest.raises(ModelFault) as caught:
            async with aclosing(gateway.call(Request("anthropic/x", ASK, TOOLS, server.url))) as stream:
                _ = [item async for item in stream]
        assert server.requests[0].headers.get("x-api-key") == KEY  # it was used
    said = caught.value.message
    assert KEY not in said and OTHER_KEY not in said and "sk-proj" not in said
    assert said.startswith("bad key") and "[key]" in said


async def test_it_costs_nothing_while_nothing_happens(gateway: GatewayClient) -> None:
    def ticks() -> float:
        fields = Path(f"/proc/{gateway.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    await ask(gateway, "chat", SAID)
    before, began = ticks(), time.monotonic()
    await asyncio.sleep(2.0)
    assert (ticks() - before) / (time.monotonic() - began) < 0.03  # one tick of a clock of 100 Hz is half a per cent


async def test_a_gateway_that_dies_is_a_fault_and_the_next_call_has_a_new_one(tmp_path: Path) -> None:
    client = GatewayClient()
    await client.start()
    assert client.pid is not None
    os.kill(client.pid, 9)
    try:
        with pytest.raises(ModelFault):
            await client.ready()
        first = client.pid
        await client.start()
        assert client.pid != first
    finally:
        await client.close()


async def test_a_gateway_that_is_stopped_is_noticed_and_replaced(
    gateway: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evotui.agents.llm.client._SLACK_SECONDS", 0.3)
    await gateway.ready()
    before = gateway.pid
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    with pytest.raises(ModelFault, match="does not answer"):
        await ask(gateway, "chat", SAID, wall=0.5)
    monkeypatch.undo()
    assert (await ask(gateway, "chat", SAID))[1].text == SAID["text"] and gateway.pid != before


async def test_what_was_warmed_up_is_taken_once() -> None:
    await warm_up("")
    client = warmed("")
    try:
        assert client.pid is not None and warmed("").pid is None
    finally:
        await client.close()


PARENT = """
import asyncio
from evotui.agents.llm.client import GatewayClient

async def main():
    client = GatewayClient()
    await client.start()
    print(client.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_it_does_not_outlive_its_parent() -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    # Killed at once, or, still at its imports, when it sees that stdin has ended.
    assert await until(lambda: not running(pid))
