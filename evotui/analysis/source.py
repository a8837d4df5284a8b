"""A submission's source: the bundle that runs, its topology, and the numbers in it.

The *bundle* is ``policy.py`` and the agent's own modules that its imports reach, found statically. The *topology* is
the bundle's syntax with numbers, docstrings and comments taken out; names and strings stay, and a minus before a number
belongs to the number (ours: the paper leaves that open).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evotui.protocol.syntax import Unparsable, parse

ENTRY = "policy.py"
Number = int | float | complex


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of a file. ``name`` says where it stands: ``GAIN``, ``Policy.LIMIT``, ``self.kp``, ``W[0][2]``,
    ``act.threshold``, ``f(gain)``, or ``act, number 3`` where nothing names it. Names are unique within a file.
    """

    name: str
    value: Number
    line: int
    named: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """One file of a bundle. ``topology`` is a digest; ``constants`` are in the order in which the syntax has them."""

    path: str
    data: bytes
    topology: str
    constants: tuple[Constant, ...]

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The source bundle of a submission: ``modules`` by path, digests of their bytes and of their topologies."""

    modules: Mapping[str, Module]
    identity: str
    topology: str


_cache: dict[tuple[str, bytes], tuple[Module, frozenset[tuple[str, ...]]]] = {}


def read_bundle(files: Mapping[str, bytes]) -> Bundle:
    """The bundle of a policy system given as relative POSIX paths and bytes (files that are no Python may be left out).

    A file that does not parse belongs to the bundle when it is reached; its topology is its bytes, it reaches nothing.
    """
    modules: dict[str, Module] = {}
    todo = [ENTRY] if ENTRY in files else []
    while todo:
        path = todo.pop()
        if path in modules:
            continue
        modules[path], imported = _module(path, files[path])
        for name in imported:
            todo.extend(candidate for candidate in _candidates(name) if candidate in files)
    ordered = dict(sorted(modules.items()))
    return Bundle(
        ordered,
        _digest(part for m in ordered.values() for part in (m.path.encode("utf-8", "surrogateescape"), m.data)),
        _digest(
            part for m in ordered.values() for part in (m.path.encode("utf-8", "surrogateescape"), m.topology.encode())
        ),
    )


def _digest(parts: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _module(path: str, data: bytes) -> tuple[Module, frozenset[tuple[str, ...]]]:
    """A file and the modules it imports, as dotted parts from the top of the system. Remembered by content."""
    key = (path, hashlib.sha256(data).digest())
    found = _cache.get(key)
    if found is None:
        try:
            tree = parse(data)
        except Unparsable:
            found = Module(path, data, "unparsable:" + hashlib.sha256(data).hexdigest(), ()), frozenset()
        else:
            _strip_docstrings(tree)
            topology = hashlib.sha256(_shape(tree).encode("utf-8", "surrogatepass")).hexdigest()
            found = Module(path, data, topology, tuple(_constants(tree))), frozenset(_imports(tree, path))
        if len(_cache) > 4096:
            _cache.clear()
        _cache[key] = found
    return found


# ── imports ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _candidates(name: tuple[str, ...]) -> Iterator[str]:
    """Files that importing ``a.b`` runs: those of ``a`` and of ``a.b``."""
    for n in range(1, len(name) + 1):
        stem = "/".join(name[:n])
        yield f"{stem}/__init__.py"
        yield f"{stem}.py"


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, ...]]:
    package = tuple(path.split("/")[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            if node.level > len(package) + 1:
                continue
            base = package[: len(package) - node.level + 1] if node.level else ()
            base = (*base, *(node.module.split(".") if node.module else ()))
            if base:
                yield base
            for alias in node.names:
                yield (*base, alias.name)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            named = node.args[0].value
            if called in ("import_module", "__import__") and isinstance(named, str) and not named.startswith("."):
                yield tuple(named.split("."))


# ── topology ─────────────────────────────────────────────────────────────────────────────────────────────────────


def is_number(node: ast.AST) -> bool:
    """Whether a node is a numeric constant, with or without minus signs before it."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and _numeric(node.value)


def _numeric(value: object) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del node.body[0]


_SKIPPED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def _shape(tree: ast.AST) -> str:
    """The tree as text with every number as ``#``. Empty fields are left out, so that all Python versions agree; the
    walk keeps its own stack, so that a sum of a thousand terms does not exhaust Python's.
    """
    out: list[str] = []
    todo: list[Any] = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, ast.AST):
            if is_number(item):
                out.append("#")
                continue
            out.append(type(item).__name__ + "(")
            todo.append(")")
            fields = [(name, value) for name, value in ast.iter_fields(item) if name not in _SKIPPED]
            for name, value in reversed(fields):
                if value is not None and value != []:
                    todo += [value, f" {name}="]
            if isinstance(item, ast.Constant) and item.value is None:
                todo.append("None")
        elif isinstance(item, list):
            out.append("[")
            todo.append("]")
            for element in reversed(item):
                todo += [",", element if element is not None else "None"]
        else:
            out.append(repr(item))
    return "".join(out)


# ── constants ────────────────────────────────────────────────────────────────────────────────────────────────────


def _constants(tree: ast.Module) -> Iterator[Constant]:
    """Every number of the tree in the order of its fields, which is the same for equal topologies."""
    names: dict[int, str] = {}
    seen: dict[str, int] = {}
    unnamed: dict[str, int] = {}
    todo: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while todo:
        node, scope = todo.pop()
        if not is_number(node):
            todo.extend(reversed(list(_children(node, scope, names))))
            continue
        name = names.get(id(node), "")
        named = bool(name)
        if not named:
            where = scope[-1] if scope else "module"
            unnamed[where] = unnamed.get(where, 0) + 1
            name = f"{where}, number {unnamed[where]}"
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            name = f"{name} ({seen[name]})"
        yield Constant(name, _value(node), getattr(node, "lineno", 0), named)


def _value(node: ast.AST) -> Number:
    sign = 1
    while isinstance(node, ast.UnaryOp):
        sign, node = -sign, node.operand
    assert isinstance(node, ast.Constant)
    value: Number = node.value  # type: ignore[assignment]
    return value if sign > 0 else -value


def _children(
    node: ast.AST, scope: tuple[str, ...], names: dict[int, str]
) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Child nodes in field order with their scope; ``names`` (by id) learns what a number there is called."""
    name = names.get(id(node), "")
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            scope = (*scope, node.name)
        case ast.Lambda():
            scope = (*scope, "lambda")
        case ast.arguments():
            names.update(_defaults(node, scope[-1] if scope else ""))
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            names.update({id(v): _target(t, scope) for t, v in zip(targets, values, strict=True)})  # a, b = 1, 2
        case ast.Assign(targets=[target]):
            names[id(node.value)] = _target(target, scope)
        case ast.AnnAssign(value=ast.expr()):
            names[id(node.value)] = _target(node.target, scope)
        case ast.List() | ast.Tuple() if name:
            names.update({id(element): f"{name}[{i}]" for i, element in enumerate(node.elts)})
        case ast.Dict() if name:
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    names[id(value)] = f"{name}[{key.value!r}]"
        case ast.BinOp() | ast.Call() if name:  # KP = 2 * 0.7, W = np.array([...]): the numbers are that name's
            names.update(dict.fromkeys(map(id, ast.iter_child_nodes(node)), name))
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield child, scope


def _target(target: ast.expr, scope: tuple[str, ...]) -> str:
    if isinstance(target, ast.Name):
        return f"{scope[-1]}.{target.id}" if scope else target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return f"self.{target.attr}"
    return ""


def _defaults(node: ast.arguments, function: str) -> dict[int, str]:
    """Names of parameters' defaults: ``f(gain)``."""
    positional = [*node.posonlyargs, *node.args]
    named: list[tuple[ast.arg, ast.expr]] = list(zip(reversed(positional), reversed(node.defaults), strict=False))
    named += [(arg, value) for arg, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value is not None]
    return {id(default): f"{function}({arg.arg})" for arg, default in named}
