"""How long a failed model call is worth another try, and what a person is told when it is not."""

from __future__ import annotations

import random
from dataclasses import dataclass

from evotui.agents.llm.faults import WORTH_ANOTHER_TRY, ModelFault
from evotui.protocol.words import counted

_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY", "deepseek": "DEEPSEEK_API_KEY", "openrouter": "OPENROUTER_API_KEY",
    "xai": "XAI_API_KEY", "together_ai": "TOGETHERAI_API_KEY", "fireworks_ai": "FIREWORKS_AI_API_KEY",
}  # fmt: skip


_BARE = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude-": "anthropic"}
"""Beginnings of names that litellm knows without a provider before them."""


def key_of(model: str) -> str:
    """The variable that holds the key for ``model``; empty where that is not known here."""
    provider, slash, _ = model.partition("/")
    if not slash:
        provider = next((known for start, known in _BARE.items() if model.startswith(start)), "")
    return _KEYS.get(provider, "")


@dataclass(frozen=True, slots=True)
class Patience:
    """``tries`` after the first; waits of ``base``, 2 ``base``, 4 ``base`` … seconds, at most ``longest``, with a
    little chance in them. A server that says when to come back is obeyed, up to ``asked``."""

    tries: int = 6
    base: float = 1.0
    longest: float = 60.0
    asked: float = 900.0

    def wait(self, fault: ModelFault, attempt: int) -> float | None:
        """Seconds until the next try, after ``attempt`` (from 1) failed; None: no more tries."""
        if fault.kind not in WORTH_ANOTHER_TRY or attempt > self.tries:
            return None
        if fault.retry_after is not None:
            return fault.retry_after if fault.retry_after <= self.asked else None
        return min(self.longest, self.base * 2.0 ** (attempt - 1)) * (1.0 + random.random() / 4)


_REASONS = {
    "rate_limit": "the provider asks to slow down", "server": "the server failed", "timeout": "the model is too slow",
    "connection": "no connection", "cut": "the stream broke off", "gateway": "the model gateway failed",
    "context": "the conversation is too long for the model", "auth": "the key was refused",
    "not_found": "there is no such model", "quota": "the account's quota is used up",
    "bad_request": "the request was refused",
}  # fmt: skip


def reason(fault: ModelFault) -> str:
    """A fault in a few words, with the server's own."""
    words = _REASONS.get(fault.kind, fault.kind)
    return f"{words}: {fault.message}" if fault.message else words


def sentence(fault: ModelFault, model: str, api_base: str, tries: int) -> str:
    """What a person is told when the agent gives up: what happened, and what would help."""
    where = f" at {api_base}" if api_base else ""
    match fault.kind:
        case "auth":
            key = key_of(model)
            named = f" {key}" if key else " the provider's key"
            return f"{model}{where} refused the key ({fault.message}): set{named} in the environment or give --env-file"
        case "not_found":
            return f"there is no model {model}{where} ({fault.message}): give another --model"
        case "quota":
            return f"the quota of {model} is used up ({fault.message}): add credit, or give another --model"
        case "bad_request" if "provider not provided" in fault.message.lower():
            return (
                f"{model} has no provider: write openai/{model} or the like, or give --api-base for a server of yours"
            )
        case "bad_request":
            return f"{model}{where} refuses the request ({fault.message})"
        case "context":
            return f"the conversation is too long for {model}, even shortened ({fault.message}): give a larger --model"
        case "rate_limit" if fault.retry_after is not None:
            return (
                f"{model} asks to wait {fault.retry_after:.0f} s ({fault.message}): go on later, or with another model"
            )
        case "connection":
            after = f"after {counted(tries, 'try')}"
            return f"nobody answers for {model}{where} ({fault.message}), {after}: is the server running?"
    return f"{model}{where} does not answer: {reason(fault)}, after {counted(tries, 'try')}"
