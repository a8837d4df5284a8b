"""The code figures of a checkpoint and the hash of its tree, as ``metrics.json`` records them."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evotui.protocol.syntax import Unparsable, parse

SCHEMA_VERSION = "0.1"
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
UNCOUNTED = frozenset({".keep", "_meta.json", "metrics.json"})
_LITTER = re.compile(r"\..*\.sw[a-px]|.*~|\.#.*|#.*#|4913", re.DOTALL)
TREND = (
    "files", "python_files", "bytes", "policy_bytes", "lines", "source_lines", "classes", "functions", "import_count",
    "cyclomatic_total", "cyclomatic_max", "test_files", "tree_hash",
)  # fmt: skip
"""Figures whose course over the submissions a run's record keeps (``code_metrics_trend``)."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler)


def counted(path: str) -> bool:
    """Whether a checkpoint's file (relative POSIX path) belongs to its figures and its hash."""
    *folders, name = path.split("/")
    return name not in UNCOUNTED and name not in CACHES and CACHES.isdisjoint(folders)


def is_litter(name: str) -> bool:
    """Whether a file's name is one that editors give to what they leave beside a file: swap, backup, lock, autosave."""
    return _LITTER.fullmatch(name) is not None


def tree_hash(files: Mapping[str, bytes]) -> str:
    """``sha256:…`` over the counted files in the order of their relative POSIX paths: path, 0, bytes, 0 of each."""
    digest = hashlib.sha256()
    for path in sorted(filter(counted, files)):
        digest.update(path.encode("utf-8", "surrogateescape") + b"\0" + files[path] + b"\0")
    return "sha256:" + digest.hexdigest()


def metrics(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The figures of a checkpoint: the document of its ``metrics.json``.

    ``files`` maps relative POSIX paths to bytes; what is not counted may be among them. Line figures count Python
    files only. A file that does not parse counts its lines and is listed in ``parse_errors``.
    """
    paths = sorted(filter(counted, files))
    python = [path for path in paths if path.endswith(".py")]
    lines = source_lines = classes = functions = 0
    units: list[int] = []
    imports: set[str] = set()
    errors: list[str] = []
    for path in python:
        text = files[path].decode("utf-8", "replace")
        rows = [row.strip() for row in text.splitlines()]
        lines += len(rows)
        source_lines += sum(1 for row in rows if row and not row.startswith("#"))
        try:
            tree = parse(files[path])
        except Unparsable:
            errors.append(path)
            continue
        nodes = list(ast.walk(tree))
        classes += sum(isinstance(node, ast.ClassDef) for node in nodes)
        found = [node for node in nodes if isinstance(node, _FUNCTIONS)]
        functions += len(found)
        imports.update(_imports(nodes))
        if found:
            units.extend(cyclomatic(node) for node in found)
        elif text.strip():
            units.append(cyclomatic(tree))
    return {
        "schema_version": SCHEMA_VERSION,
        "files": len(paths),
        "python_files": len(python),
        "bytes": sum(len(files[path]) for path in paths),
        "policy_bytes": len(files.get("policy.py", b"")),
        "lines": lines,
        "source_lines": source_lines,
        "classes": classes,
        "functions": functions,
        "imports": sorted(imports),
        "import_count": len(imports),
        "cyclomatic_total": sum(units),
        "cyclomatic_max": max(units, default=0),
        "parse_errors": errors,
        "test_files": sum(1 for path in python if path.rpartition("/")[2].startswith("test_")),
        "tree_hash": tree_hash(files),
    }


def cyclomatic(unit: ast.AST) -> int:
    """The protocol's cyclomatic number of a function (nested ones included) or of a module without functions."""
    number = 1
    for node in ast.walk(unit):
        if isinstance(node, _BRANCHES):
            number += 1
        elif isinstance(node, ast.BoolOp):
            number += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            number += len(node.ifs)
        elif isinstance(node, ast.Match):
            number += len(node.cases)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            number += len(node.handlers)  # on top of the handlers themselves: so the protocol has it
    return number


def trend(by_submit: Mapping[int, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """``code_metrics_trend`` of a run's record: ``submits`` in ascending order and a list for each figure."""
    submits = sorted(by_submit)
    return {"submits": submits, **{key: [by_submit[i].get(key) for i in submits] for key in TREND}}


def _imports(nodes: Sequence[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
