"""How an agent's turn at a run ends when it is neither done nor stopped."""

from __future__ import annotations


class AgentFailed(Exception):
    """The agent cannot go on, and a person can help: the message is one sentence that says how. The run stays open."""


class LimitReached(Exception):
    """A limit of cost, turns or time is used up; the message says which. What was submitted so far is worth scoring."""
