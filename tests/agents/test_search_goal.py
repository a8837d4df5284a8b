"""Tasks with goals: what is found in trajectories, what the forms do with it, and a short run on the real thing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evotui.agents.search import SearchAgent
from evotui.agents.search.code import Form, render
from evotui.agents.search.features import study
from evotui.agents.search.features_goal import find_goals, find_hand, goal_distance
from evotui.agents.search.features_vehicle import find_cost, find_vehicle
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms import library
from evotui.agents.search.forms_goal import goal_forms
from evotui.agents.search.forms_vehicle import lookahead_form
from evotui.agents.search.session import Trial
from evotui.agents.search.spaces import Situation, read_situation
from evotui.protocol.budget import Budget
from tests.agents.fakes import FakeDoor, Transcript, load, workspace


def box(n: int, size: float = np.inf) -> dict[str, Any]:
    return {"type": "Box", "shape": [n], "dtype": "float64", "low": [-size] * n, "high": [size] * n}


def goal_space(goal: int, rest: int) -> dict[str, Any]:
    return {
        "type": "Dict",
        "spaces": {"achieved_goal": box(goal), "desired_goal": box(goal), "observation": box(rest)},
    }


class Table:
    """A hand that follows its command with a delay, over a table in three axes or on a plane in two, and a disc that it
    pushes out of its way. Axis ``up`` is the second one, so that no order can be taken for granted.

    Observed: fingers, disc − hand, hand, its velocity. Actions: one that only moves the fingers (spatial), then the
    axes in reverse order. −1 a step unless the disc is within 0.05 of its goal.
    """

    def __init__(self, axes: int = 3, thing: bool = True) -> None:
        self.axes, self.thing = axes, thing
        self.spare = 1 if axes == 3 else 0
        self.obs_space = goal_space(axes, 3 * axes + 1)
        self.action_space = box(axes + self.spare, 1.0)
        self.flat = [0, 2] if axes == 3 else [0, 1]

    def reset(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        self.hand, self.velocity, self.fingers, self.t = np.full(self.axes, 5.0), np.zeros(self.axes), 0.5, 0
        self.disc, self.goal = np.full(self.axes, 5.0), np.full(self.axes, 5.0)
        for place in (self.disc, self.goal):
            angle = rng.uniform(0.0, 2 * math.pi)
            place[self.flat] += rng.uniform(0.12, 0.2) * np.array([math.cos(angle), math.sin(angle)])
        if not self.thing:
            self.disc = self.hand
        return self.observe()

    def observe(self) -> Any:
        rest = [[self.fingers], self.disc - self.hand, self.hand, self.velocity]
        return {
            "achieved_goal": self.disc.copy(), "desired_goal": self.goal.copy(), "observation": np.concatenate(rest),
        }  # fmt: skip

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        action = np.clip(np.asarray(action, dtype=float), -1.0, 1.0)
        if self.spare:
            self.fingers = float(np.clip(self.fingers + 0.3 * action[0], 0.0, 1.0))
        self.velocity = 0.5 * self.velocity + 0.015 * action[self.spare :][::-1]
        self.hand += self.velocity
        if self.axes == 3:
            self.hand[1] = max(self.hand[1], 4.99)
        offset = (self.disc - self.hand)[self.flat]
        far = float(np.hypot(*offset))
        beside = self.axes == 2 or abs(self.hand[1] - self.disc[1]) < 0.04
        if self.thing and beside and 0.0 < far < 0.05:
            self.disc[self.flat] += offset / far * (0.05 - far)
        self.t += 1
        near = float(np.abs(self.disc - self.goal).max()) < 0.05
        return self.observe(), 0.0 if near else -1.0, False, self.t >= 60


class Car:
    """A car that is to stand in a pose: −√(|Δx| + |Δy| + 0.1·|Δcos| + 0.1·|Δsin|) a step, the end where it does."""

    obs_space = goal_space(6, 6)
    action_space = box(2, 1.0)

    def reset(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        self.pose, self.speed, self.t = np.array([0.0, 0.0, rng.uniform(-3, 3)]), 0.0, 0
        self.goal = np.array([rng.uniform(-3, 3), rng.choice((-2.0, 2.0)), 0, 0, 0, 1.0])
        return self.observe()

    def observe(self) -> Any:
        x, y, heading = self.pose
        c, s = math.cos(heading), math.sin(heading)
        now = np.array([x, y, self.speed * c, self.speed * s, c, s])
        return {"achieved_goal": now, "desired_goal": self.goal.copy(), "observation": now.copy()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        steer, throttle = (float(a) for a in np.clip(action, -1, 1))
        self.speed += 0.3 * throttle
        self.pose[2] += 0.2 * self.speed * steer
        self.pose[:2] += 0.1 * self.speed * np.array([math.cos(self.pose[2]), math.sin(self.pose[2])])
        self.t += 1
        obs = self.observe()
        cost = math.sqrt(np.abs(obs["achieved_goal"] - self.goal) @ [1, 1, 0, 0, 0.1, 0.1])
        return obs, -cost, cost < 0.5, self.t >= 100


def situation_of(world: Any) -> Situation:
    meta = {"obs_space": world.obs_space, "action_space": world.action_space, "max_episode_steps": 100}
    return read_situation({"episode_budget": 64, "env_meta": meta}, "")


def rollout(world: Any, act: Callable[[Any], Any], seed: int) -> tuple[Episode, float]:
    """One episode of ``world`` as feedback, and its return."""
    obs, rows, over = world.reset(seed), [], False
    while not over:
        action = act(obs)
        flat = np.concatenate([obs[key] for key in ("achieved_goal", "desired_goal", "observation")])
        obs, reward, terminated, truncated = world.step(action)
        rows.append((flat, np.asarray(action, dtype=float), reward))
        over = terminated or truncated
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    found = Episode(seed, columns[0], np.full(len(rows), -1), columns[1], columns[2], terminated, truncated)
    return found, float(columns[2].sum())


def probes(world: Any, count: int, seed: int = 0) -> list[Episode]:
    """Episodes of random actions that last a few steps each."""
    rng = np.random.default_rng(seed)
    n = world.action_space["shape"][0]
    episodes = []
    for i in range(count):
        plan = np.repeat(rng.uniform(-1, 1, (60, n)), rng.integers(1, 7, 60), axis=0)
        steps = iter(plan)
        episodes.append(rollout(world, lambda obs, steps=steps: next(steps, np.zeros(n)), 100 * seed + i)[0])
    return episodes


def play(form: Form, world: Any, seeds: range) -> np.ndarray:
    """Returns of a form at its first start."""
    policy = load(render(form.at(form.starts[0].values)))(world.obs_space, world.action_space, {})
    totals = []
    for seed in seeds:
        policy.reset(seed)
        totals.append(rollout(world, policy.act, seed)[1])
    return np.array(totals)


@pytest.mark.parametrize("seed", range(4))
def test_a_hand_is_found_with_its_axes_actions_and_fingers(seed: int) -> None:
    world = Table()
    hand = find_hand(probes(world, 3, seed), situation_of(world))
    assert hand is not None
    assert hand.fields == (10, 11, 12)
    assert hand.actions == (3, 2, 1)
    assert hand.stride == pytest.approx((0.03, 0.03, 0.03), rel=0.1)
    assert (hand.up, hand.up_sign) == (1, 1.0)
    assert (hand.grip, hand.fingers, hand.grip_sign) == (0, 6, 1.0)
    assert not hand.is_thing
    assert not hand.aloft


def test_no_hand_where_actions_move_nothing() -> None:
    world = Table()
    still = [Episode(0, np.tile(e.obs[:1], (len(e), 1)), e.cells, e.actions, e.rewards, False, True)
             for e in probes(world, 3)]  # fmt: skip
    rng = np.random.default_rng(0)
    noise = [Episode(0, rng.normal(size=e.obs.shape), e.cells, e.actions, e.rewards, False, True) for e in still]
    for episodes in (still, noise, []):
        assert find_hand(episodes, situation_of(world)) is None
        assert goal_forms(situation_of(world), episodes) == []
    assert find_vehicle(probes(Car(), 1)[:0], situation_of(Car())) is None


class Puck(Table):
    """Pushed by forces: what its actions move is its velocity, which is no hand."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        self.velocity = self.velocity + 0.01 * np.asarray(action, dtype=float)
        self.hand += self.velocity
        self.t += 1
        return self.observe(), -1.0, False, self.t >= 60


def test_a_velocity_is_no_hand() -> None:
    world = Puck(2, thing=False)
    assert find_hand(probes(world, 3), situation_of(world)) is None


def test_a_thing_that_trembles_is_not_taken_for_the_hand() -> None:
    world = Table()
    episodes = probes(world, 3)
    for e in episodes:
        for field in (0, 7):  # the thing, and its difference from the hand
            e.obs[1:, field] += 1e-7 * np.cumsum(e.actions[:-1, 3])
    hand = find_hand(episodes, situation_of(world))
    assert hand is not None
    assert hand.fields == (10, 11, 12)
    assert not hand.is_thing


@pytest.mark.parametrize("axes", [2, 3])
def test_the_thing_is_pushed_to_the_goal(axes: int) -> None:
    world = Table(axes)
    situation = situation_of(world)
    forms = {form.key: form for form in goal_forms(situation, probes(world, 3))}
    assert ("grasp" in forms) == (axes == 3)
    totals = play(forms["push"], world, range(500, 512))
    assert np.median(totals) > -40, totals
    assert (totals > -60).mean() > 0.8, totals


def test_a_hand_that_is_the_thing_goes_to_the_goal() -> None:
    world = Table(3, thing=False)
    forms = goal_forms(situation_of(world), probes(world, 3))
    assert [form.key for form in forms] == ["hand-to-goal"]
    assert play(forms[0], world, range(500, 506)).min() > -15


def test_a_vehicle_and_what_it_pays_are_found_and_it_arrives() -> None:
    world = Car()
    situation, episodes = situation_of(world), probes(Car(), 4)
    vehicle, cost = find_vehicle(episodes, situation), find_cost(episodes, situation)
    assert vehicle is not None
    assert (vehicle.x, vehicle.y, vehicle.cos, vehicle.sin, vehicle.throttle, vehicle.steering) == (0, 1, 4, 5, 1, 0)
    assert (vehicle.pace, vehicle.push, vehicle.turn) == pytest.approx((0.1, 0.3, 0.2), rel=0.05)
    assert cost is not None
    assert cost.power == 0.5
    assert cost.weights == pytest.approx((1, 1, 0, 0, 0.1, 0.1), abs=1e-6)
    form = lookahead_form(situation, episodes)
    assert form is not None
    random_mean = np.mean([e.total for e in probes(world, 6, seed=5)])
    assert play(form, world, range(500, 506)).mean() > 0.5 * random_mean
    assert "\nimport random" not in render(form)


def test_forms_that_know_nothing_of_goals_cost_nothing() -> None:
    world = Table()
    episodes, situation = probes(world, 3), situation_of(world)
    keys = [form.key for form in library(situation, study(episodes, situation), episodes)]
    assert keys[0] in ("push", "grasp")
    assert set(keys) == {"push", "grasp", "constant"}


def test_nearness_to_the_goal_breaks_ties(tmp_path: Path) -> None:
    from evotui.agents.search.session import Session
    from evotui.agents.search.stages import Search

    world = Table()
    situation = situation_of(world)
    goals = find_goals(situation.view)
    assert goals is not None
    assert (goals.achieved, goals.desired) == ((0, 1, 2), (3, 4, 5))
    told = Transcript()
    session = Session(situation, workspace(tmp_path, told), FakeDoor(tmp_path, Table, Budget(8)), told)
    (episode,) = probes(world, 1)
    nearer = Episode(0, episode.obs.copy(), episode.cells, episode.actions, episode.rewards, False, True)
    nearer.obs[-15:, :3] = 0.9 * nearer.obs[-15:, :3] + 0.1 * nearer.obs[-15:, 3:6]
    assert goal_distance(nearer.obs, goals) == pytest.approx(0.9 * goal_distance(episode.obs, goals))
    form = goal_forms(situation, probes(world, 3))[0]
    far = Trial(form, [(0, -60.0, 60, session._wander(episode))])
    near = Trial(form, [(0, -60.0, 60, session._wander(nearer))])
    search = Search(session, 0)
    assert search.key(near) > search.key(far)
    assert search.key(Trial(form, [(0, -59.0, 60, -9.0)])) > search.key(near)


async def evolve(root: Path, world: Callable[[], Any], budget: int, seed: int = 0, **door: Any) -> FakeDoor:
    told = Transcript()
    made = FakeDoor(root, world, Budget(budget), **door)
    await SearchAgent(seed=seed).run(workspace(root, told), made, told)
    return made


async def test_the_seed_of_the_agent_reaches_the_first_draws(tmp_path: Path) -> None:
    runs = [await evolve(tmp_path / str(i), Table, 8, seed) for i, seed in enumerate((0, 0, 1))]
    actions = []
    for i in range(3):
        rows = sorted((tmp_path / str(i) / "feedback" / "submit_000").rglob("trajectory.jsonl"))
        actions.append([row.read_text() for row in rows])
    assert runs[0].codes == runs[1].codes
    assert actions[0] == actions[1] != actions[2]
    assert len(set(actions[0])) == len(actions[0])
    assert runs[0].codes[1:] != runs[2].codes[1:]


class Push:
    """The suite's task of that kind, behind the fake door's interface."""

    def __init__(self) -> None:
        import gymnasium
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        self._env = gymnasium.make("FetchPush-v4")
        self.obs_space, self.action_space = goal_space(3, 25), box(4, 1.0)

    def reset(self, seed: int) -> Any:
        return self._env.reset(seed=seed)[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        obs, reward, terminated, truncated, _ = self._env.step(np.asarray(action, dtype=np.float32))
        return obs, float(reward), bool(terminated), bool(truncated)


async def test_a_short_real_run_beats_random_by_far(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium_robotics")
    door = await evolve(tmp_path, Push, 14, meta={"max_episode_steps": 50})
    policy, world = load(door.codes[-1])({}, {}, {}), Push()
    totals = []
    for seed in range(900, 908):
        policy.reset(0)
        totals.append(rollout(world, policy.act, seed)[1])
    assert np.mean(totals) > -30, totals  # random actions: −48
