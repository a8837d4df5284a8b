"""What may be asked of an agent beside its name: each option once, with what it takes and who understands it.

They are written into ``run.toml`` as ``agent_options``. None of them is ever a secret: keys stay where ``env_file`` or
the environment has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class OptionError(ValueError):
    """An option that no such agent knows, or a value that it cannot have; one sentence for a person."""


_CLIS = ("claude", "codex", "gemini", "qwen", "opencode", "kimi")
_BUILT_IN = ("search", "human", "litellm", "command", "replay", *_CLIS)
_MODELS = ("litellm", *_CLIS)
_OUTSIDE = (*_MODELS, "command")


@dataclass(frozen=True, slots=True)
class Option:
    """``of`` are the agents that know it, ``read`` makes its value of text."""

    name: str
    about: str
    read: Callable[[str], Any]
    of: tuple[str, ...] = _OUTSIDE


def _positive(kind: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise ValueError(f"takes {what}")
        return value

    return read


def _seconds(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        value = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise ValueError("takes a time such as 90, 90s, 30m or 2h")
    return value


def _word(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"takes {' or '.join(words)}")
        return text

    return read


def _file(text: str) -> str:
    if not Path(text).is_file():
        raise ValueError(f"names a file that is not there: {text}")
    return str(Path(text).resolve())


def _prompt(text: str) -> str:
    return text if text in ("stdin", "none") else _file(text)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise ValueError("takes a number from 0 to 2")
    return value


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError("takes a number of 0 or more")
    return value


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError("takes an address such as http://127.0.0.1:8080/v1")
    return text


def _price(text: str) -> list[float]:
    try:
        parts = [float(part) for part in text.split(",")]
    except ValueError:
        parts = []
    if len(parts) != 2 or min(parts) < 0:
        raise ValueError("takes two prices in dollars per million tokens, input and output: 3,15")
    return parts


OPTIONS = {
    option.name: option
    for option in (
        Option("model", "the model, by the provider's or litellm's name", str, _MODELS),
        Option("models", "models to fall back to, separated by commas", lambda t: t.split(","), ("litellm",)),
        Option("api_base", "address of an OpenAI-compatible server", _address, ("litellm",)),
        Option("env_file", "a file of KEY=value lines to take keys from", _file, _OUTSIDE),
        Option("max_cost", "stop when this many dollars are spent", _positive(float, "dollars above 0"), _MODELS),
        Option("max_turns", "stop after this many turns", _positive(int, "a whole number of at least 1"), _OUTSIDE),
        Option("max_wall", "stop after this time", _seconds, _OUTSIDE),
        Option("temperature", "randomness of the model", _temperature, ("litellm",)),
        Option("effort", "how hard the model thinks", _word("low", "medium", "high"), _MODELS),
        Option("price", "dollars per million tokens in,out where none is known", _price, ("litellm",)),
        Option("cli", "path of the agent's program", _file, _CLIS),
        Option("prompt", "stdin, none, or a file to be sent instead", _prompt, ("command",)),
        Option("dialect", "what the program speaks on its pipes", _word("text", "jsonl"), ("command",)),
        Option("source", "the recorded run to re-enact", str, ("replay",)),
        Option("speed", "how much faster than recorded; 0: at once", _speed, ("replay",)),
    )
}
"""``program``, a command's words, is not among them: it is given after ``--``."""


def knows(kind: str, option: Option) -> bool:
    """Whether an agent understands an option; one that a person added is a coding agent like those that are known."""
    return kind in option.of or (kind not in _BUILT_IN and "claude" in option.of)


def read_options(kind: str, given: Mapping[str, str], program: Sequence[str] = ()) -> dict[str, Any]:
    """The options of an agent from their texts. Raises OptionError."""
    options: dict[str, Any] = {}
    for name, text in given.items():
        option = OPTIONS.get(name)
        if option is None:
            raise OptionError(f"no option {name!r}; there are {', '.join(OPTIONS)}")
        if not knows(kind, option):
            raise OptionError(f"the agent {kind!r} has no option {name}; it is for {', '.join(option.of)}")
        try:
            options[name] = option.read(text)
        except ValueError as error:
            raise OptionError(f"{name.replace('_', '-')} {error}") from None
    if program and kind != "command":
        raise OptionError(f"a program after -- goes with --agent command, not with {kind!r}")
    if kind == "command":
        if not program:
            raise OptionError("--agent command needs the program: evotui run ENV --agent command -- PROGRAM ARGS…")
        from evotui.agents.command import located

        options["program"] = located(program)
    if kind == "replay" and "source" not in options:
        raise OptionError("--agent replay needs the run to re-enact: --option source=RUN")
    if kind == "litellm" and not options.get("model"):
        raise OptionError("--agent litellm needs --model, such as --model anthropic/… or --model openai/…")
    return options
