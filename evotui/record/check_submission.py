"""The check of one submission: its checkpoint, its episodes' files, its summary, against its facts.

What a fact names must be there; what is there before its fact is not damage (files first, then the fact).
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evotui.protocol.codemetrics import tree_hash
from evotui.protocol.results import stats
from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from evotui.record.breach import Desk, names_in
from evotui.record.regular import open_regular
from evotui.record.state import RunState, Submission
from evotui.record.tree import read_tree

_ROLLED = (Verdict.OK, Verdict.OOM, Verdict.ROLLOUT_TIMEOUT)


class _Info(msgspec.Struct, gc=False):
    action_invalid: Any = False


class _Row(msgspec.Struct, gc=False):
    t: int
    reward: float | str
    terminated: bool
    truncated: bool
    info: _Info


_rows = msgspec.json.Decoder(_Row)


def check_submission(desk: Desk, state: RunState, s: Submission) -> None:
    _checkpoint(desk, state, s)
    images = state.header.obs_space.get("type") == "Image"
    for episode in s.episodes:
        _episode(desk, s, episode, images)
    _strangers(desk, s)
    if s.verdict is not None:
        _statistics(desk, s)
        _summary(desk, state, s)
        errors = desk.run.feedback_of(s.index) / "errors.txt"
        if s.ok:
            desk.need(not errors.exists(), "errors-txt", errors, "is there although the verdict is ok")
        else:
            desk.need(errors.exists(), "errors-txt", errors, f"is missing although the verdict is {s.verdict}")


def _checkpoint(desk: Desk, state: RunState, s: Submission) -> None:
    if not s.tree_hash:
        return
    folder = desk.run.checkpoint(s.index)
    if not desk.need(folder.is_dir(), "checkpoint", folder, "is missing"):
        return
    try:
        found = tree_hash(read_tree(folder, litter=True))
    except OSError as error:
        desk.say("checkpoint", folder, f"cannot be read ({error.strerror})")
        return
    desk.need(found == s.tree_hash, "tree-hash", folder, f"its files hash to {found}, SnapshotTaken says {s.tree_hash}")
    figures = desk.document("metrics", folder / "metrics.json")
    if figures is not None:
        desk.need(figures == dict(s.metrics), "metrics", folder / "metrics.json", "differs from SnapshotTaken")
    meta = desk.document("meta", folder / "_meta.json")
    if meta is not None:
        expected = {
            "submit_index": s.index,
            "env": state.header.env,
            "env_instances": list(s.cases),
            "first_global_episode": s.first_episode,
            "tree_hash": s.tree_hash,
        }
        for key, value in expected.items():
            desk.equal("meta", folder / "_meta.json", key, meta.get(key), value)


def _strangers(desk: Desk, s: Submission) -> None:
    """Episode folders that are no episode of this submission."""
    folder = desk.run.episodes_of(s.index)
    own = {desk.run.episode_name(s.first_episode + p) for p in range(s.cost)}
    for name in names_in(folder):
        desk.need(name in own, "orphan", folder / name, f"is no episode of submission {s.index}")


def _episode(desk: Desk, s: Submission, ep: e.EpisodeFinished, images: bool) -> None:
    folder = desk.run.episode(s.index, ep.episode)
    if not desk.need(folder.is_dir(), "episode", folder, "is missing, but its episode finished"):
        return
    for name in ("stdout.txt", "stderr.txt"):
        desk.need((folder / name).is_file(), "output", folder / name, "is missing")
    told = folder / "error.txt"
    if ep.fault is None:
        desk.need(not told.exists(), "error-txt", told, "is there although the episode did not fail")
    else:
        desk.need(told.exists(), "error-txt", told, f"is missing although the episode ended with {ep.fault.kind}")
    data = desk.read("trajectory", folder / "trajectory.jsonl")
    if data is not None:
        _trajectory(desk, folder / "trajectory.jsonl", data, ep)
    if images:
        _observations(desk, folder, ep.length)


def _trajectory(desk: Desk, path: Path, data: bytes, ep: e.EpisodeFinished) -> None:
    try:
        if data and not data.endswith(b"\n"):
            raise ValueError("its last line is torn")
        rows = _rows.decode_lines(data)
    except ValueError as error:  # msgspec's decoding errors are ValueErrors
        desk.say("trajectory", path, f"is damaged ({error})")
        return
    if not desk.need(
        len(rows) == ep.length, "trajectory", path, f"has {len(rows)} rows, the episode {ep.length} steps"
    ):
        return
    for place, row in enumerate(rows):
        if row.t != place:
            desk.say("trajectory", path, f"row {place} says t = {row.t}")
            return
    total, finite = 0.0, True
    for row in rows:  # in order, as the worker added them up
        if isinstance(row.reward, str):
            finite = False
        else:
            total += row.reward
    if finite and not math.isclose(total, ep.return_, rel_tol=1e-9, abs_tol=1e-9):
        desk.say("trajectory", path, f"its rewards sum to {total!r}, EpisodeFinished says {ep.return_!r}")
    end = (rows[-1].terminated, rows[-1].truncated) if rows else (False, False)
    if end != (ep.terminated, ep.truncated):
        desk.say("trajectory", path, f"ends with terminated, truncated = {end}, EpisodeFinished says otherwise")
    invalid = sum(row.info.action_invalid is True for row in rows)
    if invalid != ep.invalid_actions:
        desk.say("trajectory", path, f"marks {invalid} invalid actions, EpisodeFinished says {ep.invalid_actions}")


def _observations(desk: Desk, folder: Path, length: int) -> None:
    path = folder / "observations.npz"
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive, archive.open("observations.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, _ = read(member)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        missing = isinstance(error, FileNotFoundError)
        desk.say("observations", path, "is missing" if missing else f"cannot be read ({error})")
        return
    rows = shape[0] if shape else 0
    desk.need(rows == length, "observations", path, f"has {rows} rows, the episode {length} steps")


def _statistics(desk: Desk, s: Submission) -> None:
    """The figures of SubmissionFinished against those of its episodes, to the last bit."""
    where = f"SubmissionFinished {s.index}"
    scored = stats([ep.return_ for ep in s.in_order]) if s.ok else None
    desk.equal("statistics", where, "mean", s.mean, scored.mean if scored is not None else None)
    desk.equal("statistics", where, "std", s.std, scored.std if scored is not None else None)


def _summary(desk: Desk, state: RunState, s: Submission) -> None:
    path = desk.run.feedback_of(s.index) / "summary.json"
    found = desk.document("summary", path)
    if found is None:
        return
    kept = _kept(s)
    for key, value in expected_summary(state, s).items():
        if key not in kept or found.get(key) != kept[key]:
            desk.equal("summary", path, key, found.get(key), value)


def _kept(s: Submission) -> dict[str, float]:
    """Aggregates that the published harness keeps of a partial result; ours may, and need not."""
    scored, sized = stats([ep.return_ for ep in s.in_order]), stats([ep.length for ep in s.in_order])
    if s.verdict not in (Verdict.OOM, Verdict.ROLLOUT_TIMEOUT) or scored is None or sized is None:
        return {}
    return {"min_return": scored.low, "max_return": scored.high, "mean_episode_length": sized.mean}


def expected_summary(state: RunState, s: Submission) -> dict[str, Any]:
    """What ``summary.json`` must say of a finished submission, times apart (PROTOCOL: records)."""
    episodes: Sequence[e.EpisodeFinished] | None = s.in_order if s.verdict in _ROLLED else None
    expected: dict[str, Any] = {
        "submit_index": s.index,
        "env": state.header.env,
        "status": str(s.verdict),
        "n_episodes": s.cost,
        "first_global_episode": s.first_episode,
        "env_instances": list(s.cases),
        "remaining_budget": state.budget.total - s.consumed_after,
    }
    arrays = ("returns", "episode_lengths", "timeouts", "errors", "reward_components_per_episode")
    aggregates = (
        "mean_return",
        "std_return",
        "min_return",
        "max_return",
        "mean_episode_length",
        "reward_components_mean",
    )
    expected.update(dict.fromkeys((*arrays, *aggregates)))
    if episodes is None:
        return expected
    faults = [(i, ep.fault) for i, ep in enumerate(episodes) if ep.fault is not None]
    names = sorted({name for ep in episodes for name in ep.components})
    components = {name: [ep.components.get(name, 0.0) for ep in episodes] for name in names}
    expected["returns"] = [ep.return_ for ep in episodes]
    expected["episode_lengths"] = [ep.length for ep in episodes]
    expected["timeouts"] = [i for i, fault in faults if fault.kind.is_timeout]
    expected["errors"] = [i for i, fault in faults if not fault.kind.is_timeout]
    expected["reward_components_per_episode"] = components or None
    scored, sized = stats(expected["returns"]), stats(expected["episode_lengths"])
    if s.ok and scored is not None and sized is not None:
        expected |= {"mean_return": scored.mean, "std_return": scored.std, "min_return": scored.low}
        expected |= {"max_return": scored.high, "mean_episode_length": sized.mean}
        if components:
            expected["reward_components_mean"] = {k: math.fsum(v) / len(v) for k, v in components.items()}
    return expected
