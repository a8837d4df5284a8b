"""An interrupt before a command has begun its work, also while Python still imports it. Imports nothing itself."""

from __future__ import annotations

import sys

NOTHING_BEGUN = "interrupted before the run began: there is nothing to resume"


class Begun:
    """``work``: whether this process has begun what an interrupt stops in good order (``ending.heard``)."""

    work = False


def interrupted() -> int:
    """Say in one sentence that a person stopped this process, and return the exit code."""
    run = sys.argv[1:2] in (["run"], ["demo"]) and not Begun.work
    try:
        sys.stderr.write(f"evotui: {NOTHING_BEGUN if run else 'interrupted'}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody is there to be told
    return 130
