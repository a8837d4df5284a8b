"""The form that acts and then lets go: a push that lasts for some steps, and rest from then on.

Where effort costs, most of what a constant action gains is gained early; and a body at rest stays where it came to lie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.spaces import Situation


def pulse_form(situation: Situation) -> Form | None:
    """One constant action for some steps, then rest. For Box actions that allow rest."""
    kind = situation.actions
    if kind.kind != "box" or kind.n < 2:
        return None
    low, high = np.array(kind.low), np.array(kind.high)
    half, rest = 0.5 * (high - low), (0.0,) * kind.n
    if not ((low < 0.0) & (high > 0.0)).all():
        return None
    hold = max(2.0, min(20.0, 0.2 * situation.max_steps))
    longest = float(situation.max_steps)
    constants = (
        Constant("FIRST_STEPS", (hold,), (0.4 * hold,), "steps that it lasts", low=0.0, high=longest),
        Constant("FIRST", rest, tuple((0.3 * half).tolist()), "the push", labels=kind.names, is_tuple=True,
                 low=float(low.min()), high=float(high.max())),
    )  # fmt: skip
    return Form(
        key="pulse",
        title="a push, then rest",
        idea="push for some steps and let go: what came to lie well costs nothing from then on",
        how="Pushes with constant actions for some steps, then does nothing. It does not look at the observation.",
        fixed=(
            f"REST = {rest!r}",
            f"LOWEST, HIGHEST = np.array({list(kind.low)!r}), np.array({list(kind.high)!r})",
        ),
        constants=constants,
        reset=("self.t = 0",),
        act=(
            "push = FIRST if self.t < FIRST_STEPS else REST",
            "self.t += 1",
            f"return np.clip(push, LOWEST, HIGHEST).reshape({kind.shape!r})",
        ),
        starts=(Start((hold, *rest), "rest all the time"),),
        prior=4.8,
    )


def settled(form: Form) -> Form:
    """``form`` with constants that are not tuned."""
    return replace(form, constants=tuple(replace(c, scale=tuple(0.0 for _ in c.scale)) for c in form.constants))
