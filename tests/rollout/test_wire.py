"""Layouts: every value of every space crosses unchanged, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.rollout.episode import ActionDecoder, global_seed
from evotui.rollout.guest import actions
from evotui.rollout.guest.layout import Layout
from evotui.rollout.host import Odd
from evotui.rollout.output import printable

BOX = {"type": "Box", "shape": [2, 3], "dtype": "float32", "low": -1.0, "high": 1.0}
MINIGRID = {
    "type": "Dict",
    "spaces": {
        "direction": {"type": "Discrete", "n": 4, "start": 0, "dtype": "int64"},
        "image": {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8", "low": 0, "high": 255},
        "mission": {"type": "Text", "max_length": 99},
    },
}


def crossed(schema, value):
    layout = Layout(schema)
    raw = b"********" + layout.pack(layout.canonical(value))
    back, end = layout.unpack(bytearray(raw), 8)
    assert end == len(raw)
    assert layout.size is None or layout.size == len(raw) - 8
    return back


def test_arrays_keep_dtype_shape_and_bits():
    value = np.array([[0.1, np.nan, np.inf], [-0.0, 1e-40, 5]], np.float32)
    back = crossed(BOX, value)
    assert back.dtype == np.float32 and back.shape == (2, 3) and back.tobytes() == value.tobytes()
    back[0, 0] = 1  # a policy may write into what it was given


@given(st.text(max_size=99), st.integers(0, 3))
@settings(derandomize=True, max_examples=50)
def test_groups_cross(text, direction):
    image = np.arange(147, dtype=np.uint8).reshape(7, 7, 3)
    back = crossed(MINIGRID, {"mission": text, "image": image, "direction": np.int64(direction)})
    assert list(back) == ["direction", "image", "mission"]
    assert back["direction"] == direction and type(back["direction"]) is int
    assert (back["image"] == image).all()
    assert back["mission"] == text.encode("utf-8", "backslashreplace").decode()


def test_tuple_and_multi_discrete_cross():
    pair = {"type": "MultiDiscrete", "nvec": [2, 2], "dtype": "int64"}
    schema = {"type": "Tuple", "spaces": [{"type": "Discrete", "n": 3}, pair]}
    back = crossed(schema, (2, np.array([0, 1])))
    assert back[0] == 2 and back[1].tolist() == [0, 1]


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="shape"):
        Layout(BOX).canonical(np.zeros(6, np.float32))


DISCRETE = {"type": "Discrete", "n": 3, "start": 1, "dtype": "int64"}
TORQUE = {"type": "Box", "shape": [2], "dtype": "float32", "low": [-2.0, -2.0], "high": [2.0, 2.0]}


def through(schema, action):
    """An action as the environment gets it and as it is recorded, by way of the guest's encoder."""
    try:
        raw = actions.encoder(schema)(action)
    except Exception:
        raw = None
    if raw is None:
        import json

        return ActionDecoder(schema)(Odd(json.loads(actions.odd(action))["value"]))
    return ActionDecoder(schema)(raw)


class Hostile:
    def __array__(self, *args, **kwargs):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


class HostileList(list):
    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("action", "executed", "returned", "invalid"),
    [
        (2, 2, 2, False),
        (np.int32(3), 3, 3, False),
        (np.array(1), 1, 1, False),
        (np.bool_(True), 1, 1, False),
        (7, 3, 7, True),
        (-1, 1, -1, True),
        (10**30, 3, 10**30, True),
        (10**400, 1, "<int of 1329 bits>", True),
        (float("nan"), 1, "NaN", True),
        ("left", 1, "left", True),
        (None, 1, None, True),
        (Hostile(), 1, "<Hostile>", True),
        (HostileList(), 1, "<unreadable object>", True),
    ],
)
def test_discrete_actions(action, executed, returned, invalid):
    assert through(DISCRETE, action) == (executed, returned, invalid)


@pytest.mark.parametrize(
    ("action", "executed", "returned", "invalid"),
    [
        ([0.1, -2.0], [0.1, -2.0], [0.1, -2.0], False),
        (np.array([1, 2]), [1, 2], [1, 2], False),
        ((0.1, 3.5), [0.1, 2.0], [0.1, 3.5], True),
        ([float("nan"), 0], [0, 0], ["NaN", 0.0], True),
        ([float("inf"), 0], [2, 0], ["Inf", 0.0], True),
        ([1, 2, 3], [0, 0], [1, 2, 3], True),
        (0.5, [0, 0], 0.5, True),
        ([[1], [2, 3]], [0, 0], [[1], [2, 3]], True),
        (Hostile(), [0, 0], "<Hostile>", True),
        ([Hostile(), 1], [0, 0], ["<Hostile>", 1], True),
    ],
)
def test_box_actions(action, executed, returned, invalid):
    got, told, bad = through(TORQUE, action)
    assert got.dtype == np.float32 and got.tolist() == np.array(executed, np.float32).tolist()
    assert (told, bad) == (returned, invalid)


def test_global_seed_is_one_way_and_stable():
    assert global_seed(5) != 5 and global_seed(5) == global_seed(5) != global_seed(6)
    assert global_seed(2**127) < 2**64


def test_printable_drops_escapes_but_keeps_lines():
    assert printable("a\x1b[31mred\x1b[0m\x07\tb\nc\u202e\x9b") == "ared\tb\nc"
    assert printable("half \ud800 a pair").encode() == rb"half \ud800 a pair"
