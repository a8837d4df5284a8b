"""Pieces put together, calls found in text, thoughts taken out of it: whatever the cuts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.agents.llm.calls import Accumulator, Splitter, calls_in_text, read_arguments, without_opening
from evotui.record.events import Record, ToolCalled
from evotui.record.log import decode, encode

TOOLS = ("read_file", "submit")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=4)
CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), OBJECTS), min_size=1, max_size=4)


def cuts(text: str, data: st.DataObject) -> list[str]:
    at = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(CALLS, st.data())
def test_any_interleaving_of_pieces_with_indices_gives_the_calls(
    made: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    pieces: list[list[tuple[Any, ...]]] = []
    for index, (name, arguments) in enumerate(made):
        parts = cuts(json.dumps(arguments), data)
        pieces.append([(index, f"id{index}", name, parts[0]), *((index, None, None, part) for part in parts[1:])])
    accumulator = Accumulator()
    accumulator_order: list[int] = []
    while any(pieces):
        which = data.draw(st.sampled_from([i for i, rest in enumerate(pieces) if rest]))
        piece = pieces[which].pop(0)
        if piece[1] is not None:
            accumulator_order.append(which)
        accumulator.add(*piece)
    found = accumulator.calls()
    assert [(c.name, c.arguments()) for c in found] == [made[i] for i in accumulator_order]
    assert [c.id for c in found] == [f"id{i}" for i in accumulator_order]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(CALLS, st.data(), st.sampled_from(["ids at one index", "no ids at one index", "nothing at all"]))
def test_calls_in_a_row_are_told_apart(made: list[tuple[str, dict[str, Any]]], data: st.DataObject, how: str) -> None:
    accumulator = Accumulator()
    for number, (name, arguments) in enumerate(made):
        index = None if how == "nothing at all" else 0
        key = f"id{number}" if how == "ids at one index" else None
        first, *rest = cuts(json.dumps(arguments), data)
        accumulator.add(index, key, name, first)
        for part in rest:
            accumulator.add(index, None, None, part)
    found = accumulator.calls()
    assert [(c.name, c.arguments()) for c in found] == made
    assert len({c.id for c in found}) == len(found) and all(c.id for c in found)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-1, 3), st.none() | st.text(max_size=3), st.none() | st.text(max_size=3),
            st.none() | st.text(max_size=5) | OBJECTS,
        ),
        max_size=10,
    )
)  # fmt: skip
def test_no_piece_is_lost_and_nothing_raises(pieces: list[tuple[Any, ...]]) -> None:
    accumulator = Accumulator()
    for piece in pieces:
        accumulator.add(*piece)
    calls = accumulator.calls()
    sent = sum(len(a if isinstance(a, str) else json.dumps(a)) for *_, a in pieces if a is not None)
    assert sum(len(c.text) for c in calls) == sent
    assert len({c.id for c in calls}) == len(calls)


def test_arguments_may_come_as_an_object() -> None:
    accumulator = Accumulator()
    accumulator.add(0, "a", "submit", {"cases": "0-3"})
    assert accumulator.calls()[0].arguments() == {"cases": "0-3"}


def test_arguments_that_are_no_object_are_refused_in_words() -> None:
    assert read_arguments("") == {}
    assert read_arguments('"{\\"a\\": 1}"') == {"a": 1}  # encoded twice
    for text in ('{"a": ', "[1]", "3", '{"a": 1}, oops', "[" * 100_000):
        with pytest.raises(ValueError, match="the arguments"):
            read_arguments(text)


def test_arguments_can_be_recorded_whatever_they_are() -> None:
    deep = '{"a": ' * 200 + "1" + "}" * 200
    found = read_arguments('{"a": "x\\ud800", "b": NaN, "c": %d, "d": %s, "e": -3}' % (10**40, deep))  # noqa: UP031
    assert found["a"] == "x?" and found["b"] == "nan" and found["c"] == str(10**40) and found["e"] == -3
    record = Record(0, 0.0, ToolCalled("c", "n", found))
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "submit", "arguments": {"cases": "0"}}',
        'I submit.\n```json\n{"name": "submit", "arguments": {"cases": "0"}}\n```',
        'Now.\n<tool_call>\n{"name": "submit", "parameters": {"cases": "0"}}\n</tool_call>',
        '<tool_call>{"name": "submit", "arguments": "{\\"cases\\": \\"0\\"}"}',
        '[{"type": "function", "function": {"name": "submit", "arguments": {"cases": "0"}}}]',
    ],
)
def test_calls_written_in_the_text_are_found(text: str) -> None:
    calls, broken = calls_in_text(text, TOOLS)
    assert [(c.name, c.arguments()) for c in calls] == [("submit", {"cases": "0"})] and not broken


def test_several_calls_in_one_block() -> None:
    text = '```json\n{"name": "read_file", "arguments": {"path": "a"}}\n{"name": "submit", "arguments": {}}\n```'
    assert [c.name for c in calls_in_text(text, TOOLS)[0]] == ["read_file", "submit"]


NO_CALLS = ("", "I submit 0-3.", '```json\n{"name": "rm", "arguments": {}}\n```', "```python\nx = {}\n```", "{}", "[1")


@pytest.mark.parametrize("text", NO_CALLS)
def test_what_is_no_call_is_none(text: str) -> None:
    assert calls_in_text(text, TOOLS) == ([], False)


def test_a_tagged_call_that_cannot_be_read_is_noticed() -> None:
    assert calls_in_text('<tool_call>{"name": "submit", "argum', TOOLS) == ([], True)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(alphabet="ab <>/\n", max_size=20), st.text(alphabet="xy \n<", max_size=20), st.data())
def test_thoughts_are_parted_from_words_however_the_stream_is_cut(thought: str, said: str, data: st.DataObject) -> None:
    thought = thought.replace("</think", "")
    if any("</think>".startswith(thought[-n:]) for n in range(1, len(thought) + 1)):
        thought += "."
    splitter, out = Splitter(), []
    for part in cuts(f"<think>{thought}</think>{said}", data):
        out += splitter.feed(part)
    out += splitter.end()
    assert "".join(text for channel, text in out if channel == "thought") == thought
    assert "".join(text for channel, text in out if channel == "text") in (said, said.lstrip("\n"))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(alphabet="abthink <>/\n", max_size=40), st.data())
def test_no_character_of_ordinary_text_is_lost(text: str, data: st.DataObject) -> None:
    if text.lstrip().startswith(("<think>", "<thinking>")):
        return
    splitter = Splitter()
    out = [piece for part in cuts(text, data) for piece in splitter.feed(part)] + splitter.end()
    assert "".join(piece for _, piece in out) == text
    assert {channel for channel, _ in out} <= {"text"}


def test_a_thought_whose_beginning_is_not_seen() -> None:
    assert without_opening("hm\n</think>\n\nI go.") == ("hm", "I go.")
    assert without_opening("I go.") == ("", "I go.")
