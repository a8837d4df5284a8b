"""Environments and policies by name: where they are looked for, and what is to be installed for them.

Folders are searched in this order, and the first of a name wins: ``./environments``, the user's data folder, those
shipped with evotui. Policies likewise, in ``policies/<environment>/<name>/policy.py``. No gymnasium, no numpy here.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

import evotui
from evotui.protocol.task import TaskSpec
from evotui.suite.errors import (
    BadTaskFile,
    MissingExtra,
    SuiteError,
    UnknownEnvironment,
    UnknownPolicy,
    WrongVersion,
    did_you_mean,
    near_names,
)
from evotui.suite.taskfile import TASK_FILE, read_task

__all__ = [
    "GYMNASIUM",
    "BadTaskFile",
    "MissingExtra",
    "SuiteError",
    "UnknownEnvironment",
    "UnknownPolicy",
    "WrongVersion",
    "availability",
    "check_packages",
    "distribution",
    "environment_folders",
    "find_task",
    "install_command",
    "list_policies",
    "list_tasks",
    "policy_folder",
    "policy_folders",
    "scan_tasks",
]

GYMNASIUM = "gymnasium:"
"""The prefix that asks for any registered Gymnasium id."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Versions that serve: from ``least`` to below ``below`` (empty: no end), and what is wrong with others."""

    least: tuple[int, ...]
    below: tuple[int, ...]
    why: str

    def allows(self, version: str) -> bool:
        numbers = tuple(int(n) for n in re.findall(r"\d+", version.partition("+")[0])[:3])
        return numbers >= self.least and (not self.below or numbers < self.below)

    def __str__(self) -> str:
        least, below = (".".join(map(str, numbers)) for numbers in (self.least, self.below))
        return f">={least},<{below}" if below else f">={least}"


# The same ranges as in pyproject.toml: somebody may have installed packages in another way.
_VERSIONS = {
    "gymnasium": _Range((1, 4), (1, 5), "other versions know other environments"),
    "minigrid": _Range((3, 1), (), "earlier ones place things differently"),
    "mujoco": _Range((3, 8), (3, 11), "others compute different episodes, and some cannot make the Fetch tasks"),
    "highway_env": _Range((1, 12), (), "earlier ones open windows"),
    "gymnasium_robotics": _Range((1, 4, 2), (), "earlier ones lack these tasks"),
}
_DISTRIBUTIONS = {"highway_env": "highway-env", "gymnasium_robotics": "gymnasium-robotics", "Box2D": "box2d"}
_VERSIONED = re.compile(r"\S+-v\d+\Z")
_VERSION = re.compile(r"-v\d+\Z")
_LEAST_PART, _MOST_PARTS = 3, 5
"""A name of fewer letters is part of too many others; more of these than that say nothing."""


def environment_folders() -> list[Path]:
    """Existing folders that hold environments, first wins."""
    return _roots("environments")


def policy_folders() -> list[Path]:
    """Existing folders that hold policies by environment, first wins."""
    return _roots("policies")


def _roots(kind: str) -> list[Path]:
    package = Path(evotui.__file__).resolve().parent
    # An editable install may leave a stale copy in the package: a checkout, known by its pyproject.toml, goes first.
    checkout = package.parent / kind
    shipped = (
        checkout if (package.parent / "pyproject.toml").is_file() and checkout.is_dir() else package / "shipped" / kind
    )
    roots: dict[Path, None] = {}
    for root in (Path.cwd() / kind, platformdirs.user_data_path("evotui", appauthor=False) / kind, shipped):
        if root.is_dir():
            roots.setdefault(root.resolve())
    return list(roots)


def scan_tasks() -> tuple[list[TaskSpec], list[BadTaskFile]]:
    """Every environment found, sorted by name, and the task files that could not be used."""
    tasks: dict[str, TaskSpec | BadTaskFile] = {}
    for root in environment_folders():
        for folder in sorted(root.iterdir()):
            if folder.name not in tasks and (folder / TASK_FILE).is_file():
                try:
                    tasks[folder.name] = read_task(folder)
                except BadTaskFile as problem:
                    tasks[folder.name] = problem
    found = [tasks[name] for name in sorted(tasks)]
    return [t for t in found if isinstance(t, TaskSpec)], [t for t in found if isinstance(t, BadTaskFile)]


def list_tasks() -> list[TaskSpec]:
    """Every usable environment, sorted by name. Task files that are not usable are :func:`scan_tasks`' second half."""
    return scan_tasks()[0]


def find_task(name: str) -> TaskSpec:
    """The environment of this short name, slug, Gymnasium id, alias or title; ``gymnasium:ID`` for any registered id.

    Case does not matter, nor do the marks between words, nor a Gymnasium id's version where none is given. Raises
    UnknownEnvironment (with near names), BadTaskFile where the folder of that name holds an unusable task file, and
    MissingExtra where a ``gymnasium:`` environment cannot be made without another package.
    """
    if name.startswith(GYMNASIUM):
        from evotui.suite.worlds import generated_task  # imports gymnasium

        return generated_task(name[len(GYMNASIUM) :])
    tasks, problems = scan_tasks()
    if found := _called(name, tasks):
        return found
    for problem in problems:
        if Path(problem.path).parent.name == name:
            raise problem
    hint = ""
    if _VERSIONED.match(name):
        hint = f"for any other Gymnasium id write {GYMNASIUM}{name}"
    elif problems:
        hint = f"one task file could not be read: {problems[0]}"
    near = _near(name, tasks)
    raise UnknownEnvironment(name, near, hint or ("" if near else "`evotui envs` lists them"))


def _called(name: str, tasks: Sequence[TaskSpec]) -> TaskSpec | None:
    """The one task that is called so: as it is written, else but for case, else but for case and marks.

    A task's own name goes before ids, and these before aliases: an own environment may be called as another's alias.
    """
    for form in (str, str.lower, _bare):
        wanted = form(name)
        for names in (lambda t: (t.name,), lambda t: (t.slug, t.gym_id), _nicknames):
            found = [task for task in tasks if wanted in map(form, names(task))]
            if found and (form is not _bare or len(found) == 1):
                return found[0]
    return None


def _nicknames(task: TaskSpec) -> tuple[str, ...]:
    return (*task.aliases, task.title, _VERSION.sub("", task.gym_id))


def _bare(name: str) -> str:
    """Letters and digits alone, in lower case: ``half cheetah``, ``Half-Cheetah`` and ``half_cheetah`` are one name."""
    return re.sub(r"[\W_]+", "", name.lower()) or name


def _near(name: str, tasks: Sequence[TaskSpec]) -> list[str]:
    """Short names of tasks that ``name`` may mean, each once: those it is a part of, else those that look like it."""
    wanted = _bare(name)
    known = {task.name: [_bare(n) for n in (task.name, task.gym_id, *_nicknames(task))] for task in tasks}
    parts = [key for key, names in known.items() if len(wanted) >= _LEAST_PART and any(wanted in n for n in names)]
    if 0 < len(parts) <= _MOST_PARTS:
        return parts
    owner = {n: key for key, names in known.items() for n in names}
    return list(dict.fromkeys(owner[n] for n in near_names(wanted, owner, most=8, least=0.6)))[:3]


def availability(task: TaskSpec) -> str | None:
    """None where the task's packages are installed in versions that serve, else one sentence with a command."""
    try:
        check_packages(task)
    except SuiteError as error:
        return str(error)
    return None


def check_packages(task: TaskSpec) -> None:
    """Raise MissingExtra or WrongVersion where the task cannot be made as the paper's. Imports none of the packages."""
    for module in ("gymnasium", *task.packages, *task.requires):
        if not _installed(module):
            raise MissingExtra(task.title, module.partition(".")[0], install_command(task.extra, module))
        if (rule := _VERSIONS.get(module)) and (version := _version(distribution(module))) and not rule.allows(version):
            raise WrongVersion(task.title, distribution(module), version, str(rule), rule.why)


def install_command(extra: str, module: str) -> str:
    """The command that brings ``module``: evotui's extra where there is one."""
    return f"pip install 'evotui[{extra}]'" if extra else f"pip install {module.partition('.')[0].replace('_', '-')}"


def distribution(module: str) -> str:
    """The name under which the module's package is installed: ``highway-env`` for ``highway_env``."""
    return _DISTRIBUTIONS.get(module, module.partition(".")[0])


@functools.cache
def _version(name: str) -> str:
    """The installed version of a distribution; empty where it has left no record."""
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def list_policies(task: TaskSpec) -> list[str]:
    """Names of the task's policies: starter and reference first, broken ones (test fixtures) last."""
    names = {p.parent.name for root in policy_folders() for p in (root / task.name).glob("*/policy.py")}
    return sorted(names, key=lambda n: (n.startswith("broken-"), n != "starter", n != "reference", n))


def policy_folder(task: TaskSpec, name: str) -> Path:
    """The folder with the policy's ``policy.py``. Raises UnknownPolicy, with near names."""
    if name == Path(name).name and name not in ("", ".", ".."):
        for root in policy_folders():
            if (root / task.name / name / "policy.py").is_file():
                return root / task.name / name
    known = list_policies(task)
    there = did_you_mean(near_names(name, known)) or (f" (there are {', '.join(known)})" if known else "")
    raise UnknownPolicy(f"{task.name} has no policy {name!r}{there}")
