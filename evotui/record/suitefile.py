"""The plan of a suite and its TOML: which environments, which agents, how often, by which rules."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evotui.record.regular import text_of_regular


class SuiteFileError(Exception):
    """A suite file that cannot be used; one sentence with file, line and key."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent of the matrix. ``name`` is how it is called there, ``agent`` its kind."""

    name: str
    agent: str
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A matrix of environments × agents × repeats. ``rules`` are laid over the profile, by the names of ``RULES``.

    Repeat r runs with the agent's seed ``seed + r − 1``.
    """

    name: str
    envs: tuple[str, ...]
    agents: tuple[AgentRow, ...]
    repeats: int = 1
    profile: str = "default"
    seed: int = 0
    rules: Mapping[str, Any] = field(default_factory=dict)


RULES: dict[str, type] = {
    "budget": int, "validation": int, "heldout": int, "pools": str, "policy_lifetime": str, "submit_min": int,
    "submit_max": int, "start": str, "workers": int, "allow_weak_isolation": bool,
}  # fmt: skip
_ALSO = {"lifetime": "policy_lifetime"}
"""Keys of a file that are called as the option is, by the rules' own names, which are understood, too."""
_TOP: dict[str, type] = {
    "name": str, "envs": list, "agents": list, "repeats": int, "profile": str, "seed": int,
    **{key: RULES[rule] for key, rule in _ALSO.items()}, **RULES,
}  # fmt: skip
_AGENT: dict[str, type] = {"name": str, "agent": str, "model": str, "options": dict, "program": list}
_MOST_REPEATS = 1000
_WORDS = {int: "a whole number", str: "a text", list: "a list", dict: "a table", bool: "true or false"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def read_plan(path: Path) -> Plan:
    """The plan in a file. ``name`` defaults to the file's, ``envs`` may be a name of ours. Raises SuiteFileError."""
    try:
        source = text_of_regular(path)
        table = tomllib.loads(source)
    except OSError as error:
        raise SuiteFileError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SuiteFileError(f"{path}: is no text, so it is no suite's file") from None
    except ValueError as error:
        raise SuiteFileError(f"{path}: {error}") from None
    try:
        return plan_of(table, default_name=path.stem)
    except _Wrong as wrong:
        line = _line(source, wrong.key)
        raise SuiteFileError(f"{path}, line {line}: {wrong}" if line else f"{path}: {wrong}") from None


class _Wrong(Exception):
    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def plan_of(table: Mapping[str, Any], default_name: str) -> Plan:
    if isinstance(table.get("agents"), dict):
        raise _Wrong("agents", "agents: expected tables [[agents]], in two brackets")
    _known(table, _TOP, "")
    name = table.get("name", default_name)
    if not _NAME.match(name):
        raise _Wrong("name", f"name: {name!r} cannot name a suite: use letters, digits, dots, dashes, underscores")
    envs = table.get("envs", [])
    _distinct("envs", envs, "an environment")
    rows = table.get("agents") or [{"agent": "search"}]
    agents = []
    for row in rows:
        if not isinstance(row, dict):
            raise _Wrong("agents", "agents: expected tables [[agents]]")
        _known(row, _AGENT, "agents: ")
        kind: str = row.get("agent", "search")
        options = dict(row.get("options", {}))
        if not all(isinstance(part, str) for part in row.get("program", ())):
            raise _Wrong("program", f"agents: program: expected texts, not {row['program']!r}")
        if row.get("program"):
            options["program"] = list(row["program"])
        if row.get("model"):
            options.setdefault("model", row["model"])
        agents.append(AgentRow(row.get("name") or kind, kind, row.get("model", ""), options))
    _distinct("agents", [agent.name for agent in agents], "an agent's name")
    repeats = table.get("repeats", 1)
    if not 1 <= repeats <= _MOST_REPEATS:
        raise _Wrong("repeats", f"repeats: 1 to {_MOST_REPEATS}, not {repeats}")
    for key, rule in _ALSO.items():
        if key in table and rule in table:
            raise _Wrong(rule, f"{rule}: this is {key}, which is there, too: keep one of them")
    rules = {rule: table[key] for key, rule in _ALSO.items() if key in table}
    rules |= {key: table[key] for key in RULES if key in table}
    return Plan(name, tuple(envs), tuple(agents), repeats, table.get("profile", "default"), table.get("seed", 0), rules)


def table_of(plan: Plan) -> dict[str, Any]:
    """The plan as a table that :func:`read_plan` takes."""
    agents = []
    for row in plan.agents:
        options = {k: v for k, v in row.options.items() if k != "program" and not (k == "model" and v == row.model)}
        table: dict[str, Any] = {"name": row.name, "agent": row.agent}
        table |= {"model": row.model} if row.model else {}
        table |= {"program": list(row.options["program"])} if "program" in row.options else {}
        table |= {"options": options} if options else {}
        agents.append(table)
    called = {rule: key for key, rule in _ALSO.items()}
    rules = {called.get(rule, rule): value for rule, value in plan.rules.items()}
    return {
        "name": plan.name, "envs": list(plan.envs), "repeats": plan.repeats, "profile": plan.profile,
        "seed": plan.seed, **rules, "agents": agents,
    }  # fmt: skip


def _known(table: Mapping[str, Any], known: Mapping[str, type], where: str) -> None:
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise _Wrong(key, f"{where}unknown key {key!r}; {hint}")
        kind = known[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _Wrong(key, f"{where}{key}: expected {_WORDS[kind]}, not {value!r}")


def _distinct(key: str, values: list[Any], what: str) -> None:
    for value in values:
        if not isinstance(value, str) or not value:
            raise _Wrong(key, f"{key}: expected texts, not {value!r}")
    twice = next((v for v in values if values.count(v) > 1), None)
    if twice is not None:
        raise _Wrong(key, f"{key}: {what} is there twice: {twice!r}")


def _line(source: str, key: str) -> int:
    """Where a key is set, from 1; 0 where that cannot be said."""
    pattern = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*(=|\]|\.)")
    return next((n for n, line in enumerate(source.splitlines(), 1) if pattern.match(line)), 0)
