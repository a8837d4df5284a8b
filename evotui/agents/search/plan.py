"""How the episodes are spent: so many to probe, to explore forms, to tune constants, to confirm the best.

Pure arithmetic on the budget, so that it can be announced before and tested without rollouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Episodes of each stage; ``probe + explore + tune + confirm`` = the budget."""

    probe: int
    explore: int
    tune: int
    confirm: int


def make_plan(budget: int, probes: bool = True) -> Plan:
    """Divide a budget of at least one episode. Small budgets lose the late stages first; some tasks need no probe."""
    if budget <= 2:
        return Plan(0, budget, 0, 0)
    if budget < 12:
        probe = (1 if budget < 6 else 2) if probes else 0
        return Plan(probe, budget - probe, 0, 0)
    probe = (2 if budget < 100 else 3) if probes else 0
    explore = max(4, round(0.2 * budget))
    confirm = max(2, round(0.14 * budget))
    return Plan(probe, explore, budget - probe - explore - confirm, confirm)


def population(dimensions: int, episodes: int) -> int:
    """Candidates per generation of CMA-ES: its usual size, smaller where the episodes allow few generations only."""
    usual = 4 + int(3 * math.log(max(dimensions, 1)))
    return max(4, min(usual, episodes // 4 if episodes >= 16 else 4))


def cases_per_candidate(episodes: int, candidates: int, noise: float, spread: float) -> int:
    """How many common cases each candidate of a generation runs on.

    ``noise``: how much one candidate's return differs from case to case; ``spread``: how much candidates differ. One
    case where cases do not matter; otherwise at least two where that leaves three generations, and as many as leave
    about six, at most four.
    """
    if noise <= 0.01 * spread or noise <= 0.0:
        return 1
    least = 2 if episodes >= 6 * (candidates + 1) else 1
    return max(least, min(4, episodes // (6 * (candidates + 1))))


MOST_SUBMISSIONS = 25
"""Submissions of a whole run where each is dear: its policy is run again on hidden cases, for minutes with pictures."""


def thrifty_cases(budget: int) -> int:
    """Common cases for each candidate where submissions are dear: few candidates, each compared well.

    That costs little knowledge: where returns differ from case to case by more than candidates do, one episode of five
    candidates each says less than five episodes of one.
    """
    return max(1, math.ceil(budget / MOST_SUBMISSIONS))
