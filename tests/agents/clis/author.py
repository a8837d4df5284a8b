"""A scripted model that evolves CartPole's policy, whatever tools the coding agent that asks it offers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.servers.script import Call, Request, Turn

FIRST = '''\
"""Push towards the side that the pole leans to."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return int(obs[2] > 0)
'''
OLD, NEW = "int(obs[2] > 0)", "int(obs[2] + 0.5 * obs[3] + 0.02 * obs[0] + 0.05 * obs[1] > 0)"
SECOND = FIRST.replace(OLD, NEW)

LOOK, WRITE, RUN, SUMMARY, EDIT = "look", "write", "run", "summary", "edit"
Step = tuple[str, ...]
PLAN: tuple[Step, ...] = (
    ("Let me read the rules.", LOOK, "AGENTS.md"),
    ("And what is there.", LOOK, "system/policy.py"),
    ("A first policy.", WRITE, "system/policy.py", FIRST),
    ("Try it.", RUN, "evotui submit 0-3"),
    ("What came of it?", RUN, "cat feedback/submit_000/summary.json"),
    ("The pole's speed matters too.", EDIT, "system/policy.py", OLD, NEW),
    ("Again, with all that is left.", RUN, "evotui submit 4-11"),
    ("The budget is spent; the second policy is better.",),
)


class Author:
    """Gives the steps of a plan as turns, in the tools that are offered. Use as ``Script(Author())``."""

    def __init__(self, plan: Sequence[Step] = PLAN, thinking: str = "What do I know? Little yet.") -> None:
        self.plan = list(plan)
        self.at = 0
        self._thinking = thinking
        self.seen: list[Request] = []

    def __call__(self, request: Request) -> Turn | str:
        self.seen.append(request)
        if not request.tools:
            return "CartPole"
        step = self.plan[min(self.at, len(self.plan) - 1)]
        self.at += 1
        calls = (call_of(request, *step[1:]),) if len(step) > 1 else ()
        return Turn(step[0], self._thinking, calls)


def workspace_of(request: Request) -> str:
    """The folder that the agent says it works in."""
    found = re.findall(r'(/[^"\\\s`<>]*?/workspace)(?=[/"\\\s`<>.,])', request.text)
    return next((str(path) for path in found if "/." not in path), ".")


def call_of(request: Request, action: str, *words: str) -> Call:
    """One action as a call of a tool that the request offers."""
    tools = request.tools
    path = f"{workspace_of(request)}/{words[0]}"

    def offered(*names: str) -> str | None:
        return next((name for name in names if name in tools), None)

    if action == LOOK:
        name = offered("Read", "read_file", "read")
        if name is None:
            return call_of(request, RUN, f"cat {words[0]}")
        key = {"read": "filePath", "Read": "file_path", "read_file": "file_path"}[name]
        return Call(name, _key(request, name, {key: path}))
    if action == WRITE:
        name = offered("Write", "write_file", "write")
        if name is None:
            return call_of(request, RUN, f"cat > {words[0]} <<'EOF'\n{words[1]}EOF")
        key = {"write": "filePath", "Write": "file_path", "write_file": "file_path"}[name]
        return Call(name, _key(request, name, {key: path, "content": words[1]}))
    if action == EDIT:
        name = offered("Edit", "edit", "replace")
        if name is None:
            patch = f"*** Begin Patch\n*** Update File: {words[0]}\n@@\n-        return {words[1]}\n"
            patch += f"+        return {words[2]}\n*** End Patch\n"
            return _patched(request, patch)
        given = {"file_path": path, "old_string": words[1], "new_string": words[2]}
        if "filePath" in _properties(request, name):
            given = {"filePath": path, "oldString": words[1], "newString": words[2]}
        if "instruction" in _properties(request, name):
            given["instruction"] = "take the speed into account"
        return Call(name, _key(request, name, given))
    name = offered("Bash", "bash", "run_shell_command", "shell_command", "exec_command", "shell") or "Bash"
    given: dict[str, Any] = {"command": words[0]}
    if name == "exec_command":
        given = {"cmd": words[0], "yield_time_ms": 30_000}
    if name == "shell":
        given = {"command": ["bash", "-lc", words[0]]}
    wanted = _properties(request, name)
    if "description" in wanted:
        given["description"] = words[0][:60]
    if "is_background" in wanted:
        given["is_background"] = False
    return Call(name, given)


def _patched(request: Request, patch: str) -> Call:
    """Codex's own edit: a free-form tool where it is offered, else a command that it takes for itself."""
    if "apply_patch" in request.tools:
        return Call("apply_patch", {"input": patch}, input=patch)
    return call_of(request, RUN, f"apply_patch <<'EOF'\n{patch}EOF")


def _properties(request: Request, name: str) -> dict[str, Any]:
    for tool in request.body.get("tools") or ():
        inner = tool.get("function", tool)
        if inner.get("name") == name:
            schema = inner.get("input_schema") or inner.get("parameters") or {}
            return dict(schema.get("properties") or {})
    return {}


def _key(request: Request, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The path under the name that the tool has for it."""
    wanted = _properties(request, name)
    for key in ("file_path", "filePath", "path", "absolute_path"):
        if key in wanted:
            return {key if k in ("file_path", "filePath") else k: value for k, value in given.items()}
    return given
