"""Reads and draws: the terminal application. The only package that imports textual or rich.

It sees folded states and records on disk, and asks through the protocols of ``ui.feed``; it never judges. Imports
``analysis``, ``record`` and ``protocol``; never kernel, rollout, suite or agents: the CLI hands those in.
"""
