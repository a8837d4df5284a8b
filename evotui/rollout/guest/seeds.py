"""The global generators of the policy process, ``random`` and ``numpy.random``: seeded before any policy code draws."""

from __future__ import annotations

import importlib.machinery
import random
import sys
from typing import Any

import numpy as np

LOAD_SEED = 0
"""Import and constructor see the same random numbers in every episode: a policy starts as one thing."""

_seed = LOAD_SEED


def seed_globals(seed: int) -> None:
    """Seed ``random`` and numpy's legacy generator; the latter now if it is there, else when it is imported.

    numpy loads it on demand, and a process without it is forked and ended in two thirds of the time.
    """
    global _seed
    _seed = seed
    random.seed(seed)
    if "numpy.random" in sys.modules:
        np.random.seed(seed & 0xFFFFFFFF)


class SeedOnImport:
    """Finds ``numpy.random`` for whoever imports it, however it is done, and seeds it once it is loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != "numpy.random":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                plain(module)
                module.seed(_seed & 0xFFFFFFFF)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
