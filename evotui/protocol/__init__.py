"""The paper's protocol as frozen values: tasks, pools, spaces, verdicts, budget, results.

Owns what a run *means*; knows no file, no process, no screen. Imports the standard library, and numpy where an
array is a value. Everything else in evotui may import it.
"""
