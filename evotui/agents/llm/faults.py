"""What can go wrong with a model call, in kinds that the agent has an answer for."""

from __future__ import annotations

import email.utils
import re
import time
from dataclasses import dataclass
from typing import Any

KINDS = (
    "auth", "not_found", "quota", "bad_request", "context", "rate_limit", "server", "timeout", "connection", "cut",
    "gateway",
)  # fmt: skip
WORTH_ANOTHER_TRY = ("rate_limit", "server", "timeout", "connection", "cut", "gateway")

_CONTEXT = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|exceed_context"
    r"|input is too long|reduce the length",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance|payment", re.IGNORECASE)
_NO_KEY = re.compile(
    r"missing credentials|api_key (client option )?must be set|missing .{0,20}api.?key|no api.?key", re.IGNORECASE
)
_UNREACHED = re.compile(r"^(connection error|cannot connect|connection refused|all connection attempts failed)", re.I)
_BY_NAME = {
    "AuthenticationError": "auth", "PermissionDeniedError": "auth", "NotFoundError": "not_found",
    "ContextWindowExceededError": "context", "PaymentRequiredError": "quota", "RateLimitError": "rate_limit",
    "Timeout": "timeout", "APITimeoutError": "timeout", "TimeoutError": "timeout", "InternalServerError": "server",
    "ServiceUnavailableError": "server", "BadGatewayError": "server", "APIConnectionError": "connection",
    "UnsupportedParamsError": "bad_request", "LiteLLMUnknownProvider": "bad_request",
}  # fmt: skip
_BY_STATUS = {401: "auth", 403: "auth", 404: "not_found", 402: "quota", 408: "timeout", 429: "rate_limit"}


class ModelFault(Exception):
    """A model call that failed. ``partial``: something of the answer had been streamed. The message holds no key."""

    def __init__(self, kind: str, message: str, retry_after: float | None = None, partial: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.partial = partial


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    message: str
    retry_after: float | None


def classify(error: BaseException, partial: bool) -> Fault:
    """The kind of an exception of litellm's (told by its classes' names: it is not imported here), and its words."""
    text = str(error)
    inner = getattr(error, "original_exception", None)
    names = [cls.__name__ for cls in type(error).__mro__]
    if "MidStreamFallbackError" in names:
        told = classify(inner, partial) if isinstance(inner, BaseException) else None
        kind = told.kind if told is not None and told.kind in ("timeout", "server", "rate_limit") else "cut"
        return Fault(kind, told.message if told is not None else plain(text), told.retry_after if told else None)
    kind = next((_BY_NAME[name] for name in names if name in _BY_NAME), "")
    status = getattr(error, "status_code", None)
    if not kind and isinstance(status, int):
        kind = _BY_STATUS.get(status, "server" if status >= 500 else "bad_request" if status >= 400 else "")
    if kind in ("", "bad_request", "server", "connection") and _NO_KEY.search(text):
        kind = "auth"
    elif kind in ("rate_limit", "bad_request", "auth") and _QUOTA.search(text):
        kind = "quota"
    elif kind in ("bad_request", "") and _CONTEXT.search(text):
        kind = "context"
    elif kind in ("server", "") and _UNREACHED.search(plain(text)):
        kind = "connection"
    if kind in ("connection", "") and partial:
        kind = "cut"
    return Fault(kind or "connection", plain(text) or type(error).__name__, _retry_after(error))


_NOISE = re.compile(r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?: Error)?:? ?(?:- )?")


def plain(text: str) -> str:
    """An error's words without the classes' names before them and the JSON around them; one line."""
    text = text.partition(" Original exception:")[0].partition(" Received Model Group=")[0].strip()
    while True:
        shorter = _NOISE.sub("", text, count=1).strip()
        if shorter == text or not shorter:
            break
        text = shorter
    said = re.search(r"[\"']message[\"']:\s*\"((?:[^\"\\]|\\.)*)\"", text)
    if said is not None:
        text = said.group(1).replace('\\"', '"').replace("\\n", " ")
    text = re.sub(r"<[^>]+>", " ", text) if "<html" in text.lower() else text
    return " ".join(text.removeprefix("b'").split())[:600]


def _retry_after(error: BaseException) -> float | None:
    sources: list[Any] = [getattr(getattr(error, "response", None), "headers", None)]
    sources += [getattr(error, "litellm_response_headers", None), getattr(error, "headers", None)]
    for headers in sources:
        if headers is None or not hasattr(headers, "get"):
            continue
        milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
        try:
            if milliseconds is not None:
                return max(0.0, float(milliseconds) / 1000)
            if value is not None:
                return max(0.0, float(value))
        except ValueError:
            when = email.utils.parsedate_to_datetime(str(value)) if value else None
            if when is not None:
                return max(0.0, when.timestamp() - time.time())
    return None
