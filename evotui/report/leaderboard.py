"""A ranking as a JSON document, as CSV and as text; the paper's own figures (K = 5) stay beside a greater one."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from evotui.analysis.leaderboard import GROUPS, MIN_REPEATS, Environment, Figures, Row, families_of, ranking
from evotui.analysis.paper import core16, paper_entries
from evotui.report.jsondoc import SCHEMA_VERSION
from evotui.report.text import HURT, HURT_NOTE, number, plain, table


def leaderboard_document(
    rows: Sequence[Row], environments: Sequence[Environment], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The ranking. ``scores`` are raw held-out means; ``paper`` the paper's own figures of its entries, else null.

    ``notes`` say why entries that look alike were not merged.
    ``k`` counts the entries with a score; one that failed everywhere is there, too, with nothing but its reasons.
    ``interval`` is the 95 % interval of the mean rank score over repeats, and in ``details`` of the mean return: null
    for fewer than three. ``range`` is the least and the greatest of two or more. ``faults`` there are the held-out
    episodes that a fault ended, over all repeats: such an episode counts with what it had earned; null where that is
    not known, as of the paper's entries. ``failed``: reasons by environment.
    """
    own = _papers_own()
    return {
        "schema_version": SCHEMA_VERSION,
        "k": _k(rows),
        "environments": [
            {
                "name": env.key, "slug": env.slug, "gym_id": env.gym_id, "family": env.family,
                "group": env.group or None, "core16": env.core16, "k": sum(env.key in row.means for row in rows),
            }
            for env in environments
        ],
        "entries": [_entry(row, own) for row in rows],
        "notes": list(notes),
    }  # fmt: skip


def _entry(row: Row, own: dict[str, Figures]) -> dict[str, Any]:
    entry = row.entry
    mine = own.get(entry.key) if entry.source == "paper" else None
    return {
        "model": entry.model,
        "harness": entry.harness,
        "source": entry.source,
        "random": entry.random,
        **_figures(row.figures),
        "interval": list(row.spread) if row.spread is not None else None,
        "environments": row.figures.environments,
        "complete": row.figures.complete,
        "scores": dict(row.means),
        "details": {
            env: {
                "n": len(entry.returns[env]),
                "interval": list(row.intervals[env]) if env in row.intervals else None,
                "range": list(row.ranges[env]) if env in row.ranges else None,
                "rank": row.ranks[env],
                "rank_score": row.rank_scores.get(env),
                "normalized": row.normalized.get(env),
                "faults": entry.faults[env][0] if env in entry.faults else None,
            }
            for env in row.means
        },
        "failed": {env: list(reasons) for env, reasons in entry.failed.items()},
        "paper": _figures(mine) if mine is not None else None,
        "facts": dict(entry.facts),
    }


def _k(rows: Sequence[Row]) -> int:
    return sum(bool(row.means) for row in rows)


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "core16": figures.core16,
        "overall": figures.overall,
        "families": dict(figures.families),
        "wins": figures.wins,
        "top2": figures.top2,
        "normalized": dict(figures.normalized),
    }


def _papers_own() -> dict[str, Figures]:
    return {row.entry.key: row.figures for row in ranking(paper_entries(), core16())}


def leaderboard_csv(rows: Sequence[Row], environments: Sequence[Environment]) -> str:
    """One line an entry: its figures, its failed runs with their reasons, then mean, 95 % interval (three repeats or
    more), least, greatest, repeats, rank and episodes that a fault ended of each environment."""
    families = families_of(environments)
    head = ["model", "harness", "source", "core16", "overall", *families, "wins", "top2", *GROUPS, "environments"]
    head += ["failed", "failures"]
    for env in environments:
        head += [f"{env.key} {name}".strip() for name in ("", "low", "high", "min", "max", "n", "rank", "faults")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        f, entry = row.figures, row.entry
        line: list[Any] = [entry.model, entry.harness, entry.source, f.core16, f.overall]
        line += [*(f.families[name] for name in families), f.wins, f.top2, *(f.normalized[g] for g in GROUPS)]
        reasons = [f"{env}: {reason}" for env, found in entry.failed.items() for reason in found]
        line += [f.environments, len(reasons), "; ".join(reasons)]
        for env in environments:
            low, high = row.intervals.get(env.key, (None, None))
            n = len(entry.returns.get(env.key, ()))
            least, most = row.ranges.get(env.key, (None, None))
            line += [
                row.means.get(env.key),
                low,
                high,
                least,
                most,
                n,
                row.ranks.get(env.key),
                entry.faults.get(env.key, (None,))[0],
            ]
        writer.writerow(line)
    return text.getvalue()


def leaderboard_text(rows: Sequence[Row], environments: Sequence[Environment]) -> str:
    """Two tables for a person: the entries with their figures, the environments with everybody's mean and rank."""
    if not rows:
        return "no entry yet"
    return "\n\n".join(part for part in (_ranked(rows, environments), _raw(rows, environments), _notes(rows)) if part)


def _ranked(rows: Sequence[Row], environments: Sequence[Environment]) -> str:
    families = families_of(environments)
    own = _papers_own()
    # Where others are ranked among the paper's entries, these keep the figures that the paper prints.
    beside = any(row.entry.source == "paper" for row in rows) and _k(rows) > len(own)
    core = [env.core16 for env in environments]
    means = ["Core16"] * any(core) + ["all"] * (not all(core))
    head = ["", "model", "harness", "from", *families, *means, "wins", "top-2", *GROUPS]
    if beside:
        head += [f"Core16 as printed (K = {len(own)})", "wins", "top-2"]
    lines = []
    for place, row in enumerate(rows, 1):
        f, entry = row.figures, row.entry
        which = "✗" if not row.means else str(place) if f.complete else "*"
        line = [which, plain(entry.model, 30), plain(entry.harness, 20), entry.source]
        line += [_share(f.families[name]) for name in families]
        for name in means:
            half = f" ± {(row.spread[1] - row.spread[0]) / 2:.3f}" if row.spread and name == means[0] else ""
            line.append(_share(f.core16 if name == "Core16" else f.overall) + half)
        line += [str(f.wins), str(f.top2), *(_share(f.normalized[g], 2) for g in GROUPS)]
        if beside:
            mine = own.get(entry.key) if entry.source == "paper" else None
            line += [_share(mine.core16), str(mine.wins), str(mine.top2)] if mine is not None else ["", "", ""]
        lines.append(line)
    columns = range(4, len(head))
    return f"rank scores, K = {_k(rows)}\n" + table(head, lines, right=(0, *columns))


def _share(value: float | None, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if value is not None else "–"


def _raw(rows: Sequence[Row], environments: Sequence[Environment]) -> str:
    head = ["environment", *(plain(row.entry.model, 18) for row in rows)]
    lines = [[env.key, *(_cell(row, env.key) for row in rows)] for env in environments]
    what = "mean held-out return (rank)"
    if any(row.intervals for row in rows):
        what += f", ± half of the 95 % interval over repeats ({MIN_REPEATS} or more)"
    if any(row.ranges.keys() - row.intervals.keys() for row in rows):
        what += ", [least, greatest] of two repeats"
    return f"{what}\n" + table(head, lines, right=range(1, len(head)))


def _cell(row: Row, env: str) -> str:
    if env not in row.means:
        return "failed" if env in row.entry.failed else "–"
    value = row.means[env]
    digits = 3 if abs(value) < 1 else 1
    spread = ""
    if env in row.intervals:
        low, high = row.intervals[env]
        spread = f" ± {number((high - low) / 2, digits)}"
    elif env in row.ranges:
        low, high = row.ranges[env]
        spread = f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{value:.{digits}f}{spread}{HURT if _hurt(row, env) else ''} ({row.ranks[env]})"


def _hurt(row: Row, env: str) -> int:
    """How many of the held-out episodes of a mean a fault ended, as far as that is known."""
    return row.entry.faults.get(env, (0, 0))[0]


def _notes(rows: Sequence[Row]) -> str:
    notes = []
    if any(row.means and not row.figures.complete for row in rows):
        notes.append("* without a score in some environment: ranked and averaged over the others only")
    if any(_hurt(row, env) for row in rows for env in row.means):
        notes.append(HURT_NOTE)
    among_paper = any(row.entry.source == "paper" for row in rows)
    for row in rows:
        facts = row.entry.facts
        name = f"{plain(row.entry.model, 30)} ({row.entry.source})"
        if among_paper and facts.get("pools") not in (None, "paper"):
            notes.append(f"{name}: its held-out cases are not the paper's ({facts['pools']} pools)")
        if facts.get("assisted"):
            notes.append(f"{name}: a person took part in {facts['assisted']} of its runs")
        if hurt := [env for env in row.means if _hurt(row, env)]:
            told = (f"{env} {row.entry.faults[env][0]} of {row.entry.faults[env][1]}" for env in hurt)
            notes.append(f"{name}: episodes ended by a fault: {', '.join(told)}")
        if row.entry.failed:
            notes += _failures(name, row)
    return "\n".join(notes)


def _failures(name: str, row: Row) -> list[str]:
    """Why runs of an entry failed, each reason once with where."""
    where: dict[str, list[str]] = {}
    for env, reasons in row.entry.failed.items():
        for reason in reasons:
            where.setdefault(plain(reason), []).append(env)
    n, cells = sum(map(len, where.values())), row.entry.facts.get("cells")
    head = f"{name}: {n} of {cells} cells failed" if n != cells else f"{name}: ✗ failed in every cell ({n})"
    return [head, *(f"  {', '.join(dict.fromkeys(envs))}: {reason}" for reason, envs in where.items())]
