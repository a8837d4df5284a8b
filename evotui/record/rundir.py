"""A run's folder: where each record lies, making a new one, finding one by a prefix, summing one up.

The layout is the protocol's (``run.json``, ``workspace/``, ``checkpoints/``, ``logs/``) plus ours: ``events.jsonl``,
``run.toml``, ``blobs/`` (edited files by content), ``pools/`` (once revealed) and ``.host/`` (mode 0700: what no agent
may read while the run lives). No other module joins these paths.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.protocol.pools import Split
from evotui.record.regular import text_of_regular

EVENTS = "events.jsonl"
SUITE = "suite.toml"
"""What makes a folder a suite's."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class RunDirError(Exception):
    """The runs folder or a run cannot be used; the message is one sentence for a person."""


class NotFound(RunDirError):
    """No run matches; for exit code 3."""


class BadName(RunDirError):
    """What cannot name a run; for exit code 2."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """The paths of one run. ``width`` is the digits of NNN and XXX, ``max(3, len(str(episode_budget)))``."""

    root: Path
    width: int = 3

    @property
    def events(self) -> Path:
        return self.root / EVENTS

    @property
    def messages(self) -> Path:
        """What a person said to the agent, below ``feedback/``: for agents that can only be spoken to by files."""
        return self.workspace / "feedback" / "operator.md"

    def collection(self, env: str) -> Path:
        """The runs folder that this run lies in (``runs/<model>/<env>/<exp>``); its own folder if it was moved out.

        A suite's folder holds runs, too, and lies in a runs folder itself: that one is meant.
        """
        parts = tuple(safe(part) for part in env.split("/"))
        depth = 1 + len(parts)
        if len(self.root.parts) > depth + 1 and self.root.parts[-depth:-1] == parts:
            runs = self.root.parents[depth]
            return runs.parent if (runs / SUITE).is_file() else runs
        return self.root

    @property
    def run_json(self) -> Path:
        return self.root / "run.json"

    @property
    def run_toml(self) -> Path:
        return self.root / "run.toml"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def agents_md(self) -> Path:
        return self.workspace / "AGENTS.md"

    @property
    def system(self) -> Path:
        return self.workspace / "system"

    @property
    def feedback(self) -> Path:
        return self.workspace / "feedback"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def pools(self) -> Path:
        return self.root / "pools"

    @property
    def host(self) -> Path:
        return self.root / ".host"

    @property
    def host_pools(self) -> Path:
        return self.host / "pools"

    @property
    def actions(self) -> Path:
        """Executed actions of each train episode, for exact replay. Host only."""
        return self.host / "actions"

    def submit_name(self, index: int) -> str:
        return f"submit_{index:0{self.width}d}"

    def episode_name(self, episode: int) -> str:
        return f"ep_{episode:0{self.width}d}"

    def feedback_of(self, index: int) -> Path:
        return self.feedback / self.submit_name(index)

    def episodes_of(self, index: int) -> Path:
        return self.feedback_of(index) / "episodes"

    def episode(self, index: int, episode: int) -> Path:
        return self.episodes_of(index) / self.episode_name(episode)

    def checkpoint(self, index: int) -> Path:
        return self.checkpoints / self.submit_name(index)

    def blob(self, sha256: str) -> Path:
        return self.blobs / sha256

    def pool_file(self, split: Split) -> Path:
        """The pool file where it lies now: revealed, else host only."""
        revealed = self.pools / split.file_name
        return revealed if revealed.exists() else self.host_pools / split.file_name


def width_of(budget: int) -> int:
    return max(3, len(str(budget)))


def create(runs: Path, model: str, env: str, budget: int, name: str | None = None) -> RunDir:
    """Make ``runs/<model>/<env>/<name>`` with its empty folders. ``env`` may hold a ``/``: it nests.

    ``name`` defaults to six random hex digits, which is also how a run is selected. Raises RunDirError where the
    folder cannot be written, the name is taken, or the name is not one path segment.
    """
    if name is not None and not _NAME.match(name):
        raise BadName(f"{name!r} cannot name a run: use letters, digits, dots, dashes and underscores")
    for _ in range(100):
        exp = name or secrets.token_hex(3)
        root = runs / safe(model) / Path(*(safe(part) for part in env.split("/"))) / exp
        try:
            root.mkdir(parents=True)
            break
        except FileExistsError:
            if name is not None:
                raise RunDirError(f"{root} exists already; choose another --name or delete it") from None
        except OSError as error:
            raise RunDirError(
                f"cannot write runs into {runs} ({error.strerror or error}); choose another folder with --runs"
            ) from None
    run = RunDir(root, width_of(budget))
    try:
        for folder in (run.system, run.feedback, run.checkpoints, run.logs, run.blobs):
            folder.mkdir(parents=True)
        run.host.mkdir(mode=0o700)
        run.host_pools.mkdir(mode=0o700)
        run.actions.mkdir(mode=0o700)
    except OSError as error:
        raise RunDirError(f"cannot write into {root} ({error.strerror or error})") from None
    return run


def safe(segment: str) -> str:
    """``segment`` as one path segment: all but letters, digits and ``. _ - :`` becomes ``-``; never empty or hidden."""
    cleaned = re.sub(r"[^A-Za-z0-9._:-]+", "-", segment).lstrip(".-")
    return cleaned or "unnamed"


def scan(runs: Path) -> Iterator[Path]:
    """Folders of runs below ``runs``, in the order of their paths. A run's own folders are not searched."""
    stack = [runs]
    while stack:
        here = stack.pop()
        try:
            with os.scandir(here) as listing:
                entries = list(listing)
        except OSError:
            continue
        names = {entry.name for entry in entries}
        if EVENTS in names:
            yield here
            continue
        folders = [entry for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)]
        stack.extend(Path(path) for path in sorted((entry.path for entry in folders), reverse=True))


def find(selector: str, runs: Path) -> Path:
    """The run that ``selector`` names: a path, a run's name, or a unique prefix of one.

    Raises NotFound with the near candidates where there is none or more than one.
    """
    if not selector:
        raise NotFound("name a run; `evotui ls` lists the runs")
    path = Path(selector)
    inner: list[Path] = []
    if path.is_dir():
        if os.path.lexists(path / EVENTS):  # a link to nothing is the run's trouble, to be told of it
            return path.resolve()
        inner = list(scan(path))
        if len(inner) == 1:
            return inner[0].resolve()
    elif "/" in selector and path.exists():
        raise NotFound(f"{selector} is a file, not a run's folder")
    if "/" in selector and not selector.startswith("."):
        found = [p for p in scan(runs) if str(p.relative_to(runs)).startswith(selector)]
    else:
        found = [p for p in scan(runs) if p.name.startswith(selector)]
        found = [p for p in found if p.name == selector] or found
    if not found:
        if inner:
            raise NotFound(f"{selector} is no run but a folder of {len(inner)}: name one of them")
        if path.exists():
            raise NotFound(f"{selector} is no run: it holds no {EVENTS}")
        raise NotFound(f"no run {selector!r} below {runs}; `evotui ls` lists the runs")
    if len(found) > 1:
        shown = ", ".join(str(p.relative_to(runs)) for p in found[:6]) + (" …" if len(found) > 6 else "")
        raise NotFound(f"{selector!r} is ambiguous: {shown}")
    return found[0].resolve()


def read_json(path: Path) -> Any:
    """A JSON file's content. Raises RunDirError that names the file and the line for anything unreadable."""
    try:
        return json.loads(text_of_regular(path))
    except OSError as error:
        raise RunDirError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise RunDirError(f"{path}: is not valid JSON ({error})") from None


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file so that it is there whole or not at all. Blocking."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp\Z")


def sweep(run: RunDir) -> None:
    """Remove what :func:`write_atomic` left half written when its process was killed. Blocking."""
    folders = [run.root, run.workspace, run.blobs, run.pools, run.host_pools]
    folders += [folder for parent in (run.feedback, run.checkpoints) if parent.is_dir() for folder in parent.iterdir()]
    for folder in folders:
        if folder.is_dir():
            for path in folder.iterdir():
                if _TEMPORARY.match(path.name):
                    path.unlink(missing_ok=True)


def to_json(document: Any) -> bytes:
    """Records are written for people too: sorted keys, two spaces, a final newline. NaN raises ValueError."""
    return (json.dumps(document, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()
