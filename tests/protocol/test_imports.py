"""Denied imports, statically."""

from __future__ import annotations

import pytest

from evotui.protocol.imports import DENIED_IMPORTS, denied, denied_in
from evotui.protocol.syntax import Unparsable


@pytest.mark.parametrize(
    "source",
    [
        "import gymnasium",
        "import os, gymnasium.spaces as s",
        "from gymnasium import make",
        "from gymnasium.envs.classic_control import CartPoleEnv",
        "def f():\n    import gymnasium",
        "try:\n    import gymnasium\nexcept ImportError: pass",
        "import importlib\nimportlib.import_module('gymnasium')",
        "import importlib as il\nil.import_module('gymnasium.spaces')",
        "from importlib import import_module as load\nload('gymnasium')",
        "import importlib\nimportlib.import_module(name='gymnasium')",
        "__import__('gymnasium')",
        "import builtins as b\nb.__import__('gymnasium')",
    ],
)
def test_seen(source: str) -> None:
    found = denied(source)
    assert {module.partition(".")[0] for _, module in found} == {"gymnasium"}
    assert all("gymnasium" in source.splitlines()[line - 1] for line, _ in found)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy, math, json",
        "from . import gym",
        "from .gym import x",
        "import gymnast",
        "x = 'import gymnasium'",
        "import_it('gymnasium')",
        "class A:\n    def import_module(self, n): ...\nA().import_module('gym')",
        "import importlib\nimportlib.import_module(name)",
        "import importlib\nimportlib.import_module('.gym', 'pkg')",
    ],
)
def test_allowed(source: str) -> None:
    assert denied(source) == []


def test_submodules_can_be_denied_alone() -> None:
    names = ["urllib.request"]
    assert denied("import urllib.parse", names) == []
    assert denied("import urllib.request", names) == [(1, "urllib.request")]
    assert denied("from urllib import parse, request", names) == [(1, "urllib.request")]


def test_lines_in_order_and_every_default_name() -> None:
    source = "\n".join(f"import {name}" for name in DENIED_IMPORTS)
    assert denied(source) == [(i + 1, name) for i, name in enumerate(DENIED_IMPORTS)]


def test_no_python_raises_with_its_line() -> None:
    with pytest.raises(Unparsable) as caught:
        denied("x = 1\ndef f(:\n")
    assert caught.value.line == 2


def test_a_whole_system() -> None:
    files = {
        "policy.py": b"import lib.a\n",
        "lib/a.py": b"\nimport requests\n",
        "lib/b.py": b"(",
        "data.txt": b"import gym",
    }
    assert denied_in(files) == [("lib/a.py", 2, "requests")]
