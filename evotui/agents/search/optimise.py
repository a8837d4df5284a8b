"""The parametric side: CMA-ES of the library ``cma`` over a form's constants, deterministic for a seed.

``cma`` is imported here, where it is used, and in a thread (it takes a second); it draws from our generator, never from
numpy's global one, and sees ranks only, so that ties can be broken by other evidence than the return.
"""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from evotui.agents.search.code import Form


def _strategy(dimensions: int, size: int, sigma: float, rng: np.random.Generator) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without matplotlib it warns that it cannot plot
        import cma

        return cma.CMAEvolutionStrategy(
            np.zeros(dimensions),
            sigma,
            {
                "popsize": size,
                "randn": lambda *shape: rng.standard_normal(shape),
                "seed": math.nan,
                "verbose": -9,
                "verb_log": 0,
                "verb_disp": 0,
                "CMA_active": True,
                "tolfun": 0,
                "tolfunhist": 0,
                "tolx": 0,
                "tolstagnation": 10**9,
            },
        )


class Tuner:
    """Proposes values for the constants of one form around where it stands. Ask, then tell the ranks, repeatedly."""

    def __init__(self, form: Form, size: int, seed: int, sigma: float = 1.0) -> None:
        self.form = form
        self.size = size
        self.generation = 0
        self._sigma = sigma
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._origin = np.array(form.values)
        self._scale = np.array(form.scales)
        self._free = np.flatnonzero(self._scale > 0)
        # cma wants two dimensions at least; a second one that does nothing is harmless
        self._dimensions = max(2, len(self._free))
        self._strategy: Any = None
        self._asked: list[np.ndarray] = []

    @property
    def dimensions(self) -> int:
        return len(self._free)

    def _form(self, point: np.ndarray) -> Form:
        values = self._origin.copy()
        values[self._free] += point[: len(self._free)] * self._scale[self._free]
        return self.form.at(values.tolist())

    async def ask(self) -> list[Form]:
        """The candidates of the next generation."""

        def work() -> list[np.ndarray]:
            if self._strategy is None:
                self._strategy = _strategy(self._dimensions, self.size, self._sigma, self._rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return [np.array(x) for x in self._strategy.ask()]

        self._asked = await asyncio.to_thread(work)
        self.generation += 1
        return [self._form(point) for point in self._asked]

    async def tell(self, ranks: Sequence[float]) -> None:
        """Ranks of the candidates of the last :meth:`ask`, in their order: 0 is the best."""

        def work() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._strategy.tell(self._asked, [float(r) for r in ranks])

        await asyncio.to_thread(work)

    def mean(self) -> Form:
        """The centre of the distribution: what all generations together point to."""
        if self._strategy is None:
            return self.form
        return self._form(np.array(self._strategy.mean))

    @property
    def sigma(self) -> float:
        """Present step relative to the first one."""
        return float(self._strategy.sigma) / self._sigma if self._strategy is not None else 1.0
