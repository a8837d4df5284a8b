"""The form for vehicles whose goal is a pose: plan a few steps ahead in the model that was fitted to the feedback."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Constant, Form, Start, tidy
from evotui.agents.search.features_goal import Goals, find_goals
from evotui.agents.search.features_vehicle import Cost, Vehicle, find_cost, find_vehicle
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_basic import field_expression
from evotui.agents.search.spaces import Situation

PLANS = 300
"""Plans compared at each step: a few milliseconds of numpy."""


_DRAW = (
    "def draw_plans(dice, steps, low, high):",
    '    """Random plans [step, plan] of three pieces of constant action; many pieces are at a bound."""',
    "    starts = np.cumsum(dice.integers(1, int(LONGEST) + 1, (2, PLANS)), axis=0)",
    "    piece = (np.arange(steps)[:, None, None] >= starts).sum(axis=1)",
    "    room = 0.25 * (high - low)",
    "    values = np.clip(dice.uniform(low - room, high + room, (3, PLANS)), low, high)",
    "    return np.take_along_axis(values, piece, axis=0)",
)


def _texts(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(repr(tidy(v)) for v in values)


def _room(episodes: Sequence[Episode], axes: list[int], targets: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(lowest, highest) position that is known to be harmless: goals, and what was passed without an early end."""
    places = [e.obs[:, targets] for e in episodes if len(e)]
    places += [e.obs[: len(e) - 3 if e.terminated else len(e), axes] for e in episodes if len(e) > 3]
    every = np.vstack(places)
    return every.min(axis=0), every.max(axis=0)


def lookahead_form(situation: Situation, episodes: Sequence[Episode]) -> Form | None:
    """Compare random plans in the fitted motion of a vehicle and drive the first step of the best."""
    goals, vehicle = find_goals(situation.view), find_vehicle(episodes, situation)
    if goals is None or vehicle is None or len(goals.achieved) > 12:
        return None
    cost = find_cost(episodes, situation)
    width = len(goals.achieved)
    low, high = _room(
        episodes,
        [goals.achieved[vehicle.x], goals.achieved[vehicle.y]],
        [goals.desired[vehicle.x], goals.desired[vehicle.y]],
    )
    span = float((high - low).max())
    if cost is None:
        weights = np.zeros(width)
        weights[[vehicle.x, vehicle.y]] = 1.0
        weights[[vehicle.cos, vehicle.sin]] = 0.05 * span
        cost = Cost(tuple(weights.tolist()), 0.5, 0.0)
    starts = [np.abs(e.obs[0, list(goals.achieved)] - e.obs[0, list(goals.desired)]) for e in episodes if len(e)]
    usual = float(np.median([(gap @ np.array(cost.weights)) ** cost.power for gap in starts]))
    return _policy(situation, goals, vehicle, cost, low, high, usual)


def _policy(
    situation: Situation, goals: Goals, vehicle: Vehicle, cost: Cost, low: np.ndarray, high: np.ndarray, usual: float
) -> Form:
    kind = situation.actions
    span = float((high - low).max())
    pose = [""] * len(goals.achieved)
    parts = {
        vehicle.x: "x", vehicle.y: "y", vehicle.vx: "speed * np.cos(heading)", vehicle.vy: "speed * np.sin(heading)",
        vehicle.cos: "np.cos(heading)", vehicle.sin: "np.sin(heading)",
    }  # fmt: skip
    for i in range(len(pose)):
        pose[i] = parts.get(i, f"now[{i}] + 0.0 * x")
    ends = [(kind.low[a], kind.high[a]) for a in (vehicle.throttle, vehicle.steering)]
    constants = (
        Constant("HORIZON", (40.0,), (5.0,), "steps that a plan looks ahead", low=8.0, high=80.0),
        Constant("LONGEST", (12.0,), (2.0,), "most steps that one piece of a plan lasts", low=2.0, high=30.0),
        Constant("ENOUGH", (0.25 * usual,), (0.06 * usual,), "a cost below which the goal counts as reached", low=0.0),
        Constant("LATE", (3.0,), (1.5,), "weight of the cost that is left at the plan's end", low=0.0),
        Constant("MARGIN", (0.05 * span,), (0.02 * span,), "room around places that are known to be harmless"),
        Constant("OUTSIDE", (4.0 * usual,), (1.0 * usual,), "cost of a step outside that room", low=0.0),
    )
    slip = " + SLIP * steer" if abs(vehicle.slip) > 0.02 else ""
    fixed = (
        f"PLANS = {PLANS}",
        f"(THROTTLE_LOW, THROTTLE_HIGH), (STEER_LOW, STEER_HIGH) = {ends[0]!r}, {ends[1]!r}",
        "# The motion, fitted to the feedback; per step, with the speed along the heading:",
        f"PACE = {tidy(vehicle.pace)!r}  # position per unit of speed",
        f"PUSH = {tidy(vehicle.push)!r}  # speed per unit of {kind.names[vehicle.throttle]}",
        f"TURN = {tidy(vehicle.turn)!r}  # heading per unit of {kind.names[vehicle.steering]} and speed",
        *(
            (f"SLIP = {tidy(vehicle.slip)!r}  # the motion's angle to the heading per unit of steering",)
            if slip
            else ()
        ),
        f"# What a step costs: (sum of weight * |achieved - desired|) ** {cost.power!r}",
        f"WEIGHTS = np.array([{_texts(cost.weights)}])",
        "# Goals and harmless places that were seen lie between these corners",
        f"LOWEST, HIGHEST = np.array([{_texts(low)}]), np.array([{_texts(high)}])",
    )
    send = [""] * kind.n
    for i in range(kind.n):
        send[i] = {vehicle.throttle: "push[0, best]", vehicle.steering: "steer[0, best]"}.get(
            i, repr(float(np.clip(0.0, kind.low[i], kind.high[i])))
        )
    shape = "" if kind.shape == (kind.n,) else f".reshape({kind.shape!r})"
    act = (
        f"now = {field_expression(situation, goals.achieved)}",
        f"goal = {field_expression(situation, goals.desired)}",
        f"cos, sin = now[{vehicle.cos}], now[{vehicle.sin}]",
        "steps = int(HORIZON)",
        "push = draw_plans(self.dice, steps, THROTTLE_LOW, THROTTLE_HIGH)",
        "steer = draw_plans(self.dice, steps, STEER_LOW, STEER_HIGH)",
        "if self.last is not None:",
        "    # the best plan of the step before, one step on, is among them",
        "    push[:, 0], steer[:, 0] = (np.append(part[1:], part[-1]) for part in self.last)",
        "# where each plan leads: arrays of [step, plan]",
        f"speed = now[{vehicle.vx}] * cos + now[{vehicle.vy}] * sin + PUSH * np.cumsum(push, axis=0)",
        "heading = np.arctan2(sin, cos) + TURN * np.cumsum(speed * steer, axis=0)",
        f"x = now[{vehicle.x}] + PACE * np.cumsum(speed * np.cos(heading{slip}), axis=0)",
        f"y = now[{vehicle.y}] + PACE * np.cumsum(speed * np.sin(heading{slip}), axis=0)",
        "# what it costs, as long as the goal is not reached",
        "pose = np.stack([",
        *(f"    {part}," for part in pose),
        "], axis=-1)",
        f"cost = (np.abs(pose - goal) @ WEIGHTS) ** {cost.power!r}",
        "under_way = np.minimum.accumulate(cost > ENOUGH, axis=0)",
        f"target = goal[[{vehicle.x}, {vehicle.y}]]",
        "place = np.stack([x, y], axis=-1)",
        "outside = (place < np.minimum(LOWEST, target) - MARGIN) | (place > np.maximum(HIGHEST, target) + MARGIN)",
        "total = (under_way * (cost + OUTSIDE * outside.any(axis=-1))).sum(axis=0) + LATE * under_way[-1] * cost[-1]",
        "best = int(total.argmin())",
        "self.last = push[:, best], steer[:, best]",
        f"return np.array([{', '.join(send)}]){shape}",
    )
    return Form(
        key="lookahead",
        title="plan ahead in the fitted motion of a vehicle",
        idea=(
            f"random plans of three pieces, compared in a model of what the feedback shows: "
            f"{kind.names[vehicle.throttle]} changes the speed along the heading, {kind.names[vehicle.steering]} turns "
            f"it in proportion to the speed ({vehicle.fit:.0%} of the changes explained"
            + (f"; rewards are a weighted distance to the goal to the power {cost.power:g}" if cost.fit else "")
            + ")"
        ),
        how=(
            "Draws plans at random, follows each in a model of the vehicle, and drives the first step of the cheapest. "
            "The best plan so far is among those of the next step."
        ),
        fixed=fixed,
        constants=constants,
        helpers=_DRAW,
        reset=("self.dice = np.random.default_rng(0)", "self.last = None"),
        act=act,
        starts=(Start(tuple(v for c in constants for v in c.values), "a quarter of the first cost counts as arrived"),),
        prior=33.0,
        least_cases=2,
    )
