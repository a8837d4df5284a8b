"""One tiny call to a model that says what works: the key, streaming, tools, usage, price."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from evotui.agents.base import AgentFailed
from evotui.agents.llm.calls import calls_in_text
from evotui.agents.llm.client import Delta, GatewayClient, Reply, Request
from evotui.agents.llm.faults import ModelFault
from evotui.agents.llm.patience import sentence
from evotui.agents.llm.wishes import full_name, ready

Finding = tuple[str, bool | None, str]
"""What was looked at, whether it works (None: it does not matter much), and a word on it."""

_WORD = "pendulum"
_TOOL = {
    "type": "function",
    "function": {
        "name": "say",
        "description": "Say a word aloud.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}


async def check(options: Mapping[str, Any], gateway: GatewayClient | None = None) -> list[Finding]:
    """Ask ``options["model"]`` (and ``api_base``, ``env_file``, ``price``) one thing. Findings in order; never raises
    for what is wrong with the model. ``gateway``: one that is there already, and stays."""
    base = str(options.get("api_base") or "")
    model = full_name(str(options.get("model") or ""), base)
    try:
        ready(options)
    except AgentFailed as failed:
        return [("key", False, str(failed))]
    price = [float(p) for p in options["price"]] if options.get("price") else None
    asked = [{"role": "user", "content": f"Call the tool say with the word {_WORD}. Do nothing else."}]
    request = Request(model, asked, [_TOOL], base, {}, price, first=120.0, idle=60.0, wall=180.0)
    client = gateway or GatewayClient(str(options.get("env_file") or ""))
    began, first, pieces = time.monotonic(), 0.0, 0
    reply: Reply | None = None
    try:
        await client.ready()
        began = time.monotonic()
        async with aclosing(client.call(request)) as stream:
            async for item in stream:
                if isinstance(item, Delta):
                    first = first or time.monotonic() - began
                    pieces += 1
                else:
                    reply = item
    except ModelFault as fault:
        return [("answer", False, sentence(fault, model, base, 1))]
    finally:
        if gateway is None:
            await client.close()
    assert reply is not None
    return _findings(reply, first, time.monotonic() - began)


def _findings(reply: Reply, first: float, seconds: float) -> list[Finding]:
    streamed = f"the first piece after {first:.1f} s" if first else "nothing came before the end"
    estimated = ", counted here: the server tells none" if reply.estimated else ""
    tokens = f"{reply.input + reply.cached + reply.written} in, {reply.output} out{estimated}"
    unknown = "not known: tokens are shown without money, and --max-cost cannot be kept; --option price=IN,OUT sets one"
    cost = unknown if reply.cost is None else f"${reply.cost:.6f} for this call"
    return [
        ("answer", True, f"{reply.model} answered within {seconds:.1f} s"),
        ("streaming", bool(first), streamed),
        _tools(reply),
        ("usage", None if reply.estimated else True, tokens),
        ("price", None if reply.cost is None else True, cost),
    ]


def _tools(reply: Reply) -> Finding:
    for call in reply.calls:
        if call.name == "say":
            try:
                right = str(call.arguments().get("word", "")).lower() == _WORD
            except ValueError as wrong:
                return ("tools", False, f"it calls tools, with arguments that cannot be read: {wrong}")
            return ("tools", True, "it calls tools" if right else "it calls tools, not quite as it was told")
    if calls_in_text(reply.text, {"say"})[0]:
        return ("tools", None, "it writes calls in its text; they are understood, but a server with tools is better")
    said = " ".join(reply.text.split())[:120]
    return ("tools", False, f"it called no tool; it said {said!r}" if said else "it called no tool and said nothing")
