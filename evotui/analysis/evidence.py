"""What stood behind each submission: which feedback was read, what was said of it, what was changed, what came of it.

From the transcript alone, without a model: a reading tool or a shell command that names a file read it, and the last
thing that was said before the edit is what the agent saw in it. An agent that reads without a tool call leaves no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evotui.analysis.edits import Edit, constant_changes, load_bundles
from evotui.analysis.edits import edits as edits_of
from evotui.analysis.tools import command_of, feedback_read, understand
from evotui.record import events as e
from evotui.record.rundir import RunDir
from evotui.record.state import RunState

_SAID = 400
"""Characters of what was said that are kept."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One submission. Paths are relative to ``feedback/``.

    ``read`` are files that were read on the way to it and before its last edit, ``there`` how many feedback files
    existed then, ``never`` how many of those had not been read up to then by anybody. ``said`` is the last message or
    thought before its first edit. ``gain`` is its mean against the best one before it, None where either is missing.
    """

    submission: int
    by: str
    read: tuple[str, ...]
    there: int
    never: int
    said: str
    edit: Edit | None
    constants: int
    mean: float | None
    gain: float | None
    verdict: str

    @property
    def share_never(self) -> float | None:
        """The share (0 … 1) of the feedback that had never been read; None where there was none yet."""
        return self.never / self.there if self.there else None


def feedback_files(run: RunDir, state: RunState) -> dict[int, tuple[str, ...]]:
    """The feedback files of each submission, as far as they are there. Blocking."""
    found: dict[int, tuple[str, ...]] = {}
    for submission in state.submissions:
        folder = run.feedback_of(submission.index)
        if folder.is_dir():
            paths = (p.relative_to(run.feedback).as_posix() for p in folder.rglob("*") if p.is_file())
            found[submission.index] = tuple(sorted(paths))
    return found


def matching(pattern: str, files: Sequence[str]) -> list[str]:
    """The files that a path as an agent wrote it means: the file, those below a folder, those that wildcards match."""
    if pattern == ".":
        return list(files)
    if any(mark in pattern for mark in "*?["):
        return [path for path in files if fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")]
    return [path for path in files if path == pattern or path.startswith(f"{pattern.rstrip('/')}/")]


def evidence(
    state: RunState,
    files: Mapping[int, Sequence[str]],
    edits: Mapping[int, Edit] | None = None,
    constants: Mapping[int, int] | None = None,
) -> tuple[Evidence, ...]:
    """A row for each accepted submission, in order. ``files`` are the feedback files by submission, ``edits`` the
    transitions and ``constants`` the numbers of constants that moved, as far as they are known."""
    rows: list[Evidence] = []
    known: list[str] = []
    ever: set[str] = set()
    here: list[str] = []
    # As they stood at the last edit: what is read between the edit and the submission did not lead to it.
    at_edit: tuple[list[str], int, int] | None = None
    said = last = ""
    edited = False
    best: float | None = None
    for record in state.transcript:
        event = record.event
        match event:
            case e.ToolCalled():
                call = understand(event.name, event.arguments)
                for pattern in feedback_read(call, command_of(event.arguments)):
                    new = matching(pattern, known)
                    here += [path for path in new if path not in here]
                    ever.update(new)
            case e.AgentMessage() | e.AgentThought() if event.text.strip():
                last = event.text
            case e.FileEdited() if event.by == "agent":
                at_edit = (list(here), len(known), len(set(known) - ever))
                if not edited:
                    edited, said = True, last
            case e.SubmissionAccepted():
                submission = state.submissions[event.submission]
                read, there, never = at_edit or (list(here), len(known), len(set(known) - ever))
                mean = submission.mean if submission.ok else None
                rows.append(
                    Evidence(
                        event.submission, event.by, tuple(read), there, never,
                        _short(said if edited else last) if event.by == "agent" else "",
                        (edits or {}).get(event.submission), (constants or {}).get(event.submission, 0), mean,
                        mean - best if mean is not None and best is not None else None,
                        str(submission.verdict) if submission.verdict is not None else "",
                    )
                )  # fmt: skip
                if mean is not None and (best is None or mean > best):
                    best = mean
                here, at_edit, edited, said, last = [], None, False, "", ""
            case e.SubmissionFinished():
                known += [path for path in files.get(event.submission, ()) if path not in known]
    return tuple(rows)


def evidence_of(run: RunDir, state: RunState) -> tuple[Evidence, ...]:
    """The rows of a run as it lies on the disk. Blocking. Raises OSError where a checkpoint is unreadable."""
    bundles = load_bundles(run, state)
    found = {edit.submission: edit for edit in edits_of(state, bundles)}
    moved = {
        index: len(constant_changes(bundles[edit.previous], bundles[index]))
        for index, edit in found.items()
        if edit.previous is not None and edit.previous in bundles and index in bundles
    }
    return evidence(state, feedback_files(run, state), found, moved)


def never_read(rows: Sequence[Evidence]) -> float | None:
    """The share of feedback that had never been read when the last edit was made; None where there was none."""
    return next((row.share_never for row in reversed(rows) if row.share_never is not None), None)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SAID else text[: _SAID - 1].rstrip() + "…"
