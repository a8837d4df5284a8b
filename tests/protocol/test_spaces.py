"""Spaces: actions are repaired the same way every time, values become strict JSON, names match values."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evotui.protocol.spaces import (
    Schema,
    action_reader,
    default_action,
    flatten_names,
    flatten_values,
    repair_action,
    to_jsonable,
)

thorough = settings(derandomize=True, max_examples=80, deadline=None)

PUSH: Schema = {"type": "Box", "shape": [1], "dtype": "float32", "low": [-1.0], "high": [1.0]}
OPEN: Schema = {"type": "Box", "shape": [2], "dtype": "float64", "low": [-math.inf, 0.5], "high": [math.inf, 2.0]}
BYTES: Schema = {"type": "Box", "shape": [2, 2], "dtype": "uint8", "low": 0, "high": 200}
JSON_BOUNDS: Schema = {"type": "Box", "shape": [2], "dtype": "float32", "low": ["-Inf", 0], "high": ["Inf", 1]}
IMAGE: Schema = {"type": "Image", "shape": [16, 16, 3], "dtype": "uint8", "low": 0, "high": 255}
CHOICE: Schema = {"type": "Discrete", "n": 3, "start": 0, "dtype": "int64"}
LATE: Schema = {"type": "Discrete", "n": 3, "start": 5, "dtype": "int64"}
MANY: Schema = {"type": "MultiDiscrete", "nvec": [2, 3], "dtype": "int64"}
BITS: Schema = {"type": "MultiBinary", "shape": [3], "dtype": "int8"}
WORDS: Schema = {"type": "Text", "max_length": 5}
PAIR: Schema = {"type": "Tuple", "spaces": [CHOICE, PUSH]}
KEYED: Schema = {"type": "Dict", "spaces": {"b": CHOICE, "a": PUSH}}
ALL = [PUSH, OPEN, BYTES, JSON_BOUNDS, IMAGE, CHOICE, LATE, MANY, BITS, WORDS, PAIR, KEYED]


class Hostile:
    """Raises whenever it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __int__(self) -> int:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.complex_numbers(),
    st.builds(Hostile),
    st.builds(HostileList, st.lists(st.integers(), max_size=3)),
    st.sampled_from([np.float32("nan"), np.float16(1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), np.array(2)]),
)
arrays = hnp.arrays(
    st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "object", "U3", "complex64", "datetime64[s]"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
anything = st.recursive(
    st.one_of(scalars, arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    ),
    max_leaves=8,
)


def inside(value: Any, schema: Schema) -> bool:
    """Whether a value lies in the space, dtype and shape included: said independently of the code under test."""
    kind = schema["type"]
    if kind in ("Box", "Image"):
        low = np.asarray(schema["low"], schema["dtype"])
        high = np.asarray(schema["high"], schema["dtype"])
        right_kind = isinstance(value, np.ndarray) and str(value.dtype) == schema["dtype"]
        return right_kind and list(value.shape) == schema["shape"] and bool(((low <= value) & (value <= high)).all())
    if kind == "Discrete":
        start = schema["start"]
        return isinstance(value, np.integer) and str(value.dtype) == "int64" and start <= value < start + schema["n"]
    if kind == "MultiDiscrete":
        return value.dtype == np.int64 and bool(((value >= 0) & (value < np.array(schema["nvec"]))).all())
    if kind == "MultiBinary":
        return value.dtype == np.int8 and list(value.shape) == schema["shape"] and set(value.tolist()) <= {0, 1}
    if kind == "Text":
        return type(value) is str and len(value) <= schema["max_length"]
    if kind == "Tuple":
        parts = zip(value, schema["spaces"], strict=True)
        return isinstance(value, tuple) and all(inside(v, s) for v, s in parts)
    return set(value) == set(schema["spaces"]) and all(inside(value[k], s) for k, s in schema["spaces"].items())


def strategy_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Valid actions of a space, in its own dtype."""
    kind = schema["type"]
    if kind == "Box":
        dtype = np.dtype(schema["dtype"])
        shape = tuple(schema["shape"])
        low = np.broadcast_to(np.asarray(schema["low"], dtype), shape).ravel().tolist()
        high = np.broadcast_to(np.asarray(schema["high"], dtype), shape).ravel().tolist()
        if dtype.kind == "f":
            width: Any = dtype.itemsize * 8
            ends = (
                (None if math.isinf(lo) else lo, None if math.isinf(hi) else hi)
                for lo, hi in zip(low, high, strict=True)
            )
            each = [st.floats(lo, hi, width=width, allow_nan=False) for lo, hi in ends]
        else:
            each = [st.integers(int(lo), int(hi)) for lo, hi in zip(low, high, strict=True)]
        return st.tuples(*each).map(lambda values: np.array(values, dtype).reshape(shape))
    if kind == "Discrete":
        return st.integers(schema["start"], schema["start"] + schema["n"] - 1).map(np.int64)
    if kind == "MultiDiscrete":
        return st.tuples(*(st.integers(0, n - 1) for n in schema["nvec"])).map(lambda v: np.array(v, "int64"))
    if kind == "MultiBinary":
        return hnp.arrays("int8", tuple(schema["shape"]), elements=st.integers(0, 1))
    if kind == "Text":
        return st.text(max_size=schema["max_length"])
    if kind == "Tuple":
        return st.tuples(*(strategy_of(s) for s in schema["spaces"]))
    return st.fixed_dictionaries({key: strategy_of(s) for key, s in schema["spaces"].items()})


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(one[k], other[k]) for k in one)
    return bool(np.array_equal(one, other))


@pytest.mark.parametrize("schema", ALL, ids=lambda s: s["type"])
@thorough
@given(action=anything)
def test_repair_never_raises_and_lands_inside(schema: Schema, action: Any) -> None:
    value, _invalid = repair_action(action, schema)
    assert inside(value, schema)


@pytest.mark.parametrize("schema", [s for s in ALL if s["type"] != "Image"], ids=lambda s: s["type"])
@settings(derandomize=True, max_examples=40, deadline=None)
@given(data=st.data())
def test_valid_actions_come_back_unchanged_and_unflagged(schema: Schema, data: st.DataObject) -> None:
    action = data.draw(strategy_of(schema))
    value, invalid = repair_action(action, schema)
    assert not invalid
    assert inside(value, schema)
    assert same(value, action)
    listed = to_jsonable(action)  # the same action as plain lists and numbers, as it travels
    if "Inf" not in json.dumps(listed):
        value, invalid = repair_action(listed, schema)
        assert not invalid
        assert same(value, action)


@pytest.mark.parametrize("schema", ALL, ids=lambda s: s["type"])
def test_the_default_action_is_a_valid_one(schema: Schema) -> None:
    action = default_action(schema)
    assert inside(action, schema)
    value, invalid = repair_action(action, schema)
    assert not invalid
    assert same(value, action)


@pytest.mark.parametrize(
    ("action", "schema", "expected"),
    [
        ([2.5], PUSH, [1.0]),
        ([-math.inf], PUSH, [-1.0]),
        ([1e300], PUSH, [1.0]),
        ([math.nan], PUSH, [0.0]),
        ([0.5, 0.5], PUSH, [0.0]),
        (0.5, PUSH, [0.0]),
        ("0.5", PUSH, [0.0]),
        (None, PUSH, [0.0]),
        ([0.0, 9.0], OPEN, [0.0, 2.0]),
        (None, OPEN, [0.0, 0.5]),
        ([[0, 300], [-5, 7]], BYTES, [[0, 200], [0, 7]]),
        ([[0.5, 1], [2, 3]], BYTES, [[0, 0], [0, 0]]),
        (7, CHOICE, 2),
        (-1, CHOICE, 0),
        (10**30, CHOICE, 2),
        (1.0, CHOICE, 0),
        (math.nan, CHOICE, 0),
        ([1], CHOICE, 0),
        (9, LATE, 7),
        ("x", LATE, 5),
        ([5, -1], MANY, [1, 0]),
        ([0.5, 1], MANY, [0, 0]),
        ([2, 1, -3], BITS, [1, 1, 0]),
        ("too long", WORDS, "too l"),
        (3, WORDS, ""),
        ((9, [0.5]), PAIR, (2, [0.5])),
        ((1,), PAIR, (0, [0.0])),
        ({"a": [0.5]}, KEYED, {"a": [0.0], "b": 0}),
    ],
)
def test_repairs(action: Any, schema: Schema, expected: Any) -> None:
    value, invalid = repair_action(action, schema)
    assert invalid
    assert to_jsonable(value) == to_jsonable(expected)


def test_readings_that_are_valid() -> None:
    assert repair_action(True, CHOICE) == (1, False)
    assert repair_action(np.bool_(True), CHOICE) == (1, False)
    assert repair_action(np.array(2), CHOICE) == (2, False)
    assert repair_action(np.uint8(2), CHOICE) == (2, False)
    value, invalid = repair_action([1], PUSH)
    assert (value.dtype, value.tolist(), invalid) == (np.dtype("float32"), [1.0], False)
    value, invalid = repair_action(np.array([0.1]), PUSH)
    assert (value[0], invalid) == (np.float32(0.1), False)
    assert not repair_action(np.array([True, False, True]), BITS)[1]


def test_a_reader_is_the_same_function() -> None:
    read = action_reader(PUSH)
    assert [read(a)[1] for a in ([0.5], [1.5], None)] == [False, True, True]


def test_a_list_that_contains_itself_is_unreadable() -> None:
    knot: list[Any] = [1]
    knot.append(knot)
    for schema in ALL:
        assert repair_action(knot, schema)[1]


# ------------------------------------------------------------------------------------------------------------- JSON


@thorough
@given(anything)
def test_to_jsonable_is_strict_json(value: Any) -> None:
    plain = to_jsonable(value)
    text = json.dumps(plain, allow_nan=False)
    text.encode("utf-8")
    assert json.loads(text) == plain


@thorough
@given(hnp.arrays(st.sampled_from(["float32", "float64"]), hnp.array_shapes(max_dims=3, max_side=4)))
def test_arrays_keep_their_bits(array: np.ndarray) -> None:
    back = np.array(flatten_values(to_jsonable(array)), array.dtype)
    assert np.array_equal(back, array.ravel(), equal_nan=True)


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Inf"),
        (np.float32("inf"), "Inf"),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.int64(7), 7),
        (Colour.RED, 3),
        (2**127, 2**127),
        (np.array([[1, 2]], "uint8"), [[1, 2]]),
        (np.array([1.0, math.nan]), [1.0, "NaN"]),
        (np.array(3), 3),
        ((1, {"a": np.ones(1)}), [1, {"a": [1.0]}]),
        ({1: 2, np.int64(3): 4, (5, 6): 7}, {"1": 2, "3": 4, "[5, 6]": 7}),
        ({3, 1, 2}, [1, 2, 3]),
        (b"a\xff", "a\\xff"),
        ("\ud800", "\\ud800"),
        (object, "<class 'object'>"),
        (1 + 2j, "(1+2j)"),
        (np.complex64(1 + 2j), "(1+2j)"),
    ],
)
def test_encodings(value: Any, expected: Any) -> None:
    assert to_jsonable(value) == expected


def test_unknown_objects_are_short_and_the_same_each_time() -> None:
    class Thing:
        pass

    class Long:
        def __repr__(self) -> str:
            return "x" * 1000

    assert to_jsonable(Thing()) == to_jsonable(Thing())
    assert "0x" not in to_jsonable(Thing())
    assert len(to_jsonable(Long())) == 200
    assert to_jsonable(Hostile()) == "<unreadable Hostile>"


def test_endless_and_exploding_values_end() -> None:
    knot: dict[str, Any] = {}
    knot["self"] = knot
    assert to_jsonable(knot) == {"self": "…"}
    deep: Any = 0
    for _ in range(10_000):
        deep = [deep]
    json.dumps(to_jsonable(deep))


# -------------------------------------------------------------------------------------------------------- flattening

OBSERVATION: Schema = {
    "type": "Dict",
    "spaces": {
        "image": {"type": "Box", "shape": [2, 1, 2], "dtype": "uint8", "low": 0, "high": 255},
        "direction": {"type": "Discrete", "n": 4, "start": 0, "dtype": "int64"},
        "mission": WORDS,
    },
}


def test_names_match_values() -> None:
    value = {"image": np.arange(4).reshape(2, 1, 2), "direction": 3, "mission": "go"}
    names = flatten_names(OBSERVATION)
    assert names == ["direction", "image[0][0][0]", "image[0][0][1]", "image[1][0][0]", "image[1][0][1]", "mission"]
    assert flatten_values(to_jsonable(value)) == [3.0, 0.0, 1.0, 2.0, 3.0, "go"]


def test_fields_name_flat_observations() -> None:
    assert flatten_names(OPEN, ["x", "y"]) == ["x", "y"]
    assert flatten_names(OPEN, ["x"]) == ["obs[0]", "obs[1]"]
    assert flatten_names(CHOICE) == ["obs"]
    assert flatten_names(PAIR) == ["obs[0]", "obs[1][0]"]
    assert flatten_names(MANY) == ["obs[0]", "obs[1]"]
    assert flatten_names(IMAGE) == flatten_values(None) == []


def test_special_numbers_come_back() -> None:
    values = flatten_values(["NaN", "Inf", ["-Inf", 1]])
    assert math.isnan(values[0])  # type: ignore[arg-type]
    assert values[1:] == [math.inf, -math.inf, 1.0]
