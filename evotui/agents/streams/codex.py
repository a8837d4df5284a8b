"""``codex exec --json``: thread, turn and item events. Items have no deltas; usage is the thread's total so far."""

from __future__ import annotations

import re
import shlex
from typing import Any

from evotui.agents.streams.base import Stream, content_text, count, items, record, status_of, word
from evotui.agents.streams.edits import relative
from evotui.record.events import AgentRetried, Event

_RECONNECTING = re.compile(r"^Reconnecting\.*\s*(\d+)\s*/\s*\d+\s*(?:\((.*)\))?", re.DOTALL)
_TOKENS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
_BAD = ("failed", "declined", "error", "cancelled")


def retried(message: str) -> AgentRetried | None:
    """Codex's notice that it tries a request again, if ``message`` is one. It does not say when."""
    found = _RECONNECTING.match(message)
    if found is None:
        return None
    return AgentRetried(found.group(2) or "the model's server failed", 0.0, min(int(found.group(1)[:6]), 10**6))


class CodexExecStream(Stream):
    """Reads ``codex exec --json``. One instance a thread: what an earlier process of the thread used is not told twice
    if its lines were fed (or :meth:`seen` was) before."""

    dialect = "codex"

    def __init__(self, root: str = "") -> None:
        super().__init__(root)
        self._before = [0, 0, 0, 0]
        self._warned: set[str] = set()

    def seen(self, usage: dict[str, Any]) -> None:
        """Usage of the thread up to now, from the last ``turn.completed`` of an earlier process."""
        self._before = [count(usage.get(key)) for key in _TOKENS]

    def _take(self, value: dict[str, Any]) -> list[Event]:
        kind = word(value.get("type"), 60)
        if kind == "thread.started":
            return self.started(value.get("thread_id"), version=value.get("version"))
        if kind == "turn.started":
            return []
        if kind in ("item.started", "item.updated", "item.completed"):
            return self._item(record(value, "item"), kind == "item.completed")
        if kind == "turn.completed":
            self.finished = True
            return self.flush() + self._usage(record(value, "usage"))
        if kind == "turn.failed":
            self.finished = self.is_error = True
            self.reason = word(record(value, "error").get("message"), 2_000) or "the turn failed"
            self.status = status_of(self.reason)
            return self.flush()
        if kind == "error":
            message = word(value.get("message"), 2_000)
            again = retried(message)
            if again is not None:
                self.status = status_of(message) or self.status
                return [again]
            self.reason = message
            return [self.raw("error", message)]
        return [self.raw(kind or "no type", value)]

    def _usage(self, usage: dict[str, Any]) -> list[Event]:
        now = [count(usage.get(key)) for key in _TOKENS]
        spent = [max(0, n - b) for n, b in zip(now, self._before, strict=True)]
        self._before = [max(n, b) for n, b in zip(now, self._before, strict=True)]
        if not any(spent):
            return []
        total, cached, written, output = spent
        return self.used(max(0, total - cached), cached, written, output)

    def _item(self, item: dict[str, Any], done: bool) -> list[Event]:
        kind = word(item.get("type"), 60)
        call = item.get("id")
        if kind == "agent_message":
            return self.whole("text", item.get("text")) if done else []
        if kind == "reasoning":
            return self.whole("thought", item.get("text")) if done else []
        if kind == "error":
            text = word(item.get("message"), 2_000)
            known = text in self._warned  # some come with every turn
            self._warned.add(text)
            return [] if known else [self.raw("warning", text)]
        tool = self._call(kind, item)
        if tool is None:
            return [self.raw(kind or "an item without type", item)] if done else []
        name, arguments, result = tool
        facts = self.called(call, name, arguments)
        status = word(item.get("status"), 40)
        if done:
            code = item.get("exit_code")
            ok = status not in _BAD and (code is None or code == 0)
            facts += self.returned(call, ok, result, denied=status == "declined")
        return facts

    def _call(self, kind: str, item: dict[str, Any]) -> tuple[str, Any, str] | None:
        """A tool item's name, arguments and result."""
        if kind == "command_execution":
            code = item.get("exit_code")
            text = word(item.get("aggregated_output"), 10**6)
            return (
                "shell",
                {"command": bare_command(item.get("command"))},
                text + (f"\n[exit code {code}]" if code else ""),
            )
        if kind == "file_change":
            return "edit", file_changes(item.get("changes"), self.root), ""
        if kind == "mcp_tool_call":
            name = f"{word(item.get('server'), 60)}.{word(item.get('tool'), 60)}"
            answer = record(item, "error").get("message") or content_text(record(item, "result").get("content"))
            return name, item.get("arguments"), word(answer, 10**6)
        if kind == "web_search":
            return "web_search", {"query": item.get("query")}, ""
        if kind == "todo_list":
            done = [f"[{'x' if record(i).get('completed') else ' '}] {word(record(i).get('text'))}" for i in
                    items(item.get("items"))]  # fmt: skip
            return "plan", {"items": "\n".join(done)}, ""
        return None


def bare_command(command: Any) -> Any:
    """A shell command without the ``/bin/bash -lc`` that Codex puts before it."""
    text = content_text(command) if isinstance(command, list) else command
    if not isinstance(text, str) or not re.search(r"sh -l?c ", text[:40]):
        return text
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else text


def file_changes(changes: Any, root: str) -> dict[str, Any]:
    """Codex's list of changed files as arguments to show: one file's path and diff, or one entry a file."""
    shown = []
    for change in items(changes):
        change = record(change)
        kind = change.get("kind")
        entry: dict[str, Any] = {"path": relative(word(change.get("path"), 2_000), root)}
        what = kind if isinstance(kind, str) else record(kind).get("type")
        if what != "update":
            entry["kind"] = what
        if isinstance(change.get("diff"), str):
            entry["diff"] = change["diff"]
        shown.append(entry)
    return shown[0] if len(shown) == 1 else {"files": shown}
