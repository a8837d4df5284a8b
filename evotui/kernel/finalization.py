"""After the agent: validate every ok checkpoint, select the best, score it held-out. A generator of facts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

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
    def hidden(
        self, checkpoint: int, split: Split, positions: Sequence[int]
    ) -> AbstractAsyncContextManager[HiddenRollout]: ...


_LOADS = 3
"""How often a checkpoint is tried: it was loaded before, so a failure now is more likely the machine's than its own."""


class HiddenFailure(Exception):
    """A checkpoint that was ok cannot be loaded any more; the message names it."""


async def finalization(
    state: RunState, n_validation: int, n_heldout: int, ground: HiddenGround, reason: str
) -> AsyncIterator[e.Event]:
    """Facts from the opening of the hidden pools to the held-out score, going on from what ``state`` already holds.

    Yields :class:`FinalizationStarted` unless it is in ``state``. With no ok checkpoint nothing else follows. Episodes
    already in ``state`` are not run again. The best is the argmax of the validation mean; ties go to the latest
    submission. Raises HiddenFailure where a checkpoint cannot be loaded any more.
    """
    checkpoints = state.finalizing
    if checkpoints is None:
        checkpoints = tuple(s.index for s in state.submissions if s.ok)
        yield e.FinalizationStarted(checkpoints, reason)
    scores: dict[int, float] = {}
    for index in checkpoints:
        was = state.submission(index)
        if was.val_score is not None:
            scores[index] = was.val_score
            continue
        returns = {ep.position: ep.return_ for ep in was.validation}
        async for fact in _hidden(ground, index, Split.VALIDATION, n_validation, returns):
            yield fact
        scored = stats([returns[p] for p in sorted(returns)])
        assert scored is not None, "a validation pool is never empty"
        scores[index] = scored.mean
        yield e.CheckpointValidated(index, scored.mean, scored.std, scored.n)
    if not scores:
        return
    best = state.selected
    if best is None:
        best = select(scores)
        yield e.CheckpointSelected(best, scores[best])
    if state.heldout is not None and state.heldout.score is not None:
        return
    returns = {ep.position: ep.return_ for ep in state.heldout.episodes} if state.heldout is not None else {}
    async for fact in _hidden(ground, best, Split.HELDOUT, n_heldout, returns):
        yield fact
    scored = stats([returns[p] for p in sorted(returns)])
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


async def _hidden(
    ground: HiddenGround, index: int, split: Split, n: int, returns: dict[int, float]
) -> AsyncIterator[e.Event]:
    missing = [p for p in range(n) if p not in returns]
    if not missing:
        return
    fault: LoadFault | None = None
    for _ in range(_LOADS):
        async with ground.hidden(index, split, missing) as rollout:
            fault = await rollout.load()
            if fault is not None:
                continue
            async for fact in _results(rollout, index, split, returns):
                yield fact
            return
    assert fault is not None
    raise HiddenFailure(f"checkpoint {index} cannot be loaded for the {split} cases: {fault.message}")


async def _results(
    rollout: HiddenRollout, index: int, split: Split, returns: dict[int, float]
) -> AsyncIterator[e.Event]:
    async for told in rollout.results():
        result = sound(told)
        returns[result.position] = result.return_
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
