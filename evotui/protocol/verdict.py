"""How a submission and an episode can end: phases, verdicts, faults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """The seven phases of a submission's life, in order."""

    REQUEST = "request"
    SNAPSHOT = "snapshot"
    VALIDATE = "validate"
    COMPILE = "compile"
    INITIALIZE = "initialize"
    EXECUTE = "execute"
    COMMIT = "commit"


class Verdict(StrEnum):
    """How a submission ended. The first three are free: nothing was charged."""

    BUDGET_INVALID = "budget_invalid"
    INVALID_ENV_INSTANCE = "invalid_env_instance"
    REFUSED = "refused"
    """A person who approves each submission said no; the published harness knows no such thing."""
    MISSING_POLICY = "missing_policy"
    DENIED_IMPORT = "denied_import"
    IMPORT_ERROR = "import_error"
    INIT_ERROR = "init_error"
    OOM = "oom"
    ROLLOUT_TIMEOUT = "rollout_timeout"
    OK = "ok"


class FaultKind(StrEnum):
    """What ended a single episode early; the submission goes on unless faults of one kind repeat (see STRIKES)."""

    RESET_ERROR = "reset_error"
    ACT_ERROR = "act_error"
    RESET_TIMEOUT = "reset_timeout"
    ACT_TIMEOUT = "act_timeout"
    EPISODE_TIMEOUT = "episode_timeout"
    OOM = "oom"
    EXITED = "exited"
    PROTOCOL = "protocol"
    ENVIRONMENT = "environment"

    @property
    def is_timeout(self) -> bool:
        return self in (FaultKind.RESET_TIMEOUT, FaultKind.ACT_TIMEOUT, FaultKind.EPISODE_TIMEOUT)


STRIKES = 3
"""Faults of one host-observed kind (a time limit, memory, a dead or garbling process) after which a submission's
remaining episodes are not tried: they end with that fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an episode ended early. ``step`` is the environment step, −1 for reset; text is the policy's own, escaped."""

    kind: FaultKind
    step: int
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class LoadFault:
    """Why a policy system could not be loaded: ``phase`` is validate, compile or initialize."""

    phase: Phase
    verdict: Verdict
    message: str
    traceback: str = ""


def verdict_of_faults(faults: list[Fault | None]) -> Verdict:
    """The submission's verdict after its episodes, from their faults in order.

    Raised errors are the episode's own affair (``ok``). A time limit or the memory limit that was hit ``STRIKES``
    times, or by every episode, is the submission's: ``rollout_timeout`` or ``oom``. (The paper names the verdicts and
    leaves the count open; the count is ours.)
    """
    if not faults:
        return Verdict.OK
    enough = min(STRIKES, len(faults))
    if sum(1 for f in faults if f is not None and f.kind.is_timeout) >= enough:
        return Verdict.ROLLOUT_TIMEOUT
    if sum(1 for f in faults if f is not None and f.kind is FaultKind.OOM) >= enough:
        return Verdict.OOM
    return Verdict.OK
