"""The check of a record: does what lies on disk say what the events say, and nothing before its time.

An unfinished run is a valid record at any point, also one whose process was killed between two writes: files come
first, then their fact, so a file may be there without its fact, never a fact without its file. A torn last line of the
log and leftovers of unfinished writes are no damage.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evotui.protocol.results import final_score, stats
from evotui.protocol.words import counted
from evotui.record import events as e
from evotui.record.breach import Breach, Desk, names_in, sha256
from evotui.record.check_hidden import check_hidden
from evotui.record.check_submission import check_submission
from evotui.record.fold import fold
from evotui.record.lock import is_held
from evotui.record.log import LogError, NewerSchema, Reader, Unreadable, probe
from evotui.record.rundir import EVENTS, NotFound, RunDir, width_of
from evotui.record.scores import auxiliary_scores
from evotui.record.state import FoldError, RunState
from evotui.record.tree import read_tree

__all__ = ["Breach", "Findings", "check", "examine"]

_TRIES = 4
_TORN = "the last line of the log is torn, as a crash leaves it: it counts for nothing, and resuming cuts it off"


@dataclass(frozen=True, slots=True)
class Findings:
    """Breaches, and notes about what is no damage. ``state`` is the fold, None where the log cannot be folded."""

    breaches: tuple[Breach, ...]
    notes: tuple[str, ...] = ()
    state: RunState | None = None


def check(run: Path) -> list[Breach]:
    """Every breach of a run's record; none is a record that holds. See :func:`examine`."""
    return list(examine(run).breaches)


def examine(run: Path) -> Findings:
    """Check the record in the folder ``run``. Blocking; reads every file of the run but images.

    A run that is being written meanwhile is looked at again where it seemed wrong. Raises NotFound where there is no
    log, Unreadable where it cannot be read, NewerSchema where a newer evotui wrote it.
    """
    if not os.path.lexists(run / EVENTS):
        raise NotFound(f"{run} is no run: it holds no {EVENTS}")
    probe(run / EVENTS)
    for _ in range(_TRIES):
        size = (run / EVENTS).stat().st_size
        findings = _examine(run)
        if not findings.breaches or (run / EVENTS).stat().st_size == size:
            break
    return findings


def _made(root: Path) -> list[str]:
    """Folders of submissions below ``root``, by relative path: a run makes them only after it was opened."""
    found = [*(root / "checkpoints").glob("submit_*"), *(root / "workspace" / "feedback").glob("submit_*")]
    return sorted(path.relative_to(root).as_posix() for path in found)


def _examine(root: Path) -> Findings:
    reader = Reader(root / EVENTS)
    records: list[e.Record] = []
    state = RunState()
    try:
        for record in reader.poll():
            records.append(record)
            state = fold(state, record)
    except (NewerSchema, Unreadable):
        raise
    except LogError as error:
        where, _, sentence = str(error).partition(": ")
        return Findings((Breach("log", where, sentence),))
    except FoldError as error:
        where = f"{EVENTS}, line {len(records)}"
        return Findings((Breach("fold", where, f"{type(records[-1].event).__name__}: {error}"),))
    finally:
        reader.close()
    # While somebody writes, such a line is only not whole yet.
    notes = (_TORN,) if reader.torn and not is_held(RunDir(root)) else ()
    if state.opened is None:
        if left := [name for name in ("run.json", "pools", *_made(root)) if (root / name).exists()]:
            sentence = f"the log holds no event, and yet there is {left[0]}: it was emptied or replaced"
            return Findings((Breach("orphan", EVENTS, sentence),), notes, state)
        return Findings((), (*notes, "the run was not opened yet"), state)
    desk = Desk(RunDir(root, width_of(state.budget.total)))
    for submission in state.submissions:
        check_submission(desk, state, submission)
    _budget(desk, state)
    _orphans(desk, state)
    _order(desk, records)
    _blobs(desk, records)
    _configuration(desk, state)
    check_hidden(desk, state)
    _finalization(desk, state)
    _twins(desk, state, records)
    _record(desk, state)
    _mirror(desk, state)
    return Findings(tuple(desk.breaches), notes, state)


def _budget(desk: Desk, state: RunState) -> None:
    charged = sum(s.cost for s in state.submissions)
    total, remaining = state.budget.total, state.budget.remaining
    desk.need(
        total == remaining + charged,
        "budget",
        EVENTS,
        f"{counted(total, 'episode')} granted, {charged} charged, {remaining} left",
    )


def _orphans(desk: Desk, state: RunState) -> None:
    """Folders of submissions that were never accepted: acceptance comes before every file."""
    known = {desk.run.submit_name(s.index) for s in state.submissions}
    for folder in (desk.run.feedback, desk.run.checkpoints):
        for name in names_in(folder):
            if folder / name == desk.run.messages and state.assisted:
                continue
            desk.need(name in known, "orphan", folder / name, "belongs to no accepted submission")


def _order(desk: Desk, records: list[e.Record]) -> None:
    for place, record in enumerate(records):
        if isinstance(record.event, e.RunEnded):
            after = [r for r in records[place + 1 :] if not isinstance(r.event, e.Unknown)]
            if after:
                kind = type(after[0].event).__name__
                desk.say("order", f"{EVENTS}, line {after[0].seq + 1}", f"{kind} after the run had ended")
            return


def _blobs(desk: Desk, records: list[e.Record]) -> None:
    sizes: dict[str, int] = {}
    for record in records:
        if isinstance(record.event, e.FileEdited) and record.event.sha256:
            sizes[record.event.sha256] = record.event.bytes
    there = set(names_in(desk.run.blobs))
    for name in sorted(there | sizes.keys()):
        path = desk.run.blob(name)
        data = desk.read("blob", path)
        if data is not None:
            desk.need(sha256(data) == name, "blob", path, "its content does not hash to its name")
            desk.need(
                len(data) == sizes.get(name, len(data)), "blob", path, f"has {len(data)} bytes, not {sizes.get(name)}"
            )


def _configuration(desk: Desk, state: RunState) -> None:
    data = desk.read("run-toml", desk.run.run_toml)
    if data is not None:
        try:
            tomllib.loads(data.decode("utf-8"))
        except ValueError as error:
            desk.say("run-toml", desk.run.run_toml, f"is not valid TOML ({error})")
    if state.agent:
        desk.need(desk.run.agents_md.is_file(), "agents-md", desk.run.agents_md, "is missing, but an agent was started")


# ── after the agent ──────────────────────────────────────────────────────────────────────────────────────────────


def _finalization(desk: Desk, state: RunState) -> None:
    if state.finalizing is None:
        return
    head = state.header
    ok = tuple(s.index for s in state.submissions if s.ok)
    desk.equal("finalization", "FinalizationStarted", "checkpoints", list(state.finalizing), list(ok))
    for s in state.submissions:
        if s.val_score is not None:
            where = f"CheckpointValidated {s.index}"
            scored = stats([ep.return_ for ep in sorted(s.validation, key=lambda ep: ep.position)])
            places = sorted(ep.position for ep in s.validation)
            desk.equal("validation", where, "cases", places, list(range(head.n_validation)))
            if scored is not None:
                desk.equal("validation", where, "mean", s.val_score, scored.mean)
                desk.equal("validation", where, "std", s.val_std, scored.std)
    if state.selected is not None:
        scores = {i: state.submission(i).val_score for i in state.finalizing}
        done = {i: score for i, score in scores.items() if score is not None}
        if desk.need(len(done) == len(scores), "selection", "CheckpointSelected", "came before all were validated"):
            best = max(done, key=lambda i: (done[i], i))
            desk.equal("selection", "CheckpointSelected", "submission", state.selected, best)
    _heldout(desk, state)


def _twins(desk: Desk, state: RunState, records: list[e.Record]) -> None:
    """Validation episodes that were stated again are those of a checkpoint with the same files."""
    for record in records:
        event = record.event
        if not isinstance(event, e.CheckpointValidated) or event.same_as is None:
            continue
        where = f"CheckpointValidated {event.submission}"
        if not desk.need(
            event.same_as < event.submission and event.same_as in (state.finalizing or ()),
            "validation",
            where,
            f"says it repeats {event.same_as}, which is no checkpoint validated before",
        ):
            continue
        this, other = state.submission(event.submission), state.submission(event.same_as)
        desk.equal("validation", where, "same_as: tree hash", this.tree_hash, other.tree_hash)
        returns = [
            [(ep.position, ep.return_) for ep in sorted(s.validation, key=lambda ep: ep.position)]
            for s in (this, other)
        ]
        desk.equal("validation", where, "same_as: returns", *returns)


def _heldout(desk: Desk, state: RunState) -> None:
    held = state.heldout
    if held is None or held.score is None:
        return
    where, score = "HeldoutScored", held.score
    places = sorted(ep.position for ep in held.episodes)
    desk.equal("heldout", where, "cases", places, list(range(state.header.n_heldout)))
    desk.equal("heldout", where, "submission", score.submission, state.selected)
    scored = stats([ep.return_ for ep in sorted(held.episodes, key=lambda ep: ep.position)])
    if scored is not None:
        desk.equal("heldout", where, "mean", score.mean, scored.mean)
        desk.equal("heldout", where, "std", score.std, scored.std)
        desk.equal("heldout", where, "n", score.n, scored.n)
    low, high = state.header.anchors.get("random"), state.header.anchors.get("reference")
    scaled = low is not None and high is not None and low != high
    desk.equal("final-score", where, "final_score_kind", score.final_score_kind, "normalized" if scaled else "raw")
    expected = final_score(score.mean, low, high) if low is not None and high is not None and scaled else score.mean
    desk.equal("final-score", where, "final_score", score.final_score, expected)


def _mirror(desk: Desk, state: RunState) -> None:
    completed = state.ended is not None and state.ended.status == "completed"
    if not completed and state.mirrored is None:
        return
    if not desk.need(state.mirrored == state.selected, "mirror", "workspace/system", "is not the selected checkpoint"):
        return
    assert state.mirrored is not None
    try:
        system, best = read_tree(desk.run.system), read_tree(desk.run.checkpoint(state.mirrored))
    except OSError as error:
        desk.say("mirror", "workspace/system", f"cannot be compared with the best checkpoint ({error.strerror})")
        return
    for path in sorted(system.keys() | best.keys()):
        same = system.get(path) == best.get(path)
        desk.need(same, "mirror", f"workspace/system/{path}", "differs from the best checkpoint")


# ── run.json ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _record(desk: Desk, state: RunState) -> None:
    path = desk.run.run_json
    if state.ended is None:
        if not path.exists():
            return
        if not desk.need(state.finalizing is not None, "run-json-early", path, "is there before the run was finalized"):
            return
    found = desk.document("run-json", path)
    if found is None:
        return
    expected = _expected_record(state)
    auxiliary = _dig(found, "outcome.auxiliary")
    if isinstance(auxiliary, dict) and "auc_in_loop" in auxiliary:  # records from before these scores have none
        expected |= {f"outcome.auxiliary.{name}": value for name, value in auxiliary_scores(state).items()}
    for key, value in expected.items():
        desk.equal("run-json", path, key, _dig(found, key), value)
    status = _dig(found, "outcome.status")
    if state.ended is not None:
        desk.equal("run-json", path, "outcome.status", status, state.ended.status)
        desk.equal("run-json", path, "outcome.error", _dig(found, "outcome.error"), state.ended.error)
    _status(desk, state, path, status)
    rules = desk.read("agents-md", desk.run.agents_md)
    if rules is not None:
        digest = f"sha256:{sha256(rules)}"
        told = _dig(found, "versions.agents_md_hash")
        desk.need(told == digest, "agents-md", desk.run.agents_md, f"hashes to {digest}, run.json says {told}")


def _status(desk: Desk, state: RunState, path: Path, status: Any) -> None:
    scored = state.heldout is not None and state.heldout.score is not None
    if status == "completed":
        desk.need(scored, "run-json", path, "says completed, but no held-out score was measured")
    elif status == "no_ok_submit":
        none_ok = not any(s.ok for s in state.submissions)
        desk.need(none_ok, "run-json", path, "says no_ok_submit, but a submission ended ok")
    else:
        desk.need(status == "error", "run-json", path, f"has a status that the protocol does not know: {status!r}")


def _expected_record(state: RunState) -> dict[str, Any]:
    head = state.header
    held = state.heldout
    score = held.score if held is not None else None
    returns = [ep.return_ for ep in sorted(held.episodes, key=lambda ep: ep.position)] if held is not None else None
    metrics = {str(s.index): dict(s.metrics) for s in state.submissions if s.metrics}
    nothing = state.finalizing == ()
    return {
        "model": head.model,
        "env": head.env,
        "exp_id": head.run,
        "experiment_dimensions.episode_budget": state.budget.total,
        "experiment_dimensions.min_episodes_per_submit": state.budget.min_submit,
        "experiment_dimensions.seed_pool_id": head.pools,
        "experiment_dimensions.agent_harness": head.agent,
        "outcome.best_submit_index": state.selected,
        "outcome.val_scores": {str(s.index): s.val_score for s in state.submissions if s.val_score is not None},
        "outcome.heldout_mean_return": score.mean if score is not None else None,
        "outcome.heldout_std_return": score.std if score is not None else None,
        "outcome.heldout_returns": returns,
        "outcome.final_score": score.final_score if score is not None else (0.0 if nothing else None),
        "outcome.auxiliary.code_metrics_by_submit": metrics,
        "outcome.auxiliary.code_metrics_best": metrics.get(str(state.selected)),
        "versions.env": head.env_version,
        "versions.data_train_hash": head.pool_hashes.get("train"),
        "versions.data_valid_hash": head.pool_hashes.get("validation"),
        "versions.data_heldout_hash": head.pool_hashes.get("heldout"),
    }


def _dig(document: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document
