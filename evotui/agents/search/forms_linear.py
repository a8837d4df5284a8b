"""Linear forms: one weighted sum decides the push, one sum per action dimension, or one score per action."""

from __future__ import annotations

import math

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features import Facts
from evotui.agents.search.forms_basic import (
    action_lines,
    as_array,
    box_lines,
    constant_names,
    has_axis,
    push_lines,
    unpack,
)
from evotui.agents.search.names import identifier
from evotui.agents.search.spaces import Situation

MOST_WEIGHTS = 160
"""More weights than this cannot be tuned within a few hundred episodes."""


def linear_form(situation: Situation, facts: Facts) -> Form | None:
    """One weighted sum of the fields decides the push (Discrete of 2 or 3) or is the push (Box)."""
    kind, view = situation.actions, situation.view
    if view.kind != "flat" or kind.kind == "other":
        return None
    if not has_axis(situation):
        return _linear_box(situation, facts) if kind.kind == "box" else None
    n = len(view.names)
    if n > MOST_WEIGHTS:
        return None
    names, lines = unpack(situation)
    upper = constant_names(situation)
    scale = facts.scale if facts.scale.size == n else np.ones(n)
    half = 0.5 * (kind.high[0] - kind.low[0]) if kind.kind == "box" else 1.0
    weights = np.zeros(n)
    starts: list[Start] = []
    bias_scale = 0.1 * half
    if facts.gains and any(facts.gains):
        gains = -np.array(facts.gains)
        if kind.kind == "discrete":
            gains = gains / max(float(np.abs(gains * scale).max()), 1e-9)
        else:
            gains = gains * half
        weights = gains
        bias = -float(gains @ facts.start)
        starts.append(
            Start(
                (*gains.tolist(), bias),
                f"a linear model of the steps explains {facts.model_fit:.0%} of the changes; "
                "these are its stabilising gains",
            )
        )
    else:
        starts.append(Start((*([0.0] * n), 0.0), "no weight yet: the search starts from indifference"))
    step = np.maximum(0.3 * np.abs(weights), 0.25 * half / scale)
    few = n <= 12
    constants: list[Constant] = []
    if few:
        for i in range(n):
            note = f"weight of {view.names[i]}"
            constants.append(Constant(f"W_{upper[i]}", (float(weights[i]),), (float(step[i]),), note))
        total = [f"W_{upper[i]} * {names[i]}" for i in range(n)]
        act = [*lines, *_sum_lines("push", [*total, "BIAS"])]
    else:
        constants.append(
            Constant("WEIGHTS", tuple(weights.tolist()), tuple(step.tolist()), "one per observation field",
                     labels=tuple(view.names), is_tuple=True)
        )  # fmt: skip
        act = [*lines, "push = BIAS + sum(w * x for w, x in zip(WEIGHTS, field))"]
    constants.append(Constant("BIAS", (0.0,), (bias_scale,), "push when all fields are zero"))
    fixed = action_lines(situation, facts)[:2] if kind.kind == "discrete" else box_lines(situation)
    verb = "its sign chooses the push" if kind.kind == "discrete" else "it is the push, within its bounds"
    return Form(
        key="linear",
        title="a weighted sum of the observation",
        idea=f"a weighted sum of all fields; {verb}",
        how=f"Adds up the observation's fields with one weight each; {verb}.",
        fixed=fixed,
        constants=tuple(constants),
        act=(*act, *push_lines(situation)),
        starts=tuple(starts),
        prior=9.0 if facts.gains and facts.survival else 6.0,
    )


def _sum_lines(name: str, terms: list[str]) -> list[str]:
    flat = f"{name} = {' + '.join(terms)}"
    if len(flat) <= 100:
        return [flat]
    return [f"{name} = (", f"    {terms[0]}", *(f"    + {term}" for term in terms[1:]), ")"]


def _linear_box(situation: Situation, facts: Facts) -> Form | None:
    kind, view = situation.actions, situation.view
    n, m = len(view.names), kind.n
    if n * m + m > MOST_WEIGHTS:
        return None
    scale = facts.scale if facts.scale.size == n else np.ones(n)
    centre = facts.centre if facts.centre.size == n else np.zeros(n)
    half = 0.5 * (np.array(kind.high) - np.array(kind.low))
    constants = [
        Constant(
            f"W_{i}", (0.0,) * n, tuple((0.3 * half[i] / math.sqrt(n) * np.ones(n)).tolist()),
            f"{kind.names[i]}: one weight per standardised field", labels=tuple(view.names), is_tuple=True,
        )
        for i in range(m)
    ]  # fmt: skip
    constants.append(Constant("BIAS", tuple(0.5 * (np.array(kind.high) + np.array(kind.low))),
                              tuple((0.2 * half).tolist()), "action at the average", is_tuple=True))  # fmt: skip
    return Form(
        key="linear",
        title="a weighted sum of the observation for each dimension of the action",
        idea="one weighted sum of the standardised fields per dimension of the action, within its bounds",
        how="Standardises the observation by the mean and spread seen in the feedback, multiplies by a matrix, clips.",
        fixed=(
            f"LOWEST = np.array({list(kind.low)!r})",
            f"HIGHEST = np.array({list(kind.high)!r})",
            f"MEAN = np.array({[float(f'{v:.4g}') for v in centre]!r})",
            f"SPREAD = np.array({[float(f'{v:.4g}') for v in scale]!r})",
        ),
        constants=tuple(constants),
        init=(f"self.weights = np.array([{', '.join(f'W_{i}' for i in range(m))}])", "self.bias = np.array(BIAS)"),
        act=(
            f"field = {as_array(situation)}",
            "push = self.bias + self.weights @ ((field - MEAN) / SPREAD)",
            f"return np.clip(push, LOWEST, HIGHEST).reshape({kind.shape!r})",
        ),
        starts=(Start((*([0.0] * (n * m)), *(0.5 * (np.array(kind.high) + np.array(kind.low))).tolist()),
                      "no weight yet: the search starts from the middle"),),
        prior=3.0,
    )  # fmt: skip


def scores_form(situation: Situation, facts: Facts) -> Form | None:
    """A score per Discrete action, linear in the fields; the highest wins. For three and more actions."""
    kind, view = situation.actions, situation.view
    if kind.kind != "discrete" or kind.n < 3 or view.kind != "flat":
        return None
    n = len(view.names)
    if (n + 1) * kind.n > MOST_WEIGHTS:
        return None
    scale = facts.scale if facts.scale.size == n else np.ones(n)
    centre = facts.centre if facts.centre.size == n else np.zeros(n)
    taken: set[str] = set()
    constants = []
    for a in range(kind.n):
        name = "W_" + identifier(kind.names[a], taken).upper()
        constants.append(Constant(name, (0.0,) * (n + 1), (0.5,) * (n + 1), f"score of '{kind.names[a]}'",
                                  labels=(*view.names, "always"), is_tuple=True))  # fmt: skip
    return Form(
        key="scores",
        title="a linear score for each action",
        idea="a linear score per action, and the action with the highest score",
        how="Gives every action a score, linear in the standardised observation, and takes the highest.",
        fixed=(
            f"MEAN = np.array({[float(f'{v:.4g}') for v in centre]!r})",
            f"SPREAD = np.array({[float(f'{v:.4g}') for v in scale]!r})",
            f"FIRST_ACTION = {kind.start}",
        ),
        constants=tuple(constants),
        init=(f"self.weights = np.array([{', '.join(c.name for c in constants)}])",),
        act=(
            f"field = ({as_array(situation)} - MEAN) / SPREAD",
            "return FIRST_ACTION + int(np.argmax(self.weights[:, :-1] @ field + self.weights[:, -1]))",
        ),
        starts=(Start((0.0,) * ((n + 1) * kind.n), "no weight yet: the search starts from indifference"),),
        prior=4.0,
    )
