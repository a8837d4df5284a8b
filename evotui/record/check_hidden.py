"""The check of what an agent must not know: pools, seeds, hidden figures, and the folder that guards them."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from evotui.protocol.pools import PoolKind, Pools, Split, pool_from_document
from evotui.protocol.words import counted
from evotui.record.breach import Desk, leftover, sha256
from evotui.record.regular import read_regular
from evotui.record.state import RunState

_DIGITS = 26
"""Least digits of a seed that is looked for: longer than any float's, and secret seeds have 128 bits (38 digits)."""
_RUN = b"0" * _DIGITS
_TO_ZERO = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG_INTEGER = re.compile(rb"(?<![0-9.])[0-9]{%d,}(?![0-9.])" % _DIGITS)
_LONG_FLOAT = re.compile(rb"(?<![0-9.])-?[0-9]+\.[0-9]{8,}(?:e[+-]?[0-9]+)?(?![0-9])")
_RECORDED = frozenset({"trajectory.jsonl", "observations.npz", "observations.npy"})


def check_hidden(desk: Desk, state: RunState) -> None:
    if state.ended is None:
        _guarded(desk)
    pools = _pools(desk, state)
    seeds: frozenset[bytes] = frozenset()
    if pools is not None and pools.kind is not PoolKind.PAPER:
        # Only seeds that cannot turn up by chance; those of secret pools are all that long.
        seeds = frozenset(str(s).encode() for split in Split for s in pools.of(split) if s >= 10 ** (_DIGITS - 1))
    figures = frozenset(repr(value).encode() for value in _figures(state))
    if seeds or figures:
        for path in _seen_by_agent(desk):
            _leaks(desk, path, seeds, figures)


def _guarded(desk: Desk) -> None:
    host = desk.run.host
    try:
        mode = stat.S_IMODE(os.stat(host).st_mode)
    except OSError:
        desk.say("host", host, "is missing: the run cannot be finished without its pools")
        return
    desk.need(
        not mode & 0o077, "host", host, f"has mode {mode:04o}: others can read it while the run lives (0700 is due)"
    )


def _pools(desk: Desk, state: RunState) -> Pools | None:
    """The pools, if their files are what RunOpened says; each breach of that is told."""
    run, head = desk.run, state.header
    early = state.finalizing is None
    documents = {}
    for split in Split:
        revealed, kept = run.pools / split.file_name, run.host_pools / split.file_name
        if revealed.exists():
            desk.need(not early, "pools-early", revealed, "is revealed before finalization began")
        else:
            desk.need(not state.pools_revealed, "pools", revealed, "is missing, but PoolsRevealed says it is there")
        if state.ended is None:
            desk.need(kept.exists(), "pools", kept, "is missing: the run cannot be finished without it")
        for path in (revealed, kept):
            data = desk.read("pools", path) if path.exists() else None
            if data is None:
                continue
            digest = f"sha256:{sha256(data)}"
            expected = head.pool_hashes.get(str(split))
            if desk.need(digest == expected, "pools", path, f"hashes to {digest}, RunOpened says {expected}"):
                documents[split] = data
    if len(documents) < len(Split):
        return None
    try:
        seeds = {split: pool_from_document(json.loads(data), split) for split, data in documents.items()}
        pools = Pools(PoolKind(head.pools), seeds[Split.TRAIN], seeds[Split.VALIDATION], seeds[Split.HELDOUT])
    except ValueError as error:
        desk.say("pools", run.pools if state.pools_revealed else run.host_pools, str(error))
        return None
    for split, n in (
        (Split.TRAIN, head.n_train),
        (Split.VALIDATION, head.n_validation),
        (Split.HELDOUT, head.n_heldout),
    ):
        desk.need(
            len(pools.of(split)) == n, "pools", split.file_name, f"has {counted(len(pools.of(split)), 'case')}, not {n}"
        )
    return pools


def _figures(state: RunState) -> Iterator[float]:
    """Hidden figures that are not train figures as well, and long enough not to turn up by chance."""
    known: set[float | None] = set()
    for s in state.submissions:
        known.update((s.mean, s.std, *(ep.return_ for ep in s.episodes)))
    for value in _hidden(state):
        if value is not None and value not in known and len(repr(abs(value)).replace(".", "").lstrip("0")) >= 12:
            yield value


def _hidden(state: RunState) -> Iterator[float | None]:
    for s in state.submissions:
        yield from (s.val_score, s.val_std)
        yield from (ep.return_ for ep in s.validation)
    if state.heldout is not None:
        yield from (ep.return_ for ep in state.heldout.episodes)
        if state.heldout.score is not None:
            yield from (state.heldout.score.mean, state.heldout.score.std)


def _seen_by_agent(desk: Desk) -> Iterator[Path]:
    """Files that the agent could read, or wrote itself."""
    for folder, _, names in os.walk(desk.run.workspace):
        for name in sorted(names):
            if not name.endswith((".npz", ".npy")) and not leftover(name):
                yield Path(folder) / name
    log = desk.run.logs / "agent.jsonl"
    if log.exists():
        yield log


def _leaks(desk: Desk, path: Path, seeds: frozenset[bytes], figures: frozenset[bytes]) -> None:
    try:
        if path.is_symlink() or not path.is_file():
            return
        data = read_regular(path)
    except OSError as error:
        desk.say("unreadable", path, f"cannot be read ({error.strerror})")
        return
    # Most files hold no number as long as a seed, which a search for a run of digits tells ten times faster.
    if seeds and _RUN in data.translate(_TO_ZERO) and _any(_LONG_INTEGER.finditer(data), seeds):
        desk.say("seed-leak", path, "holds a case's seed, which no agent may know")
    # Trajectories are written by the worker before any hidden case was opened, and are full of long numbers.
    if figures and path.name not in _RECORDED and _any(_LONG_FLOAT.finditer(data), figures):
        desk.say("figure-leak", path, "holds a validation or held-out figure, which no agent may know")


def _any(matches: Iterable[re.Match[bytes]], wanted: frozenset[bytes]) -> bool:
    return any(match[0] in wanted for match in matches)
