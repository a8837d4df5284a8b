"""One gateway with the real litellm for all of these tests (its import costs seconds), and an agent around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from evotui.agents.base import Place
from evotui.agents.llm.agent import ModelAgent
from evotui.agents.llm.client import GatewayClient, Request
from evotui.protocol.budget import Budget
from tests.agents.fakes import FakeDoor, SpaceWorld, Transcript, workspace
from tests.servers.model_server import ModelServer

KEY = "sk-ant-0123456789-never-to-be-seen"
OTHER_KEY = "plain.looking.but.secret"
DIALECTS = {"chat": ("openai/scripted", "/v1"), "anthropic": ("anthropic/scripted", ""), "responses": ("openai/responses/gpt-5", "/v1")}  # fmt: skip # noqa: E501
"""Models whose requests litellm makes in each dialect, and what their address ends in."""

STARTER = """class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return 0
"""
BOX = {"type": "Box", "shape": [4], "dtype": "float32", "low": -1.0, "high": 1.0}
TWO = {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}


@pytest_asyncio.fixture(loop_scope="session", scope="package")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GatewayClient]:
    keys = tmp_path_factory.mktemp("keys") / ".env"
    keys.write_text(f"# keys\nexport ANTHROPIC_API_KEY='{KEY}'\nOPENAI_API_KEY={OTHER_KEY}  # mine\n")
    client = GatewayClient(str(keys))
    await client.ready()
    for model, path in DIALECTS.values():  # what the first call of a kind costs is no part of any test
        async with ModelServer(["Hello."]) as server:
            request = Request(model, [{"role": "user", "content": "."}], [], server.url + path)
            async with aclosing(client.call(request)) as told:
                _ = [item async for item in told]
    yield client
    await client.close()


class Door(FakeDoor):
    """A door at which a person can leave words."""

    said: Sequence[str] = ()
    asked: Sequence[str] = ()

    async def messages(self, how: str = "at the gate") -> list[str]:
        texts, self.said, self.asked = list(self.said), (), (*self.asked, how)
        return texts

    async def spoken_to(self) -> None:
        if not self.said:
            import asyncio

            await asyncio.Event().wait()


class Scene:
    """An agent before a scripted model: ``await scene.run(turns)``; then what it told, and what the model was sent."""

    def __init__(self, root: Path, gateway: GatewayClient) -> None:
        self.root, self.gateway = root, gateway
        self.told = Transcript()
        self.workspace = workspace(root, self.told)
        (root / "system" / "policy.py").write_text(STARTER)
        self.door = Door(root, lambda: SpaceWorld(BOX, TWO), Budget(12, 0, 1, 12), task="Balance it.")
        self.server: ModelServer
        self.past = ""

    async def run(self, turns: Any, dialect: str = "chat", **options: Any) -> str:
        async with ModelServer(turns) as self.server:
            agent = self.agent(dialect, **options)
            return await agent.run(self.workspace, self.door, self.told)

    def agent(self, dialect: str = "chat", **options: Any) -> ModelAgent:
        model, path = DIALECTS[dialect]
        values = {"model": model, "api_base": self.server.url + path, "retries": [3, 0.01]} | options

        def serve() -> Any:
            raise AssertionError("the native agent asks for no address")

        place = Place(self.root / "agent_stream.jsonl", (), serve, "", self.past)
        return ModelAgent(values, place, self.gateway)

    def facts(self, kind: type) -> list[Any]:
        return [fact for fact in self.told if isinstance(fact, kind)]


@pytest.fixture
def scene(tmp_path: Path, gateway: GatewayClient) -> Scene:
    return Scene(tmp_path, gateway)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}
