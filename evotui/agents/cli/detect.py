"""Whether a coding agent can be run here: its program, its version, its Node, its login; else the sentence that helps.

Everything here blocks (it starts programs): call it in a thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evotui.agents.cli.rows import Row

_PATIENCE = 30.0
_NUMBER = re.compile(r"\d+(?:\.\d+)+|\d+")


@dataclass(frozen=True, slots=True)
class Found:
    """What there is. ``wrong`` is why it cannot be run (``""``: it can); ``login`` what shows that it is logged in
    (``""``: nothing does, which need not mean that it is not)."""

    program: str
    version: str
    wrong: str
    login: str
    hint: str

    @property
    def ok(self) -> bool:
        return not self.wrong


def look(row: Row, cli: str = "", environment: Mapping[str, str] | None = None) -> Found:
    """Look for a row's program. ``cli`` is a path that is taken instead of its name on the PATH."""
    env = dict(os.environ if environment is None else environment)
    name = cli or os.path.expanduser(row.program)
    program = shutil.which(name, path=env.get("PATH"))
    login = _login(row, env)
    hint = "" if login else f"no login was found for {row.title}: {row.login}" if row.login else ""
    if program is None:
        how = f"; install it with `{row.install}`" if row.install and not cli else ""
        where = f"at {cli}" if cli else f"as `{row.program}` on the PATH"
        return Found("", "", f"{row.title} is not there {where}{how}", login, hint)
    wrong = _node(row, env)
    if wrong:
        return Found(program, "", wrong, login, hint)
    told, why = _ask([program, *row.version], env)
    if why:
        return Found(program, "", f"{row.title} does not start ({why}); {row.program} is {program}", login, hint)
    version = _version(told)
    if row.least and version and _less(version, row.least):
        how = f"; update it with `{row.install}`" if row.install else ""
        wrong = f"{row.title} {version} is too old: at least {row.least} is needed{how}"
    return Found(program, version, wrong, login, hint)


def _login(row: Row, env: Mapping[str, str]) -> str:
    for key in row.keys:
        if env.get(key) and key.endswith(("KEY", "TOKEN", "CREDENTIALS")):
            return key
    home = env.get("HOME", "")
    for path in row.logins:
        if Path(path.replace("~", home, 1) if home else os.path.expanduser(path)).is_file():
            return path
    return ""


def _node(row: Row, env: Mapping[str, str]) -> str:
    if not row.node:
        return ""
    node = shutil.which("node", path=env.get("PATH"))
    if node is None:
        return f"{row.title} needs Node.js {row.node} or newer, and there is no `node` on the PATH"
    told, why = _ask([node, "--version"], env)
    version = _version(told)
    if why or not version or _less(version, row.node):
        return f"{row.title} needs Node.js {row.node} or newer, and `node` is {version or why} ({node})"
    return ""


def _ask(command: list[str], env: Mapping[str, str]) -> tuple[str, str]:
    """What a command prints, and why it did not."""
    try:
        done = subprocess.run(
            command, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False,
            start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"`{Path(command[0]).name} {' '.join(command[1:])}` said nothing for {_PATIENCE:g} s"
    except OSError as error:
        return "", error.strerror or str(error)
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return "", (words[-1][:200] if words else f"exit code {done.returncode}")
    return said or done.stderr.decode("utf-8", "replace").strip(), ""


def _version(text: str) -> str:
    found = _NUMBER.search(text)
    return found.group(0) if found else ""


def _less(version: str, least: str) -> bool:
    """Whether a dotted version is older than another."""
    a, b = ([int(part) for part in text.split(".")] for text in (version, least))
    width = max(len(a), len(b))
    return a + [0] * (width - len(a)) < b + [0] * (width - len(b))
