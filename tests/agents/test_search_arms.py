"""Forms for arms, pushes that end, gentle pumps and the explorer's news: on trajectories made here."""

from __future__ import annotations

import numpy as np

from evotui.agents.search.code import render
from evotui.agents.search.features import find_coordinates, study
from evotui.agents.search.features_arms import find_payment, fit_law
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms import library
from evotui.agents.search.forms_arms import reach_form
from evotui.agents.search.forms_pulse import pulse_form, settled
from evotui.agents.search.grid_policy import DOOR, EMPTY, LOCKED, OPEN, WALL, Policy
from evotui.agents.search.spaces import Situation, read_situation
from tests.agents.fakes import load

STEPS = 40


class Arm:
    """Two links of 0.5 and 0.4, each turned by a torque of its own with some drag; the cosines come first."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.q, self.v = rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.1, 0.1, 2)
        turn, far = rng.uniform(-1.5, 1.5), rng.uniform(0.4, 0.8)
        self.target = far * np.array([np.cos(turn), np.sin(turn)])

    def miss(self) -> np.ndarray:
        a, b = self.q[0], self.q[0] + self.q[1]
        return np.array([0.5 * np.cos(a) + 0.4 * np.cos(b), 0.5 * np.sin(a) + 0.4 * np.sin(b)]) - self.target

    def observe(self) -> np.ndarray:
        return np.concatenate([np.cos(self.q), np.sin(self.q), self.target, self.v, self.miss()])

    def step(self, u: np.ndarray) -> float:
        self.v = self.v + 0.8 * u - 0.05 * self.v
        self.q = self.q + 0.1 * self.v
        return -float(np.linalg.norm(self.miss())) - 0.1 * float((u**2).sum())


def box(n: int, low: float, high: float) -> dict[str, object]:
    return {"type": "Box", "shape": [n], "dtype": "float64", "low": [low] * n, "high": [high] * n}


def situation(fields: int, actions: dict[str, object], steps: int = STEPS) -> Situation:
    meta = {"obs_space": box(fields, -9.0, 9.0), "action_space": actions, "max_episode_steps": steps}
    return read_situation({"env_meta": meta, "episode_budget": 64}, "")


def rollout(seed: int, act: object) -> Episode:
    arm = Arm(seed)
    seen, acts, paid = [], [], []
    for _ in range(STEPS):
        obs = arm.observe()
        u = np.asarray(act(obs), dtype=float)  # type: ignore[operator]
        seen.append(obs)
        acts.append(u)
        paid.append(arm.step(u))
    none = np.full(STEPS, -1)
    return Episode(seed, np.array(seen), none, np.array(acts), np.array(paid), False, True)


def probes(count: int = 4) -> list[Episode]:
    rng = np.random.default_rng(7)
    return [rollout(seed, lambda obs: rng.uniform(-1.0, 1.0, 2)) for seed in range(count)]


def test_the_law_of_the_reward_is_found() -> None:
    payment = find_payment(probes())
    assert payment is not None
    assert [m.a for m in payment.misses] == [(8, 9)]
    assert abs(payment.misses[0].weight - 1.0) < 0.01
    assert abs(payment.cost - 0.1) < 0.01


def test_two_distances_between_groups_of_fields_are_found() -> None:
    rng = np.random.default_rng(0)
    walk = rng.normal(0.0, 1.0, (400, 9))
    acts = rng.uniform(-1.0, 1.0, (400, 2))
    near = np.linalg.norm(walk[1:, 0:3] - walk[1:, 3:6], axis=1)
    goal = np.linalg.norm(walk[1:, 3:6] - walk[1:, 6:9], axis=1)
    rewards = np.append(-0.5 * near - goal - 0.2 * (acts[:-1] ** 2).sum(axis=1), 0.0)
    payment = find_payment([Episode(0, walk, np.zeros(400), acts, rewards, False, True)])
    assert payment is not None
    found = {(m.a, m.b): round(m.weight, 2) for m in payment.misses}
    assert found == {((0, 1, 2), (3, 4, 5)): 0.5, ((3, 4, 5), (6, 7, 8)): 1.0}


def test_rewards_of_another_kind_have_no_such_law() -> None:
    rng = np.random.default_rng(1)
    walk = rng.normal(0.0, 1.0, (200, 5))
    episode = Episode(0, walk, np.zeros(200), rng.normal(0, 1, (200, 1)), rng.normal(0, 1, 200), False, True)
    assert find_payment([episode]) is None
    assert reach_form(situation(5, box(1, -1.0, 1.0)), study([episode], situation(5, box(1, -1.0, 1.0))), []) is None


def test_a_law_keeps_the_terms_that_matter_only() -> None:
    rng = np.random.default_rng(2)
    columns = rng.normal(0.0, 1.0, (100, 8))
    law, explained = fit_law(2.0 * columns[:, 1] - 0.5 * columns[:, 6], columns)
    assert np.flatnonzero(law).tolist() == [1, 6]
    assert explained > 0.9999


def test_angles_whose_cosines_stand_together_are_found() -> None:
    used = probes()
    x, y = np.vstack([e.obs[:-1] for e in used]), np.vstack([e.obs[1:] for e in used])
    found = {(c.cos, c.sin, c.velocity) for c in find_coordinates(x, y, [f"f {i}" for i in range(10)]) if c.is_angle}
    assert found == {(0, 2, 6), (1, 3, 7)}


def test_the_planned_arm_reaches_targets_that_it_never_saw() -> None:
    here = situation(10, box(2, -1.0, 1.0))
    used = probes()
    facts = study(used, here)
    form = reach_form(here, facts, used)
    assert form is not None
    assert library(here, facts, used)[0].key == "reach"
    code = render(form)
    assert "np.cos(a) * np.cos(b)" in code
    policy = load(code)(here.obs_space, here.action_space, {})
    for seed in (100, 101, 102):
        policy.reset(0)
        episode = rollout(seed, policy.act)
        idle = rollout(seed, lambda obs: np.zeros(2))
        assert float(np.linalg.norm(episode.obs[-1, 8:])) < 0.03
        assert episode.total > 0.5 * idle.total


def test_a_push_ends_and_rests() -> None:
    here = situation(3, box(2, -1.0, 1.0))
    form = pulse_form(here)
    assert form is not None
    policy = load(render(form.at((3.0, 0.5, -2.0))))(here.obs_space, here.action_space, {})
    policy.reset(0)
    acts = [policy.act(np.zeros(3)).tolist() for _ in range(5)]
    assert acts == [[0.5, -1.0]] * 3 + [[0.0, 0.0]] * 2
    policy.reset(1)
    assert policy.act(np.zeros(3)).tolist() == [0.5, -1.0]
    assert pulse_form(situation(3, box(2, 0.0, 1.0))) is None
    assert not any(settled(form).scales)


def explorer(cells: dict[tuple[int, int], tuple[int, int, int]]) -> Policy:
    policy = Policy({}, {}, {})
    policy.map = cells
    policy.sides, policy.deep = range(-3, 4), 7
    return policy


def test_walls_and_closed_doors_hide_news() -> None:
    room = {(x, y): (EMPTY, 0, 0) for x in range(3) for y in range(-3, 4)}
    wall = {(3, y): (WALL, 0, 0) for y in range(-6, 7)}
    sides = {(x, y): (WALL, 0, 0) for x in range(-1, 4) for y in (-4, 4)}
    closed = explorer({**room, **wall, **sides})
    assert closed._news((0, 0), 0) == 0
    shut = explorer({**room, **wall, **sides, (3, 0): (DOOR, 0, LOCKED)})
    assert shut._news((0, 0), 0) == 0
    ajar = explorer({**room, **wall, **sides, (3, 0): (DOOR, 0, OPEN)})
    assert 0 < ajar._news((0, 0), 0) < explorer(room)._news((0, 0), 0)
