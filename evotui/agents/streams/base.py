"""What all readers of foreign agents' streams share: one line in, facts out, and nothing that a line holds raises.

A stream has no clock and no process. It is fed what a program printed, line by line, and tells the facts that can be
read from it; what nobody here understands becomes :class:`~evotui.record.events.AgentRaw`. Files that the agent
edited are told by whoever watches the disk, never from here: a stream only says what the agent wanted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from evotui.agents.streams.edits import shown_edit
from evotui.record.events import (
    AgentDelta,
    AgentMessage,
    AgentRaw,
    AgentSession,
    AgentThought,
    Event,
    ToolCalled,
    ToolReturned,
    UsageReported,
)

RAW_LIMIT = 4_000
"""Characters kept of something unknown; the whole is in the raw stream."""
RESULT_LIMIT = 20_000
"""Characters kept of a tool's result: its first and its last half."""
TEXT_LIMIT = 400_000
_DEPTH = 12
_MOST_ITEMS = 2_000
_WIDEST = 2**63
_STATUS = re.compile(r"\b(?:status|code|error|HTTP)[:= ]*(?:code[:= ]*)?([45]\d\d)\b", re.IGNORECASE)
_KEY_REFUSED = re.compile(
    r"(?:invalid|incorrect|missing|expired) (?:api|auth)\W?(?:key|token)|unauthori[sz]ed|api key not valid"
    r"|not logged in|authentication (?:failed|required|error)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"\b(?:no such|unknown) model\b|\bmodel\b.{0,80}\b(?:not found|does not exist)", re.IGNORECASE)
_CANNOT_BE_READ = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)


def clean(value: Any, most: int = TEXT_LIMIT) -> str:
    """``value`` as text that can be stored: no half surrogates, of more than ``most`` characters head and tail."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(value: Any, depth: int = 0) -> Any:
    """A decoded JSON value that the log can hold: finite numbers of 64 bits, text without half surrogates, no abyss."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_WIDEST <= value < _WIDEST else clean(hex(value), 100)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= _DEPTH:
        return "…"
    if isinstance(value, dict):
        return {clean(str(key), 200): plain(item, depth + 1) for key, item in list(value.items())[:_MOST_ITEMS]}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value[:_MOST_ITEMS]]
    return clean(str(value), 200)


def record(value: Any, *path: str) -> dict[str, Any]:
    """The object at ``path`` below ``value``; an empty one where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any, most: int = 500) -> str:
    """``value`` if it is text (cut at ``most`` characters), else ``""``."""
    return clean(value, most) if isinstance(value, str) else ""


def count(value: Any) -> int:
    """``value`` as a number of tokens: 0 for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(0, min(int(value), _WIDEST - 1))


def money(value: Any) -> float | None:
    """``value`` as an amount of US dollars, None for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def status_of(text: str) -> int | None:
    """The HTTP status that an error message speaks of, if any."""
    found = _STATUS.search(text[:2_000])
    if found is not None:
        return int(found.group(1))
    if _KEY_REFUSED.search(text[:2_000]):
        return 401
    return 404 if _NO_MODEL.search(text[:2_000]) else None


class Stream:
    """One program's stream; a subclass for each dialect overrides :meth:`_take`.

    ``root`` is the folder that the program works in: paths below it are told relative to it. The properties say what
    an adapter needs; those of a turn are reset by :meth:`begin`.
    """

    dialect = ""

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")
        self.session = ""
        self.model = ""
        self.version = ""
        self.finished = False
        """Whether the program said that its turn is over."""
        self.is_error = False
        self.reason = ""
        """Why the turn ended, in the program's own words; ``""`` for an ordinary end."""
        self.status: int | None = None
        """The HTTP status that the turn failed with, where one was told."""
        self.denials: list[str] = []
        """Tools whose use was refused in this turn."""
        self.calls = 0
        """Model calls that were reported so far."""
        self.cost: float | None = None
        """US dollars so far, None as long as no price was told."""
        self._said: dict[str, list[str]] = {}
        self._open: dict[str, str] = {}
        self._denied: set[str] = set()
        self._told_session: tuple[str, str, str] = ("", "", "")

    @property
    def waits(self) -> bool:
        """Whether a tool is at work that the program waits for."""
        return bool(self._open)

    # ── for the adapter ──────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """A new turn of the same conversation begins."""
        self.finished = self.is_error = False
        self.reason = ""
        self.status = None
        self.denials = []

    def feed(self, line: str | bytes) -> list[Event]:
        """The facts in one line. Never raises for what the line holds."""
        if isinstance(line, bytes | bytearray):
            line = bytes(line).decode("utf-8", "replace")
        text = line.strip()
        if not text:
            return []
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._unreadable(text)
        if not isinstance(value, dict):
            return [self.raw("not an object", text)]
        return self.take(value, text)

    def take(self, value: dict[str, Any], text: str = "") -> list[Event]:
        """The facts in one decoded line. Never raises for what it holds."""
        try:
            return self._take(value)
        except _CANNOT_BE_READ as error:
            return [self.raw(f"unreadable ({type(error).__name__})", text or clean(value))]

    def end(self) -> list[Event]:
        """The program is gone: what it was saying and what it was doing break off here."""
        facts = self.flush()
        for call in list(self._open):
            facts += self.returned(call, False, "no result: the stream ended")
        return facts

    def deny(self, call: str) -> None:
        """The adapter refused this call: its result is told as a refusal."""
        if call not in self._denied:
            self._denied.add(call)
            self.denials.append(self._open.get(call, call))

    # ── for the dialects ─────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, value: dict[str, Any]) -> list[Event]:
        raise NotImplementedError

    def _unreadable(self, text: str) -> list[Event]:
        return [self.raw("not JSON", text)]

    def raw(self, what: str, text: Any) -> AgentRaw:
        """Something unknown, kept as it came."""
        return AgentRaw(clean(what, 100), clean(text, RAW_LIMIT))

    def started(self, session: Any = "", model: Any = "", version: Any = "") -> list[Event]:
        """The conversation's name, model and program version, told where something about them is new."""
        self.session = word(session) or self.session
        self.model = word(model) or self.model
        self.version = word(version) or self.version
        now = (self.session, self.model, self.version)
        if not self.session or now == self._told_session:
            return []
        self._told_session = now
        return [AgentSession(*now)]

    def delta(self, channel: str, piece: Any) -> list[Event]:
        """A piece of a message, a thought or a call's arguments."""
        text = word(piece, TEXT_LIMIT)
        if not text:
            return []
        self._said.setdefault(channel, []).append(text)
        return [AgentDelta(channel, text)]

    def whole(self, channel: str, text: Any) -> list[Event]:
        """A message (``text``) or a thought (``thought``) in full, which ends what was streamed of it."""
        streamed = "".join(self._said.pop(channel, []))
        said = word(text, TEXT_LIMIT) or streamed
        if not said.strip():
            return []
        return [AgentThought(said) if channel == "thought" else AgentMessage(said)]

    def void(self) -> None:
        """What was streamed so far will be said again."""
        self._said.clear()

    def flush(self) -> list[Event]:
        """What was streamed and never said in full."""
        facts: list[Event] = []
        for channel in ("thought", "text"):
            if channel in self._said:
                facts += self.whole(channel, "")
        self._said.clear()
        return facts

    def called(self, call: Any, name: Any, arguments: Any) -> list[Event]:
        """A call of a tool, once for each ``call``."""
        key = word(call, 200) or f"call {len(self._open)}"
        if key in self._open:
            return []
        self._said.pop("tool", None)
        self._open[key] = word(name, 100) or "tool"
        shown = arguments if isinstance(arguments, dict) else {} if arguments is None else {"value": arguments}
        return [ToolCalled(key, self._open[key], shown_edit(plain(shown), self.root))]

    def returned(self, call: Any, ok: bool, text: Any = "", denied: bool = False) -> list[Event]:
        """A call's result, once for each call that was told."""
        key = word(call, 200)
        if not key or key not in self._open:
            return []
        if denied:
            self.deny(key)
        del self._open[key]
        refused = key in self._denied
        self._denied.discard(key)
        shown = clean(text, RESULT_LIMIT)
        if self.root:
            shown = shown.replace(self.root + "/", "")
        return [ToolReturned(key, ok and not refused, shown, refused)]

    def used(
        self, fresh: Any, cached: Any, written: Any, output: Any, cost: float | None = None, model: str = ""
    ) -> list[Event]:
        """The tokens of one model call."""
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost
        self.calls += 1
        return [
            UsageReported(
                count(fresh), count(cached), count(written), count(output), cost, model=word(model, 200) or self.model
            )
        ]


def content_text(content: Any) -> str:
    """Text of a tool's result that is text, or a list of content blocks."""
    if isinstance(content, str):
        return content
    parts = []
    for block in items(content):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            text = block.get("text")
            if not isinstance(text, str):
                inner = block.get("content")
                text = inner.get("text") if isinstance(inner, dict) else None
            parts.append(text if isinstance(text, str) else f"[{word(block.get('type'), 40) or 'something'}]")
    return "\n".join(parts)


def arguments_of(value: Any) -> Mapping[str, Any]:
    """Arguments of a call that come as an object or as JSON text; unreadable text is kept as it is."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str) or not value.strip():
        return {}
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return {"unreadable": value}
    return decoded if isinstance(decoded, dict) else {"value": decoded}
