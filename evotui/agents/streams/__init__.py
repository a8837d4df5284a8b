"""What coding agents write on their streams, as facts: one parser a dialect, no process and no clock in here."""

from __future__ import annotations

from evotui.agents.streams.acp import AcpStream
from evotui.agents.streams.appserver import CodexServerStream
from evotui.agents.streams.base import Stream
from evotui.agents.streams.claude import ClaudeStream, QwenStream
from evotui.agents.streams.codex import CodexExecStream
from evotui.agents.streams.gemini import GeminiStream
from evotui.agents.streams.kimi import KimiStream
from evotui.agents.streams.opencode import OpencodeStream

STREAMS: dict[str, type[Stream]] = {
    stream.dialect: stream
    for stream in (
        ClaudeStream, QwenStream, CodexExecStream, CodexServerStream, GeminiStream, OpencodeStream, KimiStream,
        AcpStream,
    )
}  # fmt: skip

__all__ = [
    "STREAMS",
    "AcpStream",
    "ClaudeStream",
    "CodexExecStream",
    "CodexServerStream",
    "GeminiStream",
    "KimiStream",
    "OpencodeStream",
    "QwenStream",
    "Stream",
]
