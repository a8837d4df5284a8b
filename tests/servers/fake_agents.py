"""Small programs that speak like coding agents, for tests that need no npm: ``claude`` (stream-json) and an ACP agent.

``python fake_agents.py claude|acp|once [arguments of the real one]``. What they do is a list of steps in the file that
``FAKE_AGENT_PLAN`` names, one list a turn; the last turn's is done again. Steps::

    ["say", TEXT] · ["think", TEXT] · ["write", PATH, TEXT] · ["run", COMMAND] · ["ask", PATH | COMMAND]
    ["raw", LINE] · ["line", BYTES] (a line as long as that) · ["die", CODE] · ["hang"] · ["deny", TOOL]
    ["error", STATUS, TEXT] · ["wait", FILE] (until it is there)

Whatever is said to them is appended to the file that ``FAKE_AGENT_HEARD`` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

CANCELLED = threading.Event()


def heard(what: Any) -> None:
    with open(os.environ["FAKE_AGENT_HEARD"], "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def say(value: Any) -> None:
    line = value if isinstance(value, str) else json.dumps(value)
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def plan() -> list[list[list[Any]]]:
    return list(json.loads(Path(os.environ["FAKE_AGENT_PLAN"]).read_text("utf-8")))


def shell(command: str) -> tuple[bool, str]:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def common(step: list[Any]) -> bool:
    """Steps that are the same in every dialect; whether it was one."""
    if step[0] == "raw":
        say(step[1])
    elif step[0] == "line":
        say(json.dumps({"type": "big", "method": "big", "text": "x" * int(step[1])}))
    elif step[0] == "die":
        sys.stderr.write("something went very wrong\n")
        sys.stderr.flush()
        os._exit(int(step[1]))
    elif step[0] == "hang":
        while not CANCELLED.wait(0.05):
            pass
    elif step[0] == "wait":
        while not Path(step[1]).exists() and not CANCELLED.is_set():
            time.sleep(0.01)
    else:
        return False
    return True


class Claude:
    """``claude -p --input-format stream-json``; with ``once``: one prompt as an argument, and an end."""

    def __init__(self, arguments: list[str]) -> None:
        self.resumed = arguments[arguments.index("--resume") + 1] if "--resume" in arguments else ""
        self.session = self.resumed or f"session-{os.getpid()}"
        self.number = 0
        self.cost = 0.0
        self.queue: list[str] = []
        self.over = False

    def event(self, kind: str, **more: Any) -> None:
        say({"type": kind, "session_id": self.session, **more})

    def read(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            heard(message)
            if message["type"] == "control_request":
                CANCELLED.set()
                say({"type": "control_response", "response": {"subtype": "success"}})
            else:
                self.queue.append(message["message"]["content"][0]["text"])
        self.over = True

    def serve(self) -> None:
        if self.resumed.startswith("gone"):
            sys.stderr.write(f"No conversation found with session ID: {self.resumed}\n")
            sys.exit(1)
        threading.Thread(target=self.read, daemon=True).start()
        turn = 0
        while True:
            while not self.queue:
                if self.over:
                    return
                time.sleep(0.005)
            self.queue.pop(0)
            CANCELLED.clear()
            self.turn(plan()[min(turn, len(plan()) - 1)])
            turn += 1

    def turn(self, steps: list[list[Any]]) -> None:
        self.event("system", subtype="init", model="fake-1", claude_code_version="9.9.9")
        error = None
        for step in steps:
            if CANCELLED.is_set():
                break
            error = self.step(step) or error
        self.cost += 0.01
        aborted = CANCELLED.is_set()
        self.event(
            "result", subtype="success" if not aborted and error is None else "error_during_execution",
            is_error=aborted or error is not None, terminal_reason="aborted_tools" if aborted else "completed",
            errors=[error[1]] if error else [], api_error_status=error[0] if error else None,
            total_cost_usd=self.cost, modelUsage={"fake-1": {"costBasis": "list"}}, queued_turn_count=len(self.queue),
        )  # fmt: skip

    def step(self, step: list[Any]) -> Any:
        if common(step):
            return None
        if step[0] == "error":
            return step[1], step[2]
        self.number += 1
        ident = f"msg_{self.number}"
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
        if step[0] in ("say", "think"):
            kind, key = ("text", "text") if step[0] == "say" else ("thinking", "thinking")
            for piece in (step[1][:3], step[1][3:]):
                delta = {"type": f"{kind}_delta", key: piece}
                self.event("stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta})
            block = {"type": kind, key: step[1]}
            self.event("assistant", message={"id": ident, "model": "fake-1", "content": [block], "usage": usage})
            return None
        name = {"write": "Write", "run": "Bash", "deny": step[1]}[step[0]]
        given = {"file_path": f"{os.getcwd()}/{step[1]}", "content": step[2]} if step[0] == "write" else {}
        given = {"command": step[1]} if step[0] == "run" else given
        block = {"type": "tool_use", "id": f"tool_{self.number}", "name": name, "input": given}
        self.event("assistant", message={"id": ident, "model": "fake-1", "content": [block], "usage": usage})
        if step[0] == "deny":
            self.event("system", subtype="permission_denied", tool_use_id=f"tool_{self.number}")
            ok, text = False, "permission denied"
        elif step[0] == "write":
            try:
                Path(step[1]).write_text(step[2], "utf-8")
                ok, text = True, "written"
            except OSError as wrong:
                ok, text = False, str(wrong)
        else:
            ok, text = shell(step[1])
        result = {"type": "tool_result", "tool_use_id": f"tool_{self.number}", "content": text, "is_error": not ok}
        self.event("user", message={"role": "user", "content": [result]})
        return None


class Acp:
    """An agent of the Agent Client Protocol that asks before it writes and runs."""

    def __init__(self) -> None:
        self.number = 0
        self.session = ""
        self.answers: dict[int, Any] = {}
        self.known = Path(os.environ["FAKE_AGENT_HEARD"]).with_suffix(".sessions")

    def update(self, what: str, **more: Any) -> None:
        update = {"sessionUpdate": what, **more}
        params = {"sessionId": self.session, "update": update}
        say({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        mine = self.number
        say({"jsonrpc": "2.0", "id": mine, "method": method, "params": {"sessionId": self.session, **params}})
        while mine not in self.answers:
            time.sleep(0.005)
        return self.answers.pop(mine)

    def serve(self) -> None:
        turn = 0
        for line in sys.stdin:
            message = json.loads(line)
            heard(message)
            method = message.get("method")
            if method is None:
                self.answers[message["id"]] = message.get("result") or message.get("error")
            elif method == "initialize":
                info = {"agentInfo": {"name": "fake", "version": "1.2.3"}}
                self.answer(message, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, **info})
            elif method == "session/new":
                self.session = f"fake-{os.getpid()}"
                with self.known.open("a", encoding="utf-8") as file:
                    file.write(self.session + "\n")
                self.answer(message, {"sessionId": self.session, "models": {"currentModelId": "fake-2"}})
            elif method == "session/load":
                self.session = message["params"]["sessionId"]
                if not self.known.exists() or self.session not in self.known.read_text("utf-8").split():
                    say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no session"}})
                    continue
                self.update("agent_message_chunk", content={"type": "text", "text": "said long ago"})
                self.answer(message, {})
            elif method == "session/cancel":
                CANCELLED.set()
            elif method == "session/prompt":
                steps = plan()[min(turn, len(plan()) - 1)]
                turn += 1
                threading.Thread(target=self.turn, args=(message, steps), daemon=True).start()

    def answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def turn(self, message: dict[str, Any], steps: list[list[Any]]) -> None:
        CANCELLED.clear()
        for step in steps:
            if CANCELLED.is_set():
                break
            if step[0] == "error":
                error = {"code": -32603, "message": f"{step[1]} {step[2]}"}
                say({"jsonrpc": "2.0", "id": message["id"], "error": error})
                return
            if not common(step):
                self.step(step)
        stop = "cancelled" if CANCELLED.is_set() else "end_turn"
        usage = {"inputTokens": 30, "outputTokens": 4, "cachedReadTokens": 10, "totalTokens": 34}
        self.answer(message, {"stopReason": stop, "usage": usage})

    def step(self, step: list[Any]) -> None:
        if step[0] in ("say", "think"):
            kind = "agent_message_chunk" if step[0] == "say" else "agent_thought_chunk"
            for piece in (step[1][:3], step[1][3:]):
                self.update(kind, content={"type": "text", "text": piece})
            return
        self.number += 1
        call = f"call_{self.number}"
        path = f"{os.getcwd()}/{step[1]}"
        if step[0] == "write":
            content = [{"type": "diff", "path": path, "oldText": "", "newText": step[2]}]
            self.update("tool_call", toolCallId=call, title="Write", kind="edit", status="pending", content=content)
            described = {"toolCallId": call, "kind": "edit", "content": content, "locations": [{"path": path}]}
        else:
            given = {"command": step[1]}
            self.update("tool_call", toolCallId=call, title=step[1], kind="execute", status="pending", rawInput=given)
            described = {"toolCallId": call, "kind": "execute", "title": step[1], "rawInput": given}
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        outcome = self.ask("session/request_permission", {"toolCall": described, "options": options})["outcome"]
        heard({"outcome": outcome})
        if outcome.get("optionId") != "allow_once":
            ok, text = False, "refused"
        elif step[0] == "write":
            answer = self.ask("fs/write_text_file", {"path": path, "content": step[2]})
            ok, text = answer is None or "code" not in answer, "written"
        else:
            ok, text = shell(step[1])
        self.update(
            "tool_call_update", toolCallId=call, status="completed" if ok else "failed",
            content=[{"type": "content", "content": {"type": "text", "text": text}}],
        )  # fmt: skip


def main(arguments: list[str]) -> None:
    if "--version" in arguments:
        print(os.environ.get("FAKE_AGENT_VERSION", "fake 9.9.9"))
        return
    heard({"arguments": arguments})
    if arguments[0] == "acp":
        if os.environ.get("FAKE_AGENT_NO_ACP"):
            sys.stderr.write("unknown option --acp\n")
            sys.exit(2)
        Acp().serve()
    elif arguments[0] == "claude":
        Claude(arguments).serve()
    else:
        count = Path(os.environ["FAKE_AGENT_HEARD"]).read_text("utf-8").count('"arguments": ["once"')
        Claude(arguments).turn(plan()[min(count - 1, len(plan()) - 1)])


if __name__ == "__main__":
    main(sys.argv[1:])
