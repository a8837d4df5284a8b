"""Agents by name. Each is imported when it is made, so that nobody pays for an agent that is not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evotui.agents.base import Agent


class UnknownAgent(ValueError):
    """No agent of that name; the message lists those that there are."""


@dataclass(frozen=True, slots=True)
class AgentKind:
    """``grace``: seconds the agent may go on once the budget is spent; ``headless``: it works without a screen;
    ``repeats``: for a seed and the same feedback it does the same, so a run of it can be taken up by repeating it."""

    name: str
    about: str
    grace: float
    headless: bool = True
    repeats: bool = False


AGENTS = {
    kind.name: kind
    for kind in (
        AgentKind("search", "the built-in optimiser: no model, no key, no network", 20.0, repeats=True),
        AgentKind("human", "you: edit the policy and submit it yourself", 0.0, headless=False),
    )
}


def agent_kind(name: str) -> AgentKind:
    """Raises UnknownAgent."""
    if name not in AGENTS:
        raise UnknownAgent(f"no agent {name!r}; there are {', '.join(AGENTS)}")
    return AGENTS[name]


def make(name: str, seed: int, options: Mapping[str, Any] | None = None) -> Agent:
    """A new agent. Raises UnknownAgent."""
    agent_kind(name)
    if name == "human":
        from evotui.agents.human import HumanAgent

        return HumanAgent()
    from evotui.agents.search import SearchAgent

    return SearchAgent(seed=seed)
