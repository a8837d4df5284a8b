"""The scripted server itself: what programs read on its wire, and that it ends by itself."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.patience import running, until
from tests.servers.model_server import ModelServer
from tests.servers.script import FAILURES, Script, turn_of

PATHS = {"anthropic": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions"}
TOOLS = {
    "anthropic": [{"name": "shell", "input_schema": {}}],
    "responses": [{"type": "function", "name": "shell"}],
    "chat": [{"type": "function", "function": {"name": "shell"}}],
}
CALL = {"name": ["Bash", "shell"], "arguments": {"command": "ls"}}


async def post(server: ModelServer, dialect: str, **body: Any) -> tuple[int, str]:
    body = {"model": "m", "messages": [], "input": [], "tools": TOOLS[dialect]} | body
    async with aiohttp.ClientSession() as session, session.post(server.url + PATHS[dialect], json=body) as answer:
        return answer.status, await answer.text()


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("dialect", PATHS)
async def test_whole_and_streamed_say_the_same(dialect: str) -> None:
    async with ModelServer([{"text": "I look around here.", "calls": [CALL]}] * 2) as server:
        _, whole = await post(server, dialect)
        _, streamed = await post(server, dialect, stream=True)
        assert [r.streams for r in server.requests] == [False, True] and server.requests[0].tools == ["shell"]
    for text in (whole, "".join(json.dumps(e) for e in events(streamed))):
        assert '"shell"' in text and "ls" in text
    said = {
        "anthropic": lambda e: e.get("delta", {}).get("text", ""),
        "responses": lambda e: e["delta"] if e["type"].endswith("output_text.delta") else "",
        "chat": lambda e: (e["choices"][0]["delta"].get("content") or "") if e["choices"] else "",
    }[dialect]
    assert "".join(said(e) for e in events(streamed)) == "I look around here."


@pytest.mark.parametrize("dialect", PATHS)
async def test_failures_come_so_many_times(dialect: str) -> None:
    async with ModelServer([{"fail": "429", "times": 2, "retry_after": 3, "text": "Done."}]) as server:
        answers = [await post(server, dialect) for _ in range(4)]
    assert [status for status, _ in answers] == [429, 429, 200, 200]


async def test_requests_without_tools_use_no_turn_up() -> None:
    async with ModelServer(Script(["the turn"], aux="a title")) as server:
        assert "a title" in (await post(server, "chat", tools=[]))[1]
        assert "the turn" in (await post(server, "chat"))[1]


async def test_the_script_may_be_a_function_of_the_request() -> None:
    async with ModelServer(lambda request: f"you said {request.body['messages'][0]['content']}") as server:
        assert "you said hi" in (await post(server, "chat", messages=[{"role": "user", "content": "hi"}]))[1]


def test_a_wrong_script_is_refused() -> None:
    with pytest.raises(ValueError, match="no failure 'nonsense'"):
        turn_of({"fail": "nonsense"})
    assert all(turn_of({"fail": name}).fail == name for name in FAILURES)


async def test_as_a_program_it_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "Hello."}], "aux": None}))
    options = f"--script {script} --port 0 --print-port --log {tmp_path}/log"
    command = f"{sys.executable} -m tests.servers.model_server {options} & echo $!; exec sleep 60"
    parent = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    pid, port = int(await parent.stdout.readline()), int(await parent.stdout.readline())
    try:
        url = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as session:
            async with session.post(url + "/v1/messages", json={"model": "m"}, headers={"x-api-key": "secret"}) as said:
                assert "Hello." in await said.text()
            async with session.get(url + "/v1/models") as models:
                assert (await models.json())["data"]
        assert "secret" not in (tmp_path / "log").read_text() and "/v1/messages" in (tmp_path / "log").read_text()
    finally:
        parent.kill()
        await parent.wait()
    assert await until(lambda: not running(pid))
