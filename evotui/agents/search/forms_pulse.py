"""Forms that act and then let go: pushes that last for some steps, one after another, and rest from then on.

Where effort costs, most of what a constant action gains is gained early; and a body at rest stays where it came to lie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features import Facts
from evotui.agents.search.spaces import Situation

STAGES = ("FIRST", "THEN")


def pulse_form(situation: Situation, facts: Facts, stages: int = 1) -> Form | None:
    """One constant action for some steps (or two, one after the other), then rest. For Box actions that allow rest."""
    kind = situation.actions
    if kind.kind != "box" or kind.n < 2 or not 1 <= stages <= len(STAGES):
        return None
    low, high = np.array(kind.low), np.array(kind.high)
    half, rest = 0.5 * (high - low), np.zeros(kind.n)
    if not ((low < 0.0) & (high > 0.0)).all():
        return None
    hold = max(2.0, min(20.0, 0.2 * situation.max_steps))
    constants: list[Constant] = []
    cases: list[str] = []
    longest = float(situation.max_steps)
    for name in STAGES[:stages]:
        note = "steps that it lasts" if stages == 1 else f"steps that the {name.lower()} push lasts"
        constants.append(Constant(f"{name}_STEPS", (hold,), (0.4 * hold,), note, low=0.0, high=longest))
        constants.append(
            Constant(name, tuple(rest.tolist()), tuple((0.3 * half).tolist()), "the push", labels=kind.names,
                     is_tuple=True, low=float(low.min()), high=float(high.max()))
        )  # fmt: skip
    if stages == 1:
        cases = ["push = FIRST if self.t < FIRST_STEPS else REST"]
    else:
        cases = [
            "if self.t < FIRST_STEPS:",
            "    push = FIRST",
            "elif self.t < FIRST_STEPS + THEN_STEPS:",
            "    push = THEN",
            "else:",
            "    push = REST",
        ]
    values = tuple(v for c in constants for v in c.values)
    title = "a push, then rest" if stages == 1 else "a push, another push, then rest"
    return Form(
        key=f"pulse{stages}" if stages > 1 else "pulse",
        title=title,
        idea="push for some steps and let go: what came to lie well costs nothing from then on",
        how="Pushes with constant actions for some steps, then does nothing. It does not look at the observation.",
        fixed=(
            f"REST = {tuple(rest.tolist())!r}",
            f"LOWEST, HIGHEST = np.array({list(kind.low)!r}), np.array({list(kind.high)!r})",
        ),
        constants=tuple(constants),
        reset=("self.t = 0",),
        act=(*cases, "self.t += 1", f"return np.clip(push, LOWEST, HIGHEST).reshape({kind.shape!r})"),
        starts=(Start(values, "rest all the time"),),
        prior=4.8 if stages == 1 else 4.0,
    )


def settled(form: Form) -> Form:
    """``form`` with constants that are not tuned."""
    return replace(form, constants=tuple(replace(c, scale=tuple(0.0 for _ in c.scale)) for c in form.constants))
