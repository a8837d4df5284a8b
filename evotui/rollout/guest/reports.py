"""What a policy raised, as a report that fits one frame and shows nothing of the stub; and its output, flushed."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from . import wire

_MESSAGE_CHARS, _TRACEBACK_CHARS = 500, 6000  # fit into wire.MAX_REPLY as ASCII JSON
_STUB = os.path.dirname(os.path.abspath(__file__)) + os.sep


def report(error: BaseException, system: str) -> bytes:
    """What the policy raised, as JSON that fits one frame: type, message, traceback, whether memory ran out."""
    try:
        name = str(type.__getattribute__(type(error), "__name__"))[:100]
    except BaseException:
        name = "exception"
    try:
        message = f"{name}: {str(error)[:_MESSAGE_CHARS]}" if str(error) else name
    except BaseException:
        message = f"{name}: <its text could not be made>"
    try:
        told = traceback.TracebackException.from_exception(error)
        _only_policy_frames(told, set())
        text = "".join(told.format())
    except BaseException:
        text = message
    document: dict[str, Any] = {
        "message": message.replace(system + os.sep, ""),
        "traceback": text.replace(system + os.sep, "")[-_TRACEBACK_CHARS:],
        "memory": isinstance(error, MemoryError),
    }
    raw = wire.to_json(document)
    if len(raw) > wire.MAX_REPLY - wire.HEADER.size:  # text outside ASCII takes six bytes a character
        raw = wire.to_json({**document, "message": message[:200], "traceback": text[-1000:]})
    return raw


def _only_policy_frames(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack = traceback.StackSummary.from_list(
        [f for f in told.stack if not f.filename.startswith((_STUB, "<frozen importlib"))]
    )
    for chained in (told.__cause__, told.__context__):
        if chained is not None:
            _only_policy_frames(chained, seen)


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue  # the policy replaced or closed it: what was not flushed is its own loss
