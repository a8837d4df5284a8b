"""After the agent: validate every ok checkpoint, select the best, score it held-out. A generator of facts.

The same files submitted again are the same policy, and the hidden cases are the same for all: what such a checkpoint
does there is measured once, and stated for each of them (:attr:`CheckpointValidated.same_as`). Agents resubmit their
best to be sure of it, and a policy that throws dice of its own gets one throw, not as many as it was submitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import replace
from typing import Protocol

from evotui.kernel.ahead import Ahead
from evotui.protocol.pools import Split
from evotui.protocol.results import EpisodeResult, final_score, sound, stats
from evotui.protocol.verdict import LoadFault
from evotui.record import events as e
from evotui.record.state import RunState


class HiddenRollout(Protocol):
    """One checkpoint on hidden cases; nothing is written."""

    async def load(self) -> LoadFault | None: ...
    def results(self) -> AsyncIterator[EpisodeResult]:
        """Finished episodes in any order; their positions are places in the pool."""


class HiddenGround(Protocol):
    abreast: int
    """How many checkpoints can be run side by side with gain."""

    def hidden(
        self, checkpoint: int, split: Split, positions: Sequence[int]
    ) -> AbstractAsyncContextManager[HiddenRollout]: ...

    async def alike(self, one: int, other: int) -> bool:
        """Whether two checkpoints of one tree hash cannot but do the same on the same case."""


_LOADS = 3
"""How often a checkpoint is tried: it was loaded before, so a failure now is more likely the machine's than its own."""


class HiddenFailure(Exception):
    """A checkpoint that was ok cannot be loaded any more; the message names it."""


async def finalization(
    state: RunState, n_validation: int, n_heldout: int, ground: HiddenGround, reason: str
) -> AsyncIterator[e.Event]:
    """Facts from the opening of the hidden pools to the held-out score, going on from what ``state`` already holds.

    Yields :class:`FinalizationStarted` unless it is in ``state``. With no ok checkpoint nothing else follows. Episodes
    already in ``state`` are not run again, nor those of a checkpoint that is alike. The best is the argmax of the
    validation mean; ties go to the latest submission. Raises HiddenFailure where a checkpoint cannot be loaded now.
    """
    checkpoints = state.finalizing
    if checkpoints is None:
        checkpoints = tuple(s.index for s in state.submissions if s.ok)
        yield e.FinalizationStarted(checkpoints, reason)
    scores: dict[int, float] = {}
    async with aclosing(_validations(state, checkpoints, n_validation, ground, scores)) as facts:
        async for fact in facts:
            yield fact
    if not scores:
        return
    best = state.selected
    if best is None:
        best = select(scores)
        yield e.CheckpointSelected(best, scores[best])
    if state.heldout is not None and state.heldout.score is not None:
        return
    held = {ep.position: ep for ep in state.heldout.episodes} if state.heldout is not None else {}
    async with aclosing(_hidden(ground, best, Split.HELDOUT, n_heldout, held)) as episodes:
        async for told in episodes:
            yield told
    scored = stats([held[p].return_ for p in sorted(held)])
    assert scored is not None, "a held-out pool is never empty"
    score, kind = score_of(scored.mean, state.header.anchors)
    yield e.HeldoutScored(best, scored.mean, scored.std, scored.n, score, kind)


def select(scores: Mapping[int, float]) -> int:
    """The submission of the greatest validation mean; ties go to the latest."""
    return max(scores, key=lambda index: (scores[index], index))


def score_of(mean: float, anchors: Mapping[str, float]) -> tuple[float, str]:
    """(final_score, kind): normalized where both anchors are known and differ, else the raw mean."""
    low, high = anchors.get("random"), anchors.get("reference")
    if low is None or high is None or low == high:
        return mean, "raw"
    return final_score(mean, low, high), "normalized"


async def _validations(
    state: RunState, checkpoints: Sequence[int], n: int, ground: HiddenGround, scores: dict[int, float]
) -> AsyncGenerator[e.Event, None]:
    """Every checkpoint's validation, its score put into ``scores``; several at work, told one after the other."""
    measured = {i: {ep.position: ep for ep in state.submission(i).validation} for i in checkpoints}
    turn = asyncio.Semaphore(ground.abreast)
    ahead = {
        index: Ahead(_hidden(ground, index, Split.VALIDATION, n, measured[index]), turn)
        for index in _first_of_their_files(state, checkpoints)
    }
    try:
        for index in checkpoints:
            episodes = measured[index]
            val_score = state.submission(index).val_score
            if val_score is not None:
                scores[index] = val_score
                continue
            twin = await _twin(state, ground, index, scores) if index not in ahead else None
            if twin is not None and any(ep.return_ != measured[twin][p].return_ for p, ep in episodes.items()):
                twin = None  # begun by an evotui that ran each, and the policy throws dice: its own are its own
            if twin is not None:
                for position, told in sorted(measured[twin].items()):
                    if position not in episodes:
                        episodes[position] = fact = replace(told, submission=index)
                        yield fact
            if index not in ahead:  # whatever its twin left to be run
                ahead[index] = Ahead(_hidden(ground, index, Split.VALIDATION, n, episodes), nullcontext())
            async for fact in ahead[index].items():
                yield fact
            scored = stats([episodes[p].return_ for p in sorted(episodes)])
            assert scored is not None, "a validation pool is never empty"
            scores[index] = scored.mean
            yield e.CheckpointValidated(index, scored.mean, scored.std, scored.n, twin)
    finally:
        for unread in ahead.values():
            await unread.close()


def _first_of_their_files(state: RunState, checkpoints: Sequence[int]) -> list[int]:
    """The checkpoints to be run, without those of a tree hash that an earlier one has: these may not need to be."""
    seen: set[str] = set()
    found = []
    for index in checkpoints:
        submission = state.submission(index)
        if submission.val_score is None and (not submission.tree_hash or submission.tree_hash not in seen):
            found.append(index)
        seen.add(submission.tree_hash)
    return found


async def _twin(state: RunState, ground: HiddenGround, index: int, validated: Collection[int]) -> int | None:
    """The first of the ``validated`` checkpoints that ``index`` repeats."""
    tree = state.submission(index).tree_hash
    for other in validated:
        if tree and state.submission(other).tree_hash == tree and await ground.alike(other, index):
            return other
    return None


async def _hidden(
    ground: HiddenGround, index: int, split: Split, n: int, episodes: dict[int, e.HiddenEpisodeFinished]
) -> AsyncGenerator[e.HiddenEpisodeFinished, None]:
    """Run the cases that are not among ``episodes`` and put them there."""
    missing = [p for p in range(n) if p not in episodes]
    if not missing:
        return
    fault: LoadFault | None = None
    for _ in range(_LOADS):
        async with ground.hidden(index, split, missing) as rollout:
            fault = await rollout.load()
            if fault is not None:
                continue
            async for fact in _results(rollout, index, split):
                episodes[fact.position] = fact
                yield fact
            return
    assert fault is not None
    raise HiddenFailure(f"checkpoint {index} cannot be loaded for the {split} cases: {fault.message}")


async def _results(rollout: HiddenRollout, index: int, split: Split) -> AsyncIterator[e.HiddenEpisodeFinished]:
    async for told in rollout.results():
        result = sound(told)
        yield e.HiddenEpisodeFinished(
            split=str(split),
            submission=index,
            position=result.position,
            return_=result.return_,
            length=result.length,
            success=result.success,
            invalid_actions=result.invalid_actions,
            fault=result.fault,
        )
