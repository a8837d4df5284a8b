"""Which modules a policy system may import, and the static check of its source (a run-time check exists as well)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from evotui.protocol.syntax import Unparsable, parse

DENIED_IMPORTS: tuple[str, ...] = (
    # model hubs
    "transformers", "huggingface_hub", "datasets", "diffusers", "accelerate",
    # trackers
    "wandb", "mlflow", "tensorboard",
    # HTTP clients
    "requests", "urllib3", "httpx", "aiohttp",
    # process spawners
    "subprocess", "multiprocessing",
    # simulators: rollouts outside the budget
    "gymnasium", "gym", "mujoco", "Box2D", "pygame", "minigrid", "highway_env", "gymnasium_robotics", "pybullet",
    "dm_control",
)  # fmt: skip
"""Top-level modules that a policy system may not import unless a run says otherwise."""

ALLOWED_IMPORTS: tuple[str, ...] = ("the Python standard library", "numpy")
"""What the agent is told it may rely on (``allowed_imports`` of ``/info`` and of ``env_meta``)."""


def denied(source: str | bytes, denied: Sequence[str] = DENIED_IMPORTS) -> list[tuple[int, str]]:
    """Denied imports of one file as ``(line, module)``, in order of appearance.

    Seen: ``import x.y``, ``from x import y``, and ``importlib.import_module("x")``, ``import_module("x")`` and
    ``__import__("x")`` with a literal, under whatever name ``importlib`` or its function was imported. A name in
    ``denied`` covers its submodules (``"a.b"`` covers ``a.b.c``, not ``a``). Relative imports are the policy's own.
    Raises :class:`~evotui.protocol.syntax.Unparsable` where the source is no Python.
    """
    tree = parse(source)
    nodes = list(ast.walk(tree))
    modules, functions = _importers(nodes)
    hits = {
        (line, column, module): None
        for node in nodes
        for line, column, module in _named(node, modules, functions)
        if _covered(module, denied)
    }
    return [(line, module) for line, _, module in sorted(hits)]


def denied_in(files: Mapping[str, bytes], names: Sequence[str] = DENIED_IMPORTS) -> list[tuple[str, int, str]]:
    """Denied imports of a whole policy system as ``(path, line, module)``; files that do not parse are passed over."""
    found: list[tuple[str, int, str]] = []
    for path in sorted(files):
        if path.endswith(".py"):
            try:
                found.extend((path, line, module) for line, module in denied(files[path], names))
            except Unparsable:
                continue
    return found


def _covered(module: str, names: Sequence[str]) -> bool:
    return any(module == name or module.startswith(name + ".") for name in names)


def _importers(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    """Names that stand for ``importlib`` or ``builtins``, and names that stand for their import functions."""
    modules, functions = {"importlib", "builtins", "__builtins__"}, {"import_module", "__import__"}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(a.asname for a in node.names if a.asname and a.name in ("importlib", "builtins"))
        elif isinstance(node, ast.ImportFrom) and node.module in ("importlib", "builtins"):
            functions.update(a.asname or a.name for a in node.names if a.name in ("import_module", "__import__"))
    return modules, functions


def _named(node: ast.AST, modules: set[str], functions: set[str]) -> Iterator[tuple[int, int, str]]:
    """Modules that a node names for import, absolute, with line and column."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, node.col_offset, alias.name
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0 and node.module:
            yield node.lineno, node.col_offset, node.module
            for alias in node.names:  # `from a import b` may name the module a.b
                yield node.lineno, node.col_offset, f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Call) and _calls_import(node.func, modules, functions):
        named = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
        if isinstance(named, ast.Constant) and isinstance(named.value, str) and not named.value.startswith("."):
            yield node.lineno, node.col_offset, named.value


def _calls_import(function: ast.expr, modules: set[str], functions: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in functions
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ("import_module", "__import__")
        and isinstance(function.value, ast.Name)
        and function.value.id in modules
    )
