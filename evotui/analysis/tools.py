"""What a tool call does, whatever the agent that made it calls its tools: read, edit, run, search, submit, and on what.

Pure: from the call's name and arguments alone. Names and argument names are those of the native agent, Claude Code,
Codex, Gemini CLI, Qwen Code, opencode, Kimi and ACP; of a tool that nobody here knows the arguments decide.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Act(StrEnum):
    """What a call does."""

    READ = "read"
    EDIT = "edit"
    RUN = "run"
    SEARCH = "search"
    SUBMIT = "submit"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Call:
    """A call understood. ``paths`` are relative to the workspace where they lie in it (they may hold wildcards);
    ``line`` is the call in one line, without the tool's name; ``whole`` what its arguments hold beyond that line."""

    act: Act
    line: str
    paths: tuple[str, ...] = ()
    whole: str = ""


_ACTS: dict[str, Act] = {
    **dict.fromkeys(("read", "readfile", "readmanyfiles", "view", "openfile", "cat", "viewimage"), Act.READ),
    **dict.fromkeys(
        ("edit", "editfile", "multiedit", "write", "writefile", "replace", "strreplace", "strreplacefile",
         "applypatch", "filechange", "patch", "createfile", "notebookedit"),
        Act.EDIT,
    ),
    **dict.fromkeys(
        ("bash", "shell", "runshellcommand", "commandexecution", "exec", "execcommand", "localshell", "execute",
         "runpython", "python", "runcommand", "terminal"),
        Act.RUN,
    ),
    **dict.fromkeys(
        ("grep", "glob", "ls", "list", "listfiles", "listdirectory", "searchfilecontent", "search", "find",
         "grepsearch", "globsearch"),
        Act.SEARCH,
    ),
    **dict.fromkeys(("submit", "submitpolicy"), Act.SUBMIT),
}  # fmt: skip
_PATHS = (
    "file_path",
    "filePath",
    "absolute_path",
    "path",
    "filename",
    "file",
    "notebook_path",
    "dir_path",
    "directory",
)
_COMMANDS = ("command", "cmd", "script", "code", "commands")
_SAID = ("cases", "pattern", "query", "url", "prompt", "text", "note", "description", "message", "name")
_NEW = ("new_string", "new_str", "newString", "new", "replacement")
_OLD = ("old_string", "old_str", "oldString", "old", "search")
_DIFFS = ("diff", "patch")
_WHOLE = ("content", "file_text", "contents", "patch", "diff", "input")
_LONGEST = 400
"""Characters of a call's line: a pane shows fewer, and a command may be a program."""


def understand(name: str, arguments: Mapping[str, Any]) -> Call:
    """A tool call as what it does."""
    act = _act(name, arguments)
    command = command_of(arguments)
    paths = tuple(dict.fromkeys(within(path) for path in _paths(arguments)))
    if act is Act.RUN or (act is Act.OTHER and command):
        if not command:
            return Call(act, _said(arguments), paths, _rest(arguments))
        if re.match(r"\s*(\S*/)?evotui\s+submit\b", command):
            act = Act.SUBMIT
        first, _, rest = command.strip().partition("\n")
        return Call(act, within(first)[:_LONGEST], (), within(command.strip()) if rest or len(first) > _LONGEST else "")
    line = ", ".join(paths) or _said(arguments)
    if act is Act.EDIT:
        return Call(act, f"{line}{_size(arguments)}", paths, _edit(arguments))
    if act is Act.SEARCH and paths and (pattern := _first(arguments, ("pattern", "query"))):
        line = f"{pattern!r} in {line}"
    more = _rest(arguments)
    return Call(act, line[:_LONGEST], paths, more if len(more) > len(line) + 24 or len(line) > _LONGEST else "")


def _act(name: str, arguments: Mapping[str, Any]) -> Act:
    plain = re.sub(r"[^a-z]", "", name.rsplit("__", 1)[-1].lower())
    known = _ACTS.get(plain)
    if known is not None:
        return known
    kind = str(arguments.get("kind", ""))  # of the Agent Client Protocol
    if kind in ("read", "edit", "execute", "search"):
        return {"read": Act.READ, "edit": Act.EDIT, "execute": Act.RUN, "search": Act.SEARCH}[kind]
    words = set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", name).lower()))
    for act, marks in (
        (Act.EDIT, {"edit", "write", "editing", "writing", "patch"}),
        (Act.READ, {"read", "reading"}),
        (Act.RUN, {"running", "run", "shell", "execute"}),
    ):
        if words & marks:
            return act
    return Act.OTHER


def command_of(arguments: Mapping[str, Any]) -> str:
    """The shell command (or program text) that a call runs; "" where it runs none."""
    for key in _COMMANDS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return _unwrapped(value)
        if isinstance(value, (list, tuple)) and value:
            words = [str(word) for word in value]
            if len(words) >= 3 and words[-2] in ("-c", "-lc"):
                return words[-1]
            return " ".join(words) if key != "commands" else "; ".join(words)
    return ""


def _unwrapped(command: str) -> str:
    """``bash -lc 'cat x'`` is ``cat x``: how Codex tells its commands."""
    found = re.match(r"(?:/\S*/)?(?:ba|z|da)?sh -l?c (['\"])(.*)\1\s*\Z", command, re.DOTALL)
    return found[2] if found else command


def within(text: str) -> str:
    """Text with the paths of a workspace made relative to it: ``…/workspace/system/policy.py`` names the policy."""
    return re.sub(r"(?<![\w.-])/[^\s'\"]*?/workspace/(?=system\b|feedback\b|AGENTS)", "", text)


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key in _PATHS:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            yield value
    for key in ("paths", "changes", "locations", "files"):
        value = arguments.get(key)
        if isinstance(value, Mapping):
            yield from (str(path) for path in value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, Mapping) and isinstance(item.get("path"), str):
                    yield item["path"]
    inner = arguments.get("rawInput")
    if isinstance(inner, Mapping):
        yield from _paths(inner)


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := arguments.get(key), str) and value), "")


def _said(arguments: Mapping[str, Any]) -> str:
    for key in _SAID:
        value = arguments.get(key)
        if isinstance(value, (str, int)) and str(value):
            return within(str(value).partition("\n")[0])
        if isinstance(value, (list, tuple)) and value:
            return ", ".join(map(str, value))
    only = list(arguments.values())
    return within(str(only[0]).partition("\n")[0]) if len(only) == 1 else ""


def _size(arguments: Mapping[str, Any]) -> str:
    """How much an edit changes, as far as its arguments say."""
    new, old = (next((a for k in keys if isinstance(a := arguments.get(k), str)), None) for keys in (_NEW, _OLD))
    if new is not None and old is not None:
        return f"  +{len(new.splitlines())} −{len(old.splitlines())}"
    diff = next((a for k in _DIFFS if isinstance(a := arguments.get(k), str)), None)
    if diff is not None:
        marks = [line[:1] for line in diff.splitlines() if not line.startswith(("+++", "---"))]
        return f"  +{marks.count('+')} −{marks.count('-')}"
    whole = next((a for k in _WHOLE if isinstance(a := arguments.get(k), str)), None)
    if whole is not None:
        lines = len(whole.splitlines())
        return f"  {lines} line{'s' * (lines != 1)}"
    return ""


def _edit(arguments: Mapping[str, Any]) -> str:
    """The text that an edit takes out and puts in, marked as a diff marks it."""
    new, old = (next((a for k in keys if isinstance(a := arguments.get(k), str)), None) for keys in (_NEW, _OLD))
    if new is not None and old is not None:
        return "\n".join([*(f"− {line}" for line in old.splitlines()), *(f"+ {line}" for line in new.splitlines())])
    whole = next((a for k in _WHOLE if isinstance(a := arguments.get(k), str)), None)
    return whole if whole is not None else _rest(arguments) if len(arguments) > 1 else ""


def _rest(arguments: Mapping[str, Any]) -> str:
    """All arguments, a line each."""
    lines = []
    for key, value in arguments.items():
        text = value if isinstance(value, str) else repr(value) if not isinstance(value, (list, dict)) else f"{value}"
        lines.append(f"{key}: {text}")
    return within("\n".join(lines))


# ── what a shell command reads ───────────────────────────────────────────────────────────────────────────────────

_LOOKS_ONLY = {"ls", "find", "stat", "wc", "du", "test", "[", "mkdir", "touch", "rm", "mv", "cp", "echo", "cd", "file"}
"""Commands that name a file without reading what stands in it."""
_FEEDBACK = re.compile(
    r"(?:[\w./~-]*/)?feedback/[^\s'\"`;|&<>()]*|submit_\d+[^\s'\"`;|&<>()]*|(?:\*|ep_\d+)/[^\s'\";|&<>()]*"
)


def feedback_read(call: Call, command: str = "") -> tuple[str, ...]:
    """Paths below ``feedback/`` (relative to it; wildcards and folders as they were written) that a call reads."""
    if call.act in (Act.READ, Act.SEARCH):
        return tuple(path for path in map(_below, call.paths) if path)
    if call.act is not Act.RUN or not command:
        return ()
    found: list[str] = []
    here = ""
    for part in re.split(r"&&|\|\||[;\n|]", within(command)):
        words = _words(part)
        if not words:
            continue
        if words[0] == "cd" and len(words) > 1:
            below = _below(words[1])
            here = below.removeprefix(".") + "/" if below else ("" if words[1].startswith(("/", "~", "..")) else here)
            continue
        if words[0].rsplit("/", 1)[-1] in _LOOKS_ONLY:
            continue
        taken = part.split(">", 1)[0]  # what is written to is not read
        for match in _FEEDBACK.findall(taken):
            below = _below(match)
            if below:
                found.append(below)
        if here:
            names = (w for w in words[1:] if re.fullmatch(r"[\w*?][\w*?./\[\]-]*\.\w+", w))
            found += [(here + name).lstrip("/") for name in names]
    return tuple(dict.fromkeys(found))


def _below(path: str) -> str:
    """A path relative to ``feedback/``; "" for one that does not lie in it. The folder itself is ``.``."""
    at = re.search(r"(?:^|/)feedback(?:/|\Z)", path)
    if at is not None:
        return path[at.end() :].strip("/") or "."
    return path.strip("/") if re.match(r"submit_\d+(/|\Z)", path) else ""


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:
        return part.split()
