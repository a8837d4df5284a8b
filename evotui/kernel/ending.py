"""How a run ends: hidden pools scored, the best checkpoint mirrored, pools revealed, ``run.json`` written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from evotui.kernel import documents
from evotui.kernel.finalization import HiddenFailure, finalization
from evotui.kernel.ground import Arena, HiddenGround
from evotui.kernel.ledger import Ledger
from evotui.kernel.rollouts import drop
from evotui.protocol.pools import Split
from evotui.record import events as e
from evotui.record.rundir import RunDir, to_json, write_atomic
from evotui.record.tree import read_tree, restore


async def finalize(
    arena: Arena, ledger: Ledger, wish: asyncio.Future[str], model_config: Mapping[str, Any], reason: str
) -> str:
    """Score what there is and close the record; the final status, ``stopped`` where ``wish`` came to say so."""
    run = arena.run
    state, head = ledger.state, ledger.state.header
    facts = finalization(state, head.n_validation, head.n_heldout, HiddenGround(arena, lambda: ledger.state), reason)
    error: str | None = None
    try:
        if not await _until_stopped(ledger, wish, facts):
            return "stopped"
    except HiddenFailure as failure:
        error = str(failure)
        await ledger.append(e.IncidentNoted(error))
    if error is None and ledger.state.selected is not None:
        # workspace/system becomes the checkpoint, byte for byte; done again after a kill, it completes
        best = await asyncio.to_thread(read_tree, run.checkpoint(ledger.state.selected))
        await asyncio.to_thread(restore, best, run.system)
        await ledger.append(e.WorkspaceMirrored(ledger.state.selected))
    status = "error" if error else "completed" if ledger.state.selected is not None else "no_ok_submit"
    await _end(arena, ledger, model_config, status, error)
    return status


async def _until_stopped(ledger: Ledger, wish: asyncio.Future[str], facts: AsyncIterator[e.Event]) -> bool:
    """Append the facts as they come; False when somebody asked to stop meanwhile, or had asked before."""
    if wish.done() and wish.result() == "stop":
        return False

    async def drain() -> None:
        async with aclosing(facts):  # type: ignore[type-var]
            async for fact in facts:
                # The opening of the pools must not be younger, after a power cut, than what it allows.
                await ledger.append(fact, sync=isinstance(fact, e.FinalizationStarted))

    work = asyncio.create_task(drain())
    try:
        waited: set[asyncio.Future[Any]] = {work} if wish.done() else {work, wish}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and wish.done() and wish.result() == "stop":
            return False
        await work
    finally:
        if not work.done():
            await drop(work)
    return True


async def _end(arena: Arena, ledger: Ledger, model_config: Mapping[str, Any], status: str, error: str | None) -> None:
    """Reveal the pools, write ``run.json``, state the end."""
    run, head = arena.run, ledger.state.header
    if ledger.state.finalizing is not None and not ledger.state.pools_revealed:
        await asyncio.to_thread(_reveal, run)
        await ledger.append(e.PoolsRevealed(head.pools))

    def work() -> None:
        rules = "sha256:" + hashlib.sha256(run.agents_md.read_bytes()).hexdigest()
        dimensions = {"agent_seed": head.agent_seed, "model_config": dict(model_config)}
        write_atomic(
            run.run_json,
            to_json(documents.run_record(ledger.state, status, error, arena.clock(), rules, dimensions)),
        )

    await asyncio.to_thread(work)
    await ledger.append(e.RunEnded(status, error), sync=True)


def _reveal(run: RunDir) -> None:
    run.pools.mkdir(exist_ok=True)
    for split in Split:
        write_atomic(run.pools / split.file_name, (run.host_pools / split.file_name).read_bytes())
