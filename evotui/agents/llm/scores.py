"""The table of submissions that we keep for the model: it stays right whatever becomes of the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evotui.protocol.budget import format_cases

_ROWS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One submission: its cases, verdict, mean and spread of returns (None unless it is ok), and a word on the edit."""

    name: str
    cases: tuple[int, ...]
    verdict: str
    mean: float | None
    std: float | None
    note: str = ""


@dataclass(slots=True)
class Scores:
    rows: list[Row] = field(default_factory=list)
    remaining: int = 0

    def add(self, answer: Mapping[str, Any], note: str) -> Row:
        """Take in what a submission was answered with."""
        summary = answer.get("summary") or {}
        mean, std = (summary.get(key) for key in ("mean_return", "std_return"))
        row = Row(
            str(answer.get("submit_id", f"submit {len(self.rows)}")),
            tuple(summary.get("cases") or summary.get("env_instances") or ()),
            str(answer.get("status", "ok")),
            float(mean) if isinstance(mean, (int, float)) else None,
            float(std) if isinstance(std, (int, float)) else None,
            " ".join(note.replace("|", "/").split())[:80],
        )
        self.rows.append(row)
        left = summary.get("remaining_budget")
        if isinstance(left, int):
            self.remaining = left
        return row

    def table(self) -> str:
        """The table as Markdown; empty without submissions."""
        if not self.rows:
            return ""
        best = max((row for row in self.rows if row.mean is not None), key=lambda r: r.mean or 0.0, default=None)
        lines = ["| submission | cases | result | what it was |", "|---|---|---|---|"]
        for row in self.rows[-_ROWS:]:
            result = row.verdict
            if row.mean is not None:
                result = f"mean {row.mean:.6g}" + (f" ± {row.std:.4g}" if row.std is not None else "")
            star = " (best)" if row is best else ""
            lines.append(f"| {row.name} | {format_cases(row.cases)} | {result}{star} | {row.note} |")
        lines.append(f"Episodes left: {self.remaining}.")
        return "\n".join(lines)
