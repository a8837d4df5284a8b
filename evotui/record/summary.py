"""One line about each run, fast enough for thousands: from ``run.json`` where the run ended, else from few facts.

A listing never fails for one bad run: what cannot be read becomes a summary whose ``problem`` says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from evotui.record import events as e
from evotui.record.lock import is_held
from evotui.record.log import LogError, decode
from evotui.record.rundir import EVENTS, RunDir, scan, width_of

_KIND = re.compile(rb'"kind":"(\w+)"')
_HEADROOM = 160  # seq, time and kind come first in a line
_TAIL = 65_536
_WANTED = (
    e.SubmissionAccepted, e.SubmissionFinished, e.FinalizationStarted, e.CheckpointValidated, e.CheckpointSelected,
    e.HeldoutScored, e.RunEnded,
)  # fmt: skip
_WANTED_NAMES = frozenset(kind.__name__.encode() for kind in _WANTED)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a list of runs shows. Times are seconds since the epoch.

    ``status`` is completed, no_ok_submit or error once the run ended; before that running (somebody writes it now) or
    interrupted; unreadable where ``problem`` says why. ``means`` are the mean train returns by submission (None where
    one was not scored), for a sparkline. ``best`` is the selected submission with its validation score, ``heldout``
    (mean, std, n).
    """

    path: Path
    name: str
    env: str = ""
    env_version: str = ""
    agent: str = ""
    model: str = ""
    status: str = "unreadable"
    total: int = 0
    used: int = 0
    submissions: int = 0
    means: tuple[float | None, ...] = ()
    best: tuple[int, float] | None = None
    heldout: tuple[float, float, int] | None = None
    final_score: float | None = None
    final_score_kind: str = ""
    started_at: float = 0.0
    last_at: float = 0.0
    problem: str = ""

    @property
    def best_in_loop(self) -> float | None:
        """The greatest mean train return: a proxy while the run lives."""
        return max((mean for mean in self.means if mean is not None), default=None)

    @property
    def word(self) -> str:
        """The state in a word for people: finished, failed, running, interrupted, unreadable."""
        return {"completed": "finished", "no_ok_submit": "failed", "error": "failed"}.get(self.status, self.status)


def summaries(runs: Path) -> Iterator[RunSummary]:
    """A summary of every run below ``runs``, in the order of their paths. Blocking."""
    for root in scan(runs):
        yield summary(root)


def summary(root: Path) -> RunSummary:
    """The summary of one run's folder. Never raises for what lies in it."""
    try:
        with (root / EVENTS).open("rb") as log:
            if _ended(log):
                ended = _of_record(root)
                if ended is not None:
                    return ended
            log.seek(0)
            return _of_log(root, log.read())
    except (OSError, LogError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return RunSummary(root, root.name, problem=reason or str(error))


def _ended(log: BinaryIO) -> bool:
    """Whether the last complete line is RunEnded."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    lines = log.read().split(b"\n")[:-1]
    kind = _KIND.search(lines[-1], 0, _HEADROOM) if lines else None
    return kind is not None and kind[1] == b"RunEnded"


def _of_record(root: Path) -> RunSummary | None:
    """From ``run.json``; None where it does not have what is needed: the log has it too."""
    try:
        document = msgspec.json.decode((root / "run.json").read_bytes(), type=_RunJson)
        auxiliary, outcome = document.outcome.auxiliary, document.outcome
        means = auxiliary.in_loop_means
        ordered = tuple(means[key] for key in sorted(means, key=int))
        best = outcome.best_submit_index
        return RunSummary(
            root,
            root.name,
            document.env,
            document.versions.env,
            document.experiment_dimensions.agent_harness,
            document.model,
            outcome.status,
            document.experiment_dimensions.episode_budget,
            auxiliary.episodes_used,
            len(ordered),
            ordered,
            (best, outcome.val_scores[str(best)]) if best is not None else None,
            (outcome.heldout_mean_return, outcome.heldout_std_return or 0.0, len(outcome.heldout_returns or ()))
            if outcome.heldout_mean_return is not None
            else None,
            outcome.final_score,
            auxiliary.final_score_kind or "",
            datetime.fromisoformat(document.timing.start_time).timestamp(),
            datetime.fromisoformat(document.timing.end_time).timestamp(),
        )
    except (OSError, ValueError, KeyError):  # msgspec's errors are ValueErrors
        return None


class _Outcome(msgspec.Struct):
    status: str
    final_score: float | None
    best_submit_index: int | None
    val_scores: dict[str, float]
    heldout_mean_return: float | None
    heldout_std_return: float | None
    heldout_returns: list[float] | None
    auxiliary: _Auxiliary


class _Auxiliary(msgspec.Struct):
    in_loop_means: dict[str, float | None]
    episodes_used: int
    final_score_kind: str | None


class _Dimensions(msgspec.Struct):
    episode_budget: int
    agent_harness: str


class _Timing(msgspec.Struct):
    start_time: str
    end_time: str


class _Versions(msgspec.Struct):
    env: str


class _RunJson(msgspec.Struct):
    env: str
    model: str
    experiment_dimensions: _Dimensions
    timing: _Timing
    outcome: _Outcome
    versions: _Versions


def _of_log(root: Path, log: bytes) -> RunSummary:
    lines = log.split(b"\n")[:-1]  # what follows the last newline is torn, or empty
    if not lines:
        return RunSummary(root, root.name, problem="the log holds no event yet")
    first = decode(lines[0], f"{EVENTS}, line 1")
    head = first.event
    if not isinstance(head, e.RunOpened):
        raise LogError(f"{EVENTS}, line 1: the log does not begin with RunOpened")
    last_at = decode(lines[-1], f"{EVENTS}, line {len(lines)}").time
    base: dict[str, Any] = {
        "path": root, "name": root.name, "env": head.env, "env_version": head.env_version, "agent": head.agent,
        "model": head.model, "total": head.budget, "started_at": first.time, "last_at": last_at,
    }  # fmt: skip
    return RunSummary(**base, **_tally(lines, RunDir(root, width_of(head.budget))))


def _tally(lines: list[bytes], run: RunDir) -> dict[str, Any]:
    """The figures that a few kinds of facts hold; the many others are passed over without being decoded."""
    means: list[float | None] = []
    scores: dict[int, float] = {}
    found: dict[str, Any] = {"used": 0}
    status = ""
    for number, line in enumerate(lines, 1):
        kind = _KIND.search(line, 0, _HEADROOM)
        if kind is None or kind[1] not in _WANTED_NAMES:
            continue
        match decode(line, f"{EVENTS}, line {number}").event:
            case e.SubmissionAccepted(cases=cases):
                found["used"] += len(cases)
                means.append(None)
            case e.SubmissionFinished(submission=index, mean=mean) if index < len(means):
                means[index] = mean
            case e.CheckpointValidated(submission=index, mean=mean):
                scores[index] = mean
            case e.CheckpointSelected(submission=index, val_score=score):
                found["best"] = (index, score)
            case e.HeldoutScored() as held:
                found["heldout"] = (held.mean, held.std, held.n)
                found["final_score"] = held.final_score
                found["final_score_kind"] = held.final_score_kind
            case e.RunEnded(status=ended):
                status = ended
            case _:
                pass
    if status == "no_ok_submit":
        found["final_score"] = 0.0
    status = status or ("running" if is_held(run) else "interrupted")
    return {**found, "status": status, "submissions": len(means), "means": tuple(means)}
