"""The cursor, and what it selects: pure functions of a folded state, without a screen.

One cursor rules the run screen: the selected submission, which follows the newest until a person moves it, and the
spotlit episode in it. Between submissions the newest thing is the workspace itself, the *draft*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from evotui.protocol.budget import format_cases
from evotui.protocol.verdict import Phase
from evotui.record import events as e
from evotui.record.state import RunState, Submission
from evotui.ui.words import short


class Base(StrEnum):
    """What a submission is compared with."""

    PREVIOUS = "previous"
    BEST = "best"
    START = "start"


class Eye(StrEnum):
    """Whose eye looks: the agent's never sees a hidden figure."""

    OBSERVER = "observer"
    AGENT = "agent"


class Spot(StrEnum):
    """Which episode of the selected submission is spotlit."""

    AUTO = "auto"
    NEWEST = "newest"
    BEST = "best"
    WORST = "worst"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class Cursor:
    """What a person chose. ``submission`` counts only while not following; None is the draft then."""

    follow: bool = True
    submission: int | None = None
    base: Base = Base.PREVIOUS
    eye: Eye = Eye.OBSERVER
    spot: Spot = Spot.AUTO
    position: int | None = None
    """A position chosen by hand; it rules over ``spot`` until the submission changes."""


@dataclass(frozen=True, slots=True)
class View:
    """What the cursor selects in a state. ``submission`` is None before the first one and for the draft."""

    submission: int | None
    draft: bool


def has_draft(state: RunState) -> bool:
    """Whether ``system/`` was edited since the last submission was accepted, while somebody may still submit."""
    if state.opened is None or state.ended is not None or state.finalizing is not None or state.active is not None:
        return False
    return _edited_since(state.transcript)


_scanned: tuple[e.Record, int, bool] | None = None
"""The last transcript that was looked through: its last record, its length, the answer. An agent may think ten thousand
thoughts between two edits, and this is asked at every drawing."""


def _edited_since(transcript: Sequence[e.Record]) -> bool:
    global _scanned
    count = len(transcript)
    if not count:
        return False
    known, stop = False, 0
    if _scanned is not None and _scanned[1] <= count and transcript[_scanned[1] - 1] is _scanned[0]:
        stop, known = _scanned[1], _scanned[2]
    for at in range(count - 1, stop - 1, -1):
        event = transcript[at].event
        if isinstance(event, e.SubmissionAccepted):
            known = False
            break
        if isinstance(event, e.FileEdited) and event.by != "start":
            known = True
            break
    _scanned = transcript[count - 1], count, known
    return known


def resolve(state: RunState, cursor: Cursor) -> View:
    """What the cursor selects now."""
    count = len(state.submissions)
    if not cursor.follow and cursor.submission is not None and count:
        return View(min(cursor.submission, count - 1), False)
    if has_draft(state) or not count:
        return View(None, True)
    return View(count - 1, False)


def older(state: RunState, cursor: Cursor) -> Cursor:
    """The cursor on the submission before."""
    count = len(state.submissions)
    if not count:
        return cursor
    view = resolve(state, cursor)
    at = count - 1 if view.submission is None else max(0, view.submission - 1)
    return replace(cursor, follow=False, submission=at, position=None)


def newer(state: RunState, cursor: Cursor) -> Cursor:
    """The cursor on the next submission; past the newest it follows again."""
    view = resolve(state, cursor)
    if view.submission is None or view.submission >= len(state.submissions) - 1:
        return replace(cursor, follow=True, submission=None, position=None)
    return replace(cursor, follow=False, submission=view.submission + 1, position=None)


def pick(cursor: Cursor, submission: int) -> Cursor:
    """The cursor on a submission that was clicked at."""
    return replace(cursor, follow=False, submission=submission, position=None)


def follow(cursor: Cursor) -> Cursor:
    return replace(cursor, follow=True, submission=None, position=None)


# ── the spotlit episode ──────────────────────────────────────────────────────────────────────────────────────────


def _rule(state: RunState, submission: Submission, spot: Spot) -> Spot:
    if spot is Spot.AUTO:
        newest = submission.index == len(state.submissions) - 1
        return Spot.NEWEST if newest and state.stage == "evolving" else Spot.BEST
    return spot


def spotlit(state: RunState, cursor: Cursor, submission: int) -> tuple[e.EpisodeFinished, str] | None:
    """The spotlit episode and the word that says why it is the one; None while none has finished."""
    sub = state.submissions[submission]
    if not sub.episodes:
        return None
    if cursor.position is not None:
        for episode in sub.episodes:
            if episode.position == cursor.position:
                return episode, f"{cursor.position + 1} of {sub.cost}"
    rule = _rule(state, sub, cursor.spot)
    if rule is Spot.NEWEST:
        return sub.episodes[-1], "newest"
    if rule is Spot.FIRST:
        return min(sub.episodes, key=lambda ep: ep.position), "first"
    if rule is Spot.WORST:
        return min(sub.episodes, key=lambda ep: (ep.return_, ep.position)), f"worst of {len(sub.episodes)}"
    return max(sub.episodes, key=lambda ep: (ep.return_, -ep.position)), f"best of {len(sub.episodes)}"


def spotlit_view(state: RunState, cursor: Cursor) -> tuple[int, e.EpisodeFinished, str] | None:
    """The episode on show: (submission, episode, why). While following, the newest submission that has one: the pane
    does not go dark while the next one loads."""
    view = resolve(state, cursor)
    at = len(state.submissions) - 1 if view.submission is None else view.submission
    while at >= 0:
        found = spotlit(state, cursor, at)
        if found is not None:
            return at, *found
        if not cursor.follow and view.submission is not None:
            return None
        at -= 1
    return None


def next_spot(state: RunState, cursor: Cursor, submission: int, by: int = 1) -> Cursor:
    """The cursor with the next rule of spotlighting: newest, best, worst, first."""
    order = [Spot.NEWEST, Spot.BEST, Spot.WORST, Spot.FIRST]
    now = _rule(state, state.submissions[submission], cursor.spot)
    return replace(cursor, spot=order[(order.index(now) + by) % len(order)], position=None)


def next_episode(state: RunState, cursor: Cursor, submission: int, by: int) -> Cursor:
    """The cursor on the finished episode after (before) the spotlit one, by position; it stops at the ends."""
    found = spotlit(state, cursor, submission)
    if found is None:
        return cursor
    positions = sorted(ep.position for ep in state.submissions[submission].episodes)
    at = min(max(positions.index(found[0].position) + by, 0), len(positions) - 1)
    # The submission is pinned with the episode: a chosen episode must not run away under the eye.
    return replace(cursor, position=positions[at], follow=False, submission=submission)


# ── the two sides of the diff ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ref:
    """A policy system in the record: a checkpoint by its submission, else the files by their blobs."""

    label: str
    checkpoint: int | None = None
    files: tuple[tuple[str, str], ...] = ()

    @property
    def empty(self) -> bool:
        return self.checkpoint is None and not self.files


def starting_files(state: RunState) -> Mapping[str, str]:
    """``system/`` as the run began: what was written before an agent started or anything was submitted."""
    files: dict[str, str] = {}
    for record in state.transcript:
        if isinstance(record.event, (e.AgentStarted, e.SubmissionAccepted)):
            break
        if isinstance(record.event, e.FileEdited) and record.event.by != "agent":
            files[record.event.path] = record.event.sha256
    return {path: sha for path, sha in files.items() if sha}


def _files(label: str, files: Mapping[str, str]) -> Ref:
    return Ref(label, None, tuple(sorted(files.items())))


def _checkpoint(state: RunState, submission: int) -> Ref:
    if not state.submissions[submission].tree_hash:
        # Not copied yet: what will be copied is the workspace as it is.
        return _files(short(submission), state.files)
    return Ref(short(submission), submission)


def sides(state: RunState, cursor: Cursor) -> tuple[Ref, Ref]:
    """What the diff compares: (before, after)."""
    view = resolve(state, cursor)
    count = len(state.submissions)
    start = _files("start", starting_files(state))
    after = _files("workspace", state.files) if view.submission is None else _checkpoint(state, view.submission)
    here = count if view.submission is None else view.submission
    if cursor.base is Base.START:
        return start, after
    if cursor.base is Base.BEST:
        best = state.best_in_loop
        return (start if best is None else _checkpoint(state, best.index)), after
    return (_checkpoint(state, here - 1) if here > 0 else start), after


# ── the header ───────────────────────────────────────────────────────────────────────────────────────────────────

PHASE_WORDS = {
    Phase.REQUEST: "reading the request",
    Phase.SNAPSHOT: "taking the snapshot",
    Phase.VALIDATE: "checking the policy",
    Phase.COMPILE: "importing the policy",
    Phase.INITIALIZE: "constructing the policy",
    Phase.COMMIT: "writing feedback",
}


def stage_words(state: RunState) -> tuple[str, str]:
    """What the run is doing: (glyph, words)."""
    stage = state.stage
    if stage == "opening":
        return "○", "opening"
    if stage == "ended":
        assert state.ended is not None
        status = state.ended.status
        return {
            "completed": ("✓", "completed"),
            "no_ok_submit": ("✗", "ended: no submission ran"),
        }.get(status, ("✗", f"ended: {state.ended.error or status}"))
    if stage == "validating":
        assert state.finalizing is not None
        todo = [i for i in state.finalizing if state.submissions[i].val_score is None]
        done = len(state.finalizing) - len(todo)
        if not todo:
            return "◇", "selecting"
        started = next((i for i in todo if state.submissions[i].validation), todo[0])
        n = len(state.submissions[started].validation)
        return "◇", f"validating {short(started)} {n}/{state.header.n_validation} · {done}/{len(state.finalizing)} done"
    if stage == "held-out":
        n = len(state.heldout.episodes) if state.heldout else 0
        return "◇", f"scoring held-out {n}/{state.header.n_heldout}"
    active = state.active
    if active is not None:
        if active.phase is Phase.EXECUTE:
            return "●", f"rolling out {len(active.episodes)}/{active.cost}"
        return "●", PHASE_WORDS[active.phase]
    if state.agent_live:
        return "●", "editing" if has_draft(state) else "thinking"
    if state.agent_ended:
        return "○", f"agent {state.agent_ended.replace('_', ' ')}"
    return "○", "starting"


def _named(place: str) -> str:
    """A place at which the gate holds, with a submission called as everywhere else: ``submission 4`` is ``s004``."""
    word, _, number = place.partition(" ")
    return short(int(number)) if word == "submission" and number.isdecimal() else place


def plain_cases(request: str) -> str:
    """Cases that were asked for, written as everywhere else: ``[4, 7, 8]`` is ``4,7-8``; as it is where it cannot be
    read."""
    try:
        return format_cases([int(part) for part in request.strip("[]").split(",")])
    except ValueError:
        return request.strip("[]")


def gate_words(state: RunState) -> str:
    """How the run's gate stands, where it is not simply open."""
    if state.stage in ("ended", "validating", "held-out", "opening"):
        return ""
    if state.asked is not None:
        return "waits for your approval"
    if state.held.startswith("what next"):
        return "waits: what next?"
    if state.held:
        return f"paused before {_named(state.held)}"
    following = len(state.submissions)
    if state.budget.spent and state.gate != "phase":
        return ""  # no submission follows, and what does has no gate
    return {
        "pause": f"pauses before {short(following)}",
        "iteration": "one iteration",
        "phase": "one phase",
    }.get(state.gate, "")
