"""From errors to one sentence on stderr and an exit code (INTERFACE: exit codes)."""

from __future__ import annotations

OK, FAILURE, USAGE, NOT_FOUND, RUN_FAILED, NOT_OWNER, HUNG_UP, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 129, 130, 143


class Told(Exception):
    """A sentence for a person and the exit code that goes with it."""

    def __init__(self, message: str, code: int = FAILURE) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def sentence(error: BaseException) -> str:
    """One line for a person about any error: what :func:`explain` says, else its type and message."""
    told = explain(error)
    said = told.message if told is not None else f"{type(error).__name__}: {error}"
    return " ".join(said.split()).rstrip(": ")


def explain(error: BaseException) -> Told | None:
    """The sentence and code for an error that a person can cause; None for one that is a fault of ours."""
    from evotui.agents.catalog import UnknownAgent
    from evotui.agents.options import OptionError
    from evotui.kernel.config import ConfigError, WeakIsolation
    from evotui.protocol.turns import AgentFailed
    from evotui.record.lock import Locked
    from evotui.record.log import LogError
    from evotui.record.rundir import BadName, NotFound, RunDirError
    from evotui.record.state import NOTHING_YET, FoldError
    from evotui.record.suitefile import SuiteFileError
    from evotui.rollout.workers import EngineError
    from evotui.suite.errors import BadTaskFile, SuiteError, UnknownEnvironment

    match error:
        case Told():
            return error
        case UnknownEnvironment() | NotFound():
            return Told(str(error), NOT_FOUND)
        case BadName() | BadTaskFile() | SuiteFileError() | ConfigError() | UnknownAgent() | OptionError():
            return Told(str(error), USAGE)
        case Locked():
            return Told(str(error), NOT_OWNER)
        case SuiteError() | RunDirError() | EngineError() | WeakIsolation() | AgentFailed():
            return Told(str(error), FAILURE)
        case LogError():
            return Told(str(error), NOT_FOUND)
        case FoldError() if str(error) == NOTHING_YET:
            return Told("the log holds no event yet: this run never began", NOT_FOUND)
        case FoldError():
            return Told(f"the record contradicts itself: {error}; `evotui check` says where", NOT_FOUND)
        case OSError() if error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            return Told(f"{where}{error.strerror}", FAILURE)
        case _:
            return None
