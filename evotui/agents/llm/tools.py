"""What the model can do: read, write below ``system/``, analyse, submit, note. Each call ends in one result text."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.agents.base import Door, DoorClosed, Rejected, Workspace, WorkspaceError
from evotui.agents.llm.python_tool import ends, run_python
from evotui.agents.llm.scores import Scores
from evotui.protocol.syntax import Unparsable, parse
from evotui.protocol.words import counted

_FILE_BYTES = 1 << 20
"""The largest file that is written or searched in."""
_READ_BYTES = 4 << 20
_LISTED = 300


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to. ``denied``: not carried out, because it is not allowed; ``format``: the call itself was
    wrong; ``closed``: the run takes nothing more."""

    ok: bool
    text: str
    denied: bool = False
    format: bool = False
    closed: bool = False


class WrongCall(ValueError):
    """A call that cannot be carried out as it was made; the message tells the model how to make it."""


def _tool(
    name: str, about: str, required: Mapping[str, str], optional: Mapping[str, tuple[str, str]] = {}
) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in required.items()}
    properties |= {key: {"type": kind, "description": text} for key, (kind, text) in optional.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


_PATH = "Path from the workspace, such as system/policy.py"
TOOLS: list[dict[str, Any]] = [
    _tool(
        "read_file",
        "Read a text file below system/ or feedback/. Long files are cut in the middle; ask for lines then.",
        {"path": _PATH},
        {"first_line": ("integer", "First line, from 1"), "last_line": ("integer", "Last line")},
    ),
    _tool(
        "list_files",
        "List the files below a folder of the workspace.",
        {},
        {"path": ("string", "Folder; default: all")},
    ),
    _tool(
        "write_file",
        "Write a whole file below system/. Python must parse, or nothing is written.",
        {"path": _PATH, "content": "The complete new content"},
    ),
    _tool(
        "str_replace",
        "Replace a piece of a file below system/. The old text must occur exactly once. Larger changes: write_file.",
        {"path": _PATH, "old": "Exact text to replace, spaces and all", "new": "Text to put there"},
    ),
    _tool(
        "run_python",
        "Run Python code to analyse feedback, in a sandbox: numpy, no network, no simulators, nothing can be written. "
        "It starts in the workspace (feedback/…, system/…), and modules of system/ can be imported. Print what you "
        "want to see. 120 seconds.",
        {"code": "The program"},
    ),
    _tool(
        "submit",
        "Roll the present system/ out on train cases and get its returns. Each case costs one episode of the budget.",
        {"cases": 'Case numbers, such as "0-7" or "0,3,9"'},
        {"why": ("string", "What is different about this version, in a few words, for the table of scores")},
    ),
    _tool("note", "Keep something in mind: notes outlive the conversation.", {"text": "What to remember"}),
]
# Servers that build a grammar from the schema (llama.cpp) let even a small model write nothing else.
next(t for t in TOOLS if t["function"]["name"] == "submit")["function"]["parameters"]["properties"]["cases"] |= {
    "pattern": "^[0-9]+([,-][0-9]+)*$"
}
NAMES = frozenset(tool["function"]["name"] for tool in TOOLS)


class Tools:
    """The tools over one workspace and door. ``notes`` and ``scores`` are what is to outlive the conversation."""

    def __init__(self, workspace: Workspace, door: Door, scores: Scores, notes: list[str], keep: Path) -> None:
        self._workspace = workspace
        self._door = door
        self._scores = scores
        self._notes = notes
        self._keep = keep
        self.submitted = False

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Result:
        """Carry a call out. Only cancellation comes out of it."""
        if name not in NAMES:
            return Result(False, f"There is no tool {name!r}; there are {', '.join(sorted(NAMES))}.", format=True)
        try:
            result: Result = await getattr(self, f"_{name}")(arguments)
        except WrongCall as wrong:
            return Result(False, str(wrong), format=True)
        except WorkspaceError as outside:
            return Result(False, f"Denied: {outside}. You may write below system/ only.", denied=True)
        except (OSError, ValueError) as error:  # ValueError: half characters, null bytes in a path
            return Result(False, f"Failed: {getattr(error, 'strerror', None) or error}")
        return result

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _inside(self, path: str) -> Path:
        """A path of the workspace, to be read. Raises WorkspaceError."""
        root = self._workspace.root.resolve()
        target = (root / path).resolve()
        if target != root and not target.is_relative_to(root):
            raise WorkspaceError(f"{path!r} is outside of the workspace")
        return target

    def _below_system(self, path: str) -> str:
        """``path`` as one below ``system/``. Raises WorkspaceError."""
        for root in (str(self._workspace.root), str(self._workspace.root.resolve())):
            path = path.removeprefix(root.rstrip("/") + "/")
        path = path.removeprefix("./")
        if not path.startswith("system/") or path == "system/":
            raise WorkspaceError(f"{path!r} is not below system/")
        name = path.removeprefix("system/")
        self._workspace.resolve(name)
        return name

    async def _read_file(self, arguments: Mapping[str, Any]) -> Result:
        path = self._inside(_text(arguments, "path"))
        first, last = _line(arguments, "first_line"), _line(arguments, "last_line")

        def work() -> Result:
            if path.is_dir():
                return Result(False, "That is a folder; list_files shows what is in it.")
            if not path.is_file():
                return Result(False, f"There is no file {arguments['path']}.")
            with path.open("rb") as file:
                data = file.read(_READ_BYTES)
            if b"\0" in data[:8192]:
                return Result(False, f"A binary file of {path.stat().st_size:,} bytes; use run_python to look into it.")
            text = data.decode("utf-8", "replace")
            if first is not None or last is not None:
                lines = text.splitlines(keepends=True)
                text = "".join(lines[(first or 1) - 1 : last])
                return Result(True, ends(text) or f"No such lines: the file has {len(lines)}.")
            return Result(True, ends(text) if text else "(an empty file)")

        return await asyncio.to_thread(work)

    async def _list_files(self, arguments: Mapping[str, Any]) -> Result:
        folder = self._inside(_text(arguments, "path", "."))

        def work() -> Result:
            if not folder.is_dir():
                return Result(False, "There is no such folder.")
            root = self._workspace.root.resolve()
            found = sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
            lines = [f"{p.relative_to(root)}  {p.stat().st_size:,}" for p in found[:_LISTED]]
            if len(found) > _LISTED:
                lines.append(f"… and {len(found) - _LISTED} more; name a folder")
            return Result(True, ends("\n".join(lines)) or "(nothing)")

        return await asyncio.to_thread(work)

    async def _write_file(self, arguments: Mapping[str, Any]) -> Result:
        path, content = self._below_system(_text(arguments, "path")), _text(arguments, "content", None)
        return await self._write(path, content)

    async def _str_replace(self, arguments: Mapping[str, Any]) -> Result:
        path = self._below_system(_text(arguments, "path"))
        old, new = _text(arguments, "old", None), _text(arguments, "new", None)
        if not old:
            raise WrongCall("old is empty: give the text to replace, or write the whole file with write_file.")
        try:
            present = await self._workspace.read(path)
        except FileNotFoundError:
            return Result(False, f"There is no file system/{path}.")
        count = present.count(old)
        if count == 0:
            near = await asyncio.to_thread(nearest, present, old)
            return Result(False, f"The old text does not occur in system/{path}. The nearest lines are:\n{near}")
        if count > 1:
            return Result(False, f"The old text occurs {count} times; give more lines around it, so that it is unique.")
        return await self._write(path, present.replace(old, new))

    async def _write(self, path: str, content: str) -> Result:
        if len(content.encode("utf-8", "replace")) > _FILE_BYTES:
            return Result(False, f"Not written: a file may have {_FILE_BYTES:,} bytes.")
        if path.endswith(".py"):
            try:
                await asyncio.to_thread(parse, content)
            except Unparsable as wrong:
                lines = content.splitlines()
                shown = f": {lines[wrong.line - 1].strip()[:200]}" if 0 < wrong.line <= len(lines) else ""
                return Result(False, f"Not written: {wrong.message} in line {wrong.line}{shown}")
        await self._workspace.write(path, content)
        return Result(True, f"Wrote system/{path}, {counted(len(content.splitlines()), 'line')}.")

    # ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_python(self, arguments: Mapping[str, Any]) -> Result:
        ran = await run_python(_text(arguments, "code", None), self._workspace.root)
        if ran.code == 0:
            return Result(True, ran.output or "(no output: print what you want to see)")
        how = "" if ran.code is None else f"\n(exit code {ran.code})"
        return Result(False, (ran.output or "(no output)") + how)

    async def _submit(self, arguments: Mapping[str, Any]) -> Result:
        cases = arguments.get("cases", arguments.get("case_ids"))
        if isinstance(cases, list):
            cases = [int(c) if isinstance(c, str) and c.strip().isdecimal() else c for c in cases]
        if isinstance(cases, int) and not isinstance(cases, bool):
            cases = [cases]
        if not isinstance(cases, (str, list)) or not cases:
            raise WrongCall('submit needs cases, such as {"cases": "0-7"}.')
        try:
            answer = await self._door.submit(cases)
        except Rejected as refused:
            return Result(False, f"Refused, nothing was charged: {refused.message}")
        except DoorClosed as closed:
            return Result(False, str(closed) or "the run takes no more submissions", closed=True)
        self.submitted = True
        row = self._scores.add(answer, str(arguments.get("why") or ""))
        return Result(row.verdict == "ok", _told(answer, self._scores))

    async def _note(self, arguments: Mapping[str, Any]) -> Result:
        text = _text(arguments, "text")
        self._notes.append(text[:2000])

        def work() -> None:
            with self._keep.open("a", encoding="utf-8") as file:
                file.write(text[:2000].rstrip() + "\n\n")

        await asyncio.to_thread(work)
        return Result(True, "Noted.")


def _told(answer: Mapping[str, Any], scores: Scores) -> str:
    """What the model is told of a submission: its figures by case, where to read on, and the table of all so far."""
    summary = answer.get("summary") or {}
    name = answer.get("submit_id", "")
    lines = [f"{name}: {answer.get('status')}"]
    if summary.get("mean_return") is not None:
        lines[0] += f", mean return {summary['mean_return']:.6g}"
    cases, returns = summary.get("env_instances") or [], summary.get("returns") or []
    lengths = summary.get("episode_lengths") or [None] * len(returns)
    rows = list(zip(cases, returns, lengths, strict=False))[:64]
    lines += [f"case {case}: return {value:.6g}, {counted(length, 'step')}" for case, value, length in rows]
    if answer.get("message"):
        lines.append(f"why: {str(answer['message'])[:500]}")
    if answer.get("left_out"):
        paths = json.dumps(answer["left_out"])[:500]
        lines.append(f"left out of the snapshot (links, special files, names of the host's): {paths}")
    for key in ("errors", "timeouts"):
        if summary.get(key):
            lines.append(f"{key}: {json.dumps(summary[key])[:500]}")
    if any(summary.get("invalid_actions") or ()):
        lines.append(f"invalid actions by episode: {json.dumps(summary['invalid_actions'])[:500]}")
    if summary.get("reward_components_mean"):
        lines.append(f"reward components (means): {json.dumps(summary['reward_components_mean'])[:500]}")
    lines.append(f"Feedback: feedback/{name}/ (summary.json, episodes/ep_XXX/trajectory.jsonl, error.txt)")
    return "\n".join(lines) + "\n\n" + scores.table()


def _text(arguments: Mapping[str, Any], name: str, default: str | None = "") -> str:
    """A text argument. A default of "" means that it must be given and not be empty, None that it may be empty."""
    value = arguments.get(name)
    if value is None and default:
        return default
    if isinstance(value, (dict, list)) and name in ("content", "code", "new", "old"):
        value = json.dumps(value, indent=2)  # a JSON file's content, given as what it means
    if not isinstance(value, str):
        raise WrongCall(f"{name} is missing, or is no text.")
    if not value and default is not None:
        raise WrongCall(f"{name} is empty.")
    return value


def _line(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise WrongCall(f"{name} is no line number.") from None
    return max(1, number)


def nearest(text: str, wanted: str, context: int = 2) -> str:
    """The lines of ``text`` that are most like ``wanted``, numbered, with some around them."""
    lines, asked = text.splitlines(), wanted.strip("\n").splitlines()
    if not lines or not asked:
        return "(the file is empty)"
    keys = [line.strip() for line in asked]
    best, at = -1.0, 0
    for start in range(max(1, len(lines) - len(asked) + 1)):
        score = 0.0
        for line, key in zip(lines[start : start + len(asked)], keys, strict=False):
            stripped = line.strip()
            matcher = difflib.SequenceMatcher(None, stripped, key, autojunk=False)
            score += 1.0 if stripped == key else matcher.ratio() if matcher.real_quick_ratio() > 0.4 else 0.0
        if score > best:
            best, at = score, start
    first, last = max(0, at - context), min(len(lines), at + len(asked) + context)
    return "\n".join(f"{number + 1:>5}  {lines[number]}" for number in range(first, min(last, first + 60)))
