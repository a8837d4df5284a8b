"""Nothing that a line holds raises, everything told can be stored, and nothing unknown is lost."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.agents.streams import STREAMS, ClaudeStream, Stream
from evotui.agents.streams.base import RESULT_LIMIT
from evotui.record import events as e
from tests.agents.streams.captured import NAMES, lines_of, stream_of

DIALECTS = sorted(STREAMS)


def storable(facts: list[e.Event]) -> None:
    for fact in facts:
        assert not (isinstance(fact, e.AgentRaw) and "AttributeError" in fact.what), "a mistake of ours"
        assert type(fact).__name__ in e.KINDS
        data = msgspec.json.encode(fact)
        assert msgspec.json.decode(data) == msgspec.to_builtins(fact)


def feed(stream: Stream, lines: list[Any]) -> list[e.Event]:
    facts = [fact for line in lines for fact in stream.feed(line)] + stream.end()
    storable(facts)
    return facts


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_cut_at_any_byte_raises_nothing(name: str):
    """Lines are cut at every 97th byte and before their last two; the stream before each is whole."""
    lines = [line.encode() for line in lines_of(name)]
    for at in range(len(lines)):
        if len(lines) > 40 and at % 7:
            continue
        stream = stream_of(name)
        for line in lines[:at]:
            stream.feed(line)
        whole = lines[at]
        for cut in {*range(0, len(whole), 97), len(whole) - 1, len(whole) - 2}:
            for fact in stream.feed(whole[:cut]):
                assert isinstance(fact, e.AgentRaw)
        storable(stream.end())


def test_a_stream_that_ends_in_a_message_says_what_was_said():
    lines = lines_of("claude_code_2.1.332_partial")
    at = next(i for i, line in enumerate(lines) if "at the polic" in line and "text_delta" in line)
    facts = feed(ClaudeStream(), lines[: at + 1])
    assert facts[-2] == e.AgentMessage("I will look at the polic")
    assert isinstance(facts[-1], e.UsageReported)


def test_a_stream_that_ends_in_a_call_tells_that_it_has_no_result():
    lines = lines_of("claude_code_plain")
    at = next(i for i, line in enumerate(lines) if '"tool_use"' in line)
    facts = feed(ClaudeStream(), lines[: at + 1])
    returned = [f for f in facts if isinstance(f, e.ToolReturned)]
    assert len(returned) == 1 and not returned[0].ok and "ended" in returned[0].text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _places(item, (*path, at))
    return found


@settings(derandomize=True, deadline=None, max_examples=150)
@given(data=st.data())
def test_a_value_of_any_type_in_any_place_raises_nothing(data: st.DataObject):
    name = data.draw(st.sampled_from(NAMES))
    lines = lines_of(name)
    stream = stream_of(name)
    at = data.draw(st.integers(0, len(lines) - 1))
    value = json.loads(lines[at])
    path = data.draw(st.sampled_from(_places(value)))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = data.draw(JSON)
    changed = [*lines[:at], json.dumps(value), *lines[at + 1 :]]
    feed(stream, changed)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(dialect=st.sampled_from(DIALECTS), lines=st.lists(st.binary(max_size=80) | st.text(max_size=80), max_size=8))
def test_garbage_raises_nothing(dialect: str, lines: list[Any]):
    feed(STREAMS[dialect](), lines)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    dialect=st.sampled_from(DIALECTS),
    value=st.dictionaries(
        st.sampled_from(["type", "method", "params", "role", "subtype", "event", "item", "part", "message", "result"]),
        JSON,
    ),
)
def test_unknown_events_are_kept_or_known(dialect: str, value: dict[str, Any]):
    feed(STREAMS[dialect](), [json.dumps(value)])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "line",
    [
        '{"type": "never_seen", "payload": 1}',
        '{"method": "never/seen", "params": {"x": 1}}',
        '{"role": "never_seen"}',
        "[1, 2]",
        "null",
        "plain words",
        "\x1b[31mred\x1b[0m \x07",
    ],
)
def test_what_is_unknown_is_kept_as_it_came(dialect: str, line: str):
    stream = STREAMS[dialect]()
    facts = feed(stream, [line])
    answers = dialect in ("acp", "codex-app-server") and line.startswith('{"') and "method" not in line
    if not answers:  # a JSON-RPC answer without a method is the adapter's
        assert [type(fact) for fact in facts] == [e.AgentRaw]
    assert not stream.finished


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_abyss_of_brackets_raises_nothing(dialect: str):
    feed(STREAMS[dialect](), ["[" * 100_000, '{"type":' * 5_000 + "1" + "}" * 5_000, "1" * 10_000])


def test_text_that_no_file_can_hold_is_mended():
    block = {"type": "text", "text": "half \ud800 a pair, \x1b[2J and a bell \x07"}
    facts = feed(ClaudeStream(), [json.dumps({"type": "assistant", "message": {"id": "m", "content": [block]}})])
    assert facts == [e.AgentMessage("half ? a pair, \x1b[2J and a bell \x07")]


def test_a_book_as_a_result_is_kept_at_both_ends():
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "yes"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "y\n" * 5_000_000}
    facts = feed(
        ClaudeStream(),
        [json.dumps({"type": "assistant", "message": {"content": [call]}}),
         json.dumps({"type": "user", "message": {"content": [result]}})],
    )  # fmt: skip
    assert isinstance(facts[-1], e.ToolReturned)
    assert RESULT_LIMIT <= len(facts[-1].text) < RESULT_LIMIT + 100
    assert "characters left out" in facts[-1].text


def test_numbers_beyond_64_bits_in_arguments_can_be_stored():
    call = {"type": "tool_use", "id": "t", "name": "X", "input": {"n": 10**30, "inf": float("inf"), "deep": [[[[1]]]]}}
    feed(ClaudeStream(), [json.dumps({"type": "assistant", "message": {"content": [call]}})])


def test_a_call_told_twice_is_told_once_and_a_result_without_a_call_is_not_told():
    call = {"type": "tool_use", "id": "t", "name": "X", "input": {}}
    line = json.dumps({"type": "assistant", "message": {"content": [call]}})
    result = json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "other"}]}})
    facts = feed(ClaudeStream(), [line, line, result])
    assert [type(f) for f in facts] == [e.ToolCalled, e.ToolReturned]
