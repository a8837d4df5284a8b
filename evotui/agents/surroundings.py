"""What an agent's program finds around it: its environment, a temporary folder, the command ``evotui``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from evotui.agents.sweep import TAG, tag_of
from evotui.protocol.door import DoorUrls

_SECRET = re.compile(r"_(API_KEY|API_TOKEN|AUTH_TOKEN|ACCESS_TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PASSWORD)\Z")


def environment(
    workspace: Path, urls: DoorUrls | None, extra: Mapping[str, str], keys: Collection[str] | None
) -> dict[str, str]:
    """What a program finds: ours without what concerns us, the door's variables, the tag.

    Left out: ``EVOTUI_*``, ``EVOPOLICYGYM_*`` and what marks a process of a Claude Code that we may run in. With
    ``keys`` also whatever is named like a secret, but those names; ``extra`` is laid over all of it.
    """
    kept = {}
    for name, value in os.environ.items():
        if name.startswith(("EVOTUI_", "EVOPOLICYGYM_", "CLAUDE_CODE_")) or name == "CLAUDECODE":
            continue
        if keys is not None and _SECRET.search(name) and name not in keys:
            continue
        kept[name] = value
    return kept | (urls.environment() if urls is not None else {}) | dict(extra) | {TAG: tag_of(workspace)}


def absolute(paths: Iterable[Path]) -> tuple[str, ...]:
    """Paths as they are from anywhere: the launcher starts elsewhere."""
    return tuple(str(path.absolute()) for path in paths)


def settings_folders(variables: Mapping[str, str]) -> list[Path]:
    """Where programs keep settings, caches and state in such an environment; those that are there."""
    home = Path(variables.get("HOME") or "/nonexistent")
    defaults = {"CACHE": ".cache", "CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state"}
    found = [Path(variables.get(f"XDG_{name}_HOME") or home / default) for name, default in defaults.items()]
    return [path for path in found if path.is_dir()]


def prepare(folder: Path, path: str | None) -> dict[str, str]:
    """A temporary folder and the command ``evotui`` for an agent; the variables that lead to them.

    The command stands alone in its folder: beside our interpreter there may lie simulators.
    """
    (folder / "bin").mkdir()
    (folder / "tmp").mkdir()
    command = folder / "bin" / "evotui"
    here = Path(__file__).resolve().parents[2]
    script = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(here))} exec {shlex.quote(sys.executable)} -P -m evotui "$@"\n'
    command.write_text(script, encoding="utf-8")
    command.chmod(0o755)
    path = path or os.environ.get("PATH") or os.defpath
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{path}", "TMPDIR": str(folder / "tmp")}
