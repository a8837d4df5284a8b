"""The documents of ``evotui envs show`` and ``evotui envs check`` for a person: plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evotui.protocol.words import counted
from evotui.report.text import plain

_MARKS = {"ok": "ok", "failed": "FAILED", "skipped": "--"}


def show_text(document: dict[str, Any], picture: str) -> str:
    """What an environment is like. ``picture`` is drawn already, or says why there is none."""
    env = document["environment"]
    world, speed = env.get("world", {}), env.get("speed", {})
    lines = [f"{env['title']}  {env['gym_id']}  {env['family']}", ""]
    if picture:
        lines += [picture, ""]
    facts: list[tuple[str, str]] = [("names", ", ".join([env["name"], env["slug"], *env["aliases"]]))]
    if "error" in world:
        facts.append(("problem", world["error"]))
    else:
        names = world["observation_names"]
        facts += [
            ("observation", space(world["obs_schema"])),
            ("", listed(names) if names else "stored outside the trajectory"),
            ("action", space(world["action_schema"])),
            *([("", listed(env["action_names"]))] if env["action_names"] else []),
            ("at most", f"{counted(world['max_episode_steps'], 'step')}"),
        ]
    facts += [("success", env["success"] or "no rule"), ("components", listed(env["reward_components"]) or "none")]
    for name, anchor in env["anchors"].items():
        facts.append((name, f"{anchor['mean']:.6g} ± {anchor['se']:.2g} (n = {anchor['n']}; {anchor['source']})"))
    if "steps_per_second" in speed:
        facts.append(("speed", f"{speed['steps_per_second']:,} steps a second, random actions, one core"))
    if env.get("frame", {}).get("milliseconds"):
        facts.append(("a frame", f"{env['frame']['milliseconds']:g} ms"))
    if env.get("why_no_frame"):
        facts.append(("a frame", env["why_no_frame"]))
    facts.append(("policies", ", ".join(env["policies"]) or "none"))
    if env.get("folder"):
        facts.append(("from", env["folder"]))
    width = max(len(name) for name, _ in facts)
    lines += [f"{name:<{width}}  {plain(text, 400)}" for name, text in facts]
    return "\n".join(lines)


def check_lines(found: dict[str, Any]) -> list[str]:
    """One environment's checks."""
    width = max(len(check["name"]) for check in found["checks"])
    head = f"{found['name']}  {'ok' if found['ok'] else 'FAILED'}"
    rest = [
        f"  {_MARKS[check['state']]:<6}  {check['name']:<{width}}  {plain(check['detail'], 300)}"
        for check in found["checks"]
    ]
    return [head, *rest]


def space(schema: dict[str, Any]) -> str:
    """A space in a few words."""
    kind = schema["type"]
    if kind == "Dict":
        return "; ".join(f"{key}: {space(part)}" for key, part in schema["spaces"].items())
    if kind == "Tuple":
        return "; ".join(space(part) for part in schema["spaces"])
    if kind == "Discrete":
        start = schema.get("start", 0)
        return f"Discrete, {start} to {start + schema['n'] - 1}"
    if "shape" in schema:
        low, high = _ends(schema.get("low")), _ends(schema.get("high"))
        bounds = f", {min(low):g} to {max(high):g}" if low and high else ""
        return f"{kind} {'×'.join(map(str, schema['shape']))} {schema['dtype']}{bounds}"
    return str(kind)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names with commas, cut where there are many."""
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _ends(bound: Any) -> list[float]:
    if isinstance(bound, list):
        return [x for part in bound for x in _ends(part)]
    return [] if bound is None else [float(bound)]
