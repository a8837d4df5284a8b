"""The policy system of one process: what makes its Policy objects, and these by slot."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

from . import v03
from .seeds import LOAD_SEED, seed_globals


class Policies:
    """Imports ``policy.py`` and holds what comes of it; whatever a policy raises goes through."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.make: Any = None
        self.slots: list[Any] = []

    def load(self) -> None:
        """Import ``policy.py`` with the snapshot first on the path. Raises whatever the policy raises."""
        seed_globals(LOAD_SEED)
        path = os.path.join(self.config["system"], "policy.py")
        spec = importlib.util.spec_from_file_location("policy", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["policy"] = module
        spec.loader.exec_module(module)
        self.make = v03.constructor(module)
        if self.make is None:
            raise AttributeError("policy.py defines no class Policy")

    def construct(self, n: int) -> None:
        for _ in range(n):
            seed_globals(LOAD_SEED)
            given = json.loads(self.config["given"])  # fresh copies: a policy may write into what it was given
            self.slots.append(self.make(given["obs_space"], given["action_space"], given["env_meta"]))
