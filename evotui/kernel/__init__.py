"""Judging: sessions, the life of a submission, finalization, the gate. Knows no agent and no screen.

A lifecycle (``submission``, ``finalization``) is an async generator of facts: no clock, no log, no screen inside. The
session stamps, logs and folds them. Imports ``rollout``, ``suite``, ``record`` and ``protocol``.

A live run: ``session`` (steered by people, drives its agents) is a ``door`` (what an agent may do) over ``rollouts``
(the submission under way) and ``ledger`` (its facts); ``ending`` closes it.
"""
