"""Real Claude Code and Codex, spoken to in the middle of a turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evotui.cli.live import turn_of
from evotui.kernel.config import resolve
from evotui.kernel.opening import open_run
from evotui.record import events as e
from tests.agents.clis.author import PLAN, Author
from tests.agents.clis.test_real import SETUPS, Bench, facts
from tests.servers.model_server import ModelServer
from tests.servers.script import Request, Script, Turn

pytestmark = [pytest.mark.clis, pytest.mark.timeout(180)]
SAID = "take the speed of the pole into account"


@pytest.mark.parametrize("kind", ["claude", "codex"])
@pytest.mark.parametrize("at", ["between two tools", "at the end"])
async def test_what_a_person_says_reaches_the_model(
    kind: str, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, kind)
    plan = list(PLAN)
    if at == "at the end":
        plan.insert(4, ("I am done here.",))
    author, asked, go = Author(plan), asyncio.Event(), asyncio.Event()

    async def answer(request: Request) -> Turn | str:
        if author.at == (4 if at == "at the end" else 2):
            asked.set()
            await go.wait()
        return author(request)

    async with ModelServer(Script(answer, None)) as server:
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in SETUPS[kind](bench.home, server.url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HOME", str(bench.home))
        wishes = {"env": "cartpole", "agent": kind, "budget": 12, "validation": 2, "heldout": 2, "workers": 1}
        session = await open_run(resolve(**wishes), bench.runs)
        try:
            turn = turn_of(session, kind, 0, {})
            playing = asyncio.create_task(session.run(turn.kind, turn.name, turn.evolve, turn.grace))
            await asyncio.wait({playing, asyncio.create_task(asked.wait())}, return_when=asyncio.FIRST_COMPLETED)
            assert asked.is_set(), facts(session.run_dir.root, e.AgentEnded)
            await session.say(SAID)
            async with asyncio.timeout(20):
                while session.state.messages:
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)  # the program reads it: only it knows when
            before = len(server.requests)
            go.set()
            assert await playing == "completed"
        finally:
            await session.close()
    assert [m.how for m in facts(session.run_dir.root, e.MessageDelivered)] == ["at once"]
    later = [SAID in request.text for request in server.requests[before:]]
    assert later and later[0]
    (ended,) = facts(session.run_dir.root, e.AgentEnded)
    assert ended.reason == "done"
