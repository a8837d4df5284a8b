"""The headless face: JSON documents and plain text about runs, as pure functions.

Imports ``analysis``, ``record`` and ``protocol``; knows no terminal: what it returns is printed by whoever asks.
"""
