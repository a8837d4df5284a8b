"""The built-in ``search`` agent: controller forms, constants tuned by CMA-ES, code a person can read."""

from evotui.agents.search.agent import SearchAgent

__all__ = ["SearchAgent"]
