"""The child process that talks to models: ``python -m evotui.agents.llm.gateway [--env-file FILE]``.

The only place that imports litellm: its import costs seconds and two hundred megabytes, and its work would stall an
event loop that draws. JSON lines: requests on stdin (``{"do": "call", "id", "request"}``, ``{"do": "cancel", "id"}``),
events on stdout (``ready``, then per call ``text``, ``thought``, ``tool``, and one of ``done`` and ``error``). Keys are
here and nowhere else; no event holds one. It ends when stdin does.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from evotui.agents.llm.client import WALL
from evotui.agents.llm.faults import Fault, classify
from evotui.agents.llm.keys import read_env_file, secrets_of
from evotui.agents.llm.streamed import Answer, Out
from evotui.agents.llm.usage import Usage, cost_at, cost_of, split

FIRST, IDLE = 180.0, 90.0
"""Seconds until the first piece of an answer, and between two pieces."""
LINE_LIMIT = 256 << 20

_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no download of prices
    "LITELLM_MODE": "PRODUCTION",  # no .env found somewhere above
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOG": "CRITICAL",
}
_NO_KEY_NEEDED = "not-needed"
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")


def load_litellm() -> Any:
    """litellm, quiet: no downloads, no log, no word on stdout. Takes seconds."""
    os.environ.update(_SETTINGS)
    import litellm

    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.disable_streaming_logging = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
    return litellm


class Gateway:
    """Serves the calls of one parent, any number at a time."""

    def __init__(self, litellm: Any, out: Out) -> None:
        self._litellm = litellm
        self._out = out
        self._calls: dict[int, asyncio.Task[None]] = {}

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            message = json.loads(line)
            if message["do"] == "call":
                call = int(message["id"])
                self._calls[call] = asyncio.create_task(self._call(call, message["request"]))
            elif message["do"] == "cancel":
                task = self._calls.get(int(message["id"]))
                if task is not None:
                    task.cancel()

    async def _call(self, call: int, request: dict[str, Any]) -> None:
        answer = Answer(self._out, call)
        try:
            async with asyncio.timeout(request.get("wall") or WALL):
                await self._stream(request, answer)
            self._done(call, request, answer)
        except asyncio.CancelledError:
            self._out.drop(call)
            self._out.send(event="cancelled", id=call)
        except TimeoutError as late:
            words = str(late) or f"the answer was not complete after {request.get('wall') or WALL:g} s"
            self._out.error(call, Fault("timeout", words, None), answer.begun)
        except Exception as error:  # whatever litellm raises is told to the parent, which knows what to do
            self._out.error(call, classify(error, answer.begun), answer.begun)
        finally:
            self._calls.pop(call, None)

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        """What litellm is called with. Its own retries are off: they sleep where nobody sees it; and so is its dropping
        of parameters, which turns some errors into no answer at all: what a model does not take is left out here."""
        taken = self._taken(request["model"])
        params = {k: v for k, v in (request.get("params") or {}).items() if taken is None or k in taken}
        asked: dict[str, Any] = {
            "model": request["model"], "messages": request["messages"], "stream": True,
            "stream_options": {"include_usage": True}, "num_retries": 0, "max_retries": 0,
            "timeout": (request.get("wall") or WALL) + 5, **params,
        }  # fmt: skip
        if request.get("tools"):
            asked["tools"] = request["tools"]
        base = request.get("api_base")
        if base:
            asked["api_base"] = base
            if request["model"].startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
                asked["api_key"] = _NO_KEY_NEEDED
        if request.get("cache"):
            # What stays the same at the beginning is read from the provider's cache, up to the latest message.
            asked["cache_control_injection_points"] = [
                {"location": "message", "role": "system"}, {"location": "message", "index": -1},
            ]  # fmt: skip
        return asked

    def _taken(self, model: str) -> list[str] | None:
        """The parameters that a model takes; None where that is not known."""
        try:
            found = self._litellm.get_supported_openai_params(model=model)
        except Exception:  # an unknown provider: the call itself says so in better words
            return None
        return list(found) if found else None

    async def _stream(self, request: dict[str, Any], answer: Answer) -> None:
        stream = None
        try:
            first = request.get("first") or FIRST
            begun = self._litellm.acompletion(**self._asked(request))
            stream = await _within(first, "no answer began within {:g} s", begun)
            chunks, limit = aiter(stream), first
            while True:
                chunk = await _within(limit, "the stream stood still for {:g} s", anext(chunks, None))
                if chunk is None:
                    return
                answer.take(chunk)
                limit = request.get("idle") or IDLE
        finally:
            if stream is not None:
                with suppress(Exception):  # the connection may be broken already: that is told by what was raised
                    await stream.aclose()

    def _done(self, call: int, request: dict[str, Any], answer: Answer) -> None:
        thought, text = answer.close()
        usage, estimated = self._usage(request, answer, text, thought)
        cost = self._cost(request, usage, answer.usage)
        self._out.send(
            event="done", id=call, text=text, thought=thought, finish=answer.finish, blocks=answer.blocks,
            calls=[{"id": c.id, "name": c.name, "text": c.text, "extra": c.extra} for c in answer.calls.calls()],
            usage=[usage.input, usage.cached, usage.written, usage.output], estimated=estimated, cost=cost,
            model=request["model"],
        )  # fmt: skip

    def _usage(self, request: dict[str, Any], answer: Answer, text: str, thought: str) -> tuple[Usage, bool]:
        """The usage, and whether it was counted here. litellm counts by itself, without a word, where the server told
        nothing: then the prompt is exactly what its counter says of the messages, and there are no details."""
        told = split(answer.usage) if answer.usage is not None else Usage()
        bare = getattr(answer.usage, "prompt_tokens_details", None) is None
        if told.told and not bare:
            return told, False
        counted = self._count(request["model"], messages=request["messages"])
        if told.told and told.input != counted:
            return told, False
        called = "".join(c.name + c.text for c in answer.calls.calls())
        said = self._count(request["model"], text=text + thought + called)
        return Usage(counted + len(json.dumps(request.get("tools") or [])) // 4, 0, 0, said), True

    def _count(self, model: str, **what: Any) -> int:
        try:
            return int(self._litellm.token_counter(model=model, **what))
        except Exception:  # a message shape that it does not know: four characters a token is near enough
            return len(json.dumps(what)) // 4

    def _cost(self, request: dict[str, Any], usage: Usage, raw: Any) -> float | None:
        price = request.get("price")
        if isinstance(price, list) and len(price) == 2:
            return cost_at(usage, (float(price[0]), float(price[1])))
        if request.get("api_base") or any(os.environ.get(name) for name in _ADDRESSES):
            return None  # a server of one's own has prices of its own, whatever its models are called
        total = usage.input + usage.cached + usage.written

        def per_token() -> tuple[float, float]:
            return self._litellm.cost_per_token(
                model=request["model"],
                prompt_tokens=total,
                completion_tokens=usage.output,
                cache_read_input_tokens=usage.cached,
                cache_creation_input_tokens=usage.written,
                usage_object=raw,
            )

        return cost_of(usage, per_token)


async def _within(seconds: float, words: str, what: Any) -> Any:
    try:
        async with asyncio.timeout(seconds) as clock:
            return await what
    except TimeoutError:
        if clock.expired():
            raise TimeoutError(words.format(seconds)) from None
        raise


async def _lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line


async def _warm_up(litellm: Any) -> None:
    """Pay what the first call costs (most of a second) before there is one: an answer that litellm makes up itself."""
    asked = [{"role": "user", "content": "."}]
    with suppress(Exception):  # where that does not work, the first call is slow
        stream = await litellm.acompletion(model="openai/none", messages=asked, mock_response=".", stream=True)
        async for _ in stream:
            pass


async def _main(litellm: Any, out: Out) -> None:
    await _warm_up(litellm)
    out.send(event="ready")
    await Gateway(litellm, out).serve(_lines())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env-file", default="")
    parser.add_argument("--parent", type=int, default=0)
    args = parser.parse_args()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # end with the parent, whatever happens to it
    if args.parent and os.getppid() != args.parent:
        return  # it has ended already
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    events = os.dup(1)
    os.dup2(2, 1)  # what some library prints is no event
    if args.env_file:
        os.environ.update(read_env_file(Path(args.env_file)))
    out = Out(events, secrets_of(os.environ))
    try:
        litellm = load_litellm()
    except Exception as error:
        out.send(event="broken", message=f"litellm cannot be loaded: {type(error).__name__}: {error}")
        sys.exit(1)
    asyncio.run(_main(litellm, out))
    os._exit(0)  # its threads and exit hooks are nobody's


if __name__ == "__main__":
    main()
