"""What a run's facts and files mean: edits and their classes, scores and their certainty.

Pure functions of folded states and file contents; no clock, no screen, no process. Imports ``record`` and ``protocol``.
"""
