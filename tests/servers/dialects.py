"""How a model's answer is written on the wire: Anthropic Messages, OpenAI Responses, OpenAI Chat."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.servers.script import Call, Request, Turn

_ids = itertools.count(1)


def pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def spoken(turn: Turn, offered: list[str]) -> str:
    """The text of a turn, with the calls in it where the model writes them so."""
    text = turn.text
    if turn.fail == "inline_thinking":
        text = f"<think>{turn.thinking}</think>{text}"
    if turn.fail == "text_call":
        for call in turn.calls:
            written = json.dumps({"name": call.called(offered), "arguments": call.arguments})
            styles = {
                "fenced": f"\n```json\n{written}\n```", "xml": f"\n<tool_call>\n{written}\n</tool_call>",
                "bare": written, "hermes": f"<tool_call>{written}",
            }  # fmt: skip
            text += styles[turn.style]
    return text


def thought(turn: Turn) -> str:
    return "" if turn.fail in ("inline_thinking", "empty") else turn.thinking


def calls_of(turn: Turn) -> tuple[Call, ...]:
    return () if turn.fail in ("text_call", "empty") else turn.calls


def argument_text(turn: Turn, call: Call) -> str:
    if turn.fail == "malformed":
        return call.text[:-1] + ", oops"
    return call.text[: max(1, len(call.text) // 2)] if turn.fail == "truncated" else call.text


def _sse(data: dict[str, Any], event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


class Anthropic:
    """POST /v1/messages."""

    name = "anthropic"

    def read(self, request: Request) -> None:
        request.tools = [t["name"] for t in request.body.get("tools") or () if "name" in t]
        for message in request.body.get("messages") or ():
            if isinstance(message.get("content"), list):
                for block in message["content"]:
                    if block.get("type") == "tool_result":
                        request.results.append(_plain(block.get("content")))

    def refusal(self, status: int, kind: str, message: str) -> dict[str, Any]:
        types = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
        if kind.startswith("context"):
            message = "prompt is too long: 210000 tokens > 200000 maximum"
        wrong = types.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": wrong, "message": message}}

    def _blocks(self, request: Request, turn: Turn) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if thought(turn):
            blocks.append({"type": "thinking", "thinking": thought(turn), "signature": "c2lnbmF0dXJl"})
        if spoken(turn, request.tools) and turn.fail != "empty":
            blocks.append({"type": "text", "text": spoken(turn, request.tools)})
        for call in calls_of(turn):
            name = "" if turn.fail == "no_ids" else f"toolu_{next(_ids):04d}"
            blocks.append({"type": "tool_use", "id": name, "name": call.called(request.tools), "input": call})
        return blocks

    def _head(self, request: Request) -> dict[str, Any]:
        return {
            "id": f"msg_{next(_ids):04d}", "type": "message", "role": "assistant", "model": request.model,
            "stop_reason": None, "stop_sequence": None,
        }  # fmt: skip

    def _usage(self, turn: Turn) -> dict[str, int]:
        u = turn.usage
        return {
            "input_tokens": u.input, "cache_read_input_tokens": u.cached, "cache_creation_input_tokens": u.written,
        }  # fmt: skip

    def _stop(self, turn: Turn) -> str:
        return "max_tokens" if turn.fail == "truncated" else "tool_use" if calls_of(turn) else "end_turn"

    def whole(self, request: Request, turn: Turn) -> dict[str, Any]:
        content = [b | ({"input": b["input"].arguments} if "input" in b else {}) for b in self._blocks(request, turn)]
        usage = {} if turn.fail == "no_usage" else {"usage": self._usage(turn) | {"output_tokens": turn.usage.output}}
        return self._head(request) | {"content": content, "stop_reason": self._stop(turn), **usage}

    def events(self, request: Request, turn: Turn) -> Iterator[bytes]:
        def event(name: str, **data: Any) -> bytes:
            return _sse({"type": name, **data}, name)

        told = turn.fail != "no_usage"
        usage = self._usage(turn) | {"output_tokens": 1} if told else {"input_tokens": 0, "output_tokens": 0}
        yield event("message_start", message=self._head(request) | {"content": [], "usage": usage})
        yield event("ping")
        for number, block in enumerate(self._blocks(request, turn)):
            index = 0 if turn.fail == "same_index" else number
            kind = block["type"]
            if kind == "tool_use":
                call = block["input"]
                given = call.arguments if turn.fail == "object_arguments" else {}
                yield event("content_block_start", index=index, content_block=block | {"input": given})
                if turn.fail != "object_arguments":
                    for piece in pieces(argument_text(turn, call), turn.piece):
                        yield event(
                            "content_block_delta",
                            index=index,
                            delta={"type": "input_json_delta", "partial_json": piece},
                        )
            else:
                empty = {kind: ""} | ({"signature": ""} if kind == "thinking" else {})
                yield event("content_block_start", index=index, content_block=block | empty)
                for piece in pieces(block[kind], turn.piece):
                    yield event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
                if kind == "thinking":
                    signed = {"type": "signature_delta", "signature": block["signature"]}
                    yield event("content_block_delta", index=index, delta=signed)
            yield event("content_block_stop", index=index)
        ended = {"usage": {"output_tokens": turn.usage.output if told else 0}}
        yield event("message_delta", delta={"stop_reason": self._stop(turn), "stop_sequence": None}, **ended)
        yield event("message_stop")

    def broken(self) -> bytes:
        return _sse(self.refusal(529, "", "Overloaded"), "error")


class Responses:
    """POST /v1/responses."""

    name = "responses"
    _results = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")

    def read(self, request: Request) -> None:
        request.tools = [str(t.get("name") or t.get("type")) for t in request.body.get("tools") or ()]
        said = request.body.get("input")
        for item in said if isinstance(said, list) else ():
            if item.get("type") in self._results:
                request.results.append(_plain(item.get("output")))

    def refusal(self, status: int, kind: str, message: str) -> dict[str, Any]:
        return _openai_refusal(status, kind, message)

    def _items(self, request: Request, turn: Turn) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if thought(turn):
            summary = [{"type": "summary_text", "text": thought(turn)}]
            items.append({"type": "reasoning", "id": f"rs_{next(_ids)}", "summary": summary, "encrypted_content": None})
        if spoken(turn, request.tools) and turn.fail != "empty":
            content = [{"type": "output_text", "text": spoken(turn, request.tools), "annotations": []}]
            message = {"type": "message", "id": f"msg_{next(_ids)}", "role": "assistant", "content": content}
            items.append(message | {"status": "completed"})
        for call in calls_of(turn):
            name = call.called(request.tools)
            number = next(_ids)
            item: dict[str, Any] = {"call_id": f"call_{number}", "name": name, "status": "completed"}
            if call.input is not None:
                item |= {"type": "custom_tool_call", "id": f"ctc_{number}", "input": call.input}
            else:
                given: Any = call.arguments if turn.fail == "object_arguments" else argument_text(turn, call)
                item |= {"type": "function_call", "id": f"fc_{number}", "arguments": given}
            if turn.fail == "no_ids":
                item |= {"id": "", "call_id": ""}
            items.append(item)
        return items

    def _response(self, turn: Turn, items: list[dict[str, Any]], name: str, model: str) -> dict[str, Any]:
        u = turn.usage
        usage = {
            "input_tokens": u.input + u.cached, "input_tokens_details": {"cached_tokens": u.cached},
            "output_tokens": u.output, "output_tokens_details": {"reasoning_tokens": u.reasoning},
            "total_tokens": u.input + u.cached + u.output,
        }  # fmt: skip
        short = turn.fail == "truncated"
        return {
            "id": name, "object": "response", "created_at": 1, "model": model, "output": items, "error": None,
            "status": "incomplete" if short else "completed", "parallel_tool_calls": True, "tool_choice": "auto",
            "incomplete_details": {"reason": "max_output_tokens"} if short else None, "tools": [],
            "usage": None if turn.fail == "no_usage" else usage,
        }  # fmt: skip

    def whole(self, request: Request, turn: Turn) -> dict[str, Any]:
        return self._response(turn, self._items(request, turn), f"resp_{next(_ids):04d}", request.model)

    def events(self, request: Request, turn: Turn) -> Iterator[bytes]:
        sequence = itertools.count()
        name, items = f"resp_{next(_ids):04d}", self._items(request, turn)
        done = self._response(turn, items, name, request.model)

        def event(kind: str, **data: Any) -> bytes:
            return _sse({"type": kind, "sequence_number": next(sequence), **data}, kind)

        begun = done | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        yield event("response.created", response=begun)
        for number, item in enumerate(items):
            index, key = (0 if turn.fail == "same_index" else number), item["id"]
            where: dict[str, Any] = {"item_id": key, "output_index": index}
            kind = item["type"]
            if kind == "reasoning":
                yield event("response.output_item.added", output_index=index, item=item | {"summary": []})
                for piece in pieces(item["summary"][0]["text"], turn.piece):
                    yield event("response.reasoning_summary_text.delta", **where, summary_index=0, delta=piece)
            elif kind == "message":
                text = item["content"][0]["text"]
                begun = item | {"content": [], "status": "in_progress"}
                yield event("response.output_item.added", output_index=index, item=begun)
                part = {"type": "output_text", "text": "", "annotations": []}
                yield event("response.content_part.added", **where, content_index=0, part=part)
                for piece in pieces(text, turn.piece):
                    yield event("response.output_text.delta", **where, content_index=0, delta=piece)
                yield event("response.output_text.done", **where, content_index=0, text=text)
                yield event("response.content_part.done", **where, content_index=0, part=part | {"text": text})
            else:
                field = "arguments" if kind == "function_call" else "input"
                yield event(
                    "response.output_item.added", output_index=index, item=item | {field: "", "status": "in_progress"}
                )  # fmt: skip
                stem = "response.function_call_arguments" if field == "arguments" else "response.custom_tool_call_input"
                if isinstance(item[field], str):
                    for piece in pieces(item[field], turn.piece):
                        yield event(f"{stem}.delta", **where, delta=piece)
                    yield event(f"{stem}.done", **where, **{field: item[field]})
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.incomplete" if turn.fail == "truncated" else "response.completed", response=done)

    def broken(self) -> bytes:
        failed: dict[str, Any] = {"id": "resp_0", "object": "response", "status": "failed", "output": []}
        failed |= {"error": {"code": "server_error", "message": "The server had an error"}}
        return _sse({"type": "response.failed", "sequence_number": 999, "response": failed}, "response.failed")


class Chat:
    """POST /v1/chat/completions."""

    name = "chat"

    def read(self, request: Request) -> None:
        request.tools = [t["function"]["name"] for t in request.body.get("tools") or () if "function" in t]
        for message in request.body.get("messages") or ():
            if message.get("role") == "tool":
                request.results.append(_plain(message.get("content")))

    def refusal(self, status: int, kind: str, message: str) -> dict[str, Any]:
        return _openai_refusal(status, kind, message)

    def _calls(self, request: Request, turn: Turn) -> list[dict[str, Any]]:
        calls = []
        for number, call in enumerate(calls_of(turn)):
            given: Any = call.arguments if turn.fail == "object_arguments" else argument_text(turn, call)
            entry: dict[str, Any] = {"function": {"name": call.called(request.tools), "arguments": given}}
            entry["type"] = "function"
            if turn.fail != "no_ids":
                entry |= {"id": f"call_{next(_ids)}", "index": 0 if turn.fail == "same_index" else number}
            calls.append(entry)
        return calls

    def _usage(self, turn: Turn) -> dict[str, Any]:
        u = turn.usage
        return {
            "prompt_tokens": u.input + u.cached, "completion_tokens": u.output,
            "total_tokens": u.input + u.cached + u.output, "prompt_tokens_details": {"cached_tokens": u.cached},
            "completion_tokens_details": {"reasoning_tokens": u.reasoning},
        }  # fmt: skip

    def _finish(self, turn: Turn) -> str:
        return "length" if turn.fail == "truncated" else "tool_calls" if calls_of(turn) else "stop"

    def whole(self, request: Request, turn: Turn) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": spoken(turn, request.tools) or None}
        if thought(turn):
            message["reasoning_content"] = thought(turn)
        if calls_of(turn):
            message["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in self._calls(request, turn)]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(turn)}
        answer = {"id": f"chatcmpl-{next(_ids)}", "object": "chat.completion", "created": 1, "model": request.model}
        usage = {} if turn.fail == "no_usage" else {"usage": self._usage(turn)}
        return answer | {"choices": [choice], **usage}

    def events(self, request: Request, turn: Turn) -> Iterator[bytes]:
        head = {"id": f"chatcmpl-{next(_ids)}", "object": "chat.completion.chunk", "created": 1, "model": request.model}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return _sse(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(thought(turn), turn.piece):
            yield chunk({"reasoning_content": piece})
        if turn.fail != "empty":
            for piece in pieces(spoken(turn, request.tools), turn.piece):
                yield chunk({"content": piece})
        for call in self._calls(request, turn):
            text = call["function"]["arguments"]
            if isinstance(text, str) and turn.fail not in ("no_ids", "same_index"):
                yield chunk({"tool_calls": [call | {"function": call["function"] | {"arguments": ""}}]})
                for piece in pieces(text, turn.piece):
                    yield chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]})
            else:
                yield chunk({"tool_calls": [call]})
        yield chunk({}, self._finish(turn))
        if turn.fail != "no_usage" and (request.body.get("stream_options") or {}).get("include_usage"):
            yield _sse(head | {"choices": [], "usage": self._usage(turn)})
        yield b"data: [DONE]\n\n"

    def broken(self) -> bytes:
        return _sse({"error": {"message": "upstream overloaded", "type": "server_error", "code": 500}})


def _openai_refusal(status: int, kind: str, message: str) -> dict[str, Any]:
    if kind == "context":
        message = (
            "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens. "
            "Please reduce the length of the messages."
        )
        return {"error": {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    if kind == "context_llamacpp":
        message = "the request exceeds the available context size, try increasing it"
        return {"error": {"code": 400, "message": message, "type": "exceed_context_size_error", "n_ctx": 4096}}
    if kind == "quota":
        message = "You exceeded your current quota, please check your plan and billing details."
        return {"error": {"message": message, "type": "insufficient_quota", "code": "insufficient_quota"}}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    wrong = "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    return {"error": {"message": message, "type": wrong, "code": codes.get(status)}}


def _plain(content: Any) -> str:
    """A tool result's text, whatever it is wrapped in."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("content") or content.get("output") or json.dumps(content))
    return "" if content is None else str(content)
