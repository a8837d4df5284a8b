"""What the search agent makes of pictures and of tables of moving things: synthetic worlds, small and quick."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evotui.agents.search import SearchAgent
from evotui.agents.search.code import render
from evotui.agents.search.features_pixels import read_pictures, study_pictures
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_clear import clear_form, study_traffic
from evotui.agents.search.forms_pixels import follow_form
from evotui.agents.search.plan import MOST_SUBMISSIONS, thrifty_cases
from evotui.agents.search.spaces import Situation, read_situation
from evotui.protocol.budget import Budget
from tests.agents.fakes import FakeDoor, Transcript, load, workspace

ROAD, SIDE, WORLD = 7, 48, 40
"""Half the road's width; the picture's side; its rows above the gauges, in pixels."""


def middle_of_road(y: np.ndarray) -> np.ndarray:
    return 150.0 + 25.0 * np.sin(y / 60.0)


@functools.cache
def painted() -> np.ndarray:
    rows, columns = np.mgrid[0:3000, 0:300]
    block = (rows // 9 + columns // 9) % 2 == 0
    world = np.where(block[..., None], [40, 160, 60], [60, 200, 60]).astype(np.uint8)
    world[np.abs(columns - middle_of_road(rows)) < ROAD] = [120, 120, 130]
    return world


class Drive:
    """A road seen from above, driven upwards. The actions, in this order: brake, gas, steering (positive: left)."""

    def __init__(self, seed: int) -> None:
        self.map = painted()
        self.y, self.x, self.speed = 2900.0 - 40 * seed, 0.0, 0.0
        self.x = float(middle_of_road(np.array(self.y)))

    def picture(self) -> np.ndarray:
        top, left = int(self.y) - 30, int(self.x) - SIDE // 2
        seen = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
        seen[:WORLD] = self.map[top : top + WORLD, left : left + SIDE]
        seen[30:34, 23:26] = [200, 30, 30]  # the thing itself
        seen[47 - int(3 * self.speed) : 47, 10:12] = 255  # a bar for the speed
        return seen

    def step(self, action: Any) -> None:
        brake, gas, steering = (float(a) for a in np.clip(action, [0, 0, -1], [1, 1, 1]))
        self.speed = min(2.2, max(0.0, 0.98 * self.speed + 0.06 * gas - 0.15 * brake))
        self.y = max(60.0, self.y - self.speed)
        self.x = min(260.0, max(40.0, self.x - 0.7 * self.speed * steering))

    @property
    def off(self) -> float:
        return abs(self.x - float(middle_of_road(np.array(self.y))))


IMAGE = {"type": "Image", "shape": [SIDE, SIDE, 3], "dtype": "uint8", "low": 0, "high": 255}
BOX = {"type": "Box", "shape": [3], "dtype": "float32", "low": [0.0, 0.0, -1.0], "high": [1.0, 1.0, 1.0]}


def picture_situation() -> Situation:
    return read_situation({"env_meta": {"obs_space": IMAGE, "action_space": BOX}, "episode_budget": 128}, "")


def probe(folder: Path, seed: int, steps: int = 400) -> Episode:
    """Actions of a few dozen steps, each dimension zero half of the time; pictures are left in ``folder``."""
    rng = np.random.default_rng(seed)
    world, pictures, actions = Drive(seed), [], []
    while len(actions) < steps:
        action = rng.uniform([0, 0, -1], [1, 1, 1]) * rng.integers(0, 2, size=3)
        for _ in range(int(rng.integers(5, 40))):
            pictures.append(world.picture())
            actions.append(action)
            world.step(action)
    folder.mkdir()
    np.savez_compressed(folder / "observations.npz", observations=np.array(pictures))
    n = len(actions)
    nothing = np.zeros((n, 0)), np.full(n, -1), np.array(actions), np.zeros(n)
    return Episode(seed, *nothing, terminated=False, truncated=True, folder=folder)


def test_pictures_show_the_thing_its_ground_its_gauge_and_what_steers(tmp_path: Path) -> None:
    situation = picture_situation()
    assert situation.view.kind == "picture"
    sight = study_pictures([probe(tmp_path / str(i), i) for i in range(3)], situation)
    assert sight is not None
    assert (sight.top, sight.bottom) == (0, WORLD)
    assert (sight.row, sight.column) == (30, 24.0)
    assert sight.ground == (120, 120, 130)
    assert (sight.brake, sight.gas, sight.steer) == (0, 1, 2)
    assert sight.turn == -1.0, "positive values turn left here"
    assert sight.gauge is not None
    assert (sight.gauge.left, sight.gauge.right) == (10, 12)


def test_the_road_is_followed(tmp_path: Path) -> None:
    form = follow_form(picture_situation(), [probe(tmp_path / str(i), i) for i in range(3)])
    assert form is not None
    policy = load(render(form.at(form.starts[0].values)))(None, None, None)
    policy.reset(0)
    world = Drive(1)
    first, off = world.y, []
    for _ in range(600):
        world.step(policy.act(world.picture()))
        off.append(world.off)
    assert first - world.y > 300
    assert float(np.mean(np.array(off) < ROAD)) > 0.95


def test_without_pictures_there_is_no_such_form(tmp_path: Path) -> None:
    situation = picture_situation()
    episode = probe(tmp_path / "0", 0)
    (tmp_path / "0" / "observations.npz").write_bytes(b"torn")
    assert read_pictures(tmp_path / "0", situation.view.picture_shape) is None
    assert follow_form(situation, [episode]) is None
    assert follow_form(situation, []) is None


class Race:
    """The drive behind the fake door: the way made on the road pays."""

    obs_space, action_space = IMAGE, BOX

    def reset(self, seed: int) -> Any:
        self.drive, self.t = Drive(seed % 40), 0
        return self.drive.picture()

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        before, self.t = self.drive.y, self.t + 1
        self.drive.step(action)
        return self.drive.picture(), (before - self.drive.y) * (self.drive.off < ROAD), False, self.t >= 120


class PictureDoor(FakeDoor):
    """Keeps pictures outside the trajectory, as the protocol does."""

    def _episode(self, code: str, case: int, folder: Path) -> tuple[float, int]:
        policy = load(code)(*self.spaces, dict(self.meta))
        random.seed(case)
        world, pictures, rows, total, over = Race(), [], [], 0.0, False
        seen = world.reset(case)
        policy.reset(0)
        while not over:
            pictures.append(seen)
            action = policy.act(seen)
            seen, reward, terminated, over = world.step(action)
            row = {"t": len(rows), "obs": None, "action": np.asarray(action).tolist(), "reward": float(reward)}
            rows.append(json.dumps({**row, "terminated": terminated, "truncated": over, "info": {}}))
            total += float(reward)
        path = folder / f"ep_{self.episode:03d}"
        path.mkdir(parents=True)
        (path / "trajectory.jsonl").write_text("\n".join(rows) + "\n")
        np.savez(path / "observations.npz", observations=np.array(pictures))
        self.episode += 1
        return total, len(rows)


async def test_a_run_on_pictures_learns_with_few_submissions(tmp_path: Path) -> None:
    told = Transcript()
    desk = workspace(tmp_path, told)
    door = PictureDoor(tmp_path, Race, Budget(32), meta={"max_episode_steps": 120})
    reason = await SearchAgent(seed=0).run(desk, door, told)
    assert door.budget.remaining == 0
    assert "follow the ground" in reason
    assert 8 <= len(door.codes) <= MOST_SUBMISSIONS + 2


@pytest.mark.parametrize("budget", [1, 24, 128, 1000])
def test_dear_submissions_are_few(budget: int) -> None:
    assert 1 <= budget / thrifty_cases(budget) <= MOST_SUBMISSIONS


def traffic_situation() -> Situation:
    box = {"type": "Box", "shape": [3, 5], "dtype": "float32", "low": -1.0, "high": 1.0}
    meta = {"obs_space": box, "action_space": {"type": "Discrete", "n": 3, "start": 0, "dtype": "int64"}}
    return read_situation({"env_meta": meta, "episode_budget": 128}, "")


def crossing(seed: int) -> Episode:
    """One drives along x (action 0: keep, 1: slower, 2: faster), one crosses, a third is rarely there."""
    rng = np.random.default_rng(seed)
    speed, x, y, obs, actions = 0.5, -0.5, rng.uniform(-0.6, -0.2), [], []
    for t in range(12):
        third = [1.0, 0.9 - 0.02 * t, 0.5, -0.1, 0.0] if seed % 2 else [0.0] * 5
        obs.append([1.0, x, 0.0, speed, 0.3 * np.sin(t / 3), 1.0, 0.2, y, 0.0, 0.4, *third])
        action = int(rng.integers(0, 3))
        actions.append([action])
        speed = min(1.0, max(0.0, speed + 0.2 * (action == 2) - 0.2 * (action == 1)))
        x, y = x + 0.1 * speed, y + 0.1 * 0.4
    n = len(obs)
    return Episode(seed, np.array(obs), np.full(n, -1), np.array(actions, dtype=float), np.ones(n), False, True)


def test_a_table_of_moving_things_is_understood() -> None:
    episodes = [crossing(i) for i in range(5)]
    for episode in episodes:  # the own way has a second dimension
        episode.obs[:, 2] = 0.3 + np.cumsum(np.r_[0.0, 0.1 * episode.obs[:-1, 4]])
    traffic = study_traffic(episodes, traffic_situation())
    assert traffic is not None
    assert (traffic.own, traffic.presence, traffic.place, traffic.speed) == (0, 0, (1, 2), (3, 4))
    assert traffic.absolute
    assert traffic.order == (2, 0, 1)
    form = clear_form(traffic_situation(), episodes)
    assert form is not None
    policy = load(render(form.at(form.starts[0].values)))(None, None, None)
    policy.reset(0)
    own, far, met = [1, 0, 0, 1, 0], [1, 0.8, 0.9, 0.0, 0.5], [1, 0.2, -0.2, 0.0, 1.0]
    nobody = [0, 0, 0, 0, 0]
    assert policy.act(np.array([own, far, nobody], dtype=np.float32)) == 2
    assert policy.act(np.array([own, far, met], dtype=np.float32)) == 1
    assert policy.act(np.array([own, nobody, nobody], dtype=np.float32)) == 2


def test_plain_numbers_are_no_traffic() -> None:
    rng = np.random.default_rng(0)
    noise = [Episode(0, rng.normal(size=(30, 15)), np.full(30, -1), np.zeros((30, 1)), np.ones(30), False, True)]
    assert study_traffic(noise, traffic_situation()) is None
