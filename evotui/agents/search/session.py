"""One run as the agent lives it: writing a policy, paying for a try, reading the feedback, remembering, telling.

Owns the budget's ledger on the agent's side and all tool calls that appear in the transcript.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evotui.agents.base import Door, DoorClosed, Teller, Workspace
from evotui.agents.search.code import Form, render
from evotui.agents.search.features_goal import find_goals, goal_distance
from evotui.agents.search.feedback import Episode, read_submission
from evotui.agents.search.spaces import Situation
from evotui.protocol.budget import Rejected, format_cases
from evotui.protocol.words import counted
from evotui.record.events import AgentMessage, AgentThought, ToolCalled, ToolReturned

EPISODES_KEPT = 24
"""Trajectories kept for the fits; the earliest ones, which explore most, and the latest."""


class Spent(Exception):
    """No further submission is possible: the budget is used up or the door refuses."""


@dataclass(slots=True)
class Trial:
    """A policy that was tried: its form with constants, and every return by case.

    ``results``: (case, return, length, wander) in order. ``wander`` is how far the observation strayed, in its usual
    spread, or how near a goal came at the end (minus the distance); it breaks ties between equal returns.
    """

    form: Form
    results: list[tuple[int, float, int, float]] = field(default_factory=list)
    submissions: list[int] = field(default_factory=list)
    verdict: str = "ok"
    errors: int = 0

    def mean(self, cases: Sequence[int] | None = None) -> float:
        """Mean over cases (each case's own mean first), of ``cases`` only if given; −inf without any result."""
        by_case: dict[int, list[float]] = {}
        for case, total, _, _ in self.results:
            if cases is None or case in cases:
                by_case.setdefault(case, []).append(total)
        return float(np.mean([np.mean(v) for v in by_case.values()])) if by_case else -np.inf

    def wander(self, cases: Sequence[int] | None = None) -> float:
        found = [w for case, _, _, w in self.results if cases is None or case in cases]
        return float(np.mean(found)) if found else 0.0

    @property
    def cases(self) -> list[int]:
        return sorted({case for case, *_ in self.results})

    @property
    def totals(self) -> list[float]:
        return [total for _, total, _, _ in self.results]


class Session:
    """The ledger, the memory and the voice of one run."""

    def __init__(self, situation: Situation, workspace: Workspace, door: Door, tell: Teller) -> None:
        self.situation = situation
        self.workspace = workspace
        self.door = door
        self._tell = tell
        self.remaining = situation.budget
        self.episodes: list[Episode] = []
        self.trials: list[Trial] = []
        self.scale: np.ndarray = np.ones(len(situation.view.names))
        self.best: Trial | None = None
        self.goals = find_goals(situation.view)
        self.listeners: list[Callable[[list[Episode]], None]] = []
        self._next_case = 0
        self._calls = 0
        self._refusals = 0

    async def say(self, text: str) -> None:
        """A message for whoever watches."""
        await self._tell(AgentMessage(text))

    async def think(self, text: str) -> None:
        """A line of reasoning."""
        await self._tell(AgentThought(text))

    def fits(self, episodes: int) -> int:
        """``episodes`` made to fit the submission bounds and what remains. Raises :class:`Spent` if nothing fits."""
        most = min(self.situation.max_submit, self.remaining)
        if most < self.situation.min_submit:
            left = f"{counted(self.remaining, 'episode')} left, fewer than a submission takes"
            raise Spent(left if self.remaining else "the budget is used up")
        return max(self.situation.min_submit, min(episodes, most))

    def fresh(self, episodes: int) -> list[int]:
        """Case ids not used before (from the start again once all were used), as many as a submission can take."""
        count = self.fits(episodes)
        cases = [(self._next_case + i) % self.situation.n_cases for i in range(count)]
        self._next_case += count
        return cases

    def common(self, cases: Sequence[int]) -> list[int]:
        """``cases`` made to fit the submission bounds: cut, or repeated from the first."""
        count = self.fits(len(cases))
        return [cases[i % len(cases)] for i in range(count)]

    async def attempt(self, form: Form, cases: Sequence[int], why: str) -> Trial:
        """Write ``form``, run it on ``cases``, read the feedback. Returns the trial, new or the known one continued.

        Raises :class:`Spent` once nothing can be submitted any more.
        """
        await self.think(why)
        await self.workspace.write("policy.py", render(form))
        trial = next((t for t in reversed(self.trials) if t.form == form), None)
        if trial is None:
            trial = Trial(form)
            self.trials.append(trial)
        await self._submit(trial, list(cases))
        return trial

    async def _submit(self, trial: Trial, cases: list[int]) -> None:
        self._calls += 1
        call = f"submit-{self._calls}"
        await self._tell(ToolCalled(call, "submit", {"cases": format_cases(cases)}))
        try:
            answer = await self.door.submit(cases)
        except Rejected as refusal:
            await self._tell(ToolReturned(call, False, f"refused: {refusal.message}"))
            await self._refused(trial, cases)
            return
        except DoorClosed as closed:
            await self._tell(ToolReturned(call, False, str(closed) or "the door is closed"))
            raise Spent("the run takes no more submissions") from closed
        self._refusals = 0
        summary = answer.get("summary") or {}
        left = summary.get("remaining_budget")
        self.remaining = int(left) if left is not None else self.remaining - len(cases)
        trial.verdict = str(answer.get("status", "ok"))
        trial.submissions.append(int(summary.get("submit_index") or 0))
        returns = [r for r in (summary.get("returns") or []) if isinstance(r, (int, float))]
        if trial.verdict != "ok" or not returns:
            await self._tell(
                ToolReturned(call, False, f"verdict {trial.verdict}, {counted(len(cases), 'episode')} charged")
            )
            return
        found = await asyncio.to_thread(
            read_submission, self.workspace.feedback, str(answer.get("submit_id", "")), summary, self.situation
        )
        self._remember(found)
        lengths = summary.get("episode_lengths") or []
        trial.errors += len(summary.get("errors") or [])
        for i, total in enumerate(returns):
            case = cases[i] if i < len(cases) else -1
            wander = self._wander(found[i]) if len(found) == len(returns) else 0.0
            trial.results.append((case, float(total), int(lengths[i]) if i < len(lengths) else 0, wander))
        shown = ", ".join(number(r) for r in returns[:6]) + (", …" if len(returns) > 6 else "")
        mean = f"mean {number(float(np.mean(returns)))}"
        await self._tell(ToolReturned(call, True, f"{mean} ({shown})" if len(returns) > 1 else mean))

    async def _refused(self, trial: Trial, cases: list[int]) -> None:
        """A refused request costs nothing: read the state again and ask for what is allowed, once."""
        self._refusals += 1
        if self._refusals > 2:
            raise Spent("the door refused three requests in a row")
        info = await self.door.info()
        state = info.get("state") or {}
        if state.get("is_finalized"):
            raise Spent("the run is being finalized")
        self.remaining = int(state.get("remaining_budget", self.remaining))
        allowed = [c % self.situation.n_cases for c in self.common(cases)]
        await self._submit(trial, allowed)

    def _remember(self, found: list[Episode]) -> None:
        for listener in self.listeners:
            listener(found)
        self.episodes += found
        if len(self.episodes) > EPISODES_KEPT:
            half = EPISODES_KEPT // 2
            self.episodes = self.episodes[:half] + self.episodes[-half:]

    def _wander(self, episode: Episode) -> float:
        if episode.obs.shape[1] != self.scale.size or not self.scale.size:
            return 0.0
        if self.goals is not None:
            return -round(goal_distance(episode.obs, self.goals), 9)
        reach = np.minimum((episode.obs.max(axis=0) - episode.obs.min(axis=0)) / self.scale, 100.0)
        return round(float(reach.mean()), 6)


def number(value: float) -> str:
    """A return for a sentence: short, with a decimal where that matters."""
    if not np.isfinite(value):
        return "nothing"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
