"""Where the door of a run is found by a program: the variables that agents of the published harness read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DoorUrls:
    """The door as HTTP on loopback; the token of the run is part of each path.

    ``busy()``: whether somebody waits for the answer to a submission right now.
    """

    info: str
    task: str
    submit: str
    busy: Callable[[], bool] = field(default=_never, compare=False, repr=False)

    def environment(self) -> dict[str, str]:
        """The variables that the published harness sets."""
        return {
            "EVOPOLICYGYM_INFO_URL": self.info,
            "EVOPOLICYGYM_TASK_URL": self.task,
            "EVOPOLICYGYM_SUBMIT_URL": self.submit,
        }
