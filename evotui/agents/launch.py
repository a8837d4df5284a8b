"""How an agent's program is started: its own folder and environment, the wall around it, the launcher before it."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.agents import confine
from evotui.agents.base import AgentFailed, DoorUrls, Place, Workspace
from evotui.agents.pipes import until_readable
from evotui.agents.surroundings import absolute, environment, make, own_folders, prepare
from evotui.agents.sweep import TAG, tag_of

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Launched:
    """A launcher that is about to become a program's parent: what was given to it, what must be cleaned up after it."""

    popen: subprocess.Popen[bytes]
    tag: str
    """In the environment of the program and of all that it starts (see :mod:`sweep`)."""
    folder: Path
    """The program's temporary folder."""
    report: int
    """The descriptor to read what became of the wall from; see :meth:`told`."""

    async def told(self, ended: asyncio.Event) -> dict[str, Any]:
        """What the launcher has to report until the program begins, or ``ended`` is set. Closes the descriptor."""
        os.set_blocking(self.report, False)
        raw = b""
        try:
            while True:
                try:
                    piece = os.read(self.report, _CHUNK)
                except BlockingIOError:
                    await until_readable(self.report, ended)
                    continue
                if not piece:
                    break
                raw += piece
        finally:
            os.close(self.report)
        told: dict[str, Any] = {}
        for line in raw.splitlines():
            told |= json.loads(line)
        return told


async def launch(
    command: Sequence[str],
    workspace: Workspace,
    place: Place,
    urls: DoorUrls | None,
    env: Mapping[str, str] | None,
    keys: Collection[str] | None,
    stdin: bool,
    writable: Sequence[Path],
    wall: bool,
) -> Launched:
    """Start the launcher on ``command``; arguments as of :meth:`AgentProcess.start`. Raises AgentFailed."""
    try:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="evotui-agent-"))
        read, write = os.pipe()
    except OSError as error:
        raise AgentFailed(f"{command[0]} cannot be started: {error.strerror or error}") from error
    try:
        extra = dict(env or {})
        extra |= prepare(folder, extra.get("PATH"))
        variables = environment(workspace.root, urls, extra, keys)
        variables[TAG] = tag = f"{tag_of(workspace.root)}.{secrets.token_hex(4)}"
        for path in writable:
            make(path)
        plan = confine.Plan(
            parent=os.getpid(),
            closed=absolute(place.closed),
            opened=absolute([workspace.root]),
            writable=absolute([workspace.system, folder, *writable]),
            kept=absolute(own_folders()),
            wall=wall,
            folder=str(folder),
        )
        launcher = [sys.executable, "-I", "-S", "-B", confine.__file__, str(write), plan.to_json()]
        popen = subprocess.Popen(
            [*launcher, *command],
            cwd=workspace.root,
            env=variables,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(write,),
            process_group=0,
        )
    except BaseException as error:
        os.close(read)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise AgentFailed(f"{command[0]} cannot be started: {error.strerror or error}") from error
        raise
    finally:
        os.close(write)
    return Launched(popen, tag, folder, read)
