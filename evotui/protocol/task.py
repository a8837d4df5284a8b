"""A task as a frozen value: which environment, how it is named, what counts as success, what it is anchored on.

Owns the vocabulary of success rules. Reading task files is the suite's work (evotui.suite.catalog).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPARISON = re.compile(
    r"(reward|return|info\.[A-Za-z_]\w*)\s*(>=|<=|==|>|<)\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\Z"
)
_FLAG = re.compile(r"(terminated|truncated|info\.[A-Za-z_]\w*)\Z")

DEFAULT_MAX_STEPS = 1000
"""The step limit of an environment that neither its task nor its registration limits (PROTOCOL: environments)."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A measured mean return on the paper's held-out cases: ``n`` episodes, standard error ``se``."""

    mean: float
    se: float
    n: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What evotui knows about one environment, without having made it.

    ``name`` is the folder's name, ``slug`` the name in the published harness (records nest by it; may hold ``/``).
    ``packages`` are modules to import and register before the environment is made, ``requires`` modules that must be
    importable besides, ``extra`` the evotui extra that brings them. ``max_episode_steps`` None means the registration's
    limit, else 1,000. ``observation_fields`` name the flattened observation, ``action_names`` each discrete action or
    each dimension of a Box; both may be empty. ``text`` is the task's Markdown, ``folder`` where it was found
    (empty for a generated one).
    """

    name: str
    slug: str
    gym_id: str
    title: str
    family: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    max_episode_steps: int | None = None
    success: str = ""
    observation_fields: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    reward_components: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    text: str = ""
    folder: str = ""
    generated: bool = False
    requires: tuple[str, ...] = ()


def is_success_rule(rule: str) -> bool:
    """Whether ``rule`` can be evaluated: empty, ``terminated``, ``truncated``, ``info.KEY``, or a comparison of
    ``reward``, ``return`` or ``info.KEY`` with a number."""
    return not rule or bool(_FLAG.match(rule) or _COMPARISON.match(rule))


def succeeded(
    rule: str, *, reward: float, terminated: bool, truncated: bool, info: Mapping[str, Any], return_: float
) -> bool | None:
    """Whether an episode that ended with this step succeeded; None where the task has no rule.

    ``reward`` and ``info`` are the last step's, ``return_`` the episode's sum. A key missing from ``info`` is a
    failure. Raises ValueError for a rule that :func:`is_success_rule` refuses.
    """
    if not rule:
        return None
    values: dict[str, Any] = {"reward": reward, "return": return_, "terminated": terminated, "truncated": truncated}

    def value(name: str) -> Any:
        return info.get(name[len("info.") :]) if name.startswith("info.") else values[name]

    if _FLAG.match(rule):
        return bool(value(rule))
    match = _COMPARISON.match(rule)
    if match is None:
        raise ValueError(f"no success rule: {rule!r}")
    left = value(match[1])
    return left is not None and bool(_OPERATORS[match[2]](float(left), float(match[3])))
