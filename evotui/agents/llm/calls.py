"""Tool calls out of what a model streams or writes: pieces put together, arguments read, calls found in plain text."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_DEPTH, _LARGEST = 30, 2**63 - 1


@dataclass(slots=True)
class Call:
    """A call as the model made it; ``text`` is its arguments, JSON where the model got it right. ``extra`` is what the
    provider wants to have back with it."""

    id: str
    name: str
    text: str
    extra: dict[str, Any] | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments. Raises ValueError, with a sentence for the model, where they are no JSON object."""
        return read_arguments(self.text)


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as an object; none at all is the empty one. Raises ValueError."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
        if isinstance(value, str):  # encoded twice
            value = json.loads(value)
    except ValueError as error:
        raise ValueError(f"the arguments are not valid JSON: {error}") from None
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"the arguments must be a JSON object, not {type(value).__name__}")
    tamed: dict[str, Any] = _tamed(value, _DEPTH)
    return tamed


def _tamed(value: Any, depth: int) -> Any:
    """``value`` as it can be recorded and read again: no half characters, no numbers that JSON does not have."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        return str(value)
    if isinstance(value, (dict, list)) and depth == 0:
        return "…"
    if isinstance(value, dict):
        return {_tamed(key, depth): _tamed(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tamed(inner, depth - 1) for inner in value]
    return value


def is_whole(text: str) -> bool:
    """Whether ``text`` is one complete JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class Accumulator:
    """Puts streamed pieces of tool calls together.

    A piece begins a new call where its index is new, where it brings another id than the call at that index has, or,
    without an id, where it brings a name after that call's arguments are complete. Some servers send no index: their
    pieces go to the latest call. Arguments may come as an object instead of text.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._at: dict[int, Call] = {}

    def add(
        self,
        index: int | None,
        id: str | None = None,
        name: str | None = None,
        arguments: Any = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        text = "" if arguments is None else arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = self._at.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if call is None or self._another(call, id, name):
            call = Call(id or "", "", "")
            self._calls.append(call)
            if index is not None:
                self._at[index] = call
        call.id = call.id or id or ""
        call.name = call.name or name or ""
        call.text += text
        if extra:
            call.extra = (call.extra or {}) | extra

    @staticmethod
    def _another(call: Call, id: str | None, name: str | None) -> bool:
        if id and call.id:
            return id != call.id
        return bool(name and call.name and is_whole(call.text))

    def calls(self) -> list[Call]:
        """All calls, each with an id of its own (ours, where the server gave none or gave one twice)."""
        seen: set[str] = set()
        for call in self._calls:
            if not call.id or call.id in seen:
                call.id = f"call_{secrets.token_hex(6)}"
            seen.add(call.id)
        return self._calls


# ── calls that a model writes in its text ────────────────────────────────────────────────────────────────────────

_TAGGED = re.compile(r"<(tool_call|function_call|tools?)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?\s*```", re.DOTALL)
_ARGUMENTS = ("arguments", "parameters", "args", "input")


def calls_in_text(text: str, tools: Collection[str]) -> tuple[list[Call], bool]:
    """Calls of ``tools`` that are written out in ``text``, and whether something looks like a call that cannot be read.

    Understood: JSON with a name and arguments, alone, in a code fence, or between ``<tool_call>`` tags.
    """
    stripped = text.strip()
    blocks = [m.group(2) for m in _TAGGED.finditer(text)]
    tagged = bool(blocks)
    if not blocks:
        blocks = [m.group(1) for m in _FENCED.finditer(text)]
    if not blocks and stripped[:1] in ("{", "["):
        blocks = [stripped]
    found: list[Call] = []
    for block in blocks:
        for value in _values(block):
            call = _call(value, tools)
            if call is not None:
                found.append(call)
    return found, tagged and not found


def _values(block: str) -> list[Any]:
    """The JSON values of a block: one, a list of them, or several in a row."""
    decoder, at, values = json.JSONDecoder(), 0, []
    block = block.strip()
    while at < len(block):
        try:
            value, at = decoder.raw_decode(block, at)
        except (ValueError, RecursionError):
            break
        values.extend(value if isinstance(value, list) else [value])
        while at < len(block) and block[at] in " \t\r\n,;":
            at += 1
    return values


def _call(value: Any, tools: Collection[str]) -> Call | None:
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    if isinstance(inner, Mapping):
        value = inner
    name = (
        value.get("name") or value.get("tool") or value.get("tool_name") or (inner if isinstance(inner, str) else None)
    )
    if not isinstance(name, str) or name not in tools:
        return None
    arguments: Any = next((value[key] for key in _ARGUMENTS if key in value), {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Call(f"call_{secrets.token_hex(6)}", name, text)


# ── thoughts that a model writes in its text ─────────────────────────────────────────────────────────────────────

_OPENING, _CLOSING = ("<think>", "<thinking>"), ("</think>", "</thinking>")


class Splitter:
    """Parts a stream of text into what is said and what is thought between ``<think>`` tags, however it is cut."""

    def __init__(self) -> None:
        self._kept = ""
        self._thinking = False
        self._begun = False

    def feed(self, text: str) -> list[tuple[str, str]]:
        """Pieces as (``text`` or ``thought``, piece). Something that may become a tag is kept for the next time."""
        self._kept += text
        return self._drain(last=False)

    def end(self) -> list[tuple[str, str]]:
        """What is left, tags or not."""
        return self._drain(last=True)

    def _drain(self, last: bool) -> list[tuple[str, str]]:
        out: list[tuple[str, str]] = []
        while self._kept:
            tags = _CLOSING if self._thinking else _OPENING
            at, tag = min(((self._kept.find(t), t) for t in tags if t in self._kept), default=(-1, ""))
            # A thought is opened at the very beginning only: later on, the tag is something that the model talks about.
            if at >= 0 and (self._thinking or not (self._begun or self._kept[:at].strip())):
                if self._thinking:
                    self._say(out, self._kept[:at])
                self._kept = self._kept[at + len(tag) :]
                self._thinking = not self._thinking
                if not self._thinking:
                    self._begun = True
                    self._kept = self._kept.lstrip("\n")
                continue
            held = 0 if last else self._held(tags)
            said, self._kept = self._kept[: len(self._kept) - held], self._kept[len(self._kept) - held :]
            self._say(out, said)
            break
        return out

    def _held(self, tags: tuple[str, ...]) -> int:
        """How many characters at the end may be the beginning of a tag."""
        if not self._thinking:
            if self._begun:
                return 0
            if not self._kept.strip():
                return len(self._kept)
            if not any(t.startswith(self._kept.lstrip()) for t in tags):
                return 0
            return len(self._kept)
        longest = max(len(t) for t in tags) - 1
        sizes = range(min(longest, len(self._kept)), 0, -1)
        return next((n for n in sizes if any(t.startswith(self._kept[-n:]) for t in tags)), 0)

    def _say(self, out: list[tuple[str, str]], piece: str) -> None:
        if not piece:
            return
        if not self._thinking:
            self._begun = True
        out.append(("thought" if self._thinking else "text", piece))


def without_opening(text: str) -> tuple[str, str]:
    """(thought, text) of a whole answer whose template opened the thought for the model: only its end is seen."""
    for tag in _CLOSING:
        if tag in text:
            thought, _, said = text.partition(tag)
            return thought.strip(), said.lstrip()
    return "", text
