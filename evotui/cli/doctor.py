"""``evotui doctor``: what works on this machine, found out by doing it. One document; ``report.doctor`` words it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import locale
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evotui
from evotui.cli.layers import LEVELS, Host, layers
from evotui.rollout import drawing
from evotui.rollout.engine import Engine, EngineError, walls_to_try
from evotui.rollout.limits import Isolation
from evotui.rollout.selftest import AttackOutcome, SelfTestError, self_test
from evotui.suite.catalog import MissingExtra, WrongVersion, check_packages, scan_tasks
from evotui.ui.terminal import color_depth

SCHEMA_VERSION = 1
PACKAGES = ("textual", "gymnasium", "numpy")
_SAFE = ("A", "B")


async def examine(runs: Path, quick: bool = False) -> dict[str, Any]:
    """The whole document. ``quick`` leaves out the attacks and the drawing, which take most of the time."""
    tried = walls_to_try()
    isolation, workers = await _workers()
    outcomes: list[AttackOutcome] | None = None
    error, drawn = workers["error"], None
    if not quick and not error:
        attacked, drawn = await asyncio.gather(_attack(), _drawing())
        outcomes, error = attacked
    through = [o.name for o in outcomes or () if o.got_through]
    return {
        "schema_version": SCHEMA_VERSION,
        "versions": _versions(),
        "terminal": _terminal(),
        "isolation": {
            "level": isolation.level,
            "means": LEVELS.get(isolation.level, ""),
            "layers": layers(isolation, tried, Host.here()),
        },
        "attacks": None if outcomes is None else [asdict(o) for o in outcomes],
        "drawing": drawn,
        "environments": _environments(),
        "workers": workers,
        "runs": _runs(runs),
        "error": error,
        "ok": isolation.level in _SAFE and not through and not error,
    }


async def _workers() -> tuple[Isolation, dict[str, Any]]:
    began = time.monotonic()
    engine = Engine()
    try:
        async with engine:
            seconds = round(time.monotonic() - began, 3)
            return engine.isolation, {"n": engine.width, "ready_seconds": seconds, "error": ""}
    except EngineError as error:
        return Isolation("D", ()), {"n": 0, "ready_seconds": None, "error": str(error)}


async def _attack() -> tuple[list[AttackOutcome] | None, str]:
    try:
        async with Engine(workers=1) as engine:
            return await self_test(engine), ""
    except (EngineError, SelfTestError) as error:
        return None, str(error)


async def _drawing() -> dict[str, Any]:
    """Why each way of drawing does not work; empty where it does. MuJoCo's is None where it is not installed."""
    has_gl = drawing.has_mujoco()
    backends = drawing.gl_backends() if has_gl else ()
    sdl, *gl = await asyncio.gather(
        asyncio.to_thread(drawing.why_no_sdl),
        *(asyncio.to_thread(drawing.why_no_gl, backend) for backend in backends),
    )
    fails = dict(zip(backends, gl, strict=True))
    how = "" if not has_gl or "" in gl else drawing.GL_HINT
    return {"sdl": sdl, "mujoco": fails if has_gl else None, "how": how}


def _versions() -> dict[str, str]:
    def version(package: str) -> str:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    return {
        "evotui": evotui.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "kernel": platform.release(),
        **{package: version(package) for package in PACKAGES},
    }


def _terminal() -> dict[str, Any]:
    columns, rows = shutil.get_terminal_size()
    encoding = sys.stdout.encoding or ""
    try:
        "█░⠿●".encode(encoding or "ascii")
        draws = True
    except (UnicodeEncodeError, LookupError):
        draws = False
    return {
        "is_terminal": sys.stdout.isatty(),
        "columns": columns,
        "rows": rows,
        "term": os.environ.get("TERM", ""),
        "colors": color_depth(),
        "encoding": encoding,
        "locale": locale.setlocale(locale.LC_CTYPE),
        "unicode": draws,
    }


def _environments() -> list[dict[str, Any]]:
    tasks, broken = scan_tasks()
    found = []
    for task in tasks:
        why = command = ""
        try:
            check_packages(task)
        except (MissingExtra, WrongVersion) as missing:
            why, command = str(missing), missing.command
        found.append({"name": task.name, "available": not why, "why_not": why, "command": command})
    return found + [
        {"name": Path(bad.path).parent.name, "available": False, "why_not": str(bad), "command": ""} for bad in broken
    ]


def _runs(runs: Path) -> dict[str, Any]:
    place = runs.absolute()
    while not place.exists():
        place = place.parent
    try:
        free: int | None = shutil.disk_usage(place).free
    except OSError:
        free = None
    try:
        with tempfile.TemporaryDirectory(prefix=".evotui-", dir=place):  # modes alone say little, to root least of all
            writable = True
    except OSError:
        writable = False
    return {"folder": str(runs.absolute()), "exists": runs.exists(), "writable": writable, "free_bytes": free}
