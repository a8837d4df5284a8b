"""``evotui envs``: which environments there are, what one of them is like, and whether all that is claimed is true.

``list`` reads task files only. ``show`` and ``check`` look at environments in processes of their own: making one
imports a simulator, and drawing one can abort its process.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evotui.cli.errors import FAILURE, OK

if TYPE_CHECKING:
    from evotui.protocol.task import TaskSpec

SCHEMA_VERSION = 1
Tell = Callable[[dict[str, Any]], None]

_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
_SECONDS = 300.0


@click.group("envs", invoke_without_command=True)
@_json
@click.pass_context
def envs(context: click.Context, as_json: bool) -> int:
    """List the environments, show one, or check them."""
    return OK if context.invoked_subcommand else _list(as_json)


@envs.result_callback()
def _code(code: int, **_options: Any) -> int:
    return code


@envs.command("list")
@_json
def list_command(as_json: bool) -> int:
    """List the environments, and what is missing for those that cannot be run."""
    return _list(as_json)


@envs.command("show")
@click.argument("env")
@_json
@click.option("--no-frame", is_flag=True, help="Leave out the picture.")
def show_command(env: str, as_json: bool, no_frame: bool) -> int:
    """What ENV is like: a frame, spaces, names, anchors, its speed on this machine."""
    from evotui.protocol.spaces import to_jsonable
    from evotui.report.envs import show_text
    from evotui.suite.catalog import check_packages, find_task, list_policies

    task = find_task(env)
    check_packages(task)
    parts = ["world", "speed"] if no_frame else ["world", "speed", "frame"]
    told = asyncio.run(look([(task, parts, not no_frame)]))[0]
    document = {
        "schema_version": SCHEMA_VERSION,
        "environment": entry(task, None) | {
            "title": task.title, "max_episode_steps": told.get("world", {}).get("max_episode_steps"),
            "success": task.success, "observation_fields": list(task.observation_fields),
            "action_names": list(task.action_names), "reward_components": list(task.reward_components),
            "aliases": list(task.aliases), "folder": task.folder,
            "policies": [name for name in list_policies(task) if not name.startswith("broken-")],
            "anchors": {
                name: {"mean": a.mean, "se": a.se, "n": a.n, "source": a.source} for name, a in task.anchors.items()
            },
            **told,
        },
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(to_jsonable(document)))
    else:
        click.echo(show_text(document, "" if no_frame else _picture(told)))
    return FAILURE if "error" in told.get("world", {"error": ""}) else OK


@envs.command("check")
@click.argument("env", nargs=-1)
@_json
@click.option("--pools", type=click.Path(path_type=Path), help="Check a folder of case files too.")
def check_command(env: Sequence[str], as_json: bool, pools: Path | None) -> int:
    """Check ENV… (all where none is named): task text, pools, determinism, rendering, policies."""
    from evotui.cli.checking import check_environments
    from evotui.report.envs import check_lines

    def tell(found: dict[str, Any]) -> None:
        if not as_json:
            click.echo("\n".join(check_lines(found)))

    document = asyncio.run(check_environments(env, pools, tell))
    if as_json:
        click.echo(json.dumps(document))
    elif document["ok"]:
        click.echo("all is as it is said to be")
    return OK if document["ok"] else FAILURE


def entry(task: TaskSpec, why: str | None) -> dict[str, Any]:
    """One environment as ``evotui envs list --json`` tells it."""
    return {
        "name": task.name, "slug": task.slug, "gym_id": task.gym_id, "family": task.family, "available": why is None,
        "why_not": why, "anchors": {name: anchor.mean for name, anchor in task.anchors.items()},
    }  # fmt: skip


def _list(as_json: bool) -> int:
    from evotui.suite.catalog import availability, scan_tasks

    tasks, broken = scan_tasks()
    rows = [(task, availability(task)) for task in tasks]
    if as_json:
        found = [entry(task, why) for task, why in rows]
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "environments": found}))
    else:
        width = max((len(task.name) for task, _ in rows), default=0)
        wide = max((len(task.gym_id) for task, _ in rows), default=0)
        for task, why in rows:
            click.echo(f"{task.name:<{width}}  {task.gym_id:<{wide}}  {why or task.family}")
    for bad in broken:
        click.echo(f"evotui: {bad}", err=True)
    return FAILURE if broken else OK


def _picture(told: dict[str, Any]) -> str:
    """The frame for this terminal: half-block pixels, or contrast in characters where the output goes elsewhere."""
    from evotui.suite.examine import pixels_of
    from evotui.ui.widgets import halfblock

    frame = told.get("frame", {})
    pixels = pixels_of(frame)
    if pixels is None:
        return str(frame.get("text") or frame.get("error") or told.get("why_no_frame") or "")
    columns = min(shutil.get_terminal_size().columns, 64)
    small = halfblock.fit(pixels, (columns, 2 * 24))
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return "\n".join(row.rstrip() for row in halfblock.ascii_rows(small))
    depth: halfblock.Depth = "truecolor" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256"
    packed = halfblock.pack(small, depth)
    rows = (small.shape[0] + 1) // 2
    cells = halfblock.letterbox(packed, (small.shape[1], rows), halfblock.TERMINAL_DEFAULT)
    return "\n".join(halfblock.encode(cells, depth))


async def look(wishes: Sequence[tuple[TaskSpec, Sequence[str], bool]]) -> list[dict[str, Any]]:
    """What was found out of each: part → document; with ``why_no_frame`` where drawing is not tried, or killed it."""
    from evotui.rollout.drawing import GL_HINT, forget_gl, working_gl

    busy = asyncio.Semaphore(max(len(os.sched_getaffinity(0)), 1))

    async def one(task: TaskSpec, parts: Sequence[str], draws: bool) -> dict[str, Any]:
        settings: dict[str, str] = {}
        why = ""
        if draws and uses_gl(task):
            backend = await asyncio.to_thread(working_gl)
            settings = {"MUJOCO_GL": backend} if backend else {}
            if not backend:
                parts, why = [p for p in parts if p != "frame"], GL_HINT
        async with busy:
            told = await _examine(task.name, parts, settings)
        if draws and not why and "frame" not in told:
            why = "drawing this environment crashed"
            forget_gl()
        return told | ({"why_no_frame": why} if why else {})

    return list(await asyncio.gather(*(one(*wish) for wish in wishes)))


def uses_gl(task: TaskSpec) -> bool:
    """Whether MuJoCo draws it. For an environment without a folder Gymnasium's registry is asked."""
    if not task.generated:
        return "mujoco" in (*task.packages, *task.requires)
    from evotui.rollout.render_process import needs_gl

    return needs_gl(task)


async def _examine(name: str, parts: Sequence[str], settings: dict[str, str]) -> dict[str, Any]:
    from evotui.rollout.workers import worker_environment

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-W", "ignore", "-m", "evotui.suite.examine", name, *parts,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=worker_environment() | settings,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        return {"world": {"error": f"nothing was found out in {_SECONDS:g} s"}}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    told: dict[str, Any] = {}
    for line in out.splitlines():
        with suppress(ValueError, TypeError):  # a library may greet on stdout
            told |= json.loads(line)
    if not told:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        told["world"] = {"error": last[0]}
    return told
