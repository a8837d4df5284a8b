"""What a rollout yields: one episode's result, and the summary statistics of a submission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evotui.protocol.verdict import Fault, FaultKind


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """One finished episode.

    ``position`` is its index within the job (0 …), ``length`` its number of environment steps, ``return_`` the
    undiscounted sum of rewards. ``components`` sums the reward components that the environment reports in ``info``.
    ``invalid_actions`` counts actions that had to be repaired. ``success`` is None where the task has no success rule.
    ``cpu_seconds`` is the guest's CPU time, ``wall_seconds`` the worker's clock.
    """

    position: int
    return_: float
    length: int
    terminated: bool
    truncated: bool
    success: bool | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    invalid_actions: int = 0
    fault: Fault | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


def sound(result: EpisodeResult) -> EpisodeResult:
    """The result, where its numbers are finite; else one that can be recorded and ranked.

    An environment whose rewards are NaN or infinite is at fault, not the policy: the episode counts as 0 with an
    ``environment`` fault, components that are not finite are dropped.
    """
    if math.isfinite(result.return_) and all(map(math.isfinite, result.components.values())):
        return result
    components = {name: value for name, value in result.components.items() if math.isfinite(value)}
    if math.isfinite(result.return_):
        return replace(result, components=components)
    fault = result.fault or Fault(FaultKind.ENVIRONMENT, result.length, f"the rewards add up to {result.return_}")
    return replace(result, return_=0.0, components=components, fault=fault)


@dataclass(frozen=True, slots=True)
class Stats:
    """Mean, population standard deviation, extremes and count of a list of numbers."""

    mean: float
    std: float
    low: float
    high: float
    n: int


def stats(values: Sequence[float]) -> Stats | None:
    """Statistics of ``values`` (math.fsum, so independent of order to the last bit); None where there are none."""
    if not values:
        return None
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((v - mean) ** 2 for v in values) / n
    return Stats(mean, math.sqrt(variance), min(values), max(values), n)


def final_score(heldout: float, random_mean: float, expert_mean: float) -> float:
    """``clip((heldout − random) / (expert − random), 0, 1.2) × 100`` (PROTOCOL: scores).

    Raises ValueError where the anchors do not differ.
    """
    if expert_mean == random_mean:
        raise ValueError("the anchors are equal: no scale between random and expert")
    return min(max((heldout - random_mean) / (expert_mean - random_mean), 0.0), 1.2) * 100.0
