"""What is asked of the native agent: its options, read once, and whether it could work at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from evotui.agents.base import AgentFailed
from evotui.agents.llm.keys import read_env_file
from evotui.agents.llm.patience import Patience, key_of

TURNS = 60
_LOOPBACK, _NEAR = ("//127.", "//localhost", "//[::1]"), (900.0, 300.0, 3600.0)
"""A server on this machine may read its prompt for minutes: seconds to the first piece, between two, for a call."""
_ADDRESSES = ("BASE_URL", "API_BASE")
"""Ends of variables that name another address than the provider's."""
_NO_MODEL = "the agent litellm needs --model, such as --model anthropic/… or --model openai/…"


def full_name(model: str, api_base: str) -> str:
    """Behind an address of one's own, a bare name is that of a model there."""
    return f"openai/{model}" if api_base and model and "/" not in model else model


@dataclass(frozen=True, slots=True)
class Wishes:
    """``models``: the first, then those to fall back to. ``wall`` in seconds (infinite: none), ``max_cost`` in dollars
    (0: none), ``price`` in dollars per million tokens in and out. ``deadlines``: of the gateway, None for its own."""

    models: tuple[str, ...]
    base: str = ""
    env_file: str = ""
    turns: int = TURNS
    wall: float = float("inf")
    max_cost: float = 0.0
    price: list[float] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    deadlines: Mapping[str, float | None] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Of model, models, api_base, env_file, max_cost, max_turns, max_wall, temperature, effort, price; for tests
        and slow servers also ``deadlines`` (seconds to the first piece, between two, for a call) and ``retries``
        ([tries, first wait in seconds]). Raises AgentFailed without a model."""
        base = str(options.get("api_base") or "")
        named = [str(options.get("model") or ""), *(str(m) for m in options.get("models") or ())]
        models = tuple(full_name(name, base) for name in dict.fromkeys(named) if name)
        if not models:
            raise AgentFailed(_NO_MODEL)
        params: dict[str, Any] = {}
        if options.get("temperature") is not None:
            params["temperature"] = float(options["temperature"])
        if options.get("effort"):
            params["reasoning_effort"] = str(options["effort"])
        near = any(host in base for host in _LOOPBACK)
        first, idle, wall = options.get("deadlines") or (_NEAR if near else (None, None, None))
        retries = options.get("retries")
        return cls(
            models,
            base,
            str(options.get("env_file") or ""),
            int(options.get("max_turns") or TURNS),
            float(options.get("max_wall") or float("inf")),
            float(options.get("max_cost") or 0.0),
            [float(p) for p in options["price"]] if options.get("price") else None,
            params,
            {"first": first, "idle": idle, "wall": wall},
            Patience(int(retries[0]), float(retries[1])) if retries else Patience(),
        )


def ready(options: Mapping[str, Any]) -> None:
    """Look whether there is a key for the model, without asking anybody. Blocking. Raises AgentFailed."""
    model, file = str(options.get("model") or ""), str(options.get("env_file") or "")
    if not model:
        raise AgentFailed(_NO_MODEL)
    try:
        known = {**os.environ, **(read_env_file(Path(file)) if file else {})}
    except OSError as error:
        raise AgentFailed(f"{file} cannot be read: {error.strerror}") from None
    key = key_of(model)
    elsewhere = options.get("api_base") or any(known.get(f"{key.removesuffix('API_KEY')}{end}") for end in _ADDRESSES)
    if key and not elsewhere and not known.get(key):
        raise AgentFailed(
            f"{model} needs a key: set {key} in the environment or name a file that holds it with --env-file; for a "
            "server of your own give --api-base"
        )
