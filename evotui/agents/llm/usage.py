"""Tokens and money of a model call, whatever shape the provider tells them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """``input`` are tokens that no cache held; ``cached`` were read from one, ``written`` put into one."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @property
    def told(self) -> bool:
        return bool(self.input or self.cached or self.written or self.output)


def _number(source: Any, *names: str) -> int:
    for name in names:
        value = source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
        if isinstance(value, (int, float)) and value > 0:
            return int(value)
    return 0


def split(usage: Any) -> Usage:
    """The parts of a usage object. Prompt tokens are taken to hold the cached and the written ones, as litellm's do,
    unless those are more than all of them: then they were counted apart."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else getattr(
        usage, "prompt_tokens_details", None
    )  # fmt: skip
    cached = _number(details, "cached_tokens") or _number(usage, "cache_read_input_tokens", "prompt_cache_hit_tokens")
    written = _number(details, "cache_creation_tokens", "cache_write_tokens") or _number(
        usage, "cache_creation_input_tokens"
    )
    prompt = _number(usage, "prompt_tokens", "input_tokens")
    fresh = prompt - cached - written
    return Usage(fresh if fresh >= 0 else prompt, cached, written, _number(usage, "completion_tokens", "output_tokens"))


def cost_at(usage: Usage, price: tuple[float, float]) -> float:
    """Dollars at ``price`` (input, output; dollars per million tokens). All input counts as fresh: it is an upper bound
    where a cache is cheaper."""
    return ((usage.input + usage.cached + usage.written) * price[0] + usage.output * price[1]) / 1e6


def cost_of(usage: Usage, per_token: Callable[[], tuple[float, float]]) -> float | None:
    """Dollars by ``per_token``, a call into a price list; None where the list does not know the model."""
    try:
        into, out = per_token()
    except Exception:  # its ways of not knowing are many; a price is never worth a run
        return None
    total = float(into) + float(out)
    return total if total >= 0 else None
