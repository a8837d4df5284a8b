"""evotui: mission control and debugger for agents that evolve executable policies.

Imports point one way: ``cli → ui | report → analysis → agents | kernel → rollout → suite → record → protocol``.
``ui``, ``report`` and ``analysis`` see folded state only; the CLI hands them everything else through small protocols.
"""

__version__ = "0.1.0"
