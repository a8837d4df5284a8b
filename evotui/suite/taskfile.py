"""Reading task.toml and task.md; every complaint names the file, the line and the field."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evotui.protocol.task import Anchor, TaskSpec, is_success_rule
from evotui.record.regular import read_regular, text_of_regular
from evotui.suite.errors import BadTaskFile, did_you_mean, near_names

TASK_FILE = "task.toml"
TEXT_FILE = "task.md"

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){0,3}\Z")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?\Z")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")

Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(v) for v in value)


def _is_modules(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and _MODULE.match(v) for v in value)


_FIELDS: dict[str, tuple[bool, Check, str]] = {  # field -> (required, check, what is expected)
    "slug": (True, lambda v: isinstance(v, str) and bool(_SLUG.match(v)), 'a name such as "gym/acrobot"'),
    "gym_id": (True, _is_text, 'a Gymnasium id such as "CartPole-v1"'),
    "title": (True, _is_text, "a text that is not empty"),
    "family": (True, _is_text, "a text that is not empty"),
    "packages": (False, _is_modules, "a list of module names"),
    "requires": (False, _is_modules, "a list of module names"),
    "extra": (False, lambda v: isinstance(v, str), 'a text, "" where no extra is needed'),
    "max_episode_steps": (False, _is_count, "a whole number of at least 1"),
    "success": (
        False,
        lambda v: isinstance(v, str) and is_success_rule(v),
        '"", "terminated", "truncated", "info.KEY", or reward, return or info.KEY compared with a number',
    ),
    "observation_fields": (False, _is_names, "a list of texts"),
    "action_names": (False, _is_names, "a list of texts"),
    "reward_components": (False, _is_names, "a list of keys of info"),
    "aliases": (False, _is_names, "a list of texts"),
    "anchors": (False, lambda v: isinstance(v, dict), "tables [anchors.random] and [anchors.reference]"),
}
_ANCHOR_FIELDS: dict[str, tuple[bool, Check, str]] = {
    "mean": (True, _is_number, "a finite number"),
    "se": (True, lambda v: _is_number(v) and v >= 0, "a finite number of at least 0"),
    "n": (True, _is_count, "a whole number of at least 1"),
    "source": (False, lambda v: isinstance(v, str), "a text"),
}
_ANCHORS = ("random", "reference")


def read_task(folder: Path) -> TaskSpec:
    """The task of an environment folder. Raises BadTaskFile for whatever is missing, unknown or of the wrong type."""
    path = folder / TASK_FILE
    source = _read(path)
    try:
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line = int(at[1]) if at and at[1] else source.count("\n") + 1
        raise BadTaskFile(str(path), line, "", f"not TOML: {_AT_LINE.sub('', str(error))}") from None
    _check(document, _FIELDS, (), path, source)
    anchors = {}
    for name, table in document.pop("anchors", {}).items():
        if name not in _ANCHORS:
            raise _complaint(path, source, ("anchors", name), "unknown anchor: random and reference are known")
        if not isinstance(table, dict):
            raise _complaint(path, source, ("anchors", name), "expected a table with mean, se and n")
        _check(table, _ANCHOR_FIELDS, ("anchors", name), path, source)
        anchors[name] = Anchor(float(table["mean"]), float(table["se"]), table["n"], table.get("source", ""))
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
    text = _read(folder / TEXT_FILE)
    return TaskSpec(name=folder.name, anchors=anchors, text=text, folder=str(folder), **values)


def _read(path: Path) -> str:
    try:
        return text_of_regular(path)
    except OSError as error:
        raise BadTaskFile(str(path), 1, "", f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        line = read_regular(path)[: error.start].count(b"\n") + 1
        raise BadTaskFile(str(path), line, "", "not UTF-8 text") from None


def _check(
    table: dict[str, Any],
    fields: dict[str, tuple[bool, Check, str]],
    at: tuple[str, ...],
    path: Path,
    source: str,
) -> None:
    for key, value in table.items():
        if key not in fields:
            hint = did_you_mean(near_names(key, fields))
            raise _complaint(path, source, (*at, key), "unknown field" + hint)
        _required, check, expected = fields[key]
        if not check(value):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:57] + "…"
            raise _complaint(path, source, (*at, key), f"expected {expected}, not {shown}")
    for key, (required, _check_value, expected) in fields.items():
        if required and key not in table:
            raise _complaint(path, source, (*at, key), f"missing field: expected {expected}")


def _complaint(path: Path, source: str, at: tuple[str, ...], expected: str) -> BadTaskFile:
    return BadTaskFile(str(path), line_of(source, at), ".".join(at), expected)


def line_of(source: str, at: tuple[str, ...]) -> int:
    """The 1-based line of a TOML key, or of the innermost table around it that the text names (line 1 at worst).

    A search over the text's lines: tomllib tells no positions. Good for task files, not for TOML at large.
    """
    table: tuple[str, ...] = ()
    best, best_depth = 1, 0
    for number, line in enumerate(source.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _dotted(header[1])
            found = table
        elif key := _KEY.match(line):
            found = table + _dotted(key[1])
        else:
            continue
        if found == at[: len(found)] and len(found) > best_depth:
            best, best_depth = number, len(found)
    return best


def _dotted(name: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in name.split("."))
