"""The document of ``evotui doctor`` for a person: aligned plain text of at most 80 columns, no color, ASCII marks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from evotui.report.text import plain, table

WIDTH = 79


def doctor_text(document: dict[str, Any]) -> str:
    blocks = [
        _block("versions", _versions(document["versions"])),
        _block("terminal", _terminal(document["terminal"])),
        _isolation(document["isolation"]),
        _attacks(document["attacks"]),
        _block("drawing", _drawing(document["drawing"])),
        _block("environments", _environments(document["environments"])),
        _block("machine", [*_workers(document["workers"]), *_runs(document["runs"])]),
        _verdict(document),
    ]
    return "\n\n".join(filter(None, blocks))


def _wrapped(text: str, first: str, rest: str) -> str:
    return textwrap.fill(plain(text, 400), WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False)


def _block(title: str, facts: Sequence[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in facts), default=0)
    indent = " " * (width + 4)
    return "\n".join([title, *(_wrapped(text, f"  {name.ljust(width)}  ", indent) for name, text in facts)])


def _versions(versions: dict[str, str]) -> list[tuple[str, str]]:
    packages = [f"{n} {v}" for n, v in versions.items() if n not in ("evotui", "python", "platform", "kernel")]
    return [
        ("evotui", f"{versions['evotui']}, Python {versions['python']}, {', '.join(packages)}"),
        ("platform", f"{versions['platform']}, kernel {versions['kernel']}"),
    ]


def _terminal(terminal: dict[str, Any]) -> list[tuple[str, str]]:
    size = f"{terminal['columns']} x {terminal['rows']}"
    drawn = "draws bars and dots" if terminal["unicode"] else "no bars and dots: set LANG to a UTF-8 locale"
    return [
        ("size", size if terminal["is_terminal"] else "no terminal: this output goes elsewhere"),
        ("TERM", f"{terminal['term'] or 'not set'}, {terminal['colors']}"),
        ("characters", f"{terminal['encoding']}, locale {terminal['locale']}, {drawn}"),
    ]


def _isolation(isolation: dict[str, Any]) -> str:
    lines = [_wrapped(f"isolation {isolation['level']}: {isolation['means']}", "", "  ")]
    rows = [[layer["name"], "held" if layer["held"] else "OFF", layer["keeps"]] for layer in isolation["layers"]]
    text = table(["layer", "state", "what it keeps to the policy"], rows).splitlines()
    lines.append("  " + text[0])
    indent = " " * (2 + max(len(row[0]) for row in rows) + 2)
    for layer, line in zip(isolation["layers"], text[1:], strict=True):
        lines.append("  " + line)
        if not layer["held"]:
            lines += [
                _wrapped(layer[key], f"{indent}{key}: ", indent + " " * 5) for key in ("why", "how") if layer[key]
            ]
    return "\n".join(lines)


def _attacks(attacks: list[dict[str, Any]] | None) -> str:
    if attacks is None:
        return "attacks: none were tried"
    groups: dict[str, list[dict[str, Any]]] = {}
    for attack in attacks:
        groups.setdefault(attack["group"], []).append(attack)
    through = [attack for attack in attacks if attack["got_through"]]
    rows = []
    for group, tried in groups.items():
        out = sum(attack["got_through"] for attack in tried)
        rows.append([group, str(len(tried)), str(len(tried) - out), str(out)])
    rows.append(["all", str(len(attacks)), str(len(attacks) - len(through)), str(len(through))])
    counted = table(["attacks on", "tried", "stopped", "got through"], rows, right=(1, 2, 3)).splitlines()
    title, rest = counted[0][: len("attacks on")], counted[0][len("attacks on") :]
    lines = [f"{title}  {rest}", *(f"  {line}" for line in counted[1:])]
    for group, tried in groups.items():
        names = ", ".join(a["name"] for a in tried if a["got_through"])
        if names:
            text = f"{group}: {names}"
            lines.append(textwrap.fill(text, WIDTH, initial_indent="  THROUGH  ", subsequent_indent=" " * 11))
    return "\n".join(lines)


def _drawing(drawing: dict[str, Any] | None) -> list[tuple[str, str]]:
    if drawing is None:
        return [("pictures", "were not tried")]
    facts = [("SDL offscreen", "draws" if not drawing["sdl"] else f"FAILS: {drawing['sdl']}")]
    if drawing["mujoco"] is None:
        return [*facts, ("MuJoCo", "is not installed: pip install 'evotui[core16]'")]
    facts += [(f"MuJoCo, {b}", f"FAILS: {why}" if why else "draws") for b, why in drawing["mujoco"].items()]
    return [*facts, ("how", drawing["how"])] if drawing["how"] else facts


def _environments(environments: list[dict[str, Any]]) -> list[tuple[str, str]]:
    ready = [env["name"] for env in environments if env["available"]]
    facts = [("ready", f"{len(ready)} of {len(environments)}: {', '.join(ready)}")]
    missing: dict[str, list[str]] = {}
    for env in environments:
        if not env["available"]:
            missing.setdefault(env["command"] or env["why_not"], []).append(env["name"])
    return facts + [("missing", f"{', '.join(names)}: {command}") for command, names in missing.items()]


def _workers(workers: dict[str, Any]) -> list[tuple[str, str]]:
    if workers["error"]:
        return [("workers", f"FAILED: {workers['error']}")]
    return [("workers", f"{workers['n']}, ready in {workers['ready_seconds']:.2f} s")]


def _runs(runs: dict[str, Any]) -> list[tuple[str, str]]:
    free = "unknown" if runs["free_bytes"] is None else f"{runs['free_bytes'] / 1e9:,.1f} GB"
    state = "writable" if runs["writable"] else "NOT WRITABLE: choose another with --runs"
    return [("runs", f"{runs['folder']}: {state}"), ("free disk", free)]


def _verdict(document: dict[str, Any]) -> str:
    through = sum(attack["got_through"] for attack in document["attacks"] or ())
    if document["ok"]:
        return "ok: policies of strangers can be run here" + ("" if document["attacks"] else " (no attack was tried)")
    reasons = []
    if document["error"]:
        reasons.append(document["error"])
    if document["isolation"]["level"] not in ("A", "B"):
        reasons.append(f"isolation is {document['isolation']['level']}, and B is the least")
    if through:
        reasons.append(f"{through} attacks got through" if through > 1 else "1 attack got through")
    return _wrapped(f"NOT OK: {'; '.join(reasons)}. Run only policies that you trust.", "", "  ")
