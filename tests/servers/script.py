"""What the scripted model says: turns, tool calls, usage, and the ways in which an answer can go wrong."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

REFUSALS = {
    "400": 400, "401": 401, "403": 403, "404": 404, "422": 422, "429": 429, "quota": 429, "500": 500, "502": 502,
    "503": 503, "529": 529, "context": 400, "context_llamacpp": 400,
}  # fmt: skip
"""Answers that are no answer, by name, with their status. ``502`` comes as a page of HTML."""

BROKEN_STREAMS = ("hang", "stall", "cut", "nodone", "garbage", "mid_error")
"""hang: no headers · stall: silence in the middle · cut: the connection dies in the middle · nodone: a clean end
without the last events · garbage: a line that is no JSON · mid_error: the provider's error event in the middle."""

QUIRKS = (
    "empty", "malformed", "truncated", "no_ids", "same_index", "text_call", "object_arguments", "no_usage", "loop",
    "flood", "inline_thinking",
)  # fmt: skip
"""Answers that come whole, in a strange shape. loop: this turn is given for ever · flood: ``rate`` deltas a second for
``seconds`` · text_call: the calls are written in the text, in ``style`` · inline_thinking: ``<think>`` in the text."""

FAILURES = (*REFUSALS, *BROKEN_STREAMS, *QUIRKS)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. ``name`` may be a list: the first that the request offers. ``raw`` is sent instead of the arguments;
    ``input`` makes it a call of a free-form tool (OpenAI Responses)."""

    name: str | Sequence[str]
    arguments: dict[str, Any] = field(default_factory=dict)
    raw: str | None = None
    input: str | None = None

    def called(self, offered: Sequence[str]) -> str:
        names = [self.name] if isinstance(self.name, str) else list(self.name)
        return next((name for name in names if name in offered), names[0])

    @property
    def text(self) -> str:
        return self.raw if self.raw is not None else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens: ``input`` fresh, ``cached`` read from a cache, ``written`` to one, ``output`` (``reasoning`` in it)."""

    input: int = 100
    cached: int = 40
    written: int = 0
    output: int = 25
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. ``fail`` is one of :data:`FAILURES`; refusals and broken streams happen ``times`` times (None: each
    time), then the turn comes as it is. ``piece``: characters of a delta; ``delay``: seconds between two."""

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    fail: str = ""
    times: int | None = None
    retry_after: float | None = None
    message: str = ""
    piece: int = 12
    delay: float = 0.0
    rate: float = 200.0
    seconds: float = 60.0
    style: str = "fenced"

    def __post_init__(self) -> None:
        if self.fail and self.fail not in FAILURES:
            raise ValueError(f"no failure {self.fail!r}; there are {', '.join(FAILURES)}")


def turn_of(table: dict[str, Any] | Turn | str) -> Turn:
    """A turn from its JSON form: the fields of Turn, with calls and usage as tables; a string is a text."""
    if isinstance(table, Turn):
        return table
    if isinstance(table, str):
        return Turn(table)
    values = dict(table)
    values["calls"] = tuple(c if isinstance(c, Call) else Call(**c) for c in values.get("calls", ()))
    if isinstance(values.get("usage"), dict):
        values["usage"] = Usage(**values["usage"])
    return Turn(**values)


@dataclass(slots=True)
class Request:
    """A request as it came, and what all dialects have in common of it. ``gone``: the client left before the end."""

    dialect: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    tools: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    index: int = 0
    time: float = 0.0
    gone: float | None = None
    ended: float | None = None

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def text(self) -> str:
        """Everything that the model was sent, as JSON: for ``in``."""
        return json.dumps(self.body, ensure_ascii=False)


Answerer = Callable[[Request], "Turn | dict[str, Any] | str | Awaitable[Turn | dict[str, Any] | str]"]


class Script:
    """Turns in order; the last is given again when they are used up. ``aux`` answers requests that offer no tools
    (titles, summaries) without using a turn up; None: they take turns like all others."""

    def __init__(
        self, turns: Sequence[Any] | Answerer | dict[str, Any] = ("Done.",), aux: str | None = "A title"
    ) -> None:
        if isinstance(turns, dict):
            aux = turns.get("aux", aux)
            turns = turns["turns"]
        self.aux = aux
        self._answerer = turns if callable(turns) else None
        self._turns = [] if callable(turns) else [turn_of(t) for t in turns]
        self._at = self._failed = 0

    @classmethod
    def load(cls, path: Path) -> Script:
        """A list of turns, or ``{"turns": […], "aux": "…"}``, as JSON."""
        return cls(json.loads(path.read_text("utf-8")))

    async def answer(self, request: Request) -> Turn:
        request.index = self._at
        if not request.tools and self.aux is not None:
            return Turn(self.aux)
        if self._answerer is not None:
            self._at += 1
            said = self._answerer(request)
            return turn_of(await said if inspect.isawaitable(said) else said)  # type: ignore[arg-type]
        turn = self._turns[min(self._at, len(self._turns) - 1)]
        if self._at >= len(self._turns) and turn.times is not None:
            turn = replace(turn, fail="")  # it has failed as often as it was to
        if turn.fail in REFUSALS or turn.fail in BROKEN_STREAMS:
            self._failed += 1
            if turn.times is None or self._failed <= turn.times:
                return turn
            turn = replace(turn, fail="")
        self._failed = 0
        if turn.fail != "loop":
            self._at += 1
        return turn
