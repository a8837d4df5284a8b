"""The library of controller forms for flat observations with Discrete or Box actions.

:func:`library` picks the forms that fit the spaces and the facts, and gives each the points to start from.
The forms for symbolic grids and discrete tables are in ``grid.py`` and ``table.py``.
"""

from __future__ import annotations

from evotui.agents.search.code import Form
from evotui.agents.search.features import Facts
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_arms import reach_form
from evotui.agents.search.forms_basic import constant_form, random_form, threshold_form
from evotui.agents.search.forms_clear import clear_form
from evotui.agents.search.forms_goal import goal_forms
from evotui.agents.search.forms_linear import linear_form, scores_form
from evotui.agents.search.forms_motion import periodic_form, pump_form, spring_form, swing_form
from evotui.agents.search.forms_pixels import follow_form
from evotui.agents.search.forms_pulse import pulse_form, settled
from evotui.agents.search.grid import explorer_form, walker_form
from evotui.agents.search.spaces import Situation


def library(situation: Situation, facts: Facts, episodes: list[Episode]) -> list[Form]:
    """The forms that fit, the most promising first."""
    forms = [
        explorer_form(situation),
        walker_form(situation),
        follow_form(situation, episodes),
        clear_form(situation, episodes),
        reach_form(situation, facts, episodes),
        swing_form(situation, facts, episodes),
        pump_form(situation, facts),
        linear_form(situation, facts),
        constant_form(situation, facts),
        threshold_form(situation, facts),
        scores_form(situation, facts),
        periodic_form(situation, facts),
        pulse_form(situation),
        spring_form(situation, facts),
    ]
    found = [form for form in forms if form is not None]
    if situation.view.kind == "grid":
        found = [form for form in found if form.key in ("explorer", "walker")] or found
    if situation.view.kind == "picture":
        found = [form for form in found if form.key == "follow"] or found  # an episode is too dear for a constant
    goal = goal_forms(situation, episodes)
    if goal:  # forms that know nothing of goals would only cost episodes; the constant one says what these are worth
        found = [*goal, *(form for form in found if form.key == "constant")]
    if any(form.key == "clear" for form in found):
        # one action always says little here, and a score for each has far more weights than a table of things needs
        found = [form for form in found if form.key not in ("constant", "scores")]
    if any(form.key == "pulse" for form in found):
        # a constant action is a push that never ends: it is tried as a floor, the push is what gets tuned
        found = [settled(form) if form.key == "constant" else form for form in found]
    if not found:
        found = [random_form(situation)]
    return sorted(found, key=lambda form: (-form.prior, form.key))
