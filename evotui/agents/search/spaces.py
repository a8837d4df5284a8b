"""What an agent can see of a task before it has tried anything: the two spaces, and names for their parts.

Owns the reading of space schemas (observation → a flat list of numbers where that is possible, a table index, a
symbolic grid, or none of these). Names for fields and actions come from ``env_meta`` or from the task text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evotui.agents.search.names import names_in_text

MOST_FIELDS = 512
"""More numbers than this are not treated as named fields."""
MOST_CELLS = 20_000
"""The largest table that is still learned entry by entry."""
SYMBOLIC_SIDE = 16
"""Integer grids with sides below this are symbols, not pictures."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One numeric part of an observation: ``path`` of Dict keys and Tuple indices, ``size`` numbers, its shape."""

    path: tuple[str | int, ...]
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Actions:
    """The action space: ``kind`` is discrete, box or other.

    discrete: ``n`` actions from ``start``. box: ``n`` dimensions of ``shape`` between ``low`` and ``high`` (finite:
    unbounded sides are taken as ±1). ``names`` has one name per action or dimension.
    """

    kind: str
    n: int
    names: tuple[str, ...]
    start: int = 0
    shape: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """An observation space as the agent will treat it. ``kind`` is flat, table, grid, picture or other.

    flat: ``leaves`` concatenated give ``len(names)`` numbers. table: ``sizes`` (mixed radix) and ``starts`` index
    ``cells`` entries. grid: ``grid_path`` leads to an integer array [x][y][channel]; ``heading_path`` and
    ``text_path`` to the direction and the mission where there are such. picture: ``picture_path`` leads to an array of
    ``picture_shape`` (rows, columns, channels), uint8.
    """

    kind: str
    names: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    sizes: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    grid_path: tuple[str | int, ...] | None = None
    grid_shape: tuple[int, ...] = ()
    heading_path: tuple[str | int, ...] | None = None
    text_path: tuple[str | int, ...] | None = None
    picture_path: tuple[str | int, ...] = ()
    picture_shape: tuple[int, ...] = ()
    why: str = ""

    @property
    def cells(self) -> int:
        return math.prod(self.sizes) if self.sizes else 0


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything the agent knows before its first submission. ``holes`` (NaN in observations) is learned later."""

    view: View
    actions: Actions
    budget: int
    min_submit: int
    max_submit: int
    n_cases: int
    max_steps: int
    obs_space: Mapping[str, Any] = field(default_factory=dict)
    action_space: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    holes: bool = False


def _is_int(dtype: str) -> bool:
    return "int" in dtype or dtype == "bool"


def numeric_leaves(schema: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> list[Leaf] | None:
    """The numeric parts of a space in declared order; texts are left out. None where there is a picture or a
    kind of space that we do not know."""
    kind = schema.get("type")
    if kind == "Box":
        shape = tuple(int(s) for s in schema.get("shape", ()))
        return [Leaf(path, math.prod(shape), shape)]
    if kind == "Discrete":
        return [Leaf(path, 1, ())]
    if kind == "MultiDiscrete":
        size = int(np.asarray(schema.get("nvec", ())).size)
        return [Leaf(path, size, (size,))]
    if kind == "MultiBinary":
        shape = tuple(int(s) for s in np.atleast_1d(np.asarray(schema.get("shape", schema.get("n", 0)))))
        return [Leaf(path, math.prod(shape), shape)]
    if kind == "Text":
        return []
    if kind in ("Dict", "Tuple"):
        leaves: list[Leaf] = []
        spaces = schema.get("spaces", {})
        parts = list(spaces.items()) if isinstance(spaces, Mapping) else list(enumerate(spaces))
        for key, part in parts:
            inner = numeric_leaves(part, (*path, key))
            if inner is None:
                return None
            leaves += inner
        return leaves
    return None


def discrete_sizes(schema: Mapping[str, Any]) -> tuple[list[int], list[int]] | None:
    """(sizes, starts) of a space made of Discrete parts only, or None."""
    kind = schema.get("type")
    if kind == "Discrete":
        return [int(schema["n"])], [int(schema.get("start", 0))]
    if kind == "MultiDiscrete":
        sizes = [int(n) for n in np.asarray(schema["nvec"]).ravel()]
        return sizes, [0] * len(sizes)
    if kind == "Tuple":
        sizes, starts = [], []
        for part in schema.get("spaces", ()):
            inner = discrete_sizes(part)
            if inner is None:
                return None
            sizes += inner[0]
            starts += inner[1]
        return sizes, starts
    return None


def _find_grid(
    schema: Mapping[str, Any], path: tuple[str | int, ...] = ()
) -> tuple[tuple[str | int, ...], tuple] | None:
    if schema.get("type") == "Box" and _is_int(str(schema.get("dtype", ""))):
        shape = tuple(int(s) for s in schema.get("shape", ()))
        if len(shape) == 3 and shape[2] in (2, 3, 4) and min(shape[:2]) >= 3 and max(shape[:2]) < SYMBOLIC_SIDE:
            return path, shape
    if schema.get("type") == "Dict":
        for key, part in schema.get("spaces", {}).items():
            found = _find_grid(part, (*path, key))
            if found is not None:
                return found
    return None


def _find_kind(schema: Mapping[str, Any], kind: str, n: int | None) -> tuple[str | int, ...] | None:
    for key, part in schema.get("spaces", {}).items() if schema.get("type") == "Dict" else ():
        if part.get("type") == kind and (n is None or part.get("n") == n):
            return (key,)
    return None


def read_view(schema: Mapping[str, Any], names: Sequence[str] = ()) -> View:
    """How to treat an observation space. Never raises for a space it does not know: its kind is then ``other``."""
    try:
        grid = _find_grid(schema)
        if grid is not None:
            return View(
                "grid",
                grid_path=grid[0],
                grid_shape=grid[1],
                heading_path=_find_kind(schema, "Discrete", 4),
                text_path=_find_kind(schema, "Text", None),
            )
        sizes = discrete_sizes(schema)
        if sizes is not None and sizes[0] and math.prod(sizes[0]) <= MOST_CELLS:
            return View("table", sizes=tuple(sizes[0]), starts=tuple(sizes[1]))
        leaves = numeric_leaves(schema)
    except (KeyError, TypeError, ValueError) as error:
        return View("other", why=f"the observation space cannot be read ({type(error).__name__})")
    if leaves is None and schema.get("type") == "Image":
        return View("picture", picture_shape=tuple(int(s) for s in schema.get("shape", ())))
    if leaves is None:
        return View("other", why=f"observations of type {schema.get('type', 'unknown')} hold a picture or symbols")
    leaves = [leaf for leaf in leaves if leaf.size]
    total = sum(leaf.size for leaf in leaves)
    if not 1 <= total <= MOST_FIELDS:
        return View("other", why=f"the observation holds {total} numbers")
    return View("flat", names=_field_names(leaves, names, total), leaves=tuple(leaves))


def _plain_view(schema: Mapping[str, Any]) -> View:
    """An observation as plain numbers, whatever else it may be."""
    leaves = [leaf for leaf in numeric_leaves(schema) or [] if leaf.size]
    if not 1 <= sum(leaf.size for leaf in leaves) <= MOST_FIELDS:
        return View("other", why="the observation does not fit the action space")
    return View("flat", _field_names(leaves, (), sum(leaf.size for leaf in leaves)), tuple(leaves))


def _field_names(leaves: Sequence[Leaf], names: Sequence[str], total: int) -> tuple[str, ...]:
    if len(names) == total:
        return tuple(str(n) for n in names)
    made: list[str] = []
    for leaf in leaves:
        base = " ".join(str(p) for p in leaf.path) or "field"
        made += [base if leaf.size == 1 and leaf.path else f"{base} {i}" for i in range(leaf.size)]
    return tuple(made)


def read_actions(schema: Mapping[str, Any], names: Sequence[str] = ()) -> Actions:
    """How to treat an action space; ``other`` for what is neither Discrete nor a small Box."""
    try:
        if schema.get("type") == "Discrete" and int(schema["n"]) >= 1:
            n = int(schema["n"])
            given = tuple(names) if len(names) == n else tuple(f"action {i}" for i in range(n))
            return Actions("discrete", n, given, start=int(schema.get("start", 0)))
        if schema.get("type") == "Box" and not _is_int(str(schema.get("dtype", "float32"))):
            shape = tuple(int(s) for s in schema.get("shape", ()))
            n = math.prod(shape)
            if 1 <= n <= 64:
                low = np.broadcast_to(np.asarray(schema["low"], dtype=float), shape).ravel()
                high = np.broadcast_to(np.asarray(schema["high"], dtype=float), shape).ravel()
                low = np.where(np.isfinite(low) & (low > -1e6), low, -1.0)
                high = np.where(np.isfinite(high) & (high < 1e6), high, np.maximum(1.0, low + 2.0))
                given = tuple(names) if len(names) == n else tuple(f"action {i}" for i in range(n))
                return Actions("box", n, given, 0, shape, tuple(low.tolist()), tuple(high.tolist()))
    except (KeyError, TypeError, ValueError):
        pass  # an unreadable schema is the same to us as an unknown one
    return Actions("other", 0, ())


def read_situation(info: Mapping[str, Any], task: str) -> Situation:
    """Put together what ``/info`` and ``/task`` say. Missing keys have harmless defaults."""
    meta = info.get("env_meta") or {}
    obs_space, action_space = meta.get("obs_space") or {}, meta.get("action_space") or {}
    state = info.get("state") or {}
    budget = int(state.get("remaining_budget", info.get("episode_budget", 1)))
    view = read_view(obs_space, tuple(meta.get("observation_fields") or ()))
    if view.kind == "flat" and not meta.get("observation_fields"):
        view = read_view(obs_space, names_in_text(task, len(view.names), "observation"))
    actions = read_actions(action_space, tuple(meta.get("action_names") or ()))
    if view.kind in ("table", "grid") and actions.kind != "discrete":
        view = _plain_view(obs_space)
    if actions.kind != "other" and not meta.get("action_names"):
        actions = read_actions(action_space, names_in_text(task, actions.n, "action"))
    return Situation(
        view,
        actions,
        budget,
        max(1, int(info.get("min_episodes_per_submit") or 1)),
        max(1, int(info.get("max_episodes_per_submit") or budget)),
        max(1, int(meta.get("n_env_instances") or 1)),
        max(1, int(meta.get("max_episode_steps") or 1000)),
        obs_space,
        action_space,
        task,
    )
