"""The task text of an environment that nobody has described: only what the environment itself tells."""

from __future__ import annotations

import math
from typing import Any

from evotui.protocol.spaces import Schema
from evotui.protocol.words import counted

_MOST_ROWS = 32


def generated_text(gym_id: str, obs: Schema, action: Schema, max_episode_steps: int) -> str:
    """Markdown: spaces with their bounds, the step limit, and plainly what is not known."""
    return "\n".join(
        [
            f"# {gym_id}",
            "",
            "This text was generated from the environment's own declarations. What its observations, actions and",
            "rewards mean is **not known** here: find it out from the trajectories, or add a folder under",
            "`environments/` with a `task.toml` and a `task.md` that say it.",
            "",
            "## Observation",
            "",
            *space_lines(obs),
            "",
            "## Action",
            "",
            *space_lines(action),
            "",
            "An action outside the space is repaired (clipped; zeros or the first action where it cannot be read), and",
            "the step's `info.action_invalid` is true.",
            "",
            "## Episode",
            "",
            f"- At most {counted(max_episode_steps, 'step')}; it may end earlier, by a rule not known here.",
            "- The return is the sum of the rewards. The reward's formula and range: not known.",
            "- Success: not known; no rule is applied.",
            "",
        ]
    )


def space_lines(schema: Schema, indent: str = "") -> list[str]:
    """A space as Markdown list lines, with one line per element where there are few."""
    kind = schema["type"]
    if kind == "Dict":
        lines = [f"{indent}- a dictionary:"]
        for key, part in schema["spaces"].items():
            inner = space_lines(part, indent + "    ")
            lines += [f"{indent}  - `{key}`:", *inner]
        return lines
    if kind == "Tuple":
        lines = [f"{indent}- a tuple of {len(schema['spaces'])}:"]
        return lines + [line for part in schema["spaces"] for line in space_lines(part, indent + "  ")]
    if kind == "Discrete":
        start = schema.get("start", 0)
        return [f"{indent}- Discrete: a whole number, {start} to {start + schema['n'] - 1}"]
    if kind == "MultiDiscrete":
        return [f"{indent}- MultiDiscrete: whole numbers, each from 0 to below {schema['nvec']}"]
    if kind == "MultiBinary":
        return [f"{indent}- MultiBinary: zeros and ones of shape {schema['shape']}"]
    if kind == "Text":
        return [f"{indent}- Text of at most {schema['max_length']} characters"]
    if kind == "Image":
        return [f"{indent}- Image: {schema['dtype']} array of shape {schema['shape']}, 0 to 255"]
    return _box_lines(schema, indent)


def _box_lines(schema: Schema, indent: str) -> list[str]:
    low, high, shape = schema["low"], schema["high"], schema["shape"]
    head = f"{indent}- Box: {schema['dtype']} array of shape {shape}"
    if not isinstance(low, list) or not isinstance(high, list):
        return [f"{head}, each from {_bound(low)} to {_bound(high)}"]
    flat_low, flat_high = _flat(low), _flat(high)
    if len(set(flat_low)) <= 1 and len(set(flat_high)) <= 1:
        return [f"{head}, each from {_bound(flat_low[0])} to {_bound(flat_high[0])}"] if flat_low else [head]
    if len(shape) != 1 or shape[0] > _MOST_ROWS:
        return [f"{head}, bounds differ by element, from {_bound(min(flat_low))} to {_bound(max(flat_high))}"]
    pairs = enumerate(zip(flat_low, flat_high, strict=True))
    return [f"{head}:", *(f"{indent}  - `[{i}]`: {_bound(lo)} to {_bound(hi)}" for i, (lo, hi) in pairs)]


def _flat(value: Any) -> list[float]:
    return [x for part in value for x in _flat(part)] if isinstance(value, list) else [float(value)]


def _bound(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:g}"
