"""The gate: what each mode lets through, and what it tells."""

from __future__ import annotations

import asyncio

from evotui.kernel.gate import Gate, Mode


class Told:
    def __init__(self) -> None:
        self.moves: list[tuple[str, str]] = []
        self.held: list[str] = []
        self.holding = asyncio.Event()

    async def moved(self, mode: Mode, by: str) -> None:
        self.moves.append((str(mode), by))

    async def hold(self, where: str) -> None:
        self.held.append(where)
        self.holding.set() if where else self.holding.clear()


def gate(mode: Mode = Mode.RUN) -> tuple[Gate, Told]:
    told = Told()
    return Gate(told.moved, told.hold, mode), told


async def test_run_holds_nothing() -> None:
    g, told = gate()
    await g.submission("submission 0")
    await g.phase("compile")
    assert told.held == [] and told.moves == []


async def test_pause_holds_submissions_but_not_phases() -> None:
    g, told = gate(Mode.PAUSE)
    await g.phase("compile")
    waiting = asyncio.create_task(g.submission("submission 1"))
    await told.holding.wait()
    assert told.held == ["submission 1"] and not waiting.done()
    await g.set(Mode.RUN)
    await waiting
    assert told.held == ["submission 1", ""]


async def test_iteration_lets_exactly_one_through_then_pauses() -> None:
    g, told = gate(Mode.PAUSE)
    await g.set(Mode.ITERATION)
    await g.submission("submission 0")
    assert g.mode is Mode.PAUSE and told.moves[-1] == ("pause", "step")
    second = asyncio.create_task(g.submission("submission 1"))
    await told.holding.wait()
    assert not second.done()
    await g.set(Mode.ITERATION)
    await second


async def test_phase_steps_one_phase_at_a_time() -> None:
    g, told = gate()
    await g.set(Mode.PHASE)
    await g.phase("request")
    for name in ("snapshot", "validate"):
        waiting = asyncio.create_task(g.phase(name))
        await told.holding.wait()
        assert not waiting.done() and told.held[-1] == name
        await g.set(Mode.PHASE)
        await waiting
    assert told.moves == [("phase", "human")] * 3


async def test_leaving_phase_mode_frees_the_phase_that_waits() -> None:
    g, told = gate()
    await g.set(Mode.PHASE)
    await g.phase("request")
    waiting = asyncio.create_task(g.phase("snapshot"))
    await told.holding.wait()
    await g.set(Mode.PAUSE)
    await waiting


async def test_a_cancelled_waiter_takes_no_permit_and_is_told_to_have_gone() -> None:
    g, told = gate(Mode.PAUSE)
    waiting = asyncio.create_task(g.submission("submission 0"))
    await told.holding.wait()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert told.held == ["submission 0", ""]
    await g.set(Mode.ITERATION)
    await g.submission("submission 0")
