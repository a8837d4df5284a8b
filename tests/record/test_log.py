"""The log: every kind comes back as it went, damage is named with its line, a growing file is followed."""

from __future__ import annotations

import asyncio
import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evotui.record import events as e
from evotui.record.fold import fold, fold_all
from evotui.record.log import LogError, NewerSchema, Reader, Writer, cut_torn_tail, decode, encode, read
from evotui.record.state import RunState
from tests.golden_run import write

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**53), 2**53)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for one annotated field."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return PLAIN
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(values, args))
    if origin is tuple:
        return st.lists(values(args[0]), max_size=4).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, values(args[1]), max_size=3)
    if hint is type(None):
        return st.none()
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if dataclasses.is_dataclass(hint):
        return facts(hint)
    return {bool: st.booleans(), int: WHOLE, float: FINITE, str: TEXT}[hint]


def facts(cls: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{f.name: values(hints[f.name]) for f in dataclasses.fields(cls)})


@pytest.mark.parametrize("kind", e.KINDS)
@settings(derandomize=True, max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_kind_comes_back_as_it_went(kind: str, data: st.DataObject) -> None:
    event = data.draw(facts(e.KINDS[kind]))
    if isinstance(event, e.RunOpened):
        event = dataclasses.replace(event, schema_version=e.SCHEMA_VERSION)
    record = e.Record(7, 12.5, event)
    line = encode(record)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == record


def test_the_kinds_are_the_facts_and_no_more() -> None:
    assert {"Event", "Unknown"}.isdisjoint(e.KINDS) and len(e.KINDS) >= 25
    assert all(getattr(e, name) is cls for name, cls in e.KINDS.items())


def test_unknown_kinds_are_kept_and_written_back() -> None:
    line = b'{"seq":3,"time":1.5,"kind":"PolicyHugged","arms":2,"by":{"who":"me"}}\n'
    record = decode(line)
    assert record.event == e.Unknown("PolicyHugged", {"arms": 2, "by": {"who": "me"}})
    assert encode(record) == line


def test_fields_of_a_newer_evotui_are_passed_over() -> None:
    line = b'{"seq":0,"time":1.0,"kind":"AgentMessage","text":"hi","mood":"good"}'
    assert decode(line).event == e.AgentMessage("hi")


def test_text_that_utf8_cannot_hold_is_written_with_a_mark() -> None:
    event = e.ToolReturned("c", True, "ok \ud800 \udcff")
    back = decode(encode(e.Record(0, 1.0, event))).event
    assert back == e.ToolReturned("c", True, "ok ? ?")
    nested = e.ToolCalled("c", "x", {"a\udc80": ["\udc81", {"b": "\udc82"}]})
    assert decode(encode(e.Record(0, 1.0, nested))).event == e.ToolCalled("c", "x", {"a?": ["?", {"b": "?"}]})


def test_values_that_json_does_not_know_become_numbers_or_text() -> None:
    event = e.ToolCalled("c", "x", {"n": np.float32(0.5), "i": np.int64(3), "o": object, "a": np.zeros(2)})
    back = decode(encode(e.Record(0, 1.0, event))).event
    assert isinstance(back, e.ToolCalled)
    assert back.arguments == {"n": 0.5, "i": 3, "o": "<class 'object'>", "a": "array([0., 0.])"}


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"7", b'"x"', b"{}", b'{"seq":0,"time":1.0}', b'{"seq":"0","time":1.0,"kind":"AgentMessage"}',
     b'{"seq":0,"time":1.0,"kind":"AgentMessage"}', b'{"seq":0,"time":1.0,"kind":"AgentMessage","text":3}',
     b'{"seq":0,"time":1.0,"kind":"CheckpointValidated","submission":0,"mean":null,"std":0.0,"n":1}', b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_event_is_one_error(line: bytes) -> None:
    with pytest.raises(LogError, match=r"line 9: .*damaged"):
        decode(line, "events.jsonl, line 9")


def test_a_newer_log_says_what_to_do(tmp_path: Path) -> None:
    run = write(tmp_path)
    run.events.write_bytes(run.events.read_bytes().replace(b'"schema_version":1', b'"schema_version":2', 1))
    with pytest.raises(NewerSchema, match=r"schema 2.*reads up to 1.*upgrade"):
        read(run.events)


def test_damage_is_named_with_its_line_and_what_comes_before_it_is_read(tmp_path: Path) -> None:
    run = write(tmp_path)
    lines = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join([*lines[:10], b"?\n", *lines[11:]]))
    reader = Reader(run.events)
    seen: list[e.Record] = []
    with pytest.raises(LogError, match=r"line 11"):
        seen.extend(reader.poll())  # what came before the damage stays
    reader.close()
    assert len(seen) == 10


def test_a_gap_in_the_numbers_is_damage(tmp_path: Path) -> None:
    run = write(tmp_path)
    lines = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    with pytest.raises(LogError, match=r"line 5: event number 5 where 4 was expected"):
        read(run.events)


def test_no_log_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "events.jsonl")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_reader_follows_a_growing_file(tmp_path: Path, size: int) -> None:
    """Whatever the pieces in which the bytes arrive, the records are those of the whole file."""
    whole = write(tmp_path / "a").events.read_bytes()[:6000]
    whole = whole[: whole.rfind(b"\n") + 20]  # ends inside a line
    path = tmp_path / "events.jsonl"
    reader = Reader(path)
    assert list(reader.poll()) == []  # not there yet
    seen = []
    for start in range(0, len(whole), size):
        with path.open("ab") as file:
            file.write(whole[start : start + size])
        seen += reader.poll()
        assert reader.torn == (not whole[: start + size].endswith(b"\n"))
    assert seen == read(path) and len(seen) == whole.count(b"\n") and reader.torn
    reader.close()


def test_a_reader_goes_on_where_a_torn_tail_was_cut_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    golden = write(tmp_path / "a").events.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(golden[:3]) + golden[3][:50])
    reader = Reader(path)
    assert len(list(reader.poll())) == 3 and reader.torn
    assert cut_torn_tail(path) == 50
    with path.open("ab") as file:
        file.write(b"".join(golden[3:6]))
    assert [r.seq for r in reader.poll()] == [3, 4, 5] and not reader.torn
    reader.close()


@pytest.mark.parametrize("tail", [b"", b"x", b'{"seq":9', b"y" * 200_000])
def test_a_torn_tail_is_cut_off_and_nothing_else(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"a\nb\n" + tail)
    assert cut_torn_tail(path) == len(tail)
    assert path.read_bytes() == b"a\nb\n"


def test_a_file_without_a_line_is_all_tail(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"abc")
    assert cut_torn_tail(path) == 3 and path.read_bytes() == b""


# ── the writer ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_reported_is_what_is_read_back(tmp_path: Path) -> None:
    events = [record.event for record in read(write(tmp_path / "a").events)]
    path = tmp_path / "events.jsonl"
    told: list[e.Record] = []
    state = RunState()

    def take(record: e.Record) -> None:
        nonlocal state
        told.append(record)
        state = fold(state, record)

    writer = Writer(path, take, clock=lambda: 1234.56789)
    await writer.append(*events[:5], sync=True)
    await asyncio.gather(*(writer.append(event) for event in events[5:8]))
    await writer.append(*events[8:])
    await writer.close()
    assert told == read(path) and [r.event for r in told] == events
    assert {r.time for r in told} == {1234.568}
    assert fold_all(read(path)) == state


async def test_a_fact_that_would_not_come_back_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told: list[e.Record] = []
    writer = Writer(path, told.append)
    with pytest.raises(LogError):
        await writer.append(e.AgentMessage("a"), e.CheckpointValidated(0, float("nan"), 0.0, 1))
    assert told == [] and not path.exists()
    await writer.append(e.AgentMessage("b"))
    await writer.close()
    assert [r.seq for r in read(path)] == [0]


async def test_a_cancelled_append_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told: list[e.Record] = []
    writer = Writer(path, told.append)
    task = asyncio.create_task(writer.append(e.AgentMessage("a"), sync=True))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await writer.append(e.AgentMessage("b"))
    await writer.close()
    assert [r.event for r in read(path)] == [e.AgentMessage("a"), e.AgentMessage("b")] == [r.event for r in told]


async def test_a_disk_that_refuses_stops_the_writer_for_good(tmp_path: Path) -> None:
    told: list[e.Record] = []
    writer = Writer(Path("/dev/full"), told.append)
    for _ in range(2):
        with pytest.raises(OSError, match=r"No space left"):
            await writer.append(e.AgentMessage("a"))
    await writer.close()
    assert told == []


PIECE = b'{"seq":3,"time":1.5,"kind":"AgentDelta","channel":"text","text":"AgentDelta"}'


@pytest.mark.parametrize("line", [PIECE, PIECE.replace(b"1.5", b"2"), PIECE.replace(b'"kind"', b'"newer":1,"kind"')])
def test_a_piece_of_speech_is_read_as_any_other_fact(line: bytes) -> None:
    record = decode(line)
    assert record.seq == 3 and isinstance(record.time, float) and isinstance(record.event, e.AgentDelta)
    assert decode(encode(record)) == record


@pytest.mark.parametrize("line", [PIECE.replace(b"3", b'"3"'), PIECE.replace(b'"text",', b"7,"), PIECE[:-9]])
def test_a_damaged_piece_of_speech_is_told_as_any_other(line: bytes) -> None:
    with pytest.raises(LogError, match="damaged from there on"):
        decode(line)
