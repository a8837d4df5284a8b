"""Hints in a policy's source that several of its objects in one process would share something.

In lockstep, episodes' Policy objects live side by side; what a module, a class or a cache keeps, they would share.
These hints are read before anything is run; samples that are compared (``together``) find what is hidden better. A
false hint costs speed only: the episodes are then run one by one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_NAMES = frozenset(
    {"random", "default_rng", "time", "secrets", "uuid", "threading", "sys", "os", "setattr", "__class__", "__dict__"}
)
_CACHES = frozenset({"cache", "lru_cache", "singledispatch"})
_KEEPERS = frozenset(
    {"list", "dict", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter", "count", "cycle", "iter"}
)  # what they make is there to change, where it begins empty or is used up
_CHANGES = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "fill", "insert", "itemset", "pop",
        "popitem", "popleft", "put", "remove", "resize", "reverse", "rotate", "send", "setdefault", "sort", "update",
    }
)  # fmt: skip
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def shares_nothing_obvious(system: Path) -> bool:
    """Whether no Python file below ``system`` holds such a hint. One that cannot be parsed counts as a hint."""
    trees = []
    for path in sorted(system.rglob("*.py")):
        try:
            trees.append(ast.parse(path.read_bytes()))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    try:
        made = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        return not any(_hints(tree, made) for tree in trees)
    except RecursionError:
        return False


def _hints(tree: ast.Module, made: set[str]) -> bool:
    return (
        any(_is_hint(node) for node in ast.walk(tree))
        or any(_keeps(value, made) for value in _kept_for_all(tree))
        or _changes_outer(tree, frozenset())
    )


def _is_hint(node: ast.AST) -> bool:
    """A name, an import or a construct that hints at shared state wherever it stands."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    if isinstance(node, ast.Name):
        return node.id in _NAMES
    if isinstance(node, ast.Attribute):  # an object may call what is its own as it likes
        return node.attr in _NAMES and (node.attr.startswith("__") or _last_name(node.value) != "self")
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        parts = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        return any(part in _NAMES for dotted in parts for part in dotted.split("."))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any(_last_name(mark) in _CACHES for mark in node.decorator_list)
    return isinstance(node, ast.Call) and _last_name(node.func) in _CACHES


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _kept_for_all(tree: ast.Module) -> Iterator[ast.expr]:
    """What a module or a class is given when it is made, and defaults of arguments."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for part in node.body:
                if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None:
                    yield part.value
        elif isinstance(node, _Function):
            yield from node.args.defaults
            yield from (default for default in node.args.kw_defaults if default is not None)


def _keeps(value: ast.expr, made: set[str]) -> bool:
    """Whether it makes something that is there to change: empty containers, iterators, objects of own classes."""
    if isinstance(value, (ast.List, ast.Set, ast.Tuple)):
        return (not value.elts and not isinstance(value, ast.Tuple)) or any(_keeps(v, made) for v in value.elts)
    if isinstance(value, ast.Dict):
        return not value.values or any(_keeps(v, made) for v in value.values)
    if isinstance(value, ast.GeneratorExp):
        return True
    if isinstance(value, ast.Call):
        name = _last_name(value.func)
        return name in made or name in _KEEPERS
    return False


def _changes_outer(node: ast.AST, own: frozenset[str], inside: bool = False) -> bool:
    """Whether code in functions changes what lies outside of them, other than through ``self`` and other arguments."""
    if isinstance(node, _Function):
        own, inside = own | _own_names(node), True
    if inside and any(_root(target) not in own for target in _changed(node)):
        return True
    return any(_changes_outer(child, own, inside) for child in ast.iter_child_nodes(node))


def _own_names(function: _Function) -> frozenset[str]:
    """Arguments and names that are bound in it. ``cls`` is a class, which all share."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {argument.arg for argument in given if argument is not None}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names - {"cls"})


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """The things that a statement or a call changes in place."""
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets = [node.target]
    elif isinstance(node, ast.Call):
        changed = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES and _root(node.func.value) != "np":
            changed.append(node.func.value)
        if isinstance(node.func, ast.Name) and node.func.id == "next":
            changed += node.args[:1]
        yield from (value for value in changed if _root(value))
    while targets:
        target = targets.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            yield target


def _root(node: ast.expr) -> str:
    """The name that an expression begins with: ``a`` of ``a.b[0].c``; "" where it begins with something else."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
