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


_MOVED = {
    "~/.config": "XDG_CONFIG_HOME", "~/.local/share": "XDG_DATA_HOME", "~/.local/state": "XDG_STATE_HOME",
    "~/.codex": "CODEX_HOME", "~/.claude": "CLAUDE_CONFIG_DIR",
}  # fmt: skip
"""Folders that programs keep things in, and the variable that says where else they are."""


def found_at(path: str, variables: Mapping[str, str]) -> Path:
    """Where a path that begins with ``~`` is for a program with these variables."""
    for folder, name in _MOVED.items():
        if variables.get(name) and (path == folder or path.startswith(folder + "/")):
            return Path(variables[name] + path[len(folder) :])
    return Path(path.replace("~", variables.get("HOME") or os.path.expanduser("~"), 1))


def make(path: Path) -> None:
    """Make a folder of a program's own, or its file of settings, where it is missing. Raises OSError."""
    if path.exists():
        return
    if path.suffix == ".json":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n", encoding="utf-8")
    else:
        path.mkdir(parents=True, exist_ok=True)


def own_folders() -> list[Path]:
    """Where evotui keeps settings, data and state of its own: nothing that an agent may change."""
    from platformdirs import user_cache_path, user_config_path, user_data_path, user_state_path

    return [find("evotui") for find in (user_cache_path, user_config_path, user_data_path, user_state_path)]


def prepare(folder: Path, path: str | None) -> dict[str, str]:
    """A temporary folder and the command ``evotui`` for an agent; the variables that lead to them.

    The command stands alone in its folder: beside our interpreter there may lie simulators.
    """
    (folder / "bin").mkdir()
    (folder / "tmp").mkdir()
    (folder / "cache").mkdir()
    command = folder / "bin" / "evotui"
    here = Path(__file__).resolve().parents[2]
    script = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(here))} exec {shlex.quote(sys.executable)} -P -m evotui "$@"\n'
    command.write_text(script, encoding="utf-8")
    command.chmod(0o755)
    path = path or os.environ.get("PATH") or os.defpath
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{path}",
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
