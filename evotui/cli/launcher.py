"""What the home screen asks for: the catalogue, new runs, recorded runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from evotui.record.rundir import RunDirError
from evotui.ui.feed import AgentChoice, EnvChoice, Feed, FrameSource, NewRun


class CannotStart(Exception):
    """Why a run could not be started or opened: one sentence for a person."""


def _why_not(agent: str) -> str:
    """Why a coding agent cannot be run here, in a sentence; "" where it can, and for every other agent. Blocking."""
    from evotui.agents.cli.detect import look
    from evotui.agents.cli.rows import RowError, rows

    try:
        row = rows().get(agent)
    except RowError as error:
        return str(error)
    return look(row).wrong if row is not None else ""


class RunLauncher:
    """``ui.feed.Launcher``. Remembers what it opened, so that nothing is left running when the application ends."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self._opened: list[tuple[Feed, FrameSource]] = []

    def environments(self) -> list[EnvChoice]:
        from evotui.suite.catalog import availability, list_tasks

        choices = []
        for task in list_tasks():
            random, reference = task.anchors.get("random"), task.anchors.get("reference")
            choices.append(
                EnvChoice(
                    name=task.name,
                    title=task.title,
                    gym_id=task.gym_id,
                    family=task.family,
                    why_not=availability(task) or "",
                    random_mean=random.mean if random else None,
                    reference_mean=reference.mean if reference else None,
                    text=task.text,
                )
            )
        return choices

    def agents(self) -> list[AgentChoice]:
        from evotui.agents.catalog import AGENTS
        from evotui.agents.options import OPTIONS

        choices = []
        for kind in AGENTS.values():
            options = tuple(name for name, option in OPTIONS.items() if kind.name in option.of)
            needs = {"command": ("program",), "replay": ("source",)}.get(kind.name, ())
            if kind.needs_model:
                needs = ("model",)
            if kind.name == "command":
                options = (*options, "program")
            choices.append(AgentChoice(kind.name, kind.about, _why_not(kind.name), options, needs))
        return choices

    async def start(self, wish: NewRun) -> tuple[Feed, FrameSource]:
        from evotui.agents.options import read_options
        from evotui.cli.branching import branched
        from evotui.cli.live import start
        from evotui.kernel.config import resolve

        async def work() -> Feed:
            options = await asyncio.to_thread(read_options, wish.agent, dict(wish.options), wish.program)
            wishes: dict[str, Any] = {
                "agent": wish.agent, "budget": wish.budget, "seed": wish.seed, "policy_lifetime": wish.lifetime,
                "options": options, "model": str(options.get("model", "")) or None,
            }  # fmt: skip
            if wish.branch is not None:
                run, at = wish.branch
                config = await asyncio.to_thread(branched, str(run), at, self.runs, wish.env, wishes)
            else:
                config = resolve(env=wish.env, pools=wish.pools, **wishes)
            return await start(config, self.runs, wish.name or None)

        return await self._keep(work())

    async def open(self, run: Path) -> tuple[Feed, FrameSource]:
        from evotui.cli.recorded import LogFeed

        if not (run / "events.jsonl").exists():
            raise RunDirError(f"{run} is no run: it holds no events.jsonl")
        return await self._keep(LogFeed.open(run))

    async def resume(self, run: Path) -> tuple[Feed, FrameSource]:
        from evotui.cli.live import resume

        return await self._keep(resume(run))

    async def _keep(self, opening: Any) -> tuple[Feed, FrameSource]:
        from evotui.cli.errors import explain
        from evotui.cli.frames import Frames

        try:
            feed = await opening
        except Exception as error:
            told = explain(error)
            if told is None:
                raise
            raise CannotStart(told.message) from error
        pair = (feed, Frames(feed))
        self._opened.append(pair)
        return pair

    @property
    def opened(self) -> list[Feed]:
        """Every feed that was handed out, in order."""
        return [feed for feed, _ in self._opened]

    async def close(self) -> None:
        for feed, frames in self._opened:
            await frames.close()
            await feed.close()
