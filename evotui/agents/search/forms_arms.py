"""Forms for arms: an error vector that the reward pays for, the joints that move it, and a planner on both.

Everything is read off the trajectories by least squares: which fields are the error (its length explains the reward),
how the joints' angles and the static fields make it (a sum of products of sines and cosines), how actions move the
joints (a linear law). Nothing is known of any particular arm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features import Coordinate, Facts
from evotui.agents.search.features_arms import (
    LETTERS,
    Payment,
    angles_of,
    column,
    find_payment,
    fit_law,
    fit_motion,
    products,
)
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_basic import as_array
from evotui.agents.search.spaces import Situation

MOST_JOINTS = 3
"""More joints than this have too many products of sines and cosines to find a law among them."""
MOST_HORIZON = 60
"""Steps that the planner looks ahead."""


def _short(value: float) -> str:
    return repr(float(f"{value:.4g}") + 0.0)


def _matrix(name: str, rows: np.ndarray, note: str) -> str:
    inner = ", ".join("[" + ", ".join(_short(v) for v in row) + "]" for row in rows)
    return f"{name} = np.array([{inner}])  # {note}"


def reach_form(situation: Situation, facts: Facts, episodes: Sequence[Episode]) -> Form | None:
    """Plan the actions that bring the error to zero, on the learned law of the error and of the joints."""
    kind = situation.actions
    if kind.kind != "box" or situation.view.kind != "flat":
        return None
    joints = [c for c in facts.coordinates if c.velocity >= 0]
    if not 1 <= len(joints) <= MOST_JOINTS or kind.n > 8:
        return None
    width = len(situation.view.names)
    used = [e for e in episodes if len(e) > 4 and e.obs.shape[1] == width and e.actions.shape[1] == kind.n]
    payment = find_payment(used)
    if payment is None or len(payment.misses) != 1 or payment.explained < 0.97:
        return None
    goal = payment.misses[0]
    x, y = np.vstack([e.obs[:-1] for e in used]), np.vstack([e.obs[1:] for e in used])
    u = np.clip(np.vstack([e.actions[:-1] for e in used]), kind.low, kind.high)
    law, obeyed = fit_motion(x, y, u, joints)
    q, terms = angles_of(x, joints), products(joints)
    still = [i for i in range(width) if all(float(np.ptp(e.obs[:, i])) < 1e-9 for e in used)]
    still = [i for i in still if float(x[:, i].std()) > 1e-9]
    columns = np.column_stack([*(column(q, factors) for _, factors in terms), *(x[:, i] for i in still)])
    if len(x) < 3 * columns.shape[1] or obeyed < 0.9:
        return None
    rows: list[str] = []
    for target in goal.of(x).T:
        solution, explained = fit_law(target, columns)
        if explained < 0.999:
            return None
        texts = [*(text for text, _ in terms), *(f"field[{i}]" for i in still)]
        rows.append(_sum([(float(c), t) for c, t in zip(solution, texts, strict=True) if c != 0.0]))
    return _reach_policy(situation, joints, payment, law, rows)


def _sum(parts: Sequence[tuple[float, str]]) -> str:
    text = ""
    for value, what in parts:
        sign = "-" if value < 0 else "+"
        size = _short(abs(value))
        term = what if size == "1.0" and what else f"{size} * {what}" if what else size
        text += f" {sign} {term}" if text else ("-" if value < 0 else "") + term
    return text or "0.0"


def _reach_policy(
    situation: Situation, joints: Sequence[Coordinate], payment: Payment, law: np.ndarray, rows: Sequence[str]
) -> Form:
    kind, view, n = situation.actions, situation.view, len(joints)
    goal = payment.misses[0]
    shown = [view.names[i] for i in goal.a]
    if goal.b:
        shown = [f"{view.names[i]} − {view.names[j]}" for i, j in zip(goal.a, goal.b, strict=True)]
    letters = ", ".join(LETTERS[:n]) + ("," if n == 1 else "")
    helpers = (
        "def miss(q, field):",
        f'    """The error ({", ".join(shown)}) at joint positions ``q`` [joints, ...]: a fitted law."""',
        f"    {letters} = q",
        "    zero = 0.0 * q[0]",
        "    return np.array([",
        *(f"        zero + {row}," if not row.startswith("-") else f"        zero - {row[1:]}," for row in rows),
        "    ])",
        "",
        "",
        "def improve(push, drift, follow, field):",
        '    """One step of Gauss and Newton: the error made straight around the path of ``push`` [steps, actions]."""',
        "    q = drift + np.tensordot(follow, push, 2)",
        "    error = miss(q.T, field)",
        "    slope = np.array([(miss((q + 1e-5 * side).T, field) - error) / 1e-5 for side in np.eye(q.shape[1])])",
        "    lead = np.einsum('jmk,kjsa->kmsa', slope, follow).reshape(error.size, push.size)",
        "    weight = np.repeat(DISTANCE / np.maximum(np.linalg.norm(error, axis=0), NEAR), len(error))",
        "    pull = lead.T * weight",
        "    cost = pull @ lead + 2.0 * EFFORT * np.eye(push.size)",
        "    step = np.linalg.solve(cost, -pull @ error.T.ravel() - 2.0 * EFFORT * push.ravel())",
        "    shorter = min(1.0, BOLD / max(1e-9, np.abs(np.tensordot(follow, step.reshape(push.shape), 2)).max()))",
        "    return push + shorter * step.reshape(push.shape)",
        "",
        "",
        "def price(push, drift, follow, field):",
        '    """What the path of ``push`` costs."""',
        "    error = miss((drift + np.tensordot(follow, push, 2)).T, field)",
        "    return DISTANCE * np.linalg.norm(error, axis=0).sum() + EFFORT * (push**2).sum()",
    )
    fixed = (
        f"ANGLES = {[(j.cos, j.sin) for j in joints]!r}  # fields with cosine and sine of each joint"
        if all(j.is_angle for j in joints)
        else f"POSITIONS = {[(j.cos, j.sin) if j.is_angle else (j.index,) for j in joints]!r}  # fields of each joint",
        f"SPEEDS = {[j.velocity for j in joints]!r}",
        f"LOWEST, HIGHEST = np.array({list(kind.low)!r}), np.array({list(kind.high)!r})",
        f"HORIZON = {min(situation.max_steps, MOST_HORIZON)}  # steps to plan",
        f"LAST = {situation.max_steps}  # steps of an episode",
        "# The joints' law: what a step changes",
        _matrix("MOVE_BY_SPEED", law[:n, :n], "position per velocity"),
        _matrix("MOVE_BY_PUSH", law[:n, n:], "position per action"),
        _matrix("SPEED_BY_SPEED", law[n:, :n], "velocity per velocity"),
        _matrix("SPEED_BY_PUSH", law[n:, n:], "velocity per action"),
    )
    read = (
        "q = np.array([math.atan2(field[s], field[c]) for c, s in ANGLES])"
        if all(j.is_angle for j in joints)
        else "q = np.array([field[p[0]] if len(p) == 1 else math.atan2(field[p[1]], field[p[0]]) for p in POSITIONS])"
    )
    init = (
        "# how positions follow an action at step 0, and the velocity at step 0; later actions do the same, later",
        f"speed = np.hstack([SPEED_BY_PUSH, np.eye({n}) + SPEED_BY_SPEED])",
        "place = np.hstack([MOVE_BY_PUSH, MOVE_BY_SPEED])",
        "echo = []",
        "for _ in range(HORIZON):",
        "    echo.append(place)",
        "    place, speed = place + MOVE_BY_SPEED @ speed, speed + SPEED_BY_SPEED @ speed",
        f"self.after_push, self.after_speed = np.array(echo)[:, :, :{kind.n}], np.array(echo)[:, :, {kind.n}:]",
        f"self.follow = np.zeros((HORIZON, {n}, HORIZON, {kind.n}))",
        "for s in range(HORIZON):",
        "    self.follow[s:, :, s] = self.after_push[: HORIZON - s]",
    )
    act = (
        f"field = {as_array(situation)}",
        read,
        "steps = max(1, min(HORIZON, LAST - self.t))",
        "drift = q + self.after_speed[:steps] @ field[SPEEDS]",
        "follow = self.follow[:steps, :, :steps]",
        "if self.plan is None:",
        "    # both ways round: start from pushes to either side, keep the path that costs least",
        "    paths = []",
        f"    for side in np.vstack([np.eye({kind.n}), -np.eye({kind.n})]):",
        "        push = GUESS * np.outer(np.cos(np.linspace(0.0, math.pi, steps)), side)",
        "        for _ in range(6):",
        "            push = improve(push, drift, follow, field)",
        "        paths.append(push)",
        "    self.plan = min(paths, key=lambda push: price(push, drift, follow, field))",
        "push = np.vstack([self.plan, self.plan[-1:] * 0.0])[:steps]",
        "push = improve(push, drift, follow, field)",
        "self.t, self.plan = self.t + 1, push[1:] if steps > 1 else push",
        f"return np.clip(push[0], LOWEST, HIGHEST).reshape({kind.shape!r})",
    )
    distance, effort = payment.misses[0].weight, max(payment.cost, 1e-3)
    usual = 0.01
    constants = (
        Constant("DISTANCE", (distance,), (0.3 * distance,), "what a unit of distance costs a step", low=1e-6),
        Constant("EFFORT", (effort,), (0.4 * effort,), "what a squared action costs", low=1e-6),
        Constant("NEAR", (usual,), (0.4 * usual,), "distance below which the error counts as a square", low=1e-3),
        Constant("GUESS", (0.07,), (0.02,), "first pushes to start planning from"),
        Constant("BOLD", (0.7,), (0.2,), "most change of a joint's path in one improvement", low=0.05),
    )
    values = tuple(v for c in constants for v in c.values)
    return Form(
        key="reach",
        title="plan the error away",
        idea=(
            f"the reward falls with the length of ({', '.join(shown)}) ({payment.explained:.0%} explained): plan the "
            "actions that bring it to zero, on a learned law of the joints"
        ),
        how=(
            "Plans all remaining actions at every step. The joints follow actions by a linear law and make the error "
            "by a sum of sines and cosines, both fitted to the feedback; the plan weighs distance against effort."
        ),
        fixed=fixed,
        constants=constants,
        helpers=helpers,
        init=init,
        reset=("self.t, self.plan = 0, None",),
        act=act,
        starts=(Start(values, "the prices that explain the rewards"),),
        prior=12.0,
    )
