"""The captured streams below tests/data, and which parser reads each."""

from __future__ import annotations

from pathlib import Path

from evotui.agents.streams import (
    AcpStream,
    ClaudeStream,
    CodexExecStream,
    CodexServerStream,
    GeminiStream,
    KimiStream,
    OpencodeStream,
    QwenStream,
    Stream,
)
from evotui.record import events as e

FOLDER = Path(__file__).parents[2] / "data" / "agent_streams"
_BY_NAME: list[tuple[str, type[Stream]]] = [
    ("acp_", AcpStream),
    ("claude_code_", ClaudeStream),
    ("codex_app_server", CodexServerStream),
    ("codex_", CodexExecStream),
    ("gemini_", GeminiStream),
    ("kimi_", KimiStream),
    ("opencode_", OpencodeStream),
    ("qwen_", QwenStream),
]
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def lines_of(name: str) -> list[str]:
    return (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()


def stream_of(name: str) -> Stream:
    cls = next(cls for start, cls in _BY_NAME if name.startswith(start))
    folder = name.split("_")[1] if name.startswith("acp_") else name.split("_")[0]
    return cls(f"/srv/run/workspace/{folder}")


def read(name: str) -> tuple[Stream, list[e.Event]]:
    """The stream after its whole capture, and all its facts."""
    stream = stream_of(name)
    stream.begin()
    facts = [fact for line in lines_of(name) for fact in stream.feed(line)]
    return stream, facts + stream.end()
