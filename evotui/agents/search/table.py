"""Discrete observations: learn a table of actions by counting transitions and planning on the counts.

Each submission's trajectories update a model (how often an action led where, what it paid). Two policies are read off
by value iteration: one that is drawn to what was never tried, and one that takes the best of what is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Form
from evotui.agents.search.feedback import Episode
from evotui.agents.search.session import Session, Trial, number
from evotui.agents.search.spaces import Situation

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
PER_LINE = 80
DISCOUNT = 0.98
ENOUGH = 6
"""Tries of an action before its counts are believed where chance plays a part."""


class TransitionCounts:
    """Counts of (state, action) → (next state or end), with rewards. States are table indices."""

    def __init__(self, states: int, actions: int) -> None:
        self.states, self.actions = states, actions
        self.tries = np.zeros(states * actions, dtype=np.int64)
        self.paid = np.zeros(states * actions)
        self.led: dict[tuple[int, int], int] = {}

    def add(self, episode: Episode, first_action: int) -> None:
        """Count an episode's steps. The last step leads to the end if it terminated, and is left out if not."""
        cells = episode.cells
        chosen = np.clip(episode.actions[:, 0].astype(int) - first_action, 0, self.actions - 1)
        for t in range(len(episode)):
            last = t + 1 == len(episode)
            if cells[t] < 0 or (last and not episode.terminated) or (not last and cells[t + 1] < 0):
                continue
            pair = int(cells[t]) * self.actions + int(chosen[t])
            self.tries[pair] += 1
            self.paid[pair] += float(episode.rewards[t])
            target = self.states if last else int(cells[t + 1])
            self.led[pair, target] = self.led.get((pair, target), 0) + 1

    @property
    def seen(self) -> int:
        """States in which something was tried."""
        return int((self.tries.reshape(self.states, self.actions).sum(axis=1) > 0).sum())

    @property
    def stochastic(self) -> bool:
        """Whether the same action in the same state led to different places."""
        return len({pair for pair, _ in self.led}) < len(self.led)

    def plan(self, unknown: float) -> np.ndarray:
        """[states, actions] discounted values by value iteration. What was never tried is worth ``unknown``."""
        known = self.tries >= (ENOUGH if self.stochastic else 1)
        reward = np.divide(self.paid, self.tries, out=np.zeros_like(self.paid), where=self.tries > 0)
        pairs = np.array([pair for pair, _ in self.led], dtype=np.int64)
        targets = np.array([target for _, target in self.led], dtype=np.int64)
        weight = np.array(list(self.led.values()), dtype=float)
        if pairs.size:
            weight /= self.tries[pairs]
        value = np.zeros(self.states + 1)
        q = np.where(known, 0.0, unknown)
        for _ in range(400):
            ahead: np.ndarray = np.bincount(pairs, weights=weight * value[targets], minlength=known.size)
            q = np.where(known, reward + DISCOUNT * ahead, unknown)
            new = q.reshape(self.states, self.actions).max(axis=1)
            done = float(np.abs(new - value[:-1]).max()) < 1e-6
            value[:-1] = new
            if done:
                break
        return q.reshape(self.states, self.actions)


def _rows(text: str) -> tuple[str, ...]:
    return tuple(f'    "{text[i : i + PER_LINE]}"  # from state {i}' for i in range(0, len(text), PER_LINE))


def table_form(situation: Situation, counts: TransitionCounts, explore: bool) -> Form:
    """The policy that a model recommends: a string with one digit per state, ``?`` where nothing is known."""
    view, kind = situation.view, situation.actions
    tries = counts.tries.reshape(counts.states, counts.actions)
    best_paid = float(np.divide(counts.paid, np.maximum(counts.tries, 1)).max(initial=0.0))
    values = counts.plan(max(best_paid, 1.0) / (1.0 - DISCOUNT) if explore else 0.0)
    visited = tries.sum(axis=1) > 0
    digits = "".join(_DIGITS[int(values[s].argmax())] if visited[s] else "?" for s in range(counts.states))
    fixed: tuple[str, ...] = (f"ACTIONS = {kind.n}", f"FIRST_ACTION = {kind.start}")
    if len(view.sizes) > 1:
        fixed = (*fixed, f"SIZES = {view.sizes!r}  # of the parts of an observation")
    fixed = (
        *fixed,
        "# The action for each state, as a digit; ? where nothing is known yet",
        "TABLE = (",
        *_rows(digits),
        ")",
    )
    index: tuple[str, ...] = ("state = int(np.ravel(obs)[0])" + (f" - {view.starts[0]}" if view.starts[0] else ""),)
    if len(view.sizes) > 1:
        index = (
            "state = 0",
            f"for part, size, first in zip(np.ravel(obs), SIZES, {view.starts!r}):",
            "    state = state * size + int(part) - first",
        )
    patience = (3 if explore else 10_000) if counts.stochastic else (1 if explore else 2)
    fixed = (f"PATIENCE = {patience}  # visits of a state in one episode before something else is tried there", *fixed)
    act = (
        *index,
        "visits = self.visits[state] = self.visits.get(state, 0) + 1",
        "plan = TABLE[state]",
        "if plan == '?' or visits > PATIENCE:",
        "    return FIRST_ACTION + random.randrange(ACTIONS)",
        "return FIRST_ACTION + int(plan, 36)",
    )
    if explore:
        how = "Follows the table to what was never tried; where it comes back to a state, it tries at random."
    else:
        how = (
            "Looks the state up in a table of actions that was planned from counted transitions; where it keeps coming "
            "back to a state, it tries at random."
        )
    return Form(
        key="explore-table" if explore else "table",
        title="a table that is drawn to the unknown" if explore else "a table of actions",
        idea="",
        how=how,
        fixed=fixed,
        reset=("self.visits = {}",),
        act=act,
    )


async def learn_table(session: Session) -> Trial | None:
    """Explore, plan, exploit until :class:`~evotui.agents.search.session.Spent`; ``session.best`` is kept current."""
    situation = session.situation
    counts = TransitionCounts(situation.view.cells, situation.actions.n)

    def take(found: Sequence[Episode]) -> None:
        for episode in found:
            counts.add(episode, situation.actions.start)

    session.listeners.append(take)
    budget = situation.budget
    batch = max(1, budget // 24)
    explore_until = round(0.35 * budget)
    turn = 0
    while True:
        explore = session.remaining > explore_until and turn % 4 != 3
        form = await asyncio.to_thread(table_form, situation, counts, explore)
        known = counts.seen
        if explore:
            why = (
                f"{known} of {counts.states} states seen, {int((counts.tries > 0).sum())} actions tried there. "
                "The next table leads to what was never tried."
            )
        else:
            why = f"Plan on what is known ({known} states): value iteration over the counts, the best action per state."
        cases = session.fresh(batch if session.remaining > 2 * batch else session.remaining)
        trial = await session.attempt(form, cases, why)
        turn += 1
        mean = trial.mean(cases)
        if explore or trial.verdict != "ok":
            continue
        best = session.best
        if best is None or mean >= best.mean():
            await session.say(f"{number(mean)}: the best table so far.")
            session.best = trial
        else:
            await session.say(f"{number(mean)} against {number(best.mean())} on other cases: the best stays.")
