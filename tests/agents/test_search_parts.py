"""Parts of the search agent: names from texts, the budget's plan, code, facts from trajectories, grids and tables."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from evotui.agents.search import SearchAgent
from evotui.agents.search.code import Constant, Form, render, tidy
from evotui.agents.search.features import find_coordinates, regulator
from evotui.agents.search.grid import codes_in_text, explorer_form
from evotui.agents.search.names import identifier, names_in_text
from evotui.agents.search.optimise import Tuner
from evotui.agents.search.plan import cases_per_candidate, make_plan
from evotui.agents.search.spaces import read_situation, read_view
from evotui.protocol.budget import Budget
from tests.agents.fakes import FakeDoor, Transcript, load, workspace


@pytest.mark.parametrize("budget", [*range(1, 40), 64, 100, 128, 1000])
@pytest.mark.parametrize("probes", [True, False])
def test_a_plan_spends_the_budget(budget: int, probes: bool) -> None:
    plan = make_plan(budget, probes)
    parts = (plan.probe, plan.explore, plan.tune, plan.confirm)
    assert sum(parts) == budget
    assert min(parts) >= 0
    assert plan.explore >= 1


def test_more_cases_where_cases_matter_more() -> None:
    assert cases_per_candidate(80, 8, 0.0, 5.0) == 1
    assert cases_per_candidate(80, 8, 5.0, 5.0) == 2
    assert cases_per_candidate(20, 8, 5.0, 5.0) == 1
    assert cases_per_candidate(1000, 8, 5.0, 5.0) == 4


def test_names_are_read_from_tables_lists_and_prose() -> None:
    text = "## Observation\n| index | value |\n|---|---|\n"
    text += "| 0, 1 | cosine and sine of the angle | ±1 |\n| 2 | speed, rad/s |\n"
    assert names_in_text(text, 3, "observation") == ("cosine of the angle", "sine of the angle", "speed")
    assert names_in_text("# Actions\n- 0: left (fast)\n- 1: right\n", 2, "action") == ("left", "right")
    assert names_in_text("# Action\nSend `0` for up, `1` for down.", 2, "action") == ("for up", "for down")
    assert names_in_text(text, 4, "observation") == ()
    assert names_in_text("# Reward\n- 0: left\n- 1: right\n", 2, "action") == ()


def test_identifiers_are_valid_and_distinct() -> None:
    taken: set[str] = set()
    made = [
        identifier(name, taken) for name in ("θ", "class", "obs", "7th, joint", "", "cart position", "cart position")
    ]
    assert all(name.isidentifier() for name in made)
    assert len(set(made)) == len(made)
    assert "obs" not in made
    assert "class" not in made


def test_constants_are_written_as_they_are_remembered() -> None:
    form = Form(
        "f", "a form", "", "Does it.", ("return GAIN * LIST[0]",),
        (Constant("GAIN", (1.0,), (1.0,), "a gain", high=2.0),
         Constant("LIST", (1.0, 2.0), (1.0, 1.0), "x", is_tuple=True)),
    )  # fmt: skip
    made = form.at((123.456, math.pi, math.nan))
    assert made.values == (2.0, 3.142, 0.0)
    names: dict[str, Any] = {}
    exec(render(made), names)
    assert (names["GAIN"], *names["LIST"]) == made.values
    assert str(tidy(-0.0)) == "0.0"


def test_coordinates_and_gains_of_a_double_integrator() -> None:
    rng = np.random.default_rng(3)
    rows, pushes, state = [], [], np.zeros(2)
    for _ in range(200):
        push = rng.choice([-1.0, 1.0])
        rows.append([*state, math.cos(state[0]), math.sin(state[0])])
        pushes.append(push)
        state = np.array([state[0] + 0.1 * state[1], state[1] + 0.1 * push])
    data = np.array(rows)
    found = find_coordinates(data[:-1], data[1:], ["x", "v", "cos x", "sin x"])
    assert any(c.velocity == 1 and (c.index == 0 or c.is_angle) for c in found)
    pair = data[:, :2]
    gains, fit = regulator(pair[:-1], pair[1:], np.array(pushes[:-1]), pair.std(axis=0))
    assert fit > 0.99
    assert gains[0] > 0 and gains[1] > 0  # pushes back, against both distance and speed


async def test_the_tuner_descends_and_repeats_itself() -> None:
    constants = (
        Constant("A", (3.0,), (1.0,), ""),
        Constant("B", (-2.0,), (1.0,), ""),
        Constant("C", (7.0,), (0.0,), ""),
    )
    form = Form("f", "f", "", "F.", ("return 0",), constants)

    async def run(seed: int) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
        tuner, seen = Tuner(form, 8, seed), []
        for _ in range(25):
            candidates = await tuner.ask()
            seen += [c.values for c in candidates]
            cost = [sum(v * v for v in c.values[:2]) for c in candidates]
            await tuner.tell([float(r) for r in np.argsort(np.argsort(cost))])
        return tuner.mean().values, seen

    state = np.random.get_state()[1].copy()  # type: ignore[index]
    centre, first = await run(1)
    assert np.array_equal(np.random.get_state()[1], state)  # type: ignore[index]
    assert math.hypot(*centre[:2]) < 0.1
    assert centre[2] == 7.0
    assert (await run(1))[1] == first
    assert (await run(2))[1] != first


def test_codes_come_from_the_text_or_are_the_usual_ones() -> None:
    states = (("open", 0), ("closed", 1), ("locked", 2))
    assert codes_in_text("a door: 2 open, 0 closed, 1 locked", states) == (2, 0, 1)
    assert codes_in_text("nothing of the kind", states) == (0, 1, 2)


def test_the_explorer_opens_doors_and_finds_goals() -> None:
    import gymnasium
    import minigrid

    gymnasium.register_envs(minigrid)
    for name, least in (("MiniGrid-DoorKey-6x6-v0", 0.9), ("MiniGrid-KeyCorridorS3R2-v0", 0.8)):
        env = gymnasium.make(name)
        grid = {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8", "low": 0, "high": 255}
        spaces = {
            "direction": {"type": "Discrete", "n": 4},
            "image": grid,
            "mission": {"type": "Text", "max_length": 9},
        }
        meta = {"obs_space": {"type": "Dict", "spaces": spaces}, "action_space": {"type": "Discrete", "n": 7}}
        form = explorer_form(read_situation({"env_meta": meta, "episode_budget": 8}, ""))
        assert form is not None
        policy = load(render(form))({}, {}, {})
        totals = []
        for seed in range(6):
            obs, _ = env.reset(seed=seed)
            policy.reset(0)
            over = False
            while not over:
                obs, reward, terminated, truncated, _ = env.step(policy.act(obs))
                over = terminated or truncated
            totals.append(float(reward))
        assert np.mean(totals) > least, (name, totals)


class Corridor:
    """Nine cells in a row; the right end pays 1, every step costs a little. Starts anywhere."""

    obs_space: ClassVar[dict[str, Any]] = {"type": "Discrete", "n": 9, "start": 0, "dtype": "int64"}
    action_space: ClassVar[dict[str, Any]] = {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"}

    def reset(self, seed: int) -> int:
        self.cell, self.t = random.Random(seed).randrange(8), 0
        return self.cell

    def step(self, action: Any) -> tuple[int, float, bool, bool]:
        self.cell = min(8, max(0, self.cell + (1 if int(action) else -1)))
        self.t += 1
        return self.cell, 1.0 if self.cell == 8 else -0.01, self.cell == 8, self.t >= 40


async def test_a_table_is_learned(tmp_path: Path) -> None:
    told = Transcript()
    door = FakeDoor(tmp_path, Corridor, Budget(24))
    await SearchAgent().run(workspace(tmp_path, told), door, told)
    policy = load(door.codes[-1])({}, {}, {})
    policy.reset(0)
    assert [policy.act(cell) for cell in range(8)] == [1] * 8


def test_unknown_spaces_are_other() -> None:
    for schema in ({}, {"type": "Graph"}, {"type": "Dict", "spaces": {"a": {"type": "Graph"}}}):
        assert read_view(schema).kind == "other"
