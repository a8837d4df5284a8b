"""Documents for ``--json``: one object with a schema version for each reading command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evotui.analysis.evidence import Evidence, never_read
from evotui.analysis.scores import auxiliary_scores, since_improvement
from evotui.analysis.usage import Ledger, Spent, by_improvement
from evotui.record.state import RunState, Submission
from evotui.record.summary import RunSummary

if TYPE_CHECKING:  # a listing needs no check
    from evotui.record.check import Findings

SCHEMA_VERSION = 1
"""Version of these documents: it rises when a key goes or changes its meaning, not when one is added."""


def status_of(state: RunState, live: bool = False) -> str:
    """completed, no_ok_submit or error once the run ended; before that running if ``live``, else interrupted."""
    if state.ended is not None:
        return state.ended.status
    return "running" if live else "interrupted"


def run_document(state: RunState, live: bool = False, rows: Sequence[Evidence] = ()) -> dict[str, Any]:
    """One run. ``best`` and ``heldout`` are null until the run has them; ``submissions`` counts the accepted ones.

    ``live`` says that somebody drives the run right now; ``rows`` is the evidence, where it is known. Raises
    FoldError for a log without RunOpened.
    """
    head = state.header
    held = state.heldout.score if state.heldout is not None else None
    best = state.selected
    score = held.final_score if held is not None else (0.0 if status_of(state) == "no_ok_submit" else None)
    loop = state.best_in_loop
    ledger = Ledger().of(state)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": head.run,
        "env": head.env,
        "env_version": head.env_version,
        "agent": head.agent,
        "model": head.model,
        "status": status_of(state, live),
        "error": state.ended.error if state.ended is not None else None,
        "stage": state.stage,
        "assisted": state.assisted,
        "budget": {"total": state.budget.total, "used": state.budget.used, "remaining": state.budget.remaining},
        "since_improvement": since_improvement(state),
        "submissions": len(state.submissions),
        "rejected": len(state.rejected),
        "best_in_loop": {"submission": loop.index, "mean": loop.mean} if loop is not None else None,
        "best": {"submission": best, "val_score": state.submission(best).val_score} if best is not None else None,
        "heldout": {"mean": held.mean, "std": held.std, "n": held.n} if held is not None else None,
        "faults": {
            "train": sum(ep.fault is not None for s in state.submissions for ep in s.episodes),
            "heldout": sum(ep.fault is not None for ep in state.heldout.episodes) if state.heldout is not None else 0,
        },
        "final_score": score,
        "final_score_kind": held.final_score_kind if held is not None else None,
        "auxiliary": dict(auxiliary_scores(state)),
        "pools": head.pools,
        "policy_lifetime": head.policy_lifetime,
        "isolation": head.isolation_level,
        "seconds": round(state.last_at - state.started_at, 3),
        "usage": {
            "calls": state.usage.calls,
            "input_tokens": state.usage.input_tokens,
            "cached_tokens": state.usage.cached_tokens,
            "cache_write_tokens": state.usage.cache_write_tokens,
            "output_tokens": state.usage.output_tokens,
            "cost_usd": state.usage.cost_usd,
            "by_submission": [{"submission": i, **_spent(s)} for i, s in sorted(ledger.by_submission.items())],
            "by_improvement": [{"submission": i, **_spent(s)} for i, s in by_improvement(state, ledger)],
        },
        "evidence": [_evidence(row) for row in rows],
        "never_read": never_read(rows),
        "history": [_submission(s) for s in state.submissions],
    }


def _spent(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.turns,
        "input_tokens": spent.fresh,
        "cached_tokens": spent.cached,
        "cache_write_tokens": spent.written,
        "output_tokens": spent.output,
        "cost_usd": spent.cost_usd,
        "estimated": spent.about,
    }


def _evidence(row: Evidence) -> dict[str, Any]:
    """``never_read`` is the share of the feedback there was that nobody had read; ``gain`` is against the best mean."""
    return {
        "submission": row.submission,
        "read": list(row.read),
        "never_read": row.share_never,
        "said": row.said,
        "edit": row.edit.kind.value if row.edit is not None else None,
        "added": row.edit.added if row.edit is not None else None,
        "removed": row.edit.removed if row.edit is not None else None,
        "constants": row.constants,
        "mean": row.mean,
        "gain": row.gain,
    }


def _submission(s: Submission) -> dict[str, Any]:
    return {
        "submission": s.index,
        "by": s.by,
        "status": str(s.verdict) if s.verdict is not None else None,
        "message": s.message,
        "cases": list(s.cases),
        "first_episode": s.first_episode,
        "returns": [ep.return_ for ep in s.in_order],
        "mean": s.mean,
        "std": s.std,
        "val_score": s.val_score,
    }


def list_document(found: Iterable[RunSummary]) -> dict[str, Any]:
    """The runs of a folder."""
    return {"schema_version": SCHEMA_VERSION, "runs": [_summary(s) for s in found]}


def _summary(s: RunSummary) -> dict[str, Any]:
    return {
        "run": s.name,
        "path": str(s.path),
        "env": s.env,
        "env_version": s.env_version,
        "agent": s.agent,
        "model": s.model,
        "status": s.status,
        "problem": s.problem or None,
        "budget": {"total": s.total, "used": s.used, "remaining": s.total - s.used},
        "submissions": s.submissions,
        "best_in_loop": s.best_in_loop,
        "best": {"submission": s.best[0], "val_score": s.best[1]} if s.best is not None else None,
        "heldout": dict(zip(("mean", "std", "n"), s.heldout, strict=True)) if s.heldout is not None else None,
        "faults": {"heldout": s.faults},
        "final_score": s.final_score,
        "final_score_kind": s.final_score_kind or None,
        "started_at": s.started_at,
        "last_at": s.last_at,
    }


def check_document(run: Path, findings: Findings, problem: str = "") -> dict[str, Any]:
    """What the check of a record found; ``problem`` says why it could not be checked at all."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run.name,
        "path": str(run),
        "ok": not findings.breaches and not problem,
        "problem": problem or None,
        "breaches": [{"code": b.code, "where": b.where, "sentence": b.sentence} for b in findings.breaches],
        "notes": list(findings.notes),
    }


def checks_document(folder: Path, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the checks of all the runs in a folder found: ``runs`` are their documents."""
    return {
        "schema_version": SCHEMA_VERSION,
        "path": str(folder),
        "ok": all(run["ok"] for run in runs),
        "runs": [{key: value for key, value in run.items() if key != "schema_version"} for run in runs],
    }
