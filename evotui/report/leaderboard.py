"""A ranking as a JSON document, as CSV and as text; the paper's own figures (K = 5) stay beside a greater one."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from evotui.analysis.leaderboard import GROUPS, Environment, Figures, Row, families_of, ranking
from evotui.analysis.paper import core16, paper_entries
from evotui.report.jsondoc import SCHEMA_VERSION
from evotui.report.text import number, plain, table


def leaderboard_document(rows: Sequence[Row], environments: Sequence[Environment]) -> dict[str, Any]:
    """The ranking. ``scores`` are raw held-out means; ``paper`` the paper's own figures of its entries, else null.

    ``interval`` is the 95 % interval of the mean rank score over repeats, null for fewer than two.
    """
    own = _papers_own()
    return {
        "schema_version": SCHEMA_VERSION,
        "k": len(rows),
        "environments": [
            {
                "name": env.key, "slug": env.slug, "gym_id": env.gym_id, "family": env.family,
                "group": env.group or None, "core16": env.core16, "k": sum(env.key in row.means for row in rows),
            }
            for env in environments
        ],
        "entries": [_entry(row, own) for row in rows],
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
                "rank": row.ranks[env],
                "rank_score": row.rank_scores.get(env),
                "normalized": row.normalized.get(env),
            }
            for env in row.means
        },
        "paper": _figures(mine) if mine is not None else None,
        "facts": dict(entry.facts),
    }


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
    """One line an entry: its figures, then mean, interval, repeats and rank of each environment."""
    families = families_of(environments)
    head = ["model", "harness", "source", "core16", "overall", *families, "wins", "top2", *GROUPS, "environments"]
    for env in environments:
        head += [env.key, f"{env.key} low", f"{env.key} high", f"{env.key} n", f"{env.key} rank"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        f, entry = row.figures, row.entry
        line: list[Any] = [entry.model, entry.harness, entry.source, f.core16, f.overall]
        line += [*(f.families[name] for name in families), f.wins, f.top2, *(f.normalized[g] for g in GROUPS)]
        line.append(f.environments)
        for env in environments:
            low, high = row.intervals.get(env.key, (None, None))
            n = len(entry.returns.get(env.key, ()))
            line += [row.means.get(env.key), low, high, n, row.ranks.get(env.key)]
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
    beside = any(row.entry.source == "paper" for row in rows) and len(rows) > len(own)
    core = [env.core16 for env in environments]
    means = ["Core16"] * any(core) + ["all"] * (not all(core))
    head = ["", "model", "harness", "from", *families, *means, "wins", "top-2", *GROUPS]
    if beside:
        head += [f"Core16 as printed (K = {len(own)})", "wins", "top-2"]
    lines = []
    for place, row in enumerate(rows, 1):
        f, entry = row.figures, row.entry
        line = [str(place) if f.complete else "*", plain(entry.model, 30), plain(entry.harness, 20), entry.source]
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
    return f"rank scores, K = {len(rows)}\n" + table(head, lines, right=(0, *columns))


def _share(value: float | None, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if value is not None else "–"


def _raw(rows: Sequence[Row], environments: Sequence[Environment]) -> str:
    several = any(row.intervals for row in rows)
    head = ["environment", *(plain(row.entry.model, 18) for row in rows)]
    lines = [[env.key, *(_cell(row, env.key) for row in rows)] for env in environments]
    what = "mean held-out return (rank)" + (", ± half of the 95 % interval over repeats" if several else "")
    return f"{what}\n" + table(head, lines, right=range(1, len(head)))


def _cell(row: Row, env: str) -> str:
    if env not in row.means:
        return "–"
    value = row.means[env]
    digits = 3 if abs(value) < 1 else 1
    spread = ""
    if env in row.intervals:
        low, high = row.intervals[env]
        spread = f" ± {number((high - low) / 2, digits)}"
    return f"{value:.{digits}f}{spread} ({row.ranks[env]})"


def _notes(rows: Sequence[Row]) -> str:
    notes = []
    if any(not row.figures.complete for row in rows):
        notes.append("* without a score in some environment: ranked and averaged over the others only")
    among_paper = any(row.entry.source == "paper" for row in rows)
    for row in rows:
        facts = row.entry.facts
        name = f"{plain(row.entry.model, 30)} ({row.entry.source})"
        if among_paper and facts.get("pools") not in (None, "paper"):
            notes.append(f"{name}: its held-out cases are not the paper's ({facts['pools']} pools)")
        if facts.get("assisted"):
            notes.append(f"{name}: a person took part in {facts['assisted']} of its runs")
        if facts.get("failed"):
            notes.append(f"{name}: {facts['failed']} of {facts['cells']} cells failed")
    return "\n".join(notes)
