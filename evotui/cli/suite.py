"""``evotui suite``: a matrix of runs in sequence, resumable cell by cell. A cell that fails stops no other."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evotui.agents.catalog import agent_kind, preflight
from evotui.agents.options import read_options
from evotui.analysis.paper import core16
from evotui.cli.ending import heard, write
from evotui.cli.errors import NOT_OWNER, OK, RUN_FAILED, USAGE, Told, sentence
from evotui.cli.headless import TICK_PLAIN, TICK_TTY
from evotui.cli.live import drive, past_of
from evotui.kernel.config import RunConfig, resolve
from evotui.kernel.opening import open_run, read_pools
from evotui.kernel.reopening import reopen_run
from evotui.kernel.session import Session
from evotui.protocol.pools import PoolKind
from evotui.record.events import Record
from evotui.record.lock import Lock, Locked
from evotui.record.regular import open_regular
from evotui.record.rundir import EVENTS, RunDir, find, safe
from evotui.record.suitedir import SUITE, Cell, CellState, SuiteDir, cells
from evotui.record.suitefile import AgentRow, Plan, read_plan
from evotui.report.suite import cell_line
from evotui.report.text import duration, ended_because, progress_line
from evotui.suite.catalog import check_packages, find_task, list_tasks

SUITES = ("core16", "warmup")
"""Suites that need no file."""


def planned(what: str, runs: Path, wishes: Mapping[str, Any]) -> Plan:
    """The plan that ``what`` (a suite of ours, a file, a suite's folder) and the options ask for.

    ``wishes`` are laid over it: name, envs, agents, repeats, profile, seed, rules; None is no wish. Raises Told,
    SuiteFileError, UnknownEnvironment, UnknownAgent or OptionError.
    """
    given = {key: value for key, value in wishes.items() if value is not None and key != "rules"}
    if what in SUITES:
        plan = Plan(what, (what,), (AgentRow("search", "search"),))
    else:
        plan = read_plan(_file(what, runs))
    plan = replace(plan, **given, rules=_anywhere({**plan.rules, **(wishes.get("rules") or {})}))
    plan = replace(plan, envs=tuple(dict.fromkeys(env for name in plan.envs for env in _environments(name))))
    if not plan.envs:
        raise Told('the suite names no environment: `envs = ["core16"]` in its file, or --envs', USAGE)
    plan = replace(plan, agents=tuple(_read_agent(row, runs) for row in plan.agents))
    if what in SUITES and "name" not in given:
        by = "+".join(agent.name for agent in plan.agents)
        rules = "" if plan.profile == "default" else f"-{plan.profile.removeprefix(f'{what}-')}"
        plan = replace(plan, name=safe(f"{what}-{by}{rules}"))
    return plan


def _anywhere(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules with whole paths: a suite may be gone on with from another folder."""
    paths = {key: Path(str(rules[key])) for key in ("pools", "start") if rules.get(key)}
    whole = {key: str(path.resolve()) for key, path in paths.items() if path.name != str(rules[key]) and path.exists()}
    if "pools" in paths and paths["pools"].is_dir() and rules["pools"] not in (PoolKind.SECRET, PoolKind.PAPER):
        whole["pools"] = str(paths["pools"].resolve())
    return {**rules, **whole}


def _file(what: str, runs: Path) -> Path:
    for place in (Path(what), runs / what):
        if (place / SUITE).is_file():
            return place / SUITE
    if Path(what).is_file():
        return Path(what)
    raise Told(f"no suite {what!r}: there are {', '.join(SUITES)}, a TOML file, or the folder of one begun", USAGE)


def _environments(name: str) -> list[str]:
    if name == "core16":
        return [env.key for env in core16()]
    if name == "warmup":
        return [task.name for task in list_tasks() if task.family == "warm-up"]
    return [find_task(name).name if not name.startswith("gymnasium:") else name]


def _read_agent(row: AgentRow, runs: Path) -> AgentRow:
    agent_kind(row.agent)
    texts = {key: _text(value) for key, value in row.options.items() if key != "program"}
    options = read_options(row.agent, texts, tuple(row.options.get("program", ())))
    if "source" in options:
        options["source"] = str(find(str(options["source"]), runs).resolve())
    return replace(row, options=options)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def config_of(plan: Plan, cell: Cell) -> RunConfig:
    """The configuration of a cell's run. Raises ConfigError."""
    row = cell.agent
    return resolve(
        plan.profile, env=cell.env, agent=row.agent, model=row.model or None, seed=plan.seed + cell.repeat - 1,
        options=dict(row.options), **plan.rules,
    )  # fmt: skip


async def ready(plan: Plan, runs: Path) -> SuiteDir:
    """Look whether the suite could run at all, then make its folder, or take up the one that is there.

    Raises what is wrong with an environment, an agent or a rule, and Told where that folder holds another plan.
    """
    for env in plan.envs:
        check_packages(find_task(env))
    for row in plan.agents:
        if not agent_kind(row.agent).headless or row.agent == "human":
            raise Told(f"the agent {row.agent!r} needs a person, so it cannot run a suite", USAGE)
        await asyncio.to_thread(preflight, row.agent, row.options)
    for cell in cells(plan):
        config = config_of(plan, cell)
        if config.pools == PoolKind.FILES:
            await asyncio.to_thread(read_pools, Path(config.pools_from), find_task(cell.env))
    suite = SuiteDir.open(runs / plan.name)
    if (suite.root / SUITE).exists():
        was = suite.plan()
        changed = [key for key in Plan.__dataclass_fields__ if getattr(was, key) != getattr(plan, key)]
        if changed:
            raise Told(
                f"{suite.root} was begun with another plan ({', '.join(changed)} differ): go on with "
                f"`evotui suite {suite.root}`, or begin another with --name",
                USAGE,
            )
    else:
        await asyncio.to_thread(suite.lay_out, plan)
    return suite


class SuiteRun:
    """The cells of a suite, one after the other. ``changed`` is called whenever one of them, or a run, moved on."""

    def __init__(self, plan: Plan, suite: SuiteDir, quiet: bool = False, background: bool = False) -> None:
        """``quiet``: no lines on stderr. ``background``: workers have the lowest priority, for an interface's sake."""
        self.plan = plan
        self.suite = suite
        self.states = suite.states(plan)
        self.at = -1
        """The place of the cell that is being run."""
        self.session: Session | None = None
        self.changed: Callable[[], None] = lambda: None
        self._quiet = quiet
        self._background = background
        self._caught: list[int] = []
        self._spent: list[float] = []

    @property
    def seconds_left(self) -> float | None:
        """What is left after the current cell, by the mean of those that were run to their end here; None before."""
        left = sum(not _over(state) for state in self.states[self.at + 1 :])
        return left * sum(self._spent) / len(self._spent) if self._spent else None

    async def run(self, signals: bool = True) -> int:
        """Run what is not finished yet; returns the exit code. Raises Told where another process runs this suite.

        ``signals``: an interrupt, SIGTERM or a closed terminal stops the suite in good order, a second one at once.
        """
        try:
            lock = Lock(RunDir(self.suite.root))
        except Locked:
            raise Told(f"another process is running the suite {self.plan.name}", NOT_OWNER) from None
        try:
            if not signals:
                return await self._cells()
            with heard(self.stop):
                return await self._cells()
        finally:
            lock.release()

    def stop(self, number: int = signal.SIGINT) -> None:
        """Let the current cell stop where it is, and begin no other."""
        self._caught.append(number)
        if self.session is not None:
            self.session.wish("stop")

    async def _cells(self) -> int:
        for place, state in enumerate(self.states):
            head = f"[{place + 1}/{len(self.states)}]"
            if not _over(state):
                began = time.monotonic()
                self.at = place
                self.changed()
                state = self.states[place] = await self._cell(state, head)
                self.at = -1
                if state.state == "finished":
                    self._spent.append(time.monotonic() - began)
                self.changed()
            self._say(f"{head} {cell_line(state)}")
            if self._caught:
                self._say(f"stopped; `evotui suite {self.suite.root}` goes on with it")
                return 128 + self._caught[0]
        return RUN_FAILED if any(state.state == "failed" for state in self.states) else OK

    async def _cell(self, before: CellState, head: str) -> CellState:
        """Begin or go on with one cell, to its end. Whatever goes wrong with it is a reason, not an error."""
        cell, reason = before.cell, ""
        try:
            reason = await self._drive(before, head)
        except Exception as error:
            reason = sentence(error)
        if self._caught:
            reason = ""
        await asyncio.to_thread(self.suite.note, cell, reason)
        return await asyncio.to_thread(self.suite.state, cell)

    async def _drive(self, before: CellState, head: str) -> str:
        """Returns why the agent failed, "" where it did not."""
        config = config_of(self.plan, before.cell)
        past: Sequence[Record] = ()
        if before.run is None or await asyncio.to_thread(_stillborn, before.run.path):
            await asyncio.to_thread(self._sweep, config, before.cell)
            name = before.cell.name
            session = await open_run(config, self.suite.root, name=name, background=self._background)
        else:
            session, config = await reopen_run(before.run.path, background=self._background)
        ticker = None
        try:
            if before.run is not None:
                past = await past_of(session)
            self.session = session
            session.watchers.append(lambda state, record: self.changed())
            if self._caught:
                session.wish("stop")
            if not self._quiet:
                ticker = asyncio.create_task(self._tick(head, session))
            status = await drive(session, config.agent, config.seed, config.options, past)
        finally:
            self.session = None
            if ticker is not None:
                ticker.cancel()
                await asyncio.wait({ticker})
            await session.close()
        return (ended_because(session.state) or "the agent failed") if status == "failed" else ""

    def _sweep(self, config: RunConfig, cell: Cell) -> None:
        """Remove what a process that was killed before its run began left behind."""
        slug = find_task(config.env).slug
        path = self.suite.root / safe(config.model or config.agent) / Path(*map(safe, slug.split("/"))) / cell.name
        if path.is_dir() and _stillborn(path):
            shutil.rmtree(path)

    async def _tick(self, head: str, session: Session) -> None:
        while True:
            line = f"{head} {progress_line(session.state, time.time())}"
            if self.seconds_left:
                line += f"  then about {duration(self.seconds_left)} more"
            self._show(line)
            await asyncio.sleep(TICK_TTY if sys.stderr.isatty() else TICK_PLAIN)

    def _show(self, line: str) -> None:
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            write(f"\r\x1b[2K{line[: width - 1]}")
        else:
            write(line + "\n")

    def _say(self, line: str) -> None:
        if not self._quiet:
            write(("\r\x1b[2K" if sys.stderr.isatty() else "") + line + "\n")


def _stillborn(path: Path) -> bool:
    """Whether a run's log holds no whole fact."""
    try:
        with open_regular(path / EVENTS) as log:
            return not log.readline().endswith(b"\n")
    except FileNotFoundError:
        return True


def _over(state: CellState) -> bool:
    """Whether a cell's run has ended, so that nothing can go on there."""
    return state.run is not None and state.run.status in ("completed", "no_ok_submit", "error")
