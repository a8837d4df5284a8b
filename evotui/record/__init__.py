"""The one truth: facts, their log, the state folded from them, and a run's folder.

Owns ``events.jsonl`` (append, read, follow), the fold, the layout of a run on disk, and the check of a record.
Knows no agent, no environment, no screen. Imports ``protocol`` only; msgspec encodes, aiofiles writes, and numpy
reads the header of an observation file for the check.
"""
