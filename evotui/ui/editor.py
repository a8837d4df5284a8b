"""The person's editor: which it is, and running it on the terminal while the run goes on behind."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from pathlib import Path

from textual.app import App, SuspendNotSupported


class NoEditor(Exception):
    """There is none, or it cannot be run here; the message says what to do."""


def find_editor() -> list[str]:
    """$VISUAL, else $EDITOR, else a usual one that is installed. Raises NoEditor."""
    for name in ("VISUAL", "EDITOR"):
        words = shlex.split(os.environ.get(name, ""))
        if words:
            if shutil.which(words[0]) is None:
                raise NoEditor(f"${name} is {words[0]!r}, which cannot be found")
            return words
    for usual in ("nano", "vim", "vi"):
        if shutil.which(usual):
            return [usual]
    raise NoEditor("no editor: set $EDITOR, such as EDITOR=vim")


async def edit(app: App[None], path: Path) -> str:
    """Open ``path`` in the editor and wait until it is closed. The event loop, and with it the run, goes on.

    Returns "" or, where the editor did not end well, a sentence that says so. Raises NoEditor.
    """
    code = 0
    words = find_editor()
    # batch_update: a paint while the driver is suspended would wait for ever on its full queue.
    # SIGINT belongs to the editor meanwhile; a handler (not SIG_IGN, which a child inherits) keeps it from ending us.
    with app.batch_update():
        try:
            with app.suspend():
                before = signal.signal(signal.SIGINT, lambda *_: None)
                try:
                    process = await asyncio.create_subprocess_exec(*words, str(path))
                    code = await process.wait()
                finally:
                    signal.signal(signal.SIGINT, before)
        except SuspendNotSupported:
            raise NoEditor(
                "this terminal cannot be handed to an editor; edit the file beside it: " + str(path)
            ) from None
    app.refresh(layout=True)
    if not code:
        return ""
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{words[0]} {how}"
