"""What a policy imports: compiled and loaded ahead in the zygote, and refused where it is denied."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import os
import sys
from typing import Any

import numpy as np

from .seeds import SeedOnImport

_FILES = 256  # of a snapshot that are compiled ahead; it may have more
_FILE_BYTES = 256 << 10  # of each; a longer one is compiled on the policy's own time, not before the process is ready


def _python_files(system: str) -> list[str]:
    found = []
    for folder, _, names in os.walk(system):
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)[:_FILES]


def prepare(system: str, denied: tuple[str, ...]) -> None:
    """Pay once for what every episode would pay: compile the snapshot's files, import the libraries that they name.

    Compiling runs no code of theirs, and libraries are found without the snapshot on the path. Whatever fails here
    fails again, and is told, where the policy does it.
    """
    compiled: dict[tuple[str, bytes], Any] = {}
    wanted: list[str] = []
    for path in _python_files(system):
        try:
            with open(path, "rb") as file:
                data = file.read()
            if len(data) > _FILE_BYTES:
                continue
            if b"random" in data:
                wanted.append("numpy.random")
            tree = ast.parse(data, path)
            compiled[path, data] = compile(data, path, "exec", dont_inherit=True)
        except Exception:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                wanted += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                wanted.append(node.module)
    local = {name.removesuffix(".py") for name in os.listdir(system)}
    for name in dict.fromkeys(wanted):
        if name.partition(".")[0] not in local.union(denied):
            try:
                importlib.import_module(name)
            except BaseException:
                continue
    plain = importlib.machinery.SourceFileLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        return compiled.get((str(path), bytes(data))) or plain(self, data, path, **options)

    importlib.machinery.SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]


def guard_imports(denied: tuple[str, ...]) -> None:
    """Make ``import`` of a denied package raise ImportError where the policy's own code asks for it.

    A rule of the game, not a wall (the sandbox is that): installed libraries may still import what they need.
    """
    roots = frozenset({*denied, "evotui", __name__.partition(".")[0]})
    for name in [n for n in sys.modules if n.partition(".")[0] in roots]:
        del sys.modules[name]
    libraries = tuple({os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__))})

    def asked_by_policy() -> bool:
        frame = sys._getframe(2)
        while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
            frame = frame.f_back  # type: ignore[assignment]
        return frame is None or not frame.f_code.co_filename.startswith(libraries)

    def refuse(name: str) -> None:
        if name.partition(".")[0] in roots and asked_by_policy():
            raise ImportError(f"import of {name.partition('.')[0]!r} is denied to policies", name=name)

    class Refuse:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> None:
            refuse(name)

    plain_import = builtins.__import__

    def checked_import(name: str, *args: Any, **kwargs: Any) -> Any:
        refuse(name)
        return plain_import(name, *args, **kwargs)

    builtins.__import__ = checked_import
    sys.meta_path[:0] = [Refuse, SeedOnImport]
