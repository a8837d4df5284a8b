"""Policies as text, and a scripted agent, for driving the kernel on real rollouts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from evotui.agents.base import Workspace
from evotui.kernel.session import Session

GOOD = """\
class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return int(3 * obs[2] + obs[3] + 0.3 * obs[1] + 0.2 * obs[0] > 0)
"""
LEFT = GOOD.replace("int(3 * obs[2] + obs[3] + 0.3 * obs[1] + 0.2 * obs[0] > 0)", "0")
SYNTAX = GOOD.replace("def reset(self, episode_index):", "def reset(self, episode_index:")
IMPORT = "import there_is_no_such_module\n" + GOOD
DENIED = "import numpy\nimport gymnasium\n" + GOOD
INIT = GOOD.replace("        pass\n\n    def reset", "        raise RuntimeError('no init today')\n\n    def reset", 1)
RESET = GOOD.replace("        pass\n\n    def act", "        raise RuntimeError('no reset today')\n\n    def act", 1)
ACT = GOOD.replace(
    "        return int", "        if obs[0] > -9:\n            raise RuntimeError('no act today')\n        return int"
)
NAN = GOOD.replace("int(3 * obs[2] + obs[3] + 0.3 * obs[1] + 0.2 * obs[0] > 0)", "float('nan')")

Play = Callable[[Workspace, Session], Awaitable[None]]


class Scripted:
    """An agent that plays a list of (source or None, cases) and keeps the answers; a refusal is an answer too."""

    def __init__(self, moves: Sequence[tuple[str | None, Any]]) -> None:
        self.moves = moves
        self.answers: list[Any] = []

    async def play(self, session: Session) -> str:
        workspace = Workspace(session.run_dir.workspace, session.run_dir.blobs, session.tell)
        for source, cases in self.moves:
            if source is not None:
                await workspace.write("policy.py", source)
            try:
                self.answers.append(await session.submit(cases))
            except Exception as error:
                self.answers.append(error)
        return "played"
