"""What the task files of Box2D, MuJoCo, driving and Fetch claim, held against real steps."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from evotui.protocol.spaces import flatten_names
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task
from tests.suite.stepping import Step, steps

SEEDS = (11, 12, 13)
pytestmark = pytest.mark.skipif(availability(find_task("ant5")) is not None, reason="the extra core16 is not installed")


def constant(*values: float) -> Callable[[Any], np.ndarray]:
    return lambda obs: np.array(values, np.float32)


def watched(name: str, seed: int, act: Callable[[Any], Any] | None, most: int) -> Iterator[tuple[Step, Any]]:
    """Steps together with the bare environment as it is after each; the first item is before any step."""
    world = worlds.make(find_task(name))
    try:
        obs = world.reset(seed)
        bare = world._env.unwrapped
        yield Step(-1, obs, None, obs, 0.0, False, False, {}, False), bare
        for t in range(most):
            action = world.sample() if act is None else act(obs)
            after, *rest, info = world.step(action)
            yield Step(t, obs, action, after, *rest, info, False), bare
            obs = after
            if rest[1] or rest[2]:
                return
    finally:
        world.close()


# ------------------------------------------------------------------------------------------------ Box2D


def test_bipedal() -> None:
    ends = set()
    for seed, act in ((1, None), (2, constant(0, 0, 0, 0)), (3, constant(-1, 0.5, -1, 0.5)), (4, None)):
        episode = watched("bipedal", seed, act, 400)
        _start, bare = next(episode)
        assert bare.hull.position.x == pytest.approx(4.67, abs=0.05)
        x, lean = float(bare.hull.position.x), abs(float(bare.hull.angle))
        for step, _ in episode:
            way, turned = float(bare.hull.position.x) - x, abs(float(bare.hull.angle)) - lean
            x, lean = x + way, lean + turned
            expected = 130 / 30 * way - 5 * turned - 0.028 * float(np.abs(step.action).sum())
            obs = step.obs
            if step.terminated:
                assert step.reward == -100
                assert bare.game_over or x < 0
                ends.add("fell")
            else:
                assert step.reward == pytest.approx(expected, abs=1e-4)
            assert obs[0] == pytest.approx(bare.hull.angle, abs=1e-5)
            assert obs[1] == pytest.approx(2 * bare.hull.angularVelocity / 50, abs=1e-5)
            assert obs[2] == pytest.approx(0.12 * bare.hull.linearVelocity.x, abs=1e-5)
            assert obs[3] == pytest.approx(0.08 * bare.hull.linearVelocity.y, abs=1e-5)
            for first, hip, knee in ((4, 0, 1), (9, 2, 3)):
                assert obs[first] == pytest.approx(bare.joints[hip].angle, abs=1e-5)
                assert obs[first + 1] == pytest.approx(bare.joints[hip].speed / 4, abs=1e-5)
                assert obs[first + 2] == pytest.approx(bare.joints[knee].angle + 1, abs=1e-5)
                assert obs[first + 3] == pytest.approx(bare.joints[knee].speed / 6, abs=1e-5)
                assert obs[first + 4] in (0, 1)
            assert step.info == {}
    assert ends == {"fell"}
    forward = list(itertools.islice(steps(find_task("bipedal"), 1, constant(1, 0, 0, 0)), 8))[-1]
    assert forward.obs[4] > forward.before[4]  # positive swings the leg forward, to larger angles
    look = forward.obs[14:24]
    assert (np.diff(look) >= -1e-6).all()  # ray 0 looks down, later ones ahead: further over flat ground
    assert look[-1] == 1


def test_bipedal_reaches_the_end_of_its_ground() -> None:
    import gymnasium.envs.box2d.bipedal_walker as walker

    end = (walker.TERRAIN_LENGTH - walker.TERRAIN_GRASS) * walker.TERRAIN_STEP
    assert f"about {end:.1f} units" in find_task("bipedal").text


def test_racing() -> None:
    visited, lengths = 0, []
    for step, bare in watched("racing", 5, constant(0, 0.3, 0), 130):
        image, tiles = step.obs, len(bare.track)
        assert image.shape == (96, 96, 3)
        assert image.dtype == np.uint8
        if step.t >= 0:
            new = bare.tile_visited_count - visited
            assert step.reward == pytest.approx(1000 / tiles * new - 0.1, abs=1e-6)
            visited += new
            assert step.info == {}
        if step.t == 0:
            lengths.append(tiles)
    gauges = image[85:95, :12]
    assert ((gauges < 20).all(axis=2) | (gauges > 90).all(axis=2)).mean() > 0.5  # the score: white on black
    red = (image[:84, :, 0] > 180) & (image[:84, :, 1] < 40) & (image[:84, :, 2] < 40)
    rows, columns = np.nonzero(red[60:80, 40:56])
    assert (rows.min() + 60, rows.max() + 60) == pytest.approx((67, 75), abs=1)  # the car's body
    assert (columns.min() + 40, columns.max() + 40) == pytest.approx((46, 49), abs=1)
    colours = {tuple(c) for c in image[:60].reshape(-1, 3).tolist()}
    assert {(100, 202, 100), (100, 228, 100)} <= colours  # grass
    speeds = [float(s.obs[84:96, 12:15].mean()) for s, _ in watched("racing", 5, constant(0, 1, 0), 60)]
    assert speeds[55] > speeds[25] > speeds[0]  # the white bar grows with the speed
    steer = [s.obs for s, _ in watched("racing", 5, constant(1, 0, 0), 20)][-1]
    assert int(steer[84:96, 48:56, 1].max()) > 150  # steering to the right: green, to the right of column 48
    for seed in range(3):
        _start, bare = next(watched("racing", seed, None, 0))
        lengths.append(len(bare.track))
    assert all(220 <= n <= 340 for n in lengths)


def test_racing_ends_outside() -> None:
    world = worlds.make(find_task("racing"))
    world.reset(1)
    bare = world._env.unwrapped
    bare.car.hull.position = (340.0, 0.0)
    _obs, reward, terminated, _truncated, info = world.step(np.array([0, 0, 0], np.float32))
    assert (reward, terminated, info) == (-100, True, {"lap_finished": False})
    world.close()


def test_lunarlander() -> None:
    outcomes = set()
    for seed, act in ((1, None), (2, lambda obs: 0), (3, lambda obs: 2 if obs[3] < -0.1 else 0), (4, lambda obs: 1)):
        potential = None
        for step in steps(find_task("lunarlander"), seed, act):
            x, y, vx, vy, angle, _, left, right = (float(v) for v in step.obs)
            after = -100 * (math.hypot(x, y) + math.hypot(vx, vy) + abs(angle)) + 10 * (left + right)
            if potential is None:
                b = [float(v) for v in step.before]
                potential = -100 * (math.hypot(*b[:2]) + math.hypot(*b[2:4]) + abs(b[4])) + 10 * (b[6] + b[7])
                assert b[0] == pytest.approx(0, abs=0.02)
                assert b[1] == pytest.approx(1.41, abs=0.02)
            fuel = {0: 0.0, 1: 0.03, 2: 0.3, 3: 0.03}[int(step.action)]
            if step.terminated:
                assert step.reward in (-100, 100)
                outcomes.add("out" if abs(x) >= 1 else int(step.reward))
            else:
                assert step.reward == pytest.approx(after - potential - fuel, abs=2e-3)
            potential = after
            assert step.info == {}
    assert -100 in outcomes
    none, one, main, three = (
        [s.obs for s in itertools.islice(steps(find_task("lunarlander"), 1, lambda o, a=a: a), 10)][-1]
        for a in range(4)
    )
    assert one[2] < none[2] < three[2]  # 1 pushes to the left ...
    assert one[5] > none[5] > three[5]  # ... and turns counterclockwise
    assert main[3] > none[3] + 0.3


# ------------------------------------------------------------------------------------------------ MuJoCo


@pytest.mark.parametrize("name", ["reacher5", "halfcheetah5", "ant5", "pusher5"])
def test_components_add_up_and_nothing_terminates(name: str) -> None:
    task = find_task(name)
    for step in itertools.islice(steps(task, 7), 120):
        assert sum(float(step.info[key]) for key in task.reward_components) == pytest.approx(step.reward, abs=1e-5)
        weight = {"reacher5": 1.0, "halfcheetah5": 0.1, "ant5": 0.5, "pusher5": 0.1}[name]
        assert float(step.info["reward_ctrl"]) == pytest.approx(-weight * float((step.action**2).sum()), abs=1e-5)
        assert not step.terminated or name == "ant5"


@pytest.mark.parametrize(
    ("name", "dt"), [("reacher5", 0.02), ("halfcheetah5", 0.05), ("ant5", 0.05), ("pusher5", 0.05),
                     ("fetch_push", 0.04), ("fetch_pickandplace", 0.04)],
)  # fmt: skip
def test_the_length_of_a_step(name: str, dt: float) -> None:
    _start, bare = next(watched(name, 1, None, 0))
    assert bare.dt == pytest.approx(dt)
    assert f"{dt:g} s" in find_task(name).text


def test_reacher() -> None:
    for seed in SEEDS:
        for step in steps(find_task("reacher5"), seed):
            o = step.obs
            a, b = math.atan2(o[2], o[0]), math.atan2(o[3], o[1])
            tip = (0.1 * math.cos(a) + 0.11 * math.cos(a + b), 0.1 * math.sin(a) + 0.11 * math.sin(a + b))
            assert o[8:10] == pytest.approx([tip[0] - o[4], tip[1] - o[5]], abs=1e-3)
            assert step.info["reward_dist"] == pytest.approx(-math.hypot(o[8], o[9]), abs=1e-9)
            assert (step.before[4:6] == o[4:6]).all()
            assert math.hypot(o[4], o[5]) < 0.2
            if step.t == 0:
                start = step.before
                assert max(abs(math.atan2(start[2], start[0])), abs(math.atan2(start[3], start[1]))) <= 0.1
                assert np.abs(start[6:8]).max() <= 0.005


def test_halfcheetah() -> None:
    x = None
    for step, bare in watched("halfcheetah5", 7, None, 100):
        assert (np.concatenate([bare.data.qpos[1:], bare.data.qvel]) == step.obs).all()
        if step.t >= 0:
            assert step.info["x_velocity"] == step.info["reward_forward"]
            assert step.info["reward_forward"] == pytest.approx((step.info["x_position"] - x) / 0.05, abs=1e-9)
        x = bare.data.qpos[0]
    names = [bare.model.joint(i).name for i in range(9)]
    assert names == ["rootx", "rootz", "rooty", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]
    ranges = [tuple(bare.model.joint(i).range.round(3).tolist()) for i in range(3, 9)]
    assert ranges == [(-0.52, 1.05), (-0.785, 0.785), (-0.4, 0.785), (-1, 0.7), (-1.2, 0.87), (-0.5, 0.5)]
    assert bare.model.actuator_gear[:, 0].tolist() == [120, 90, 60, 120, 60, 30]
    still = sum(s.reward for s in steps(find_task("halfcheetah5"), 1, constant(*[0] * 6)))
    assert abs(still) < 2


def test_halfcheetah_pitches_nose_down_with_positive_angles() -> None:
    world = worlds.make(find_task("halfcheetah5"))
    world.reset(1)
    bare = world._env.unwrapped
    position, velocity = bare.init_qpos.copy(), bare.init_qvel.copy()
    position[2] = 0.3
    bare.set_state(position, velocity)
    front, back = (bare.data.body(name).xpos[2] for name in ("fthigh", "bthigh"))
    assert front < back
    world.close()


def test_ant() -> None:
    ended, x = False, 0.0
    for seed in (7, 8):
        for step, bare in watched("ant5", seed, None, 400):
            forces = np.clip(bare.data.cfrc_ext, -1, 1)
            assert (np.concatenate([bare.data.qpos[2:], bare.data.qvel, forces[1:].ravel()]) == step.obs).all()
            if step.t < 0:
                x = float(bare.data.body("torso").xpos[0])
                continue
            assert step.info["reward_forward"] == pytest.approx((bare.data.body("torso").xpos[0] - x) / 0.05, abs=1e-9)
            assert step.info["x_position"] == pytest.approx(bare.data.body("torso").xpos[0], abs=0.03)
            assert step.info["reward_contact"] == pytest.approx(-0.0005 * (step.obs[27:] ** 2).sum(), abs=1e-9)
            assert step.info["reward_survive"] == (0 if step.terminated else 1)
            assert step.terminated == (not 0.2 <= step.obs[0] <= 1.0)
            x, ended = float(bare.data.body("torso").xpos[0]), ended or step.terminated
    assert ended
    task, model = find_task("ant5"), bare.model
    joints = [model.joint(i).name for i in range(1, 9)]
    corner = {"1": "front left", "2": "back left", "3": "back right", "4": "front right"}
    for number, words in corner.items():  # where each leg is: front is +x, left +y
        sign = model.body(f"aux_{number}").pos
        assert words == f"{'front' if sign[0] > 0 else 'back'} {'left' if sign[1] > 0 else 'right'}"
    named = [f"{corner[j[-1]]} {j[:-2]}" for j in joints]
    assert list(task.observation_fields[5:13]) == [f"{n} angle" for n in named]
    driven = [model.joint(model.actuator_trnid[i, 0]).name for i in range(8)]
    assert list(task.action_names) == [f"{corner[j[-1]]} {j[:-2]}" for j in driven]
    for i, joint in enumerate(joints):
        low, high = model.joint(joint).range
        bent = {"hip": (-0.524, 0.524), "ankle": (0.524, 1.222) if joint[-1] in "14" else (-1.222, -0.524)}
        assert (low, high) == pytest.approx(bent[named[i].split()[-1]], abs=1e-3)
    assert sum(s.reward for s in steps(task, 1, constant(*[0] * 8))) == pytest.approx(990, abs=15)


def test_pusher() -> None:
    for seed in SEEDS:
        for step, bare in watched("pusher5", seed, None, 100):
            tip, thing, goal = step.obs[14:17], step.obs[17:20], step.obs[20:23]
            assert (bare.data.qpos[:7] == step.obs[:7]).all()
            assert (bare.data.qvel[:7] == step.obs[7:14]).all()
            assert goal == pytest.approx([0.45, -0.05, -0.323], abs=1e-9)
            assert thing[2] == pytest.approx(-0.275, abs=1e-9)
            if step.t < 0:
                assert (step.obs[:7] == 0).all()
                assert tip == pytest.approx([0.821, -0.6, 0], abs=1e-9)
                assert 0.25 <= thing[0] <= 0.65
                assert -0.35 <= thing[1] <= -0.05
                assert math.hypot(thing[0] - goal[0], thing[1] - goal[1]) > 0.17
                continue
            assert step.info["reward_dist"] == pytest.approx(-np.linalg.norm(thing - goal), abs=1e-9)
            rod = bare.data.body("tips_arm").xpos
            assert (tip == rod).all()
            assert step.info["reward_near"] == pytest.approx(-0.5 * np.linalg.norm(thing - tip), abs=1e-9)
    joints = [bare.model.joint(i) for i in range(7)]
    assert [j.name[2:-6].replace("_", " ") for j in joints] == list(find_task("pusher5").action_names)
    told = re.findall(r"^\| \d \|[^|]*\| *(?:(\S+) to (\S+)|±(\S+)) \|$", find_task("pusher5").text, re.MULTILINE)
    assert len(told) == 7
    for joint, (low, high, both) in zip(joints, told, strict=True):
        bounds = [float((low or "-" + both).replace("−", "-")), float(high or both)]
        assert bounds == pytest.approx(joint.range.tolist(), abs=0.006)
    rest = [s.obs for s in steps(find_task("pusher5"), 1, constant(*[0] * 7))][-1]
    assert np.abs(rest[:7]).max() < 0.02  # no gravity on the arm


# ------------------------------------------------------------------------------------------------ driving and Fetch


def _parking_cost(obs: dict[str, np.ndarray]) -> float:
    gap = np.abs(obs["achieved_goal"] - obs["desired_goal"])
    return float(np.sqrt(gap @ np.array([1, 0.3, 0, 0, 0.02, 0.02])))


def test_parking() -> None:
    crashed = False
    for seed, act in ((1, None), (2, constant(1, 0)), (3, constant(-1, 0.2))):
        for step in itertools.islice(steps(find_task("parking"), seed, act), 60):
            obs = step.obs
            assert (obs["observation"] == obs["achieved_goal"]).all()
            cost = _parking_cost(obs)
            assert step.reward == pytest.approx(-cost - 5 * step.info["crashed"], abs=1e-6)
            assert bool(step.info["is_success"]) == (cost < 0.12)
            assert step.terminated == (step.info["crashed"] or bool(step.info["is_success"]))
            assert set(step.info) == {"is_success", "crashed", "speed", "action"}
            speed, car = float(step.info["speed"]), obs["achieved_goal"]
            assert 5 * car[2] == pytest.approx(speed * car[4], abs=1e-6)
            assert 5 * car[3] == pytest.approx(speed * car[5], abs=1e-6)
            if step.t == 0:
                space = step.before["desired_goal"]
                assert (step.before["observation"][:4] == 0).all()
                assert abs(space[1]) == pytest.approx(0.14)
                assert ((100 * space[0] + 26) / 4) == pytest.approx(round((100 * space[0] + 26) / 4))
                assert abs(space[0]) <= 0.26 + 1e-9
                assert space[2:].tolist() == pytest.approx([0, 0, 0, math.copysign(1, space[1])], abs=1e-6)
            crashed = crashed or step.info["crashed"]
    assert crashed
    one = next(steps(find_task("parking"), 4, constant(1, 0)))
    assert one.info["speed"] == pytest.approx(1.0, abs=1e-6)  # 5 m/s² for 0.2 s
    *_, turned = itertools.islice(steps(find_task("parking"), 4, constant(0.5, 1)), 4)
    before, after = (math.atan2(o["observation"][5], o["observation"][4]) for o in (turned.before, turned.obs))
    assert math.remainder(after - before, math.tau) > 0
    first = list(
        flatten_names(worlds.describe(find_task("parking")).obs_schema, find_task("parking").observation_fields)
    )
    assert (first[0], first[6], first[12]) == ("achieved x", "desired x", "car x")


def test_parking_turns_in_a_circle_of_the_radius_that_is_told() -> None:
    def drive(obs: dict[str, np.ndarray]) -> np.ndarray:
        return np.array([0.2 if math.hypot(*obs["observation"][2:4]) < 0.3 else 0, 1], np.float32)

    driven = itertools.islice(steps(find_task("parking"), 4, drive), 60)
    circle = np.array([100 * step.obs["observation"][:2] for step in driven][10:])
    x, y = circle.T
    a, b, c = np.linalg.lstsq(np.column_stack([2 * x, 2 * y, np.ones(len(x))]), x**2 + y**2, rcond=None)[0]
    radius = math.sqrt(c + a * a + b * b)
    assert f"about {radius:.1f} m" in find_task("parking").text


def test_roundabout() -> None:
    crashes = 0
    for seed, act in ((1, None), (2, lambda obs: 3), (3, lambda obs: 3), (4, lambda obs: 4), (6, lambda obs: 3)):
        for step, bare in watched("roundabout", seed, act, 11):
            obs = step.obs
            car = bare.vehicle
            own = [1, car.position[0] / 100, car.position[1] / 100, car.velocity[0] / 15, car.velocity[1] / 15]
            assert obs[0] == pytest.approx(np.clip(own, -1, 1), abs=1e-5)
            assert set(obs[:, 0]) <= {0, 1}
            assert (obs[obs[:, 0] == 0] == 0).all()
            if step.t < 0:
                assert obs[0] == pytest.approx([1, 0.02, 0.45, 0, -8 / 15], abs=1e-6)
                speed, was = 8.0, 1
                continue
            parts, gear = step.info["rewards"], [0, 8, 16].index(bare.vehicle.target_speed)
            near = min(max(round(speed / 8), 0), 2)
            shift = {3: 1, 4: -1}.get(int(step.action))
            assert gear == (was if shift is None else min(max(near + shift, 0), 2))
            change = int(step.action) in (0, 2)
            assert parts["high_speed_reward"] == gear / 2
            assert bool(parts["lane_change_reward"]) == change
            expected = (1 - bool(step.info["crashed"]) + 0.1 * gear - 0.05 * change) / 1.2
            assert step.reward == pytest.approx(expected * bool(parts["on_road_reward"]), abs=1e-9)
            assert step.terminated == bool(step.info["crashed"])
            assert step.truncated == (step.t == 10)
            crashes += step.terminated
            speed, was = float(step.info["speed"]), gear
    assert crashes
    assert bare.action_type.actions == {0: "LANE_LEFT", 1: "IDLE", 2: "LANE_RIGHT", 3: "FASTER", 4: "SLOWER"}


@pytest.mark.parametrize("name", ["fetch_push", "fetch_pickandplace"])
def test_fetch(name: str) -> None:
    starts = []
    for seed in range(12):
        for step, _bare in watched(name, seed, None, 6 if seed else 50):
            obs, goal = step.obs["observation"], step.obs["desired_goal"]
            away = float(np.linalg.norm(step.obs["achieved_goal"] - goal))
            assert (obs[3:6] == step.obs["achieved_goal"]).all()
            assert obs[6:9] == pytest.approx(obs[3:6] - obs[:3], abs=1e-12)
            if step.t < 0:
                starts.append((obs.copy(), goal.copy()))
                continue
            assert step.reward == (-1 if away > 0.05 else 0)
            assert float(step.info["is_success"]) == (away < 0.05)
            assert not step.terminated
        if not seed:
            assert step.truncated
            assert step.t == 49
    for obs, goal in starts:
        assert obs[5] == pytest.approx(0.425, abs=1e-3)
        assert np.abs(obs[6:8]).max() <= 0.16
        assert np.abs(goal[:2] - obs[:2]).max() <= 0.16
        assert math.hypot(*obs[6:8]) >= 0.09
        assert 0.42 <= goal[2] <= (0.426 if name == "fetch_push" else 0.88)
    heights = {round(float(goal[2]), 3) for _, goal in starts}
    assert (len(heights) > 1) == (name == "fetch_pickandplace")
    told = find_task(name).text.replace("\n", " ")
    at = "(" + ", ".join(f"{v:.2f}" for v in np.median([o[:3] for o, _ in starts], axis=0)) + ")"
    assert at in told


def test_fetch_moves_and_grips() -> None:
    task = find_task("fetch_pickandplace")
    for axis in range(3):
        action = np.zeros(4, np.float32)
        action[axis] = 1
        *_, last = itertools.islice(steps(task, 3, lambda obs, action=action: action), 10)
        moved = last.obs["observation"][:3] - next(steps(task, 3)).before["observation"][:3]
        assert moved[axis] > 0.25
        assert np.abs(np.delete(moved, axis)).max() < 0.02
        speed = last.obs["observation"][20 + axis] / (last.obs["observation"][axis] - last.before["observation"][axis])
        assert 0.4 < speed < 2.5  # velocities are per step, not per second
    for push, width in ((1, 0.05), (-1, 0.0)):
        *_, last = itertools.islice(steps(task, 3, constant(0, 0, 0, push)), 10)
        assert last.obs["observation"][9:11] == pytest.approx([width, width], abs=0.003)
    *_, held = itertools.islice(steps(find_task("fetch_push"), 3, constant(0, 0, 0, 1)), 10)
    assert np.abs(held.obs["observation"][9:11]).max() < 0.003  # the closed gripper stays closed
