"""One line about each run, fast enough for thousands: from ``run.json`` where the run ended, else from few facts.

A listing never fails for one bad run: what cannot be read becomes a summary whose ``problem`` says why. A log is
looked at for damage, not checked: see :func:`_looks_whole` and :func:`_measured`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from evotui.protocol.results import stats
from evotui.protocol.words import counted
from evotui.record import events as e
from evotui.record.lock import is_held
from evotui.record.log import LogError, Reader, TooLong, Unreadable, decode, read_whole
from evotui.record.regular import read_regular
from evotui.record.rundir import EVENTS, RunDir, scan, width_of

_KIND = re.compile(rb'"kind":"(\w+)"')
_EPISODE = re.compile(rb'"position":(\d+),"return_":(-?[\d.eE+-]+),')
_HEADROOM = 160  # seq, time and kind come first in a line
_PARSED = 1 << 20
"""Bytes of a log up to which every line of it is parsed for a listing: some 10 ms."""
_WANTED = (
    e.SubmissionAccepted, e.SubmissionFinished, e.FinalizationStarted, e.CheckpointValidated, e.CheckpointSelected,
    e.HeldoutScored, e.RunEnded,
)  # fmt: skip
_HIDDEN = e.HiddenEpisodeFinished.__name__.encode()
_WANTED_NAMES = frozenset(kind.__name__.encode() for kind in _WANTED)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a list of runs shows. Times are seconds since the epoch.

    ``status`` is completed, no_ok_submit or error once the run ended; before that running (somebody writes it now) or
    interrupted. Where ``problem`` says why, it is damaged (something further on in the log cannot be read: its figures
    are left out) or unreadable. ``means`` are the mean train returns by submission (None where
    one was not scored), for a sparkline. ``best`` is the selected submission with its validation score, ``heldout``
    (mean, std, n); ``faults`` says how many of its episodes a fault ended.
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
    faults: int = 0
    problem: str = ""

    @property
    def best_in_loop(self) -> float | None:
        """The greatest mean train return: a proxy while the run lives."""
        return max((mean for mean in self.means if mean is not None), default=None)

    @property
    def word(self) -> str:
        """The state in a word for people: finished, failed, running, interrupted, damaged, unreadable."""
        return {"completed": "finished", "no_ok_submit": "failed", "error": "failed"}.get(self.status, self.status)


def summaries(runs: Path) -> Iterator[RunSummary]:
    """A summary of every run below ``runs``, in the order of their paths. Blocking."""
    for root in scan(runs):
        yield summary(root)


def summary(root: Path) -> RunSummary:
    """The summary of one run's folder. Never raises for what lies in it."""
    head: dict[str, Any] = {}
    try:
        try:
            log = read_whole(root / EVENTS)
        except TooLong as error:
            head = _head(root, error.before) if error.before else {}
            raise
        log = log[: log.rfind(b"\n") + 1]  # what follows the last newline is torn, or empty
        head = _head(root, log)
        if not _looks_whole(log):
            _read_through(root / EVENTS)
        if _kind(_last(log)) == b"RunEnded" and (ended := _of_record(root)) is not None:
            return _measured(ended, log)
        tally = _tally(log.split(b"\n")[:-1], RunDir(root, width_of(head["total"])))
        return _measured(RunSummary(**head, **tally), log)
    except OSError as error:
        return RunSummary(root, root.name, problem=str(Unreadable.why(root / EVENTS, error)))
    except LogError as error:
        known = {**head, "total": 0, "status": "damaged"} if head else {"path": root, "name": root.name}
        return RunSummary(**known, problem=str(error))


class _Tags(msgspec.Struct):
    """What every line of a log has; msgspec looks through the rest of it without making anything of it."""

    seq: int
    time: float
    kind: str


_tags = msgspec.json.Decoder(_Tags)


def _looks_whole(log: bytes) -> bool:
    """Whether nothing strikes the eye in the complete lines of a log.

    Up to some size each is parsed and its number compared; of a larger one only the lines' ends and beginnings are
    looked at, and that there are as many as the last one's number says. What a fact says is left to the check.
    """
    count = log.count(b"\n")
    try:
        if len(log) <= _PARSED:
            return [line.seq for line in _tags.decode_lines(log)] == list(range(count))
        last = _tags.decode(_last(log)).seq
    except msgspec.DecodeError:
        return False
    framed = log.count(b"}\n") == count and log.count(b'\n{"seq":') == count - 1
    return framed and last == count - 1 and b"\0" not in log


def _read_through(path: Path) -> None:
    """Raises LogError with the place and the reason where a log is damaged; what only looked so is none."""
    reader = Reader(path)
    try:
        for _ in reader.poll():
            pass
    finally:
        reader.close()


def _last(log: bytes) -> bytes:
    """The last of complete lines, without its newline."""
    return log[log.rfind(b"\n", 0, -1) + 1 : -1]


def _kind(line: bytes) -> bytes:
    kind = _KIND.search(line, 0, _HEADROOM)
    return kind[1] if kind is not None else b""


def _head(root: Path, log: bytes) -> dict[str, Any]:
    """What the first fact of a log says, and when the last was written. Raises LogError."""
    if not log:
        raise LogError("the log holds no event yet")
    first = decode(log[: log.index(b"\n")], f"{EVENTS}, line 1")
    event = first.event
    if not isinstance(event, e.RunOpened):
        raise LogError(f"{EVENTS}, line 1: the log does not begin with RunOpened")
    try:
        last_at = _tags.decode(_last(log)).time
    except msgspec.DecodeError:
        last_at = first.time
    return {
        "path": root, "name": root.name, "env": event.env, "env_version": event.env_version, "agent": event.agent,
        "model": event.model, "total": event.budget, "started_at": first.time, "last_at": last_at,
    }  # fmt: skip


def _of_record(root: Path) -> RunSummary | None:
    """From ``run.json``; None where it does not have what is needed: the log has it too."""
    try:
        document = msgspec.json.decode(read_regular(root / "run.json"), type=_RunJson)
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


def heldout_faults(root: Path) -> tuple[int, int]:
    """How many episodes of a run's held-out score a fault ended, and of how many. Raises OSError, LogError."""
    found = _heldout(read_whole(root / EVENTS)).values()
    return sum(hurt for _, hurt in found), len(found)


def _heldout(log: bytes) -> dict[int, tuple[float, bool]]:
    """Held-out episodes of a log by position: the return, and whether a fault ended it. Those that ended well are told
    apart without being decoded. Raises LogError."""
    found: dict[int, tuple[float, bool]] = {}
    begin = log.find(b'"kind":"CheckpointSelected"')  # they come after it
    for line in log[begin:].split(b"\n")[:-1] if begin >= 0 else ():
        if _kind(line) == _HIDDEN and b'"split":"heldout"' in line:
            if b'"fault":null' in line and (known := _EPISODE.search(line)) is not None:
                found[int(known[1])] = float(known[2]), False
                continue
            match decode(line, EVENTS).event:
                case e.HiddenEpisodeFinished(split="heldout", position=position, return_=return_, fault=fault):
                    found[position] = return_, fault is not None
    return found


def _measured(told: RunSummary, log: bytes) -> RunSummary:
    """The summary with the faults of its held-out episodes. Raises LogError where its mean is not that of these.

    Folding the whole log, as the check does, would take some twenty times as long as all the rest.
    """
    if told.heldout is None:
        return told
    episodes = _heldout(log)
    mean, _, n = told.heldout
    scored = stats([episodes[place][0] for place in sorted(episodes)])
    if scored is None or scored.n != n or not math.isclose(scored.mean, mean, rel_tol=1e-9, abs_tol=1e-9):
        measured = f"{scored.mean:.6g} over {counted(scored.n, 'case')}" if scored is not None else "none"
        raise LogError(
            f"the record contradicts itself: held-out mean {mean:.6g} over {counted(n, 'case')}, by the episodes "
            f"{measured}; `evotui check` says where"
        )
    return replace(told, faults=sum(hurt for _, hurt in episodes.values()))


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


def _tally(lines: list[bytes], run: RunDir) -> dict[str, Any]:
    """The figures that a few kinds of facts hold; the many others are passed over without being decoded."""
    means: list[float | None] = []
    scores: dict[int, float] = {}
    found: dict[str, Any] = {"used": 0}
    status = ""
    for number, line in enumerate(lines, 1):
        if _kind(line) not in _WANTED_NAMES:
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
