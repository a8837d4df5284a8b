"""The lane: short frames by the pipes, long ones and everything else by the socket, in any order."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

import numpy as np
import pytest

from evotui.rollout.guest import wire
from evotui.rollout.host import Guest, Odd
from evotui.rollout.lane import open_lane
from evotui.rollout.limits import Limits

WIDE = {"type": "Box", "shape": [1024], "dtype": "float64", "low": -1.0, "high": 1.0}
NUMBER = {"type": "Discrete", "n": 3, "start": 0, "dtype": "int64"}
POLICY = """
class Policy:
    def __init__(self, *given): pass
    def reset(self, index): pass
    def act(self, obs):
        told = int(obs if isinstance(obs, int) else obs[0])
        if told == 2: return {"x" * 100: ["y" * 150] * 60}
        return told
"""


@pytest.fixture
def process(tmp_path):
    """A process of the policy above; its observations are given as bytes and may have any length that the spaces do."""
    made = []

    def make(obs_schema):
        (tmp_path / "policy.py").write_text(POLICY)
        guest = Guest(tmp_path, obs_schema, NUMBER, {}, Limits(), ())
        process = guest.fork()
        made.append((guest, process))
        process.load()
        process.construct()
        process.reset(0, 1)
        return process

    yield make
    for guest, process in made:
        process.kill()
        guest.close()


def number(reply):
    return wire.INT64.unpack(reply)[0]


def test_long_answers_and_requests_between_steps_go_by_the_socket(process):
    guest = process(NUMBER)
    one = wire.INT64.pack(1)
    assert guest._riding is not None
    assert number(guest.act(one)) == 1
    odd = guest.act(wire.INT64.pack(2))  # its description is longer than a lane takes
    assert isinstance(odd, Odd) and odd.value == {"x" * 100: ["y" * 150] * 60}
    assert guest._riding is not None and number(guest.act(one)) == 1
    guest.flush()
    assert guest._riding is None
    assert number(guest.act(one)) == 1
    guest.reset(1, 1)
    assert guest._riding is not None and number(guest.act(one)) == 1


def test_long_observations_go_by_the_socket(process):
    guest = process(WIDE)
    assert guest._riding is not None
    for told in (0.0, 1.0):
        assert number(guest.act(np.full(1024, told).tobytes())) == told
    assert guest._riding is None


def test_several_policies_share_no_lane(process):
    guest = process(NUMBER)
    guest.reset_many([(0, 0, 1)])  # as a lockstep with one episode left does
    reply = guest.act_many(1, bytes(8) + wire.INT64.pack(1))
    assert number(reply) == 1
    assert guest._riding is None


def test_whoever_fills_the_lane_stops_nobody():
    lane = open_lane()
    assert lane is not None
    fcntl.fcntl(lane.theirs[0], fcntl.F_SETPIPE_SZ, 4096)
    for _ in range(100):  # as a guest may, that opens its end by /proc to write
        with suppress(BlockingIOError):
            os.write(lane._ask, b"filled")
    with pytest.raises(BlockingIOError):
        lane.ask(b"a frame", 10.0)
    with pytest.raises(BlockingIOError):
        lane.turn_aside()
    lane.close()


def test_a_lane_leaves_no_open_files():
    before = len(os.listdir("/proc/self/fd"))
    lane = open_lane()
    assert lane is not None
    asked, answered = map(os.dup, lane.theirs)
    lane.handed_over()
    with pytest.raises(BlockingIOError):
        lane.ask(b"a frame that is asked", 0.0)
    assert os.read(asked, 100) == b"a frame that is asked"
    os.write(answered, b"one")
    os.write(answered, b"two")
    assert [lane.wait(1.0), lane.wait(1.0)] == [b"one", b"two"]
    os.close(answered)
    assert lane.wait(1.0) == b""
    os.close(asked)
    with pytest.raises(BrokenPipeError):
        lane.ask(b"too late", 1.0)
    lane.close()
    assert len(os.listdir("/proc/self/fd")) == before
