"""Sentences for the transcript that describe what the agent knows."""

from __future__ import annotations

from collections.abc import Sequence

from evotui.agents.search.code import Form
from evotui.agents.search.features import Coordinate, Facts
from evotui.agents.search.plan import Plan
from evotui.agents.search.spaces import Situation


def describe_actions(situation: Situation) -> str:
    kind = situation.actions
    if kind.kind == "discrete":
        names = ", ".join(kind.names[:7]) + (", …" if kind.n > 7 else "")
        return f"one of {kind.n} actions ({names})"
    if kind.kind == "box":
        return "one continuous action" if kind.n == 1 else f"{kind.n} continuous actions"
    return "an action space that no controller of the library fits"


def describe_view(situation: Situation) -> str:
    view = situation.view
    if view.kind == "flat":
        n = len(view.names)
        shown = ", ".join(view.names[:6]) + (", …" if n > 6 else "")
        return f"{n} number{'s' if n > 1 else ''} ({shown})"
    if view.kind == "table":
        return f"one of {view.cells} discrete states"
    if view.kind == "grid":
        return f"a symbolic view of {view.grid_shape[0]}×{view.grid_shape[1]} cells"
    if view.kind == "picture":
        return f"a picture of {' × '.join(str(size) for size in view.picture_shape)}"
    return f"nothing that controllers of the library can use ({view.why})"


def describe_spaces(situation: Situation, plan: Plan | None) -> str:
    """What the task looks like and how the budget will be spent, where that is known beforehand."""
    seen = f"I observe {describe_view(situation)} and choose {describe_actions(situation)}."
    if plan is None:
        return f"{seen} Budget {situation.budget}."
    parts = [
        f"{count} to {verb}"
        for count, verb in (
            (plan.probe, "probe"),
            (plan.explore, "compare controller forms"),
            (plan.tune, "tune constants"),
            (plan.confirm, "confirm"),
        )
        if count
    ]
    return f"{seen} Budget {situation.budget}: {', '.join(parts)}."


def describe_coordinate(coordinate: Coordinate, names: Sequence[str]) -> str:
    if coordinate.is_angle:
        text = f"{names[coordinate.cos]} and {names[coordinate.sin]} lie on a circle (an angle)"
        return f"{text} that {names[coordinate.velocity]} turns" if coordinate.velocity >= 0 else text
    return f"{names[coordinate.velocity]} is the velocity of {names[coordinate.index]}"


def describe_facts(situation: Situation, facts: Facts, forms: Sequence[Form]) -> str:
    """What the probe showed, and which forms fit."""
    names = situation.view.names
    seen: list[str] = []
    if facts.rows:
        if facts.survival:
            seen.append("every step pays the same, so lasting longer is all that counts")
        elif facts.costly:
            seen.append("every step costs the same, so ending sooner is all that counts")
        elif facts.sparse:
            seen.append("no reward yet: it comes rarely")
        seen += [describe_coordinate(c, names) for c in facts.coordinates[:4]]
        if len(facts.coordinates) > 4:
            seen.append(f"{len(facts.coordinates) - 4} more such pairs")
        if facts.axis >= 0 and facts.effect.size:
            seen.append(f"actions move {names[facts.axis]} most")
    told = f"{facts.rows} steps show: {'; '.join(seen)}. " if seen else ""
    return f"{told}Forms that fit: {', '.join(form.title for form in forms)}."
