"""The auxiliary scores of a run from its folded state: how fast it learned, and what its scores were worth."""

from __future__ import annotations

from collections.abc import Mapping

from evotui.protocol.scores import auc_in_loop, episodes_to
from evotui.record.state import RunState


def auxiliary_scores(state: RunState) -> Mapping[str, float | int | None]:
    """PROTOCOL's auxiliary scores by name, each None where what it needs was not measured.

    ``auc_in_loop``, ``episodes_to_50pct`` and ``episodes_to_80pct`` need both anchors, and ``held_out_gap`` and
    ``val_heldout_gap`` the held-out score.
    """
    course = [(s.consumed_after, s.mean) for s in state.submissions if s.ok and s.mean is not None]
    anchors = state.opened.anchors if state.opened is not None else {}
    low, high = anchors.get("random"), anchors.get("reference")
    found: dict[str, float | int | None] = {
        "auc_in_loop": None, "episodes_to_50pct": None, "episodes_to_80pct": None,
        "held_out_gap": held_out_gap(state), "val_heldout_gap": val_heldout_gap(state),
    }  # fmt: skip
    if low is not None and high is not None and low != high:
        found["auc_in_loop"] = auc_in_loop(course, state.budget.total, low, high)
        found["episodes_to_50pct"] = episodes_to(course, 0.5, low, high)
        found["episodes_to_80pct"] = episodes_to(course, 0.8, low, high)
    return found


def val_heldout_gap(state: RunState) -> float | None:
    """Validation score minus held-out mean of the selected checkpoint; None before it was measured."""
    held = state.heldout.score if state.heldout is not None else None
    if held is None:
        return None
    score = state.submission(held.submission).val_score
    return None if score is None else score - held.mean


def held_out_gap(state: RunState) -> float | None:
    """Best mean train return minus held-out mean of the selected checkpoint; None before it was measured."""
    held = state.heldout.score if state.heldout is not None else None
    best = max((s.mean for s in state.submissions if s.ok and s.mean is not None), default=None)
    return best - held.mean if held is not None and best is not None else None
