"""The search itself, stage by stage: probe, explore forms, tune constants, confirm.

Every stage is a coroutine on a :class:`Search`; it raises ``Spent`` (of the session) from wherever the budget ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evotui.agents.search.code import Form, changes
from evotui.agents.search.features import Facts, study
from evotui.agents.search.forms import library
from evotui.agents.search.forms_basic import random_form
from evotui.agents.search.optimise import Tuner
from evotui.agents.search.plan import Plan, cases_per_candidate, make_plan, population
from evotui.agents.search.session import Session, Trial, number
from evotui.agents.search.table import learn_table
from evotui.agents.search.words import describe_facts, describe_spaces

STALL = 3
"""Generations without a better candidate after which the search changes its step or its form."""


class Search:
    """One run's search: what is known, what was tried, what is best."""

    def __init__(self, session: Session, seed: int) -> None:
        self.session = session
        self.seed = seed
        self.plan: Plan = make_plan(
            session.situation.budget, session.situation.view.kind in ("flat", "picture", "other")
        )
        self.facts = Facts()
        self.noise = 0.0
        self.spread = 0.0
        self.base: list[int] = []
        self.broken: set[str] = set()
        self.tuner: Tuner | None = None
        self.tuners = 0

    @property
    def best(self) -> Trial | None:
        """The trial to beat."""
        return self.session.best

    @best.setter
    def best(self, trial: Trial | None) -> None:
        self.session.best = trial

    # ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────

    def key(self, trial: Trial, cases: Sequence[int] | None = None) -> tuple[float, float]:
        """Order of trials: the mean return, then how far the observation strayed.

        Where every step pays, straying less is safer; where every step costs, straying further is nearer to a goal.
        Where the goal is told, it is the distance to it at the end.
        """
        mean = trial.mean(cases)
        sign = -1.0 if self.facts.survival and self.session.goals is None else 1.0
        return (float(f"{mean:.9g}"), sign * trial.wander(cases))

    def at_cap(self, trial: Trial) -> bool:
        """Whether no policy can score more on these cases: every step pays the same and every episode was full."""
        limit = self.session.situation.max_steps
        return self.facts.survival and bool(trial.results) and all(n >= limit for _, _, n, _ in trial.results)

    async def judge(self, trial: Trial, cases: Sequence[int] | None = None, quiet: bool = False) -> bool:
        """Compare a trial with the best so far, on ``cases`` where both have them. Says so; True where it is kept."""
        mean = trial.mean(cases)
        if trial.verdict != "ok" or not np.isfinite(mean):
            await self.session.say(f"That policy ended as {trial.verdict}: not kept.")
            return False
        if self.best is None or not np.isfinite(self.best.mean(cases)):
            self.best = trial
            await self.session.say(f"{number(mean)}: the first result to compare with. Kept.")
            return True
        old = self.best.mean(cases)
        if trial is self.best:
            return False
        kept = self.key(trial, cases) > self.key(self.best, cases)
        if kept:
            note = " with a steadier course" if mean == old and self.facts.survival else ""
            await self.session.say(f"{number(mean)} against {number(old)}{note}: kept.")
            self.best = trial
        elif not quiet:
            await self.session.say(f"{number(mean)} against {number(old)}: not kept.")
        return kept

    # ── stages ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """All stages; returns only by :class:`Spent`."""
        session = self.session
        if session.situation.view.kind == "table":
            await session.say(describe_spaces(session.situation, None))
            await learn_table(session)
        await session.say(describe_spaces(session.situation, self.plan))
        if self.plan.probe:
            await self.probe()
        self.learn()
        forms = await asyncio.to_thread(library, session.situation, self.facts, session.episodes)
        await session.say(describe_facts(session.situation, self.facts, forms))
        await self.explore(forms)
        await self.measure_noise()
        await self.tune(forms)
        await self.confirm()

    def learn(self) -> None:
        """Study all trajectories again."""
        if any(e.holes for e in self.session.episodes):
            self.session.situation = replace(self.session.situation, holes=True)
        self.facts = study(self.session.episodes, self.session.situation)
        if self.facts.scale.size == self.session.scale.size:
            self.session.scale = self.facts.scale

    async def probe(self) -> None:
        session = self.session
        picture = session.situation.view.kind == "picture"
        # what moves a whole scene takes longer to show, and shows best alone
        form = random_form(session.situation, hold=50 if picture else 6, rests=picture, seed=self.seed)
        cases = session.fresh(self.plan.probe)
        await session.attempt(
            form,
            cases,
            "First a probe: random actions, each held for a few steps, to see what moves what and what pays.",
        )
        rows = sum(len(e) for e in session.episodes)
        if rows < 120 and self.plan.tune > 8:
            await session.attempt(
                replace(form), session.fresh(2), f"Only {rows} steps so far: two more probes make the fits trustworthy."
            )
        self.best = session.trials[0] if session.trials and session.trials[0].results else None

    async def explore(self, forms: list[Form]) -> None:
        """Try each form from its starting points on common cases, round by round, until the stage's share is used."""
        session = self.session
        used_before = session.remaining
        self.base = session.fresh(max((f.least_cases for f in forms), default=1) if self.plan.tune else 1)
        best_form: Trial | None = None
        simple = ("constant", "threshold") if self.plan.explore >= 8 else ()
        # the simplest forms come first: they cost little and say what the others are worth
        forms = sorted(forms, key=lambda f: (f.key not in simple, simple.index(f.key) if f.key in simple else 0))
        rounds = max((len(f.starts) for f in forms), default=0)
        for turn in range(rounds):
            for form in forms:
                if turn >= len(form.starts) or form.key in self.broken:
                    continue
                spent = used_before - session.remaining
                if spent >= self.plan.explore:
                    break
                start = form.starts[turn]
                candidate = form.at(start.values)
                cases = session.common(self.base)
                why = f"Form '{form.title}': {form.idea}. Start: {start.why}."
                if turn:
                    why = f"Form '{form.title}' again: {start.why}."
                trial = await session.attempt(candidate, cases, why)
                if trial.verdict != "ok" or trial.errors:
                    self.broken.add(form.key)
                if best_form is None and self.best is not None:
                    # the probe was no proposal: the first real form takes its place without a comparison
                    self.best = None
                await self.judge(trial, cases)
                best_form = self.best
                if self.at_cap(trial):
                    await session.say("Every step of the episode was survived: nothing can score higher on this case.")
                    return

    async def measure_noise(self) -> None:
        """Run the best on two more cases: how much does a return depend on the case?"""
        session = self.session
        if self.best is None or self.plan.tune < 8:
            return
        means = [t.mean(self.base) for t in session.trials if t.results and t.form.key != "random"]
        finite = [m for m in means if np.isfinite(m)]
        cases = session.fresh(2)
        best = self.best
        await session.attempt(best.form, cases, "The same policy on two more cases: how much do cases matter?")
        self.noise = float(np.std(best.totals))
        self.spread = float(np.std(finite)) if len(finite) > 1 else 0.0
        await session.say(
            f"Returns of one policy differ by {number(self.noise)} from case to case, "
            f"those of the forms by {number(self.spread)} on one case."
        )

    def decisive(self) -> bool:
        """Whether the best form leads so clearly that no other needs a generation of its own."""
        by_form: dict[str, float] = {}
        for trial in self.session.trials:
            if trial.results and trial.form.key != "random":
                by_form[trial.form.key] = max(by_form.get(trial.form.key, -np.inf), trial.mean(self.base))
        least = 3 if self.session.goals is None else 2  # forms for goals were picked on evidence, so that few remain
        if self.best is None or len(by_form) < least:
            return self.best is not None and self.at_cap(self.best)
        others = [m for key, m in by_form.items() if key != self.best.form.key and np.isfinite(m)]
        lead = by_form[self.best.form.key] - max(others, default=-np.inf)
        doubt = float(np.std(others)) if len(others) > 1 else 3.0 * self.noise
        return self.at_cap(self.best) or lead > doubt + 1e-9

    def _tunable(self, forms: list[Form]) -> list[Form]:
        """One form per key to tune, at its best values so far, most promising first."""
        best: dict[str, Trial] = {}
        for trial in self.session.trials:
            key = trial.form.key
            if trial.results and (key not in best or self.key(trial, self.base) > self.key(best[key], self.base)):
                best[key] = trial
        found = [f for f in forms if f.key not in self.broken and any(s > 0 for s in f.scales)]
        standing = [(best[f.key].form if f.key in best else f) for f in found]
        order = sorted(
            range(len(standing)),
            key=lambda i: (-best[found[i].key].mean(self.base) if found[i].key in best else np.inf, -found[i].prior),
        )
        return [standing[i] for i in order]

    async def tune(self, forms: list[Form]) -> None:
        """CMA-ES on the most promising forms: a qualifying generation for each, then all episodes to the winner."""
        session = self.session
        candidates = self._tunable(forms)
        if not candidates:
            return
        reserve = self.plan.confirm
        available = session.remaining - reserve
        if self.decisive() or available < 24:
            chosen = [candidates[0]]
        else:
            chosen = candidates[: 3 if available >= 72 else 2]
        sigma = 0.6 if self.decisive() else 1.0
        tuners = [self._tuner(form, available // len(chosen), sigma) for form in chosen]
        if len(tuners) > 1:
            titles = ", ".join(f"'{t.form.title}'" for t in tuners)
            await session.say(f"No form leads clearly. A qualifying generation each for {titles}.")
        scores = [await self.generation(tuner, reserve) for tuner in tuners]
        order = sorted(range(len(tuners)), key=lambda i: scores[i], reverse=True)
        ranked = [tuners[i] for i in order]
        tuner, waiting = ranked[0], ranked[1:]
        if waiting:
            await session.say(f"'{tuner.form.title}' goes on.")
        stall = 0
        self.tuner = tuner
        while session.remaining - reserve >= max(2, session.situation.min_submit):
            before, left = self.best, session.remaining
            await self.generation(tuner, reserve)
            if session.remaining == left:
                return  # what remains of this stage is less than one candidate takes
            stall = 0 if self.best is not before else stall + 1
            if stall >= STALL and self.best is not None and session.remaining - reserve >= 2 * tuner.size:
                stall = 0
                form = self.best.form
                if not any(s > 0 for s in form.scales):
                    form = tuner.form
                tuner = self._tuner(form, session.remaining - reserve, sigma=0.4)
                self.tuner = tuner
                await session.say(
                    f"{STALL} generations without a gain: the search starts again around the best, with smaller steps."
                )

    def _tuner(self, form: Form, episodes: int, sigma: float = 1.0) -> Tuner:
        self.tuners += 1
        free = sum(s > 0 for s in form.scales)
        return Tuner(form, population(free, episodes // form.least_cases), self.seed * 1009 + self.tuners, sigma)

    async def generation(self, tuner: Tuner, reserve: int) -> tuple[float, float]:
        """One generation of candidates on common cases. Returns the key of its best."""
        session = self.session
        available = session.remaining - reserve
        count = cases_per_candidate(available, tuner.size, self.noise, self.spread)
        count = max(count, tuner.form.least_cases)
        if self.best is not None and self.at_cap(self.best):
            count = max(count, 3)  # one full episode says little when all candidates can have one
        rotate = self.noise > 0.05 * self.spread
        if not rotate and count > len(self.base):
            self.base = [*self.base, *session.fresh(count - len(self.base))]
        cases = session.fresh(count) if rotate else session.common(self.base)
        candidates = await tuner.ask()
        await session.think(
            f"Generation {tuner.generation} of '{tuner.form.title}': {len(candidates)} candidates around the present "
            f"centre (step {tuner.sigma:.2f}), each on {len(cases)} common "
            f"case{'s' if len(cases) > 1 else ''}{' that none has seen' if rotate else ''}."
        )
        best = self.best
        if best is not None and best.form.key == tuner.form.key and session.remaining - reserve > len(cases):
            missing = [case for case in cases if case not in best.cases]
            if missing:
                why = "The best so far on the new cases, to compare with."
                await session.attempt(best.form, session.common(missing), why)
        trials: list[Trial | None] = []
        for i, candidate in enumerate(candidates):
            if session.remaining - reserve < len(cases):
                trials.append(None)
                continue
            reference = self.best.form if self.best is not None and self.best.form.key == candidate.key else tuner.form
            why = f"Candidate {i + 1} of {len(candidates)}: {changes(reference, candidate)}."
            trial = await session.attempt(candidate, session.common(cases), why)
            await self.judge(trial, cases, quiet=False)
            trials.append(trial)
        done = [t for t in trials if t is not None]
        if not done:
            return (-np.inf, 0.0)
        if len(done) == len(candidates):
            order = sorted(range(len(done)), key=lambda i: self.key(done[i], cases), reverse=True)
            ranks = [0.0] * len(done)
            for place, i in enumerate(order):
                ranks[i] = float(place)
            await tuner.tell(ranks)
        return max(self.key(t, cases) for t in done)

    async def confirm(self) -> None:
        """The centre of the search and the best trials on fresh common cases, until the budget is used up."""
        session = self.session
        if self.best is None:
            await self._floor()
            return
        finalists: list[Form] = [self.best.form]
        tuner = self.tuner
        if tuner is not None and tuner.generation > 1:
            centre = tuner.mean()
            if centre.values != self.best.form.values:
                finalists.insert(0, centre)
        others = sorted(
            (t for t in session.trials if t is not self.best and t.results and t.form.key != "random"),
            key=self.key,
            reverse=True,
        )
        finalists += [t.form for t in others[: max(0, min(2, session.remaining // 4 - len(finalists)))]]
        each = max(1, session.remaining // max(1, len(finalists)))
        each = max(1, min(each, session.situation.n_cases))
        cases = session.fresh(each)
        await session.say(
            f"Confirming: {len(finalists)} finalist{'s' if len(finalists) > 1 else ''} on {len(cases)} fresh "
            f"case{'s' if len(cases) > 1 else ''}."
        )
        ranking: list[Trial] = []
        for i, form in enumerate(finalists):
            name = (
                "the centre of the search"
                if i == 0 and len(finalists) > 1 and form is not self.best.form
                else "a finalist"
            )
            ranking.append(await session.attempt(form, session.common(cases), f"Now {name}: '{form.title}'."))
        self.best = max(ranking, key=lambda t: self.key(t, cases))
        await session.say(f"Best on the fresh cases: {number(self.best.mean(cases))} with '{self.best.form.title}'.")
        while True:
            cases = session.fresh(session.remaining)
            await session.attempt(self.best.form, cases, "The rest of the budget on the best policy, on unseen cases.")

    async def _floor(self) -> None:
        """Nothing worked so far: random actions at least run."""
        session = self.session
        while True:
            await session.attempt(
                random_form(session.situation), session.fresh(session.remaining), "Nothing else ran: random actions."
            )
