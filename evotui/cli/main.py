"""The commands of ``evotui`` and their options. What a screen can do, a command can do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import evotui
from evotui.cli.agents import agents
from evotui.cli.early import interrupted
from evotui.cli.envs import envs
from evotui.cli.errors import FAILURE, HUNG_UP, NOT_FOUND, NOT_OWNER, OK, USAGE, Told, explain
from evotui.cli.suitecommands import leaderboard, suite

if TYPE_CHECKING:
    from evotui.kernel.config import RunConfig
    from evotui.record.rundir import RunDir
    from evotui.record.state import RunState

RUNS = Path("runs")

_AGENT_OPTIONS = ("api_base", "env_file", "max_cost", "max_turns", "max_wall", "prompt", "dialect")

_AGENTS_MARK = "EVOTUI_AGENT"
"""Set for every program of an agent (``agents.sweep.TAG``): rollouts beside its budget are not for it."""

_OF_THIS_PROCESS = ("resumed", "headless", "quiet", "as_json", "runs", "allow_weak_isolation")
"""Options of `run` that say how it goes on here, not what the run is: they go with --resume."""


def run(arguments: list[str] | None = None) -> int:
    """Parse and execute; returns the exit code. A person's mistake is one sentence on stderr, never a traceback."""
    try:
        code = cli.main(arguments, prog_name="evotui", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (click.Abort, KeyboardInterrupt):
        return interrupted()
    except click.ClickException as wrong:
        wrong.show()
        return USAGE
    except BrokenPipeError:
        # Whoever read our output has left; writing more would only fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        from evotui.cli.ending import write

        write(f"evotui: {told.message}\n")
        return told.code


def _runs_option(function: Any) -> Any:
    return click.option(
        "--runs", type=click.Path(path_type=Path, file_okay=False), default=RUNS, envvar="EVOTUI_RUNS",
        show_default=True, help="Folder of runs.",
    )(function)  # fmt: skip


def _json_option(function: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def _document(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EVOTUI"},
)
@click.version_option(evotui.__version__, prog_name="evotui", message="%(prog)s %(version)s")
@_runs_option
@click.pass_context
def cli(context: click.Context, runs: Path) -> Any:
    """Mission control and debugger for agents that evolve executable policies.

    Without a command: the home screen.
    """
    context.obj = runs
    if os.environ.get(_AGENTS_MARK):
        message = "inside a run an agent has `evotui submit`, `info` and `task`; what else evotui does is not for it"
        raise Told(message, NOT_OWNER)
    if context.invoked_subcommand is None:
        return _interface(runs, "home")
    return None


def _terminal() -> bool:
    """Whether the interface can be shown: it draws on stderr, reads stdin, and stdout must be nobody's pipe."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _interface(runs: Path, start: Any) -> int:
    """Show the interface. ``start`` is "home" or a coroutine function that gives (feed, frames)."""
    if not _terminal():
        raise Told("the interface needs a terminal; `evotui ls`, `show` and `run --headless` do not", USAGE)
    from evotui.cli.screen import show

    return show(runs, start)


def _runs(context: click.Context, runs: Path) -> Path:
    """``--runs`` after the command, else the one before it."""
    return runs if _given(context, "runs") or context.obj is None else context.obj


@cli.command("run")
@click.argument("env", required=False)
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--resume", "resumed", metavar="RUN", default=None, help="Take an unfinished run up where its log ends.")
@click.option(
    "--agent", default="search", show_default=True, help="Who evolves the policy: `evotui agents` lists them."
)
@click.option("--model", "models", multiple=True, help="The agent's model; more than one: to fall back to.")
@click.option("--api-base", default=None, metavar="URL", help="An OpenAI-compatible server, with --agent litellm.")
@click.option("--env-file", default=None, metavar="FILE", help="A file of KEY=value lines to take keys from.")
@click.option("--max-cost", default=None, metavar="USD", help="Stop the agent when this much is spent.")
@click.option("--max-turns", default=None, metavar="N", help="Stop the agent after N turns.")
@click.option("--max-wall", default=None, metavar="TIME", help="Stop the agent after this time: 90s, 30m, 2h.")
@click.option("--prompt", default=None, metavar="stdin|none|FILE", help="What a command's stdin gets.")
@click.option("--dialect", default=None, metavar="text|jsonl", help="What a command speaks on its pipes.")
@click.option("-o", "--option", "more", multiple=True, metavar="NAME=VALUE", help="Another option of the agent.")
@click.option("--approve", is_flag=True, help="Ask a person before each of the agent's submissions.")
@click.option(
    "--branch", "branch", metavar="RUN", default=None, help="Start from a checkpoint of RUN, with what was left."
)
@click.option(
    "--at", "branch_at", type=click.IntRange(0), default=None, help="The submission to branch from.  [the last]"
)
@click.option("--budget", type=int, default=None, help="Episodes that may be spent on training.  [profile: 128]")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the agent's own choices.")
@click.option("--pools", default=None, metavar="secret|paper|DIR", help="Where the cases come from.  [profile: secret]")
@click.option("--profile", default="default", show_default=True, help="default, core16-paper or full.")
@click.option("--validation", type=int, default=None, help="Hidden cases that select.  [profile: 16]")
@click.option("--heldout", type=int, default=None, help="Hidden cases that score.  [profile: 32]")
@click.option("--lifetime", "policy_lifetime", type=click.Choice(["episode", "submission"]), default=None,
              help="How long one Policy object lives.  [profile: episode]")  # fmt: skip
@click.option("--submit-min", type=int, default=None, help="Least episodes of a submission.  [1]")
@click.option("--submit-max", type=int, default=None, help="Most episodes of a submission.  [the budget]")
@click.option("--start", default=None, metavar="NAME|PATH", help="Policy to start from.  [starter]")
@click.option("--workers", type=int, default=None, help="Rollout processes.  [one a core]")
@click.option("--name", default=None, help="The run's name.  [six hex digits]")
@click.option("--allow-weak-isolation", is_flag=True, default=None,
              help="Run hidden cases even at isolation D, where policies can read them; marks the run.")  # fmt: skip
@click.option("--headless", is_flag=True, help="No screen: progress on stderr.")
@click.option("--quiet", is_flag=True, help="With --headless: no progress, and the result in a line.")
@_json_option
@_runs_option
@click.pass_context
def run_command(
    context: click.Context,
    env: str | None,
    resumed: str | None,
    runs: Path,
    name: str | None,
    headless: bool,
    quiet: bool,
    as_json: bool,
    profile: str,
    program: tuple[str, ...],
    models: tuple[str, ...],
    more: tuple[str, ...],
    approve: bool,
    branch: str | None,
    branch_at: int | None,
    **wishes: Any,
) -> int:
    """Evolve a policy for ENV (a name from `evotui envs`, or gymnasium:ID), or go on with an unfinished run.

    With --agent command the PROGRAM and its arguments come last, after --.
    """
    from evotui.kernel.config import resolve

    if as_json and not headless:
        raise click.UsageError("--json goes with --headless")
    if resumed is not None:
        given = [k for k in context.params if _given(context, k) and k not in _OF_THIS_PROCESS]
        if given:
            raise click.UsageError(f"--resume goes on with what the run began with; leave out: {', '.join(given)}")
        weak = bool(wishes["allow_weak_isolation"])
        return _resume(resumed, _runs(context, runs), headless, quiet, as_json, weak)
    if approve and (headless or not _terminal()):
        raise Told("--approve needs the screen: nobody could say yes here", USAGE)
    named = {name: wishes.pop(name) for name in _AGENT_OPTIONS}
    wishes["model"] = models[0] if models else None
    runs = _runs(context, runs)
    if branch is not None:
        from evotui.cli.branching import agent_of, branched

        if not _given(context, "agent"):
            wishes["agent"] = agent_of(branch, runs)
        asked = {k: v for k, v in wishes.items() if k in ("agent", "model") or _given(context, k)}
        if models or more or program or any(named.values()) or _given(context, "agent"):
            asked["options"] = _agent_options(wishes["agent"], named, models, more, program, runs)
        config = branched(branch, branch_at, runs, env, asked)
        return _run(config, runs, name, headless, quiet, as_json)
    wishes["options"] = _agent_options(wishes["agent"], named, models, more, program, runs)
    if approve:
        wishes["options"]["approve"] = True
    if branch_at is not None:
        raise Told("--at goes with --branch", USAGE)
    if env is None:
        raise click.UsageError("name an environment (`evotui envs` lists them), or a run with --resume")
    return _run(resolve(profile, env=env, **wishes), runs, name, headless, quiet, as_json)


def _agent_options(
    agent: str,
    named: dict[str, str | None],
    models: tuple[str, ...],
    more: tuple[str, ...],
    program: tuple[str, ...],
    runs: Path,
) -> dict[str, Any]:
    from evotui.agents.catalog import agent_kind
    from evotui.agents.options import OptionError, read_options

    agent_kind(agent)
    given = {name: value for name, value in named.items() if value is not None}
    if models:
        given["model"] = models[0]
    if len(models) > 1:
        given["models"] = ",".join(models[1:])
    for text in more:
        key, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--option takes NAME=VALUE, not {text!r}")
        given[key.strip().replace("-", "_")] = value
    options = read_options(agent, given, program)
    if "source" in options:
        from evotui.record.rundir import find

        options["source"] = str(find(options["source"], runs).resolve())
    return options


def _given(context: click.Context, parameter: str) -> bool:
    return context.get_parameter_source(parameter) is not click.core.ParameterSource.DEFAULT


def _run(
    config: RunConfig, runs: Path, name: str | None, headless: bool = False, quiet: bool = False, as_json: bool = False
) -> int:
    """A new run on the screen, or without one where that is asked for or no terminal is there."""
    if not headless and _terminal():

        async def start() -> Any:
            from evotui.cli.frames import Frames
            from evotui.cli.live import start

            feed = await start(config, runs, name)
            return feed, Frames(feed)

        return _interface(runs, start)
    if not headless:
        click.echo("evotui: no terminal here, so this run goes headless", err=True)
    from evotui.cli.headless import run_headless

    return _told(asyncio.run(run_headless(config, runs, name, quiet)), quiet, as_json)


def _resume(selector: str, runs: Path, headless: bool, quiet: bool, as_json: bool, weak: bool) -> int:
    from evotui.record.rundir import find
    from evotui.record.summary import summary

    root = find(selector, runs)
    if problem := summary(root).problem:  # before its lock and its files are looked for
        raise Told(problem, NOT_FOUND)
    if not headless and _terminal():

        async def start() -> Any:
            from evotui.cli.frames import Frames
            from evotui.cli.live import resume

            feed = await resume(root, weak)
            return feed, Frames(feed)

        return _interface(runs, start)
    from evotui.cli.headless import resume_headless

    return _told(asyncio.run(resume_headless(root, quiet, weak)), quiet, as_json)


def _told(ended: tuple[RunState, RunDir, int], quiet: bool, as_json: bool) -> int:
    """Say how a headless run ended; returns its exit code."""
    from evotui.cli.ending import silence
    from evotui.report.jsondoc import run_document
    from evotui.report.text import result_line, show_text

    state, run_dir, code = ended
    try:
        if as_json:
            _document(run_document(state))
        else:
            click.echo(result_line(state, run_dir) if quiet else show_text(state, run_dir))
    except OSError:
        if code != HUNG_UP:
            raise
        silence(sys.stdout)  # it was the terminal that is gone
    return code


@cli.command("open")
@click.argument("selector", metavar="RUN")
@_runs_option
@click.pass_context
def open_command(context: click.Context, selector: str, runs: Path) -> int:
    """Show a recorded run on the run screen. RUN is a path, a name, or a unique prefix of one."""
    return _open(_runs(context, runs), selector)


@cli.command("watch")
@click.argument("selector", metavar="RUN")
@_runs_option
@click.pass_context
def watch_command(context: click.Context, selector: str, runs: Path) -> int:
    """Follow a run that another process drives."""
    return _open(_runs(context, runs), selector)


def _open(runs: Path, selector: str) -> int:
    from evotui.cli.recorded import LogFeed
    from evotui.record.rundir import find

    path = find(selector, runs)
    feed = asyncio.run(LogFeed.open(path))  # what cannot be opened is told before the screen is taken

    async def start() -> Any:
        from evotui.cli.frames import Frames

        return feed, Frames(feed)

    return _interface(runs, start)


@cli.command("demo")
@_runs_option
@click.pass_context
def demo_command(context: click.Context, runs: Path) -> int:
    """A short run on CartPole, to see what this is."""
    from evotui.kernel.config import resolve

    # The agent that writes these policies is ours, so the demonstration goes on where nothing would stop a stranger's.
    config = resolve(env="cartpole", budget=48, validation=8, heldout=16, allow_weak_isolation=True)
    return _run(config, _runs(context, runs), None)


@cli.command("evaluate")
@click.argument("policy")
@click.option("--env", required=True, help="The environment to evaluate on.")
@click.option("--pool", type=click.Choice(["train", "validation", "heldout"]), default="heldout", show_default=True)
@click.option("--cases", default=None, metavar="0-31", help="Positions in the pool.  [all, at most 32]")
@click.option(
    "--pools", default="secret", show_default=True, metavar="secret|paper|DIR", help="Where the cases come from."
)
@click.option("--mode", type=click.Choice(["auto", "episode", "batch"]), default="episode", show_default=True,
              help="One process an episode, lockstep, or lockstep where an audit finds no difference.")  # fmt: skip
@click.option(
    "--lifetime", "policy_lifetime", type=click.Choice(["episode", "submission"]), default="episode", show_default=True
)
@click.option("--workers", type=click.IntRange(1, 256), default=None, help="Rollout processes.  [one a core]")
@click.option("--quiet", is_flag=True, help="No progress.")
@_json_option
def evaluate_command(policy: str, env: str, as_json: bool, quiet: bool, **wishes: Any) -> int:
    """Roll a policy out on an environment, outside any run. POLICY is a file, a folder, or a name of `policies/`."""
    from evotui.cli.evaluate import evaluate, text

    document = asyncio.run(evaluate(policy, env, quiet=quiet, **wishes))
    if as_json:
        _document(document)
    else:
        click.echo(text(document))
    return OK


@cli.command("ls")
@_json_option
@_runs_option
@click.pass_context
def ls_command(context: click.Context, as_json: bool, runs: Path) -> int:
    """List the runs."""
    from evotui.cli.folders import to_list
    from evotui.record.summary import summaries
    from evotui.report.jsondoc import list_document
    from evotui.report.text import list_text

    runs = to_list(context, _runs(context, runs))
    found = list(summaries(runs))
    if as_json:
        _document(list_document(found))
    elif found:
        click.echo(list_text(found))
    else:
        click.echo(f"no runs yet below {runs}; `evotui demo` makes one", err=True)
    return OK


@cli.command("show")
@click.argument("selector", metavar="RUN")
@_json_option
@_runs_option
@click.pass_context
def show_command(context: click.Context, selector: str, as_json: bool, runs: Path) -> int:
    """Sum a run up."""
    from evotui.record.fold import fold_all
    from evotui.record.lock import is_held
    from evotui.record.log import read
    from evotui.record.rundir import RunDir, find, width_of
    from evotui.report.jsondoc import run_document
    from evotui.report.text import show_text

    path = find(selector, _runs(context, runs))
    state = fold_all(read(path / "events.jsonl"))
    run_dir = RunDir(path, width_of(state.header.budget))
    if as_json:
        from evotui.analysis.evidence import evidence_of

        _document(run_document(state, is_held(run_dir), evidence_of(run_dir, state)))
    else:
        click.echo(show_text(state, run_dir))
    return OK


@cli.command("check")
@click.argument("selector", metavar="RUN")
@_json_option
@_runs_option
@click.pass_context
def check_command(context: click.Context, selector: str, as_json: bool, runs: Path) -> int:
    """Verify a run's records; exit 1 and name each breach where they are wrong.

    RUN may be a folder of runs, or a suite: then a line for each.
    """
    from evotui.cli.verify import verify

    return verify(selector, _runs(context, runs), as_json)


def _door_command(name: str, about: str) -> None:
    """A command for agents; ``__main__`` takes the short way to it, this one is for help and completion."""

    @cli.command(name, help=about, add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(arguments: tuple[str, ...]) -> int:
        from evotui.cli import door

        return door.main([name, *arguments])


_door_command("submit", "For agents: spend episodes on CASES (0-3,7), wait, print the result.")
_door_command("info", "For agents: budget, spaces and limits of the run.")
_door_command("task", "For agents: the task and the policy's contract.")


@cli.command("doctor")
@click.option("--quick", is_flag=True, help="Leave out the attacks and the drawing.")
@_json_option
@_runs_option
@click.pass_context
def doctor_command(context: click.Context, quick: bool, as_json: bool, runs: Path) -> int:
    """Say what works here: isolation, attacked from inside; drawing; environments. Exit 1 where policies could get out.

    Isolation must be B or better, and no attack may get through.
    """
    from evotui.cli.doctor import examine
    from evotui.report.doctor import doctor_text

    document = asyncio.run(examine(_runs(context, runs), quick))
    if as_json:
        _document(document)
    else:
        click.echo(doctor_text(document))
    return OK if document["ok"] else FAILURE


cli.add_command(agents)
cli.add_command(envs)
cli.add_command(suite)
cli.add_command(leaderboard)
