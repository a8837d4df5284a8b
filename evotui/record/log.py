"""``events.jsonl``: append facts, read them back, follow a log that another process writes.

One JSON object a line: ``{"seq", "time", "kind", …fields}``. A line counts only when it ends in a newline; a torn last
line (the writer was killed inside a write) is ignored by readers and cut off by the next writer.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import aiofiles
import msgspec

from evotui.record.events import (
    KINDS,
    SCHEMA_VERSION,
    AgentDelta,
    AgentEnded,
    AgentMessage,
    AgentRetried,
    AgentThought,
    Event,
    Record,
    RunOpened,
    ToolCalled,
    Unknown,
)
from evotui.record.regular import open_regular


def _foreign(value: Any) -> Any:
    """What JSON has no form for: a numpy number as a number, anything else as a short text."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else repr(value)[:200]


_encoder = msgspec.json.Encoder(enc_hook=_foreign)
_decoder = msgspec.json.Decoder()
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in KINDS.values()}
_TAGS = {"seq", "time", "kind"}
assert not any(_TAGS & set(_FIELDS[c]) for c in _FIELDS if c.__name__ != "Unknown"), "a field would hide a tag"


class _Delta(msgspec.Struct, tag_field="kind", tag="AgentDelta"):
    """:class:`AgentDelta` as a line of the log."""

    seq: int
    time: float
    channel: str
    text: str


LONGEST = 64 << 20
"""Bytes of a line, far more than any that we write: a whole system of files has as many. What has no newline for longer
is no log."""

_DELTA = b'"kind":"AgentDelta"'
_deltas = msgspec.json.Decoder(_Delta)


_PIECE = re.compile(rb'\{"seq":(\d+),"time":[\d.]+,"kind":"AgentDelta","channel":"(\w+)","text":".*"\}\Z')
"""A piece of speech as we write it, told apart without decoding it."""


def _whole(speech: dict[bytes, list[bytes]], event: Event) -> None:
    """Drop the pieces that an event repeats, or makes void."""
    if isinstance(event, AgentMessage):
        speech.pop(b"text", None)
    elif isinstance(event, AgentThought):
        speech.pop(b"thought", None)
    elif isinstance(event, ToolCalled):
        speech.pop(b"tool", None)
    elif isinstance(event, (AgentRetried, AgentEnded)):
        speech.clear()


class LogError(Exception):
    """The log cannot be read as a run's log; the message says where and what to do."""


class Unreadable(LogError):
    """The log cannot be opened or read at all: a folder lies in its place, or it may not be read."""

    @classmethod
    def why(cls, path: Path, error: OSError) -> Unreadable:
        """The one wording of it, whoever meets it."""
        return cls(f"{path.name}: cannot be read ({error.strerror or error})")


class NewerSchema(LogError):
    """The log was written by a newer evotui."""


def encode(record: Record) -> bytes:
    """One line, newline included. Numbers are finite: the kernel sees to it (JSON has no other)."""
    event = record.event
    body: dict[str, Any] = {"seq": record.seq, "time": record.time}
    if isinstance(event, Unknown):
        body["kind"] = event.kind
        body.update(event.raw)
    else:
        body["kind"] = type(event).__name__
        for name in _FIELDS[type(event)]:
            body[name] = getattr(event, name)
    try:
        return _encoder.encode(body) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(_printable(body)) + b"\n"


def _printable(value: Any) -> Any:
    """``value`` with lone surrogates (undecodable bytes in a policy's or agent's text) replaced: UTF-8 has none."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _printable(getattr(value, f.name)) for f in fields(value)}
    return value


def decode(line: bytes, where: str = "events.jsonl") -> Record:
    """The record of one line. Raises LogError (where, why) for anything that is not one."""
    if _DELTA in line[:96]:  # most lines of a language model's log, in a third less time
        try:
            delta = _deltas.decode(line)
        except msgspec.DecodeError:
            pass  # said below, as of any other line
        else:
            return Record(delta.seq, delta.time, AgentDelta(delta.channel, delta.text))
    try:
        body = _decoder.decode(line)
        seq, moment, kind = body.pop("seq"), body.pop("time"), body.pop("kind")
        if not isinstance(seq, int) or not isinstance(moment, (int, float)) or not isinstance(kind, str):
            raise TypeError("seq, time and kind have the wrong type")
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise LogError(f"{where}: not an event ({error}); the record is damaged from there on") from None
    cls = KINDS.get(kind)
    if cls is RunOpened and isinstance(body.get("schema_version"), int) and body["schema_version"] > SCHEMA_VERSION:
        raise NewerSchema(
            f"{where}: written with log schema {body['schema_version']}, this evotui reads up to {SCHEMA_VERSION}; "
            "upgrade evotui to open it"
        )
    event: Event
    if cls is None:
        event = Unknown(kind, body)
    else:
        try:
            event = msgspec.convert(body, cls)
        except msgspec.ValidationError as error:
            sentence = f"a {kind} with a wrong field ({error}); the record is damaged from there on"
            raise LogError(f"{where}: {sentence}") from None
    return Record(seq, float(moment), event)


class Reader:
    """Reads a log from its start and goes on where it stopped: ``poll`` yields what is complete and new.

    Holds the file open and remembers its place, so following costs one read. Blocking: call it in a thread from an
    event loop. Raises LogError at a damaged line, with its number.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        """Whether bytes followed the last complete line at the last poll: a line cut off, or being written."""
        self.offset = 0
        """Bytes of the complete lines read so far."""
        self._file: BinaryIO | None = None
        self._line = 0

    def poll(self, chunk: int = 1 << 20, skim: bool = False) -> Iterator[Record]:
        """Records that are new. ``skim``: pieces of speech that became a whole meanwhile are counted and passed over,
        those that did not come last, out of their order; for ``fold_all(…, skimmed=True)``."""
        if self._file is None:
            try:
                self._file = open_regular(self.path)
            except FileNotFoundError:
                return
            except OSError as error:
                raise Unreadable.why(self.path, error) from None
        # From the end of the last complete line: what was torn may have been cut off and written over since.
        self._file.seek(self.offset)
        speech: dict[bytes, list[bytes]] = {}
        begun: list[bytes] = []
        size = 0
        while data := self._file.read(chunk):
            if b"\n" not in data:
                begun.append(data)
                size += len(data)
                if size > LONGEST:
                    raise too_long(self.path, self._line + 1)
                continue
            *lines, rest = b"".join([*begun, data]).split(b"\n")
            begun, size = [rest] if rest else [], len(rest)
            for line in lines:
                self._line += 1
                self.offset += len(line) + 1
                if skim and (piece := _PIECE.match(line)) is not None:
                    seq, channel = piece.groups()
                    if int(seq) != self._line - 1:
                        self._follow(int(seq))
                    held = speech.get(channel)
                    if held is None:
                        held = speech[channel] = []
                    held.append(line)
                    continue
                record = decode(line, f"{self.path.name}, line {self._line}")
                self._follow(record.seq)
                if speech:
                    _whole(speech, record.event)
                yield record
        left = [decode(line, self.path.name) for held in speech.values() for line in held]
        yield from sorted(left, key=lambda record: record.seq)
        self.torn = bool(begun)

    def _follow(self, seq: int) -> None:
        """Check the number of the line that was just read."""
        if seq != self._line - 1:
            raise LogError(
                f"{self.path.name}, line {self._line}: event number {seq} where {self._line - 1} "
                "was expected; the record is damaged from there on"
            )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class TooLong(LogError):
    """No line ends for a long while. ``before`` are complete lines that come before that, where they are known."""

    before: bytes = b""


def too_long(path: Path, line: int) -> TooLong:
    """What is wrong where no line ends for more than :data:`LONGEST` bytes."""
    return TooLong(
        f"{path.name}, line {line}: longer than {LONGEST >> 20} MB, which no event is; "
        "the record is damaged from there on"
    )


def read_whole(path: Path) -> bytes:
    """The log's bytes. Raises OSError, and TooLong where no line ends for a long while (a hole of a gigabyte)."""
    parts: list[bytes] = []
    with open_regular(path) as file:
        while data := file.read(LONGEST):
            if len(data) == LONGEST and b"\n" not in data:
                before = b"".join(parts)
                error = too_long(path, before.count(b"\n") + 1)
                error.before = before[: before.rfind(b"\n") + 1]
                raise error
            parts.append(data)
    return b"".join(parts)


def probe(path: Path) -> None:
    """Raises Unreadable where a log that should be there cannot be opened."""
    try:
        open_regular(path).close()
    except OSError as error:
        raise Unreadable.why(path, error) from None


def read(path: Path) -> list[Record]:
    """All complete records of a log; a torn last line is ignored. Raises LogError, FileNotFoundError."""
    if not os.path.lexists(path):
        raise FileNotFoundError(path)
    probe(path)
    reader = Reader(path)
    try:
        return list(reader.poll())
    finally:
        reader.close()


def cut_torn_tail(path: Path) -> int:
    """Cut a torn last line off, so that the next append starts a line. Returns the number of bytes cut."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)
        return size - end


class Writer:
    """Appends facts. One writer a run; appends are serialised, and a fact is reported only after it is on disk.

    ``clock`` gives seconds since the epoch. ``on_record`` is called in the event loop for each record, in order,
    after its bytes were written. ``admit`` is called with all of them before a byte is written, and may raise for what
    cannot follow: this is where the state is folded, so that no log ever holds a fact that contradicts it.
    """

    def __init__(
        self,
        path: Path,
        on_record: Callable[[Record], None],
        next_seq: int = 0,
        clock: Callable[[], float] = time.time,
        admit: Callable[[Sequence[Record]], None] | None = None,
    ) -> None:
        self._path = path
        self._on_record = on_record
        self._admit = admit
        self._seq = next_seq
        self._clock = clock
        self._lock = asyncio.Lock()
        self._file: Any = None
        self._failed: OSError | None = None

    async def append(self, *events: Event, sync: bool = False) -> None:
        """Write the events in one write, then report them. ``sync`` also waits for the disk: it survives a power cut.

        Raises OSError where the disk refuses; nothing is reported then, and the writer takes no further fact.
        A caller that is cancelled meanwhile loses nothing: the append finishes first.
        """
        await asyncio.shield(self._append(events, sync))

    async def _append(self, events: Iterable[Event], sync: bool) -> None:
        async with self._lock:
            if self._failed is not None:
                raise self._failed
            now = round(self._clock(), 3)
            lines = [encode(Record(self._seq + i, now, event)) for i, event in enumerate(events)]
            # What is reported is what a reader will read: fold(read(log)) == state holds by construction, and a fact
            # that would not survive the log raises here, before a byte is written.
            records = [decode(line) for line in lines]
            if self._admit is not None:
                self._admit(records)
            try:
                if self._file is None:
                    self._file = await aiofiles.open(self._path, "ab", buffering=0)
                await self._write(b"".join(lines))
                if sync:
                    await asyncio.to_thread(os.fsync, self._file.fileno())
            except OSError as error:
                if error.filename is None:  # a write knows no name: whoever tells of it should
                    error.filename = self._path.name
                self._failed = error
                raise
            self._seq += len(records)
            for record in records:
                self._on_record(record)

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[await self._file.write(view) :]

    async def close(self) -> None:
        async with self._lock:
            if self._file is not None:
                await self._file.close()
                self._file = None
