"""Widgets: they draw. Each takes plain frozen values and says what the user asked for by a nested message.

Owns the drawing of frames, plots, diffs, transcripts, budgets and step values on Textual's line API. Knows no event,
session, run folder or screen, and looks nothing up in the tree, so that a live run, a recorded one and a test look the
same. Imports textual, rich, numpy, Pillow and nothing of evotui outside this package. Every colour comes from the theme
through component classes; a glyph or a word always stands beside the colour.
"""
