"""``evotui agents``: who can evolve a policy here, and what is missing for those who cannot.

A kind with more to look at than :func:`evotui.agents.catalog.preflight` does is entered in :data:`CHECKS`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import click

from evotui.cli.errors import FAILURE, OK

Finding = tuple[str, bool | None, str]
"""What was looked at, whether it works (None: neither good nor bad), and a word on it."""
Checker = Callable[[Mapping[str, Any]], Awaitable[list[Finding]]]

_WITHOUT_PROGRAM = ("search", "human", "litellm", "command", "replay")
"""Every other agent is a coding agent with a row in ``agents.toml``."""

_MARKS = {True: "ok", False: "no", None: "--"}


def _litellm() -> Checker:
    from evotui.agents.llm.check import check

    return check


def _coding(kind: str) -> Checker:
    from evotui.agents.cli.check import check

    return lambda options: check(kind, options)


CHECKS: dict[str, Callable[[], Checker]] = {"litellm": _litellm}
"""By kind: what gives the function that examines it. Called when it is needed, so that nothing is imported before."""


async def examine(kind: str, options: Mapping[str, Any]) -> list[Finding]:
    """All findings on an agent. Raises UnknownAgent."""
    from evotui.agents.catalog import agent_kind

    agent_kind(kind)
    if kind in CHECKS:
        return await CHECKS[kind]()(options)
    if kind not in _WITHOUT_PROGRAM:
        return await _coding(kind)(options)
    return [await asyncio.to_thread(_first_look, kind, options)]


def _first_look(kind: str, options: Mapping[str, Any]) -> Finding:
    from evotui.agents.catalog import agent_kind, preflight
    from evotui.protocol.turns import AgentFailed

    if kind not in _WITHOUT_PROGRAM:
        return _program(kind, options)
    try:
        preflight(kind, options)
    except (AgentFailed, ImportError) as wrong:
        return ("ready", False, str(wrong))
    return ("ready", True, agent_kind(kind).about)


def _program(kind: str, options: Mapping[str, Any]) -> Finding:
    """A coding agent: its version, or what is missing."""
    from evotui.agents.cli.agent import ready
    from evotui.protocol.turns import AgentFailed

    try:
        found = ready(kind, options)
    except AgentFailed as wrong:
        return ("ready", False, str(wrong))
    return (
        "ready",
        True if found.login else None,
        f"version {found.version}" + (f"; {found.hint}" if found.hint else ""),
    )


def _in_list(kind: str) -> Finding:
    """What a list says of an agent: those that need to be told more are neither good nor bad."""
    needs = {
        "litellm": "give --model; `evotui agents check litellm --model …` makes one tiny call",
        "command": "give the program after --",
        "replay": "give the run: --option source=RUN",
    }
    return ("ready", None, needs[kind]) if kind in needs else _first_look(kind, {})


@click.group("agents", invoke_without_command=True)
@click.pass_context
def agents(context: click.Context) -> None:
    """Who can evolve a policy here."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@agents.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_command(as_json: bool = False) -> int:
    """List the agents, and what is missing for those that cannot be used."""
    from evotui.agents.catalog import AGENTS, UnknownAgent, own_agents

    try:
        kinds = AGENTS | own_agents()
    except UnknownAgent as wrong:
        raise click.UsageError(str(wrong)) from None
    rows = [(kind, *_in_list(name)[1:]) for name, kind in kinds.items()]
    if as_json:
        told = [{"agent": kind.name, "about": kind.about, "ready": ok, "why": why} for kind, ok, why in rows]
        click.echo(json.dumps({"schema_version": 1, "agents": told}, indent=2))
        return OK
    width = max(len(kind.name) for kind, _, _ in rows)
    for kind, ok, why in rows:
        more = "" if ok and kind.name in _WITHOUT_PROGRAM else f"; {why}"
        click.echo(f"{_MARKS[ok]}  {kind.name:<{width}}  {kind.about}{more}")
    return OK


@agents.command("check")
@click.argument("kind", metavar="AGENT")
@click.option("--model", default="", help="The model, by the provider's or litellm's name.")
@click.option("--api-base", default="", help="Address of an OpenAI-compatible server.")
@click.option("--env-file", default="", help="A file of KEY=value lines to take keys from.")
@click.option("--cli", "program", default="", help="Path of the agent's program.")
@click.option("--option", "more", multiple=True, metavar="NAME=VALUE", help="Another option, such as price=3,15.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check_command(
    kind: str, model: str, api_base: str, env_file: str, program: str, more: tuple[str, ...], as_json: bool
) -> int:
    """See whether AGENT works. For a model: one tiny call, which says what works. Exit 1 where something does not."""
    from evotui.agents.catalog import UnknownAgent
    from evotui.agents.options import OptionError

    given = {"model": model, "api_base": api_base, "env_file": env_file, "cli": program}
    given |= dict(option.partition("=")[::2] for option in more)
    try:
        findings = asyncio.run(examine(kind, _read(kind, {k: v for k, v in given.items() if v})))
    except (OptionError, UnknownAgent) as wrong:
        raise click.UsageError(str(wrong)) from None
    ok = all(good is not False for _, good, _ in findings)
    if as_json:
        told = [{"what": what, "ok": good, "text": text} for what, good, text in findings]
        click.echo(json.dumps({"schema_version": 1, "agent": kind, "ok": ok, "findings": told}, indent=2))
    else:
        width = max(len(what) for what, _, _ in findings)
        for what, good, text in findings:
            click.echo(f"{_MARKS[good]}  {what:<{width}}  {text}")
    return OK if ok else FAILURE


def _read(kind: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Options from their texts, none of them needed. Raises OptionError."""
    from evotui.agents.options import OPTIONS, OptionError, knows

    options: dict[str, Any] = {}
    for name, text in given.items():
        if name not in OPTIONS or not knows(kind, OPTIONS[name]):
            raise OptionError(f"the agent {kind!r} has no option {name}")
        try:
            options[name] = OPTIONS[name].read(text)
        except ValueError as error:
            raise OptionError(f"{name.replace('_', '-')} {error}") from None
    return options
