"""Taking an unfinished run up again: what is said before it, and the question whether to do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evotui.protocol.words import counted
from evotui.ui.screens.confirm import Choice, Confirm
from evotui.ui.words import short

if TYPE_CHECKING:
    from evotui.record.state import RunState
    from evotui.ui.screens.base import CommandScreen


def plan(state: RunState) -> str:
    """What is kept, that spent stays spent, and what will go on: a preflight in a few sentences."""
    budget = state.budget
    spent = f"{budget.used} of {counted(budget.total, 'episode')} stay spent"
    said = [f"Kept: {counted(len(state.submissions), 'submission')}; {spent}."]
    active = state.active
    if active is not None:
        done, missing = len(active.episodes), active.cost - len(active.episodes)
        again = f"the other {missing} run again, already charged" if missing else "only its feedback is missing"
        said.append(f"{short(active.index)} broke off after {done} of {counted(active.cost, 'episode')}: {again}.")
    if state.finalizing is None and state.agent_ended != "done" and budget.remaining:
        said.append(f"Then the agent goes on with {counted(budget.remaining, 'episode')}.")
    elif state.stage == "held-out":
        said.append(f"Held-out scoring of {short(state.selected or 0)} goes on at the next unfinished case.")
    elif state.finalizing is not None:
        said.append("Validation goes on at the next unfinished case; then selection and held-out.")
    else:
        said.append("Then what there is will be validated, selected and scored on held-out cases.")
    return " ".join(said)


def read_state(run: Path) -> RunState:
    """The state that a run's log folds to. Blocking. Raises LogError, FoldError, OSError."""
    from evotui.record.fold import fold_all
    from evotui.record.log import read

    return fold_all(read(run / "events.jsonl"))


async def wanted(screen: CommandScreen, name: str, state: RunState) -> bool:
    """Ask whether to resume, saying what will happen."""
    choices = [Choice("resume", "y", "Resume"), Choice("stay", "n", "Not now")]
    return await screen.ask(Confirm(f"Resume {name}?", plan(state), choices, safe="stay")) == "resume"
