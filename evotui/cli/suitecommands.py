"""The commands ``evotui suite`` and ``evotui leaderboard`` and their options; nothing heavy is imported before use."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from evotui.cli.errors import HUNG_UP, OK

_OPTIONS = ("api_base", "env_file", "max_cost", "max_turns", "max_wall", "prompt", "dialect")
_RULES = ("budget", "validation", "heldout", "pools", "policy_lifetime", "workers", "allow_weak_isolation")


def _runs_option(function: Any) -> Any:
    return click.option(
        "--runs", type=click.Path(path_type=Path, file_okay=False), default=None, envvar="EVOTUI_RUNS",
        help="Folder of runs.  [runs]",
    )(function)  # fmt: skip


def _runs(context: click.Context, runs: Path | None) -> Path:
    return runs or context.obj or Path("runs")


def _document(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


@click.command("suite")
@click.argument("what", metavar="core16|warmup|FILE.toml|SUITE")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--agent", "kinds", multiple=True, help="Who evolves; more than one: each in every environment.")
@click.option("--envs", default=None, metavar="A,B", help="Only these environments.")
@click.option("--repeats", type=click.IntRange(1, 1000), default=None, help="Runs of each in each.  [1]")
@click.option("--profile", default=None, help="default, core16-paper or full.  [default]")
@click.option("--name", default=None, help="The suite's folder below the runs.")
@click.option("--seed", type=int, default=None, help="Seed of the agents in the first repeat.  [0]")
@click.option("--budget", type=int, default=None, help="Episodes of training a run.  [profile: 128]")
@click.option("--validation", type=int, default=None, help="Hidden cases that select.  [profile: 16]")
@click.option("--heldout", type=int, default=None, help="Hidden cases that score.  [profile: 32]")
@click.option("--pools", default=None, metavar="secret|paper|DIR", help="Where the cases come from.  [profile]")
@click.option("--lifetime", "policy_lifetime", type=click.Choice(["episode", "submission"]), default=None,
              help="How long one Policy object lives.  [profile]")  # fmt: skip
@click.option("--workers", type=int, default=None, help="Rollout processes.  [one a core]")
@click.option("--allow-weak-isolation", is_flag=True, default=None, help="Run hidden cases even at isolation D.")
@click.option("--model", "models", multiple=True, help="The agent's model; more than one: to fall back to.")
@click.option("--api-base", default=None, metavar="URL", help="An OpenAI-compatible server, with --agent litellm.")
@click.option("--env-file", default=None, metavar="FILE", help="A file of KEY=value lines to take keys from.")
@click.option("--max-cost", default=None, metavar="USD", help="Stop an agent when it spent this much.")
@click.option("--max-turns", default=None, metavar="N", help="Stop an agent after N turns.")
@click.option("--max-wall", default=None, metavar="TIME", help="Stop an agent after this time: 90s, 30m, 2h.")
@click.option("--prompt", default=None, metavar="stdin|none|FILE", help="What a command's stdin gets.")
@click.option("--dialect", default=None, metavar="text|jsonl", help="What a command speaks on its pipes.")
@click.option("-o", "--option", "more", multiple=True, metavar="NAME=VALUE", help="Another option of the agent.")
@click.option("--headless", is_flag=True, help="No screen: progress on stderr.")
@click.option("--quiet", is_flag=True, help="No screen, no progress, and the result in a few lines.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@_runs_option
@click.pass_context
def suite(
    context: click.Context,
    what: str,
    program: tuple[str, ...],
    kinds: tuple[str, ...],
    envs: str | None,
    models: tuple[str, ...],
    more: tuple[str, ...],
    headless: bool,
    quiet: bool,
    as_json: bool,
    runs: Path | None,
    **wishes: Any,
) -> int:
    """Run agents on a suite of environments, cell by cell; the same command again goes on where it stopped.

    The plan comes from the options, or from a TOML file: name, envs, repeats, profile, seed, budget, lifetime …, called
    as the options are, and tables [[agents]] with name, agent, model, program and options. Each cell is a run of its
    own below RUNS/<suite>.
    """
    from evotui.cli.ending import silence
    from evotui.cli.main import _terminal
    from evotui.cli.suite import SuiteRun, planned, ready
    from evotui.report.suite import suite_document, suite_text

    where = _runs(context, runs)
    named = {name: wishes.pop(name) for name in _OPTIONS}
    wishes["rules"] = {name: value for name in _RULES if (value := wishes.pop(name)) is not None}
    wishes["envs"] = tuple(name.strip() for name in envs.split(",") if name.strip()) if envs is not None else None
    wishes["agents"] = _agents(kinds, named, models, more, program, where)
    plan = planned(what, where, wishes)

    folder = asyncio.run(ready(plan, where))
    if not (headless or quiet or as_json) and _terminal():
        from evotui.cli.suitescreen import show_suite

        return show_suite(plan, folder, where)

    async def work() -> int:
        return await SuiteRun(plan, folder, quiet).run()

    code = asyncio.run(work())
    states = folder.states(plan)
    try:
        if as_json:
            _document(suite_document(plan, folder.root, states))
        else:
            click.echo(suite_text(states, brief=quiet))
    except OSError:
        if code != HUNG_UP:
            raise
        silence(sys.stdout)  # it was the terminal that is gone
    return code


def _agents(
    kinds: tuple[str, ...],
    named: dict[str, str | None],
    models: tuple[str, ...],
    more: tuple[str, ...],
    program: tuple[str, ...],
    runs: Path,
) -> Any:
    """The agents of the options; None where the file's are meant."""
    from evotui.cli.main import _agent_options
    from evotui.record.suitefile import AgentRow

    asked = bool(models or more or program or any(named.values()))
    if not kinds:
        if asked:
            raise click.UsageError("name the agent that these options are for: --agent")
        return None
    if len(set(kinds)) < len(kinds):
        raise click.UsageError("name each agent once; several of a kind take a suite file")
    if len(kinds) > 1 and asked:
        raise click.UsageError("options of agents go with a single --agent; several agents take a suite file")
    rows = []
    for kind in kinds:
        options = _agent_options(kind, named, models, more, program, runs)
        rows.append(AgentRow("-".join((kind, *models[:1])), kind, models[0] if models else "", options))
    return tuple(rows)


@click.command("leaderboard")
@click.argument("names", metavar="[SUITE]...", nargs=-1)
@click.option("--paper", is_flag=True, help="The paper's entries, too.")
@click.option("--merge", is_flag=True, help="The same agent by the same rules in several suites as one entry.")
@click.option("--anchors", is_flag=True, help="Instead: our random and reference policies beside the paper's figures.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="A line an entry, on stdout.")
@_runs_option
@click.pass_context
def leaderboard(
    context: click.Context,
    names: tuple[str, ...],
    paper: bool,
    merge: bool,
    anchors: bool,
    as_json: bool,
    as_csv: bool,
    runs: Path | None,
) -> int:
    """Rank the agents of suites, and the paper's entries, in one table. Without a SUITE: all below the runs.

    Each suite's agents are entries of their own. With --merge the same agent by the same rules is one: what differs in
    environment or seed are its cells and repeats; of a cell that several suites hold, the run that ended last counts.
    """
    from evotui.cli.folders import to_list
    from evotui.cli.leaderboard import find_suites, gather
    from evotui.report.leaderboard import leaderboard_csv, leaderboard_document, leaderboard_text

    if as_json and as_csv:
        raise click.UsageError("choose --json or --csv")
    if anchors:
        if names or paper or merge or as_csv:
            raise click.UsageError("--anchors is a table of its own: it goes with --json only")
        from evotui.report.anchors import anchors_document, anchors_text
        from evotui.suite.catalog import list_tasks

        document = anchors_document({task.name: task for task in list_tasks()})
        if as_json:
            _document(document)
        else:
            click.echo(anchors_text(document))
        return OK
    where = _runs(context, runs)
    if not names:
        to_list(context, where)
    roots = find_suites(names, where)
    if not roots and not paper:
        click.echo(f"no suites yet below {where}; `evotui suite warmup` makes one, --paper shows the paper's", err=True)
    gathered = gather(roots, paper, merge)
    rows, environments = gathered.rows, gathered.environments
    if as_json:
        _document(leaderboard_document(rows, environments, gathered.notes))
        return OK
    for note in gathered.notes:
        click.echo(note, err=True)
    if not (rows or roots):
        return OK
    if as_csv:
        click.echo(leaderboard_csv(rows, environments), nl=False)
    else:
        click.echo(leaderboard_text(rows, environments))
    return OK
