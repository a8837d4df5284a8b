"""Agents by name. Each is imported when it is made, so that nobody pays for an agent that is not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evotui.agents.base import Agent, Place


class UnknownAgent(ValueError):
    """No agent of that name; the message lists those that there are."""


@dataclass(frozen=True, slots=True)
class AgentKind:
    """``grace``: seconds the agent may go on once the budget is spent; ``headless``: it works without a screen;
    ``repeats``: for a seed and the same feedback it does the same, so a run of it can be taken up by repeating it;
    ``placed``: it works outside of this process, or needs a model, and is given a :class:`~evotui.agents.base.Place`;
    ``needs_model``: there is no sense in it without ``--model``."""

    name: str
    about: str
    grace: float
    headless: bool = True
    repeats: bool = False
    placed: bool = False
    needs_model: bool = False


AGENTS = {
    kind.name: kind
    for kind in (
        AgentKind("search", "the built-in optimiser: no model, no key, no network", 20.0, repeats=True),
        AgentKind("human", "you: edit the policy and submit it yourself", 0.0, placed=True),
        AgentKind("litellm", "a language model with tools, any provider", 60.0, placed=True, needs_model=True),
        AgentKind("claude", "Claude Code", 120.0, placed=True),
        AgentKind("codex", "Codex", 120.0, placed=True),
        AgentKind("gemini", "Gemini CLI", 120.0, placed=True),
        AgentKind("qwen", "Qwen Code", 120.0, placed=True),
        AgentKind("opencode", "opencode", 120.0, placed=True),
        AgentKind("kimi", "Kimi Code", 120.0, placed=True),
        AgentKind("command", "any program: -- PROGRAM ARGS…", 30.0, placed=True),
        AgentKind("replay", "the edits and submissions of a recorded run, again", 5.0, placed=True),
    )
}


def agent_kind(name: str) -> AgentKind:
    """Raises UnknownAgent."""
    if name in AGENTS:
        return AGENTS[name]
    own = own_agents()
    if name in own:
        return own[name]
    raise UnknownAgent(f"no agent {name!r}; there are {', '.join([*AGENTS, *own])}")


def own_agents() -> dict[str, AgentKind]:
    """Those that a person's own ``agents.toml`` adds. Raises UnknownAgent where it cannot be read."""
    from evotui.agents.cli.rows import RowError, rows

    try:
        found = rows()
    except RowError as wrong:
        raise UnknownAgent(str(wrong)) from None
    return {name: AgentKind(name, row.title, 120.0, placed=True) for name, row in found.items() if name not in AGENTS}


def preflight(name: str, options: Mapping[str, Any]) -> None:
    """Look whether the agent could work at all, before a run is made for it: program there, key there.

    Raises UnknownAgent, and AgentFailed with the sentence that helps.
    """
    agent_kind(name)
    if name == "litellm":
        from evotui.agents.llm.wishes import ready as model_ready

        model_ready(options)
    elif name == "command":
        from evotui.agents.command import ready as command_ready

        command_ready(options)
    elif name == "replay":
        from evotui.agents.replay import ready as replay_ready

        replay_ready(options)
    elif agent_kind(name).placed and name != "human":
        from evotui.agents.cli.agent import ready as row_ready

        row_ready(name, options)


async def warm_up(name: str, options: Mapping[str, Any]) -> None:
    """Begin what the agent will need and what takes seconds, beside the opening of its run. Returns at once."""
    if name == "litellm":
        from evotui.agents.llm.client import warm_up as warm_up_gateway

        await warm_up_gateway(str(options.get("env_file") or ""))


def make(name: str, seed: int, options: Mapping[str, Any] | None = None, place: Place | None = None) -> Agent:
    """A new agent. Raises UnknownAgent, and AgentFailed where its program or its options will not do."""
    kind = agent_kind(name)
    chosen = dict(options or {})
    if name == "human":
        from evotui.agents.human import HumanAgent

        return HumanAgent(chosen, place)
    if not kind.placed:
        from evotui.agents.search import SearchAgent

        return SearchAgent(seed=seed)
    if place is None:
        raise ValueError(f"the agent {name!r} needs a place to work in")
    if name == "litellm":
        from evotui.agents.llm.agent import ModelAgent

        return ModelAgent(chosen, place)
    if name == "command":
        from evotui.agents.command import CommandAgent

        return CommandAgent(chosen, place)
    if name == "replay":
        from evotui.agents.replay import ReplayAgent

        return ReplayAgent(chosen, place)
    from evotui.agents.cli.agent import CliAgent

    return CliAgent(name, chosen, place)
