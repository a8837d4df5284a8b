"""Whole runs on CartPole with a scripted model that reads feedback, edits, submits; budget and record are right."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.agents.base import Workspace
from evotui.agents.llm.agent import ModelAgent
from evotui.agents.llm.client import GatewayClient
from evotui.cli.live import _place
from evotui.kernel.config import RunConfig, resolve
from evotui.kernel.opening import open_run
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session
from evotui.record import events as e
from evotui.record.check import check
from evotui.record.log import read
from tests.agents.llm.conftest import DIALECTS, KEY, OTHER_KEY, call
from tests.servers.model_server import ModelServer
from tests.servers.script import Request

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANALYSIS = """
import glob, json
import numpy as np
for path in sorted(glob.glob("feedback/submit_000/episodes/*/trajectory.jsonl")):
    last = json.loads(open(path).readlines()[-1])
    print(path.split("/")[-2], "angle", last["obs"][2], "spin", last["obs"][3])
"""


def a_model_that_reads(request: Request) -> Any:
    """Submits as it is, looks how the pole fell, and brings the spin in where it fell while it was spinning."""
    seen = request.results
    match request.index:
        case 0:
            return {"thinking": "First the policy.", "text": "I look.", "calls": [call("read_file", path="system/policy.py")]}  # fmt: skip # noqa: E501
        case 1:
            assert "class Policy" in seen[-1]
            return {"calls": [call("submit", cases="0-3", why="the starter")]}
        case 2:
            assert "case 3: return" in seen[-1] and "Episodes left: 8" in seen[-1]
            return {"text": "How does it fall?", "calls": [call("run_python", code=ANALYSIS)]}
        case 3:
            spins = [float(line.split()[-1]) for line in seen[-1].splitlines() if "spin" in line]
            assert len(spins) == 4 and max(abs(s) for s in spins) > 0.5, seen[-1]
            edit = call(
                "str_replace", path="system/policy.py", old="if angle > 0", new="if angle + 0.5 * float(obs[3]) > 0"
            )
            return {
                "text": "It spins when it falls.",
                "calls": [edit, call("write_file", path="feedback/x", content="")],
            }
        case _:
            return {"text": "Now with the spin.", "calls": [call("submit", cases="0-7", why="with the spin")]}


PEEKS = """
import os

class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        print("environment:", dict(os.environ))

    def act(self, obs):
        return 0
"""


def config(options: dict[str, Any], **wishes: Any) -> RunConfig:
    values: dict[str, Any] = {"env": "cartpole", "budget": 12, "validation": 2, "heldout": 3, "workers": 1} | wishes
    return resolve(**values, agent="litellm", model=options["model"], options=options)


async def drive(session: Session, options: dict[str, Any], gateway: GatewayClient) -> str:
    agent = ModelAgent(options, _place(session, "litellm"), gateway)
    workspace = Workspace(session.run_dir.workspace, session.run_dir.blobs, session.tell)
    run: Callable[[], Awaitable[str]] = lambda: agent.run(workspace, session, session.tell)  # noqa: E731
    return await session.run(agent.kind, agent.name, run, 60.0)


def no_key_in(root: Path) -> None:
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in files:
        data = path.read_bytes()
        assert KEY.encode() not in data and OTHER_KEY.encode() not in data, path


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_model_that_reads_its_feedback_wins(gateway: GatewayClient, tmp_path: Path, dialect: str) -> None:
    model, path = DIALECTS[dialect]
    async with ModelServer(a_model_that_reads) as server:
        options = {"model": model, "api_base": server.url + path, "price": [3.0, 15.0]}
        session = await open_run(config(options), tmp_path / "runs")
        try:
            assert await drive(session, options, gateway) == "completed"
        finally:
            await session.close()
        assert len(server.requests) == 5
    state, root = session.state, session.run_dir.root
    assert state.budget.used == 12 and [s.mean for s in state.submissions][1] == 500.0
    assert check(root) == []
    facts = [record.event for record in read(session.run_dir.events)]
    returned = [f for f in facts if isinstance(f, e.ToolReturned)]
    assert [r.denied for r in returned] == [False, False, False, False, True, False]
    edits = [f for f in facts if isinstance(f, e.FileEdited) and f.by == "agent"]
    assert [(f.path, f.added, f.removed) for f in edits] == [("policy.py", 1, 1)]
    assert sum(f.cost_usd or 0 for f in facts if isinstance(f, e.UsageReported)) == pytest.approx(
        5 * (140 * 3 + 375) / 1e6
    )
    assert [f.reason for f in facts if isinstance(f, e.AgentEnded)] == ["done"]
    stream = [json.loads(line) for line in (session.run_dir.logs / "agent_stream.jsonl").read_text().splitlines()]
    assert len(stream) == 5
    no_key_in(root)


async def test_stopped_in_a_stream_and_taken_up_again(gateway: GatewayClient, tmp_path: Path) -> None:
    turns = [
        {"calls": [call("submit", cases="0-3"), call("note", text="a note to keep")]},
        {"text": "w " * 999, "delay": 0.02},
    ]
    async with ModelServer(turns) as server:
        options = {"model": "openai/x", "api_base": server.url + "/v1"}
        session = await open_run(config(options), tmp_path / "runs")
        session.watchers.append(lambda state, record: session.wish("stop") if isinstance(record.event, e.AgentDelta) and record.event.channel == "text" else None)  # fmt: skip # noqa: E501
        assert await drive(session, options, gateway) == "stopped"
        await session.close()
    async with ModelServer([{"text": "On with it.", "calls": [call("submit", cases="4-11")]}]) as server:
        options["api_base"] = server.url + "/v1"
        session, _ = await reopen_run(session.run_dir.root)
        try:
            assert await drive(session, options, gateway) == "completed"
        finally:
            await session.close()
        first = server.requests[0].text
    assert "4 of 12 episodes were spent" in first and "a note to keep" in first and "8 of 12 episodes are left" in first
    assert session.state.budget.used == 12 and check(session.run_dir.root) == []


@pytest.mark.parametrize("fail", ["401", "loop"])
async def test_a_model_that_fails_leaves_a_run_that_can_be_taken_up(
    gateway: GatewayClient, tmp_path: Path, fail: str
) -> None:
    turns = [{"calls": [call("submit", cases="0-1")]}, {"fail": fail, "calls": [call("list_files")]}]
    async with ModelServer(turns) as server:
        options = {"model": "openai/x", "api_base": server.url + "/v1"}
        session = await open_run(config(options), tmp_path / "runs")
        assert await drive(session, options, gateway) == "failed"
        await session.close()
        said = [r.event for r in read(session.run_dir.events) if isinstance(r.event, e.AgentEnded)][-1]
        assert said.reason == "failed" and {"401": "key", "loop": "stuck"}[fail] in said.text
    async with ModelServer([{"calls": [call("submit", cases="2-11")]}]) as server:
        options["api_base"] = server.url + "/v1"
        session, _ = await reopen_run(session.run_dir.root)
        try:
            assert await drive(session, options, gateway) == "completed"
        finally:
            await session.close()
    assert session.state.budget.used == 12 and check(session.run_dir.root) == []


async def test_from_the_command_line_with_a_key_from_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text(f"OPENAI_API_KEY={OTHER_KEY}\n")
    environment = {k: v for k, v in os.environ.items() if "API_KEY" not in k} | {"ANTHROPIC_API_KEY": KEY}
    all_of_it = call("submit", cases="0-11")
    script = [
        {"calls": [call("write_file", path="system/policy.py", content=PEEKS)]},
        {"fail": "429", "times": 1, "retry_after": 0.1, "message": f"no, {OTHER_KEY}", "calls": [all_of_it]},
    ]
    async with ModelServer(script) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "evotui", "run", "cartpole", "--headless", "--quiet", "--json", "--budget", "12"),
            *("--validation", "2", "--heldout", "3", "--runs", str(tmp_path / "runs"), "--agent", "litellm"),
            *("--model", "openai/scripted", "--api-base", server.url + "/v1", "--env-file", str(keys)),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment,
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert server.requests[-1].headers["Authorization"] == f"Bearer {OTHER_KEY}"
    assert OTHER_KEY not in (out + err).decode() and KEY not in (out + err).decode()
    (events,) = (tmp_path / "runs").rglob("events.jsonl")
    printed = next((tmp_path / "runs").rglob("submit_000/episodes/*/stdout.txt")).read_text()
    assert "environment:" in printed
    assert b"[key]" in events.read_bytes()  # what the server said, without it
    no_key_in(tmp_path / "runs")
