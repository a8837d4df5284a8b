"""The protocol's record files as pure documents: ``summary.json``, ``errors.txt``, ``_meta.json``, ``run.json``."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import evotui
from evotui.kernel.submission import Outcome
from evotui.kernel.texts import PROTOCOL_VERSION
from evotui.protocol.codemetrics import trend
from evotui.protocol.results import EpisodeResult, stats
from evotui.protocol.verdict import Verdict
from evotui.record.scores import auxiliary_scores
from evotui.record.state import RunState, Submission

SCHEMA_VERSION = "0.1"
_PARTIAL = (Verdict.OK, Verdict.OOM, Verdict.ROLLOUT_TIMEOUT)


def iso(seconds: float) -> str:
    """Seconds since the epoch as UTC with milliseconds and ``Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def summary(
    state: RunState, index: int, outcome: Outcome, started: float, completed: float, wall_seconds: float
) -> dict[str, Any]:
    """``feedback/submit_NNN/summary.json``.

    Arrays and extremes are null unless episodes were rolled out; mean and deviation also unless the verdict is ok.
    ``timeouts`` lists local indices of episodes that hit a time limit, ``errors`` of those that ended by another fault.
    """
    was = state.submission(index)
    episodes = outcome.episodes if outcome.verdict in _PARTIAL else None
    ok = outcome.verdict is Verdict.OK
    returns = [ep.return_ for ep in episodes] if episodes is not None else None
    lengths = [ep.length for ep in episodes] if episodes is not None else None
    scored = stats(returns) if returns else None
    sized = stats(lengths) if lengths else None
    components = _components(episodes or ())
    return {
        "schema_version": SCHEMA_VERSION,
        "submit_index": index,
        "env": state.header.env,
        "status": str(outcome.verdict),
        "n_episodes": was.cost,
        "first_global_episode": was.first_episode,
        "env_instances": list(was.cases),
        "remaining_budget": state.budget.remaining,
        "submit_started_at": iso(started),
        "submit_completed_at": iso(completed),
        "wall_time_seconds": round(wall_seconds, 6),
        "returns": returns,
        "mean_return": scored.mean if ok and scored else None,
        "std_return": scored.std if ok and scored else None,
        "min_return": scored.low if scored else None,
        "max_return": scored.high if scored else None,
        "episode_lengths": lengths,
        "mean_episode_length": sized.mean if sized else None,
        "timeouts": None
        if episodes is None
        else [i for i, ep in enumerate(episodes) if ep.fault and ep.fault.kind.is_timeout],
        "errors": None
        if episodes is None
        else [i for i, ep in enumerate(episodes) if ep.fault and not ep.fault.kind.is_timeout],
        "invalid_actions": None if episodes is None else [ep.invalid_actions for ep in episodes],
        "reward_components_mean": {k: math.fsum(v) / len(v) for k, v in components.items()}
        if ok and components
        else None,
        "reward_components_per_episode": components or None,
    }


def _components(episodes: Sequence[EpisodeResult]) -> dict[str, list[float]]:
    names = sorted({name for ep in episodes for name in ep.components})
    return {name: [ep.components.get(name, 0.0) for ep in episodes] for name in names}


def errors(outcome: Outcome, when: float) -> bytes:
    """``errors.txt``: one JSON line for the verdict, then one for each episode that failed."""
    rows = [(str(outcome.verdict), outcome.message, outcome.traceback)]
    rows += [
        (str(ep.fault.kind), ep.fault.message, ep.fault.traceback) for ep in outcome.episodes if ep.fault is not None
    ]
    lines = [
        json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": iso(when),
                "category": category,
                "message": message,
                "traceback": traceback or None,
            },
            ensure_ascii=False,
        )
        for category, message, traceback in rows
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def meta(was: Submission, env: str, tree_hash: str, when: float) -> dict[str, Any]:
    """``checkpoints/submit_NNN/_meta.json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "submit_index": was.index,
        "env": env,
        "env_instances": list(was.cases),
        "first_global_episode": was.first_episode,
        "snapshot_at": iso(when),
        "tree_hash": tree_hash,
    }


def run_record(
    state: RunState, status: str, error: str | None, ended: float, agents_md_hash: str, dimensions: Mapping[str, Any]
) -> dict[str, Any]:
    """``run.json``, from the folded state alone but for the hash of ``AGENTS.md`` and the configuration."""
    head = state.header
    held = state.heldout
    score = held.score if held is not None else None
    metrics = {s.index: dict(s.metrics) for s in state.submissions if s.metrics}
    best = state.selected
    auxiliary: dict[str, Any] = {
        "code_metrics_best": metrics.get(best) if best is not None else None,
        "code_metrics_by_submit": {str(i): m for i, m in metrics.items()},
        "code_metrics_trend": trend(metrics),
        "in_loop_means": {str(s.index): s.mean for s in state.submissions},
        "verdicts": {str(s.index): str(s.verdict) if s.verdict is not None else None for s in state.submissions},
        "episodes_used": state.budget.used,
        "assisted": state.assisted,
        "finalize_reason": state.finalize_reason or None,
        "final_score_kind": score.final_score_kind if score is not None else None,
        "n_submits": len(state.submissions),
        "n_successful_submits": sum(s.ok for s in state.submissions),
        **auxiliary_scores(state),
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "model": head.model,
        "env": head.env,
        "exp_id": head.run,
        "experiment_dimensions": {
            "episode_budget": state.budget.total,
            "min_episodes_per_submit": state.budget.min_submit,
            "max_episodes_per_submit": min(state.budget.max_submit, state.budget.total),
            "seed_pool_id": head.pools,
            "agent_harness": head.agent,
            "policy_lifetime": head.policy_lifetime,
            "profile": head.profile,
            "n_validation": head.n_validation,
            "n_heldout": head.n_heldout,
            "isolation_level": head.isolation_level,
            "isolation_layers": list(head.isolation_layers),
            **dimensions,
        },
        "timing": {
            "start_time": iso(state.started_at),
            "end_time": iso(ended),
            "wall_time_seconds": round(ended - state.started_at, 3),
        },
        "outcome": {
            "status": status,
            "error": error,
            "final_score": 0.0 if status == "no_ok_submit" else (score.final_score if score is not None else None),
            "best_submit_index": best,
            "val_scores": {str(s.index): s.val_score for s in state.submissions if s.val_score is not None},
            "heldout_mean_return": score.mean if score is not None else None,
            "heldout_std_return": score.std if score is not None else None,
            "heldout_returns": [ep.return_ for ep in sorted(held.episodes, key=lambda ep: ep.position)]
            if held is not None
            else None,
            "auxiliary": auxiliary,
        },
        "artifacts": {
            "workspace": "workspace/",
            "feedback": "workspace/feedback/",
            "checkpoints": "checkpoints/",
            "logs_harness": "logs/harness.log",
            "logs_agent": "logs/agent.jsonl",
            "logs_env": "logs/env.log",
        },
        "versions": {
            "harness": f"evotui {evotui.__version__}",
            "env": head.env_version,
            "python": platform.python_version(),
            "packages": dict(head.versions),
            "agents_md_hash": agents_md_hash,
            "data_train_hash": head.pool_hashes.get("train"),
            "data_valid_hash": head.pool_hashes.get("validation"),
            "data_heldout_hash": head.pool_hashes.get("heldout"),
        },
    }
