"""Policies as text: a form with its constants becomes a readable ``policy.py``.

A :class:`Form` is a controller with named constants; only the constants' lines differ between two policies of one form,
so a parametric edit is a diff of those lines and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant (one value) or a tuple of them (several).

    ``scale``: by how much a value is tried to change at first, one per value. ``labels``: what each value is about.
    """

    name: str
    values: tuple[float, ...]
    scale: tuple[float, ...]
    note: str
    low: float = -math.inf
    high: float = math.inf
    labels: tuple[str, ...] = ()
    is_tuple: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A point from which a form is tried: all its constants' values in order, and why these."""

    values: tuple[float, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Form:
    """A controller form. ``idea`` is one sentence for the transcript, ``how`` the docstring of the class.

    ``fixed`` are lines of constants that are never tuned; ``helpers`` are module-level functions; ``init``, ``reset``
    and ``act`` are the bodies of the methods. ``prior`` orders forms: higher is tried earlier. ``template``, if there
    is one, is the whole source instead: only the lines that define its constants are set. ``least_cases``: cases that
    a comparison needs, where one says too little.
    """

    key: str
    title: str
    idea: str
    how: str
    act: tuple[str, ...]
    constants: tuple[Constant, ...] = ()
    fixed: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    init: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    starts: tuple[Start, ...] = ()
    prior: float = 0.0
    template: str = ""
    least_cases: int = 1

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(v for c in self.constants for v in c.values)

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(s for c in self.constants for s in c.scale)

    @property
    def labels(self) -> tuple[str, ...]:
        """What to call each tunable value in a sentence."""
        names: list[str] = []
        for c in self.constants:
            if not c.is_tuple:
                names.append(c.name)
            else:
                marks = c.labels or tuple(str(i) for i in range(len(c.values)))
                names += [f"{c.name}[{mark}]" for mark in marks]
        return tuple(names)

    def at(self, values: Sequence[float]) -> Form:
        """This form with other values, clipped into their bounds and rounded as they will be written."""
        made, i = [], 0
        for c in self.constants:
            part = tuple(tidy(min(max(float(v), c.low), c.high)) for v in values[i : i + len(c.values)])
            made.append(replace(c, values=part))
            i += len(c.values)
        return replace(self, constants=tuple(made))


def tidy(value: float) -> float:
    """``value`` with four significant digits, as it stands in the file; no −0, nothing that is not finite."""
    if not math.isfinite(value):
        return 0.0
    return float(f"{value:.4g}") + 0.0


def _literal(value: float, whole: bool = False) -> str:
    return str(int(value)) if whole and value == int(value) else repr(tidy(value))


def _line(text: str, note: str) -> list[str]:
    """``text  # note``, or the note above where that would be long."""
    if not note:
        return [text]
    if len(text) + len(note) <= 106:
        return [f"{text}  # {note}"]
    return [f"# {note}", text]


def constant_lines(constant: Constant) -> list[str]:
    """The lines that define a constant."""
    if not constant.is_tuple:
        literal = _literal(constant.values[0], whole=constant.scale[0] == 0.0)
        return _line(f"{constant.name} = {literal}", constant.note)
    inner = ", ".join(_literal(v) for v in constant.values)
    flat = f"{constant.name} = ({inner}{',' if len(constant.values) == 1 else ''})"
    if len(flat) <= 100 and not constant.labels:
        return _line(flat, constant.note)
    lines = [f"{constant.name} = (  # {constant.note}"]
    labels = constant.labels or ("",) * len(constant.values)
    for value, label in zip(constant.values, labels, strict=True):
        lines.append(f"    {_literal(value)},  # {label}" if label else f"    {_literal(value)},")
    return [*lines, ")"]


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"        {line}" if line else "" for line in lines]


def wrap(text: str, width: int = 100, indent: str = "") -> list[str]:
    """Words of ``text`` in lines of at most ``width`` characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(indent) + len(line) + 1 + len(word) > width:
            lines.append(indent + line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, indent + line] if line else lines


def render(form: Form) -> str:
    """The source of ``policy.py`` for a form. Ends with a newline; needs only numpy and the standard library."""
    if form.template:
        return _fill(form)
    body = "\n".join([*form.helpers, *form.init, *form.reset, *form.act])
    used = [name for name in ("math", "random") if re.search(rf"(?<![\w.]){name}\.", body)]
    imports = sorted({*form.imports, *used})
    lines = [f'"""{form.title[:1].upper()}{form.title[1:]}."""', ""]
    if imports:
        lines += [f"import {name}" for name in imports] + [""]
    if "np." in body:
        lines += ["import numpy as np", ""]
    if form.fixed:
        lines += [*form.fixed, ""]
    if form.constants:
        lines += ["# Tuned constants"]
        for constant in form.constants:
            lines += constant_lines(constant)
        lines += [""]
    if form.helpers:
        lines += ["", *form.helpers, ""]
    lines += ["", "class Policy:"]
    how = wrap(form.how, indent="    ")
    if len(how) == 1 and len(how[0]) < 94:
        lines += [f'    """{how[0].strip()}"""', ""]
    else:
        lines += [f'    """{how[0].strip()}', *how[1:], '    """', ""]
    lines += ["    def __init__(self, obs_space, action_space, env_meta):"]
    lines += [*_indent(form.init or ("pass",)), ""]
    lines += ["    def reset(self, episode_index):"]
    lines += [*_indent(form.reset or ("pass",)), ""]
    lines += ["    def act(self, obs):", *_indent(form.act)]
    return "\n".join(lines) + "\n"


def _fill(form: Form) -> str:
    lines = form.template.split("\n")
    for constant in form.constants:
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{constant.name} = "))
        lines[at : at + 1] = constant_lines(constant)
    return "\n".join(lines)


def changes(before: Form, after: Form, most: int = 2) -> str:
    """The largest changes of constants between two policies of one form, in words, relative to each one's scale."""
    old, new = np.array(before.values), np.array(after.values)
    size = np.abs(new - old) / np.maximum(np.array(after.scales), 1e-12)
    order = sorted(range(len(new)), key=lambda i: (-round(float(size[i]), 9), i))
    parts = [f"{after.labels[i]} {_literal(old[i])} → {_literal(new[i])}" for i in order[:most] if size[i] > 0]
    more = int((size > 0).sum()) - len(parts)
    if not parts:
        return "no constant changes"
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")
