"""Coding agents as rows of ``agents.toml``: what to start, what it speaks, what it needs. No process in here.

Rows are read from the file beside this module, then from ``agents.toml`` in evotui's configuration folder, then from
the one in the working directory; a later row replaces an earlier one of its name.

Fields of a row: ``title``; ``program`` (a name on the PATH, or a path); ``adapter`` (``claude``, ``codex``, ``acp``, or
``lines``: one process a turn, read in a ``dialect``); ``command`` (its words, with ``{prompt}``, ``{workspace}``,
``{model}`` …); ``model``, ``effort``, ``budget``, ``resume`` (words to ask for each, ``{value}`` inside); ``version``
(words that make it tell its version), ``least`` and ``node`` (the oldest versions that will do); ``install`` and
``login`` (what helps a person); ``keys`` (variables that are passed on), ``logins`` (files that show a login);
``writable`` (its own folders); ``env``; ``settings`` (a ``json`` of settings given by a ``variable``); ``fallback`` (a
row's fields again, for when the adapter is not offered).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("agents.toml")
ADAPTERS = ("claude", "codex", "acp", "lines")
_WORDS = ("command", "model", "effort", "budget", "resume", "version", "keys", "logins", "writable")
_TEXTS = ("title", "program", "adapter", "dialect", "least", "node", "install", "login")
_TABLES = ("env", "settings", "fallback")


class RowError(ValueError):
    """A row that cannot be used: file, line, field, and what is expected there."""


@dataclass(frozen=True, slots=True)
class Row:
    """One coding agent; see the module's text for the fields."""

    name: str
    title: str
    program: str
    adapter: str
    command: tuple[str, ...]
    dialect: str = ""
    model: tuple[str, ...] = ()
    effort: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    version: tuple[str, ...] = ("--version",)
    least: str = ""
    node: str = ""
    install: str = ""
    login: str = ""
    keys: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fallback: Row | None = None
    file: str = ""

    def words(self, **values: str) -> list[str]:
        """The command's words (without the program). ``values`` are texts for the braces; empty ones vanish."""
        made: list[str] = []
        for word in self.command:
            inside = re.fullmatch(r"\{(\w+)\}", word)
            if inside is None:
                made.append(_fill(word, values))
                continue
            name = inside.group(1)
            pattern = getattr(self, name, None)
            value = values.get(name, "")
            if isinstance(pattern, tuple):
                made += [part.replace("{value}", value) for part in pattern] if value else []
            elif name == "sandbox":
                made += ["-s", value] if value else []
            else:
                made.append(value)
        return made


def _fill(word: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found.group(1), found.group(0)), word)


def rows(folders: list[Path] | None = None) -> dict[str, Row]:
    """All rows by name. ``folders`` are where a person's own files lie. Raises RowError."""
    found: dict[str, Row] = {}
    for file in [SHIPPED, *(folder / "agents.toml" for folder in (own_folders() if folders is None else folders))]:
        if file.is_file():
            found |= read_rows(file, found)
    return found


def own_folders() -> list[Path]:
    """Where a person's own ``agents.toml`` is looked for: the configuration folder, then the working directory."""
    from platformdirs import user_config_path

    return [user_config_path("evotui"), Path.cwd()]


def read_rows(file: Path, known: Mapping[str, Row] | None = None) -> dict[str, Row]:
    """The rows of one file; a row of a name that is ``known`` needs to say only what differs. Raises RowError."""
    try:
        text = file.read_text("utf-8")
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RowError(f"{file}: {error}") from None
    except OSError as error:
        raise RowError(f"{file}: {error.strerror}") from None
    made = {}
    for name, table in document.items():
        where = _Where(file, text, name)
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
            raise RowError(f"{where.at()}: an agent's name is a word in lower case, not {name!r}")
        if not isinstance(table, dict):
            raise RowError(f"{where.at(name)}: expected a table [{name}]")
        made[name] = _row(name, table, where, (known or {}).get(name))
    return made


@dataclass(frozen=True, slots=True)
class _Where:
    """Where in a file a row stands, for errors."""

    file: Path
    text: str
    name: str

    def at(self, key: str = "") -> str:
        inside = False
        for number, line in enumerate(self.text.splitlines(), 1):
            bare = line.strip()
            if bare.startswith("["):
                inside = bare.strip("[] ").split(".")[0] == self.name
                if inside and not key:
                    return f"{self.file}, line {number}"
            elif (inside or key == self.name) and re.match(rf"{re.escape(key)}\s*=", bare):
                return f"{self.file}, line {number}"
        return str(self.file)


def _row(name: str, table: dict[str, Any], where: _Where, base: Row | None) -> Row:
    values: dict[str, Any] = {}
    for key, value in table.items():
        at = where.at(key)
        if key in _TEXTS:
            if not isinstance(value, str):
                raise RowError(f"{at}: {name}.{key} is a text")
        elif key in _WORDS:
            if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
                raise RowError(f"{at}: {name}.{key} is a list of texts")
            value = tuple(value)
        elif key in _TABLES:
            if not isinstance(value, dict):
                raise RowError(f"{at}: {name}.{key} is a table")
        else:
            allowed = ", ".join(sorted((*_TEXTS, *_WORDS, *_TABLES)))
            raise RowError(f"{at}: {name} has no field {key!r}; there are {allowed}")
        values[key] = value
    inner = values.pop("fallback", None)
    made = replace(base, **values) if base is not None else _new(name, values, where)
    made = replace(made, file=str(where.file))
    if inner is not None:
        settings = {**made.settings, **inner.get("settings", {})}
        inner = {key: value for key, value in inner.items() if key != "settings"}
        plain = replace(made, fallback=None, model=(), effort=(), budget=(), resume=(), settings=settings)
        made = replace(made, fallback=_row(name, inner, where, plain))
    _check(made, where)
    return made


def _new(name: str, values: dict[str, Any], where: _Where) -> Row:
    for key in ("program", "adapter", "command"):
        if key not in values:
            raise RowError(f"{where.at()}: {name} needs a field {key!r}")
    return Row(name=name, **{"title": name, **values})


def _check(row: Row, where: _Where) -> None:
    from evotui.agents.streams import STREAMS

    if row.adapter not in ADAPTERS:
        raise RowError(
            f"{where.at('adapter')}: {row.name}.adapter is one of {', '.join(ADAPTERS)}, not {row.adapter!r}"
        )
    if row.adapter == "lines":
        if row.dialect not in STREAMS:
            raise RowError(f"{where.at('dialect')}: {row.name}.dialect is one of {', '.join(sorted(STREAMS))}")
        if not any("{prompt}" in word for word in row.command):
            raise RowError(f"{where.at('command')}: {row.name}.command has no word {{prompt}} to put the prompt in")
    for key, value in row.env.items():
        if not isinstance(value, str):
            raise RowError(f"{where.at(key)}: {row.name}.env.{key} is a text")
    if row.settings and not isinstance(row.settings.get("variable"), str):
        raise RowError(f"{where.at('variable')}: {row.name}.settings needs the variable that names them")


FIELDS = tuple(item.name for item in fields(Row))
