"""Tokens and money as short words; the limits that a run's agent was given, read from the run's folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evotui.analysis.usage import Ledger, Spent, by_improvement
from evotui.record.regular import text_of_regular
from evotui.record.rundir import RunDir
from evotui.record.state import RunState
from evotui.ui.chrome import Part
from evotui.ui.words import elapsed, short


@dataclass(frozen=True, slots=True)
class Limits:
    """What the agent may spend: US dollars, model calls, seconds; None where nothing limits it. ``options`` are all of
    the agent's options."""

    cost: float | None = None
    turns: int | None = None
    wall: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_limits(run: RunDir) -> Limits:
    """The limits in ``run.toml``; none where it cannot be read. Blocking."""
    try:
        table = tomllib.loads(text_of_regular(run.run_toml))
    except (OSError, ValueError):
        return Limits()
    options = table.get("agent_options")
    if not isinstance(options, dict):
        return Limits()

    def figure(name: str) -> float | None:
        value = options.get(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None

    turns = figure("max_turns")
    return Limits(figure("max_cost"), int(turns) if turns is not None else None, figure("max_wall"), options)


def count(tokens: int) -> str:
    """``873``, ``12.4k``, ``3.21M``."""
    if tokens >= 1_000_000:
        return f"{tokens / 1e6:.2f}M"
    return f"{tokens / 1e3:.1f}k" if tokens >= 1000 else str(tokens)


def dollars(value: float) -> str:
    """``$0.12``; small sums with the figures that say something."""
    if value == 0 or value >= 0.1:
        return f"${value:.2f}"
    return f"${value:.3f}" if value >= 0.001 else f"${value:.1g}"


def money(spent: Spent) -> str:
    """What was spent where a price is known: ``$0.12``, ``~$0.12`` where it is not exact, "" where none is known."""
    if spent.cost_usd is None:
        return ""
    return f"{'~' * spent.about}{dollars(spent.cost_usd)}"


def tokens(spent: Spent) -> str:
    """``12.4k in + 45.1k cached → 2.1k``; ``~`` before figures that were counted here."""
    about = "~" * spent.estimated
    cached = f" + {count(spent.cached)} cached" if spent.cached else ""
    return f"{about}{count(spent.fresh + spent.written)} in{cached} → {count(spent.output)}"


def few(spent: Spent) -> str:
    """``57.5k → 2.1k  $0.12``: the same in fewer cells."""
    paid = money(spent)
    return f"{'~' * spent.estimated}{count(spent.tokens_in)} → {count(spent.output)}" + (f"  {paid}" if paid else "")


def foot(ledger: Ledger, state: RunState, selected: int | None, limits: Limits) -> tuple[list[Part], list[Part]]:
    """The line below the transcript: all that was spent; on the right what led to the selected submission and what an
    improvement costs. Empty where no model was called."""
    spent = ledger.total
    if not spent.turns:
        return [], []
    paid = money(spent) or "no price known"
    if limits.cost is not None:
        paid += f" of {dollars(limits.cost).removesuffix('.00')}"
    of = f"/{limits.turns}" if limits.turns is not None else ""
    calls = f"{spent.turns}{of} turn{'s' * (spent.turns != 1 or bool(of))}"
    left = [
        Part(tokens(spent), "$text-muted", 60),
        Part(paid, "bold $text-primary" if spent.cost_usd is not None else "$text-muted", 90),
        Part(calls, "$text-muted", 55),
    ]
    right: list[Part] = []
    at = selected if selected is not None else len(state.submissions)
    here = ledger.leading_to(at)
    if here.turns:
        name = short(at) if at < len(state.submissions) else "since then"
        right.append(Part(f"{name}: {few(here)}", "$text-muted", 50))
    rows = by_improvement(state, ledger)
    if len(rows) > 1:
        each = sum(spent.tokens for _, spent in rows) // len(rows)
        known = [s.cost_usd for _, s in rows if s.cost_usd is not None]
        price = f" {'~' * any(s.about for _, s in rows)}{dollars(sum(known) / len(rows))}" if known else ""
        right.append(Part(f"★ {len(rows)} × {count(each)}{price}", "$text-muted", 30))
    return left, right


def beside(ledger: Ledger, state: RunState, limits: Limits, now: float) -> list[Part]:
    """The line below the episodes' meter: time, tokens, money, none of them an episode. ``now`` in seconds since the
    epoch. Empty where no model was called and nothing limits the time."""
    spent = ledger.total
    if not spent.turns and limits.wall is None:
        return []
    wall = elapsed(now - state.started_at) + (f" of {elapsed(limits.wall)}" if limits.wall is not None else "")
    parts = [Part(f"wall {wall}", "$text-muted", 50)]
    if spent.turns:
        parts += [
            Part(f"{'~' * spent.estimated}{count(spent.tokens)} tokens", "$text-muted", 60),
            Part(money(spent) or "no price known", "$text-primary", 70),
        ]
        best = state.best_in_loop
        if best is not None and (since := ledger.since(best.index)).turns:
            parts.append(Part(f"since best {few(since)}", "$text-muted", 20))
    return parts
