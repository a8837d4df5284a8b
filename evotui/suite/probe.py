"""Describing an environment in a process of its own, so that neither the interface nor the kernel imports Gymnasium."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evotui
from evotui.protocol.task import Anchor, TaskSpec
from evotui.suite.catalog import check_packages, find_task
from evotui.suite.errors import SuiteError, UnknownEnvironment
from evotui.suite.worlds import WorldInfo


async def probe(name: str) -> tuple[TaskSpec, WorldInfo]:
    """Find and describe an environment. Raises SuiteError with the sentence that helps."""
    if not name.startswith("gymnasium:"):
        check_packages(find_task(name))  # a misspelt name, a broken file, a missing package: told without a process
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, name,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )  # fmt: skip
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    try:
        document = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        last = err.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise SuiteError(f"the environment {name!r} cannot be described: {last[0]}") from None
    if "unknown" in document:
        raise UnknownEnvironment(*document["unknown"])
    if "error" in document:
        raise SuiteError(document["error"])
    return _task(document["task"]), WorldInfo(**_tuples(document["info"]))


def _environment() -> dict[str, str]:
    """Ours, with this very package first on the path: `python -m evotui` in a checkout need not be installed."""
    here = str(Path(evotui.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    # MUJOCO_GL is for whoever draws: where its library is missing, mujoco cannot be imported with it.
    ours = {k: v for k, v in os.environ.items() if k != "MUJOCO_GL"}
    return ours | {"PYTHONPATH": path, "PYGAME_HIDE_SUPPORT_PROMPT": "1", "SDL_VIDEODRIVER": "offscreen"}


def _task(values: dict[str, Any]) -> TaskSpec:
    anchors = {name: Anchor(**anchor) for name, anchor in values.pop("anchors").items()}
    return TaskSpec(**_tuples(values), anchors=anchors)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def main() -> None:
    from evotui.suite.worlds import describe

    try:
        task = find_task(sys.argv[1])
        document: dict[str, Any] = {"task": asdict(task), "info": asdict(describe(task))}
    except UnknownEnvironment as error:
        document = {"unknown": [error.name, error.near, error.hint]}
    except SuiteError as error:
        document = {"error": str(error)}
    # Infinity is no JSON, but both ends are Python's json and bounds are often infinite.
    print(json.dumps(document))


if __name__ == "__main__":
    main()
