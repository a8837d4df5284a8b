"""Every action, declared once: keys, key bar, help screen and command palette read the lists of this module.

A command names its method: ``step_phase`` is ``do_step_phase`` of the screen that lists it. ``needs`` are conditions on
the :class:`Situation`; one that does not hold becomes the sentence that says why the key does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether a command can do something now."""

    controls: bool = False
    """This process drives the run."""
    ended: bool = False
    stage: str = "evolving"
    """Of the run: opening, evolving, validating, held-out, ended."""
    spent: bool = False
    """The budget is: no submission comes any more."""
    gate: str = "run"
    submissions: int = 0
    display_paused: bool = False
    following: bool = True
    post_hoc: bool = False
    episode: bool = False
    """An episode is spotlit."""
    drawn: bool = False
    """The environment has a drawing in characters beside its picture."""
    as_text: bool = False
    """That drawing is on show."""
    runs: int = 0
    """Runs in the home screen's list."""
    maximised: bool = False
    hears: bool = False
    """The agent is there and can be spoken to."""
    asked: bool = False
    """A submission waits for a person's approval."""
    left: bool = False
    """The agent ended with budget left, and the run waits to be told who goes on."""
    approval: bool = False
    """Each submission waits for approval."""
    checkpoint: bool = False
    """The selected submission has a checkpoint."""
    status: str = ""
    """Of the run on show, or selected in the list: running, interrupted, unreadable, else ended."""


def _unheld(s: Situation) -> str:
    """Why nothing here drives the run."""
    if s.ended and s.status == "interrupted":
        return "the run was interrupted: R resumes it"
    return "the run has ended" if s.ended else "this run is not driven from here: it can only be watched"


def _scoring(s: Situation) -> str:
    """Why the agent's part cannot be touched."""
    return {
        "validating": "the agent's part is over, validation is under way",
        "held-out": "the agent's part is over, held-out cases are scored",
    }.get(s.stage, "the agent's part is over")


def _flows(s: Situation) -> str:
    """Why the run cannot be held: what follows the last submission has no gate, only a stop that resumes."""
    if s.ended or s.stage not in ("validating", "held-out"):
        return "the budget is spent: no submission follows" if s.spent and not s.ended else _scoring(s)
    what = "validation" if s.stage == "validating" else "held-out scoring"
    return f"{what} does not pause: x stops it, to be resumed"


def _evolving(s: Situation) -> bool:
    return not s.ended and s.stage not in ("validating", "held-out")


_NEEDS: dict[str, tuple[Callable[[Situation], bool], str | Callable[[Situation], str]]] = {
    "controls": (lambda s: s.controls, _unheld),
    "evolving": (_evolving, _scoring),
    "pausable": (lambda s: _evolving(s) and (not s.spent or s.gate != "run"), _flows),
    "unspent": (lambda s: not s.spent, "the budget is spent"),
    "phases": (_evolving, _flows),
    "unended": (lambda s: not s.ended, "the run has ended"),
    "submission": (lambda s: s.submissions > 0, "there is no submission yet"),
    "episode": (lambda s: s.episode, "no episode has finished yet"),
    "drawn": (lambda s: s.drawn, "this environment has no drawing in characters"),
    "display paused": (lambda s: s.display_paused, "pause the display first (space)"),
    "astray": (lambda s: not s.following or s.display_paused, "the newest submission is followed already"),
    "hearing": (lambda s: s.hears, "there is no agent here that listens"),
    "asked": (lambda s: s.asked, "nothing waits for your approval"),
    "left": (lambda s: s.left, "the agent is still at work: H hands over"),
    "checkpoint": (lambda s: s.checkpoint, "select a submission whose policy was recorded"),
    "unheld": (lambda s: s.status != "running", "another process is running it: enter watches it"),
    "resting": (lambda s: s.status != "running", "this run is going on already"),
    "interrupted": (lambda s: s.status == "interrupted", "only a run that was interrupted can go on"),
    "runs": (lambda s: s.runs > 0, "there is no run yet: n starts one"),
    "cells": (lambda s: s.runs > 0, "that cell has not begun"),
    "running": (lambda s: s.controls, "nothing is run any more"),
}


@dataclass(frozen=True, slots=True)
class Command:
    """One action. ``bar`` is its rank in the key bar (1 stays longest, 0 is not shown), ``shown`` its keys as written
    there."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str
    needs: tuple[str, ...] = ()
    bar: int = 0
    shown: str = ""
    asks: bool = False
    """It opens a dialog that waits for an answer: keys typed until it is there belong to it."""
    typed: bool = False
    """It opens a line that is typed into, also where nothing can come of that: the line says why. Were it refused, each
    letter of what follows would be a command."""

    seldom: bool = False
    """Most runs have no use for it: the help says it only where it can do something."""

    @property
    def method(self) -> str:
        return f"do_{self.id.replace('.', '_')}"

    @property
    def key_text(self) -> str:
        """The keys as the help screen writes them."""
        return " ".join(key_name(key) for key in self.keys)

    @property
    def key_short(self) -> str:
        """The key as the key bar writes it."""
        return self.shown or key_name(self.keys[0])

    def why_not(self, situation: Situation) -> str:
        """Why the command can do nothing now; empty where it can."""
        for need in self.needs:
            holds, reason = _NEEDS[need]
            if not holds(situation):
                return reason if isinstance(reason, str) else reason(situation)
        return ""


_KEY_NAMES = {
    "left_square_bracket": "[", "right_square_bracket": "]", "question_mark": "?", "plus": "+", "minus": "−",
    "equals_sign": "=", "comma": ",", "full_stop": ".", "left": "←", "right": "→", "up": "↑", "down": "↓",
    "less_than_sign": "<", "greater_than_sign": ">",
    "slash": "/", "colon": ":", "enter": "⏎", "escape": "esc", "pageup": "pgup", "pagedown": "pgdn",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as it is written for people: ``ctrl+d`` is ``^d``."""
    if key.startswith("ctrl+"):
        return "^" + key[5:]
    return _KEY_NAMES.get(key, key)


EVERYWHERE: tuple[Command, ...] = (
    Command("help", ("question_mark", "f1"), "help", "Show every key and what it does", "Application", bar=2),
    Command("palette", ("ctrl+p",), "palette", "Find an action by its name", "Application", bar=7),
    Command("line", ("colon",), "command line", "Any action by name; N: submission N", "Application"),
    Command("theme", ("t",), "theme", "Next theme", "Application"),
    Command("suspend", ("ctrl+z",), "suspend", "Put evotui into the shell's background", "Application"),
)

RUN: tuple[Command, ...] = (
    Command("older", ("left_square_bracket", "left"), "submission", "The submission before, in every pane",
            "Cursor", ("submission",), bar=6, shown="[ ]"),
    Command("newer", ("right_square_bracket", "right"), "newer", "The next submission; at the end, follow",
            "Cursor", ("submission",)),
    Command("follow", ("f",), "follow", "Follow the newest submission again", "Cursor", ("astray",), bar=8),
    Command("display", ("space",), "freeze", "Freeze the display only; the run goes on", "Cursor", bar=3),
    Command("eye", ("v",), "eye", "Agent's eye (nothing hidden) or yours", "Cursor"),
    Command("pause", ("p",), "pause run", "Pause the run at its gate, or resume", "Run",
            ("controls", "pausable"), bar=4),
    Command("step_iteration", ("s",), "step", "One iteration: edit, submission, feedback", "Run",
            ("controls", "pausable"), bar=5),
    Command("step_phase", ("S",), "step phase", "One phase of a submission", "Run",
            ("controls", "phases"), bar=12),
    Command("stop", ("x", "X", "ctrl+c"), "stop", "Stop the run; asks first", "Run",
            ("controls", "unended"), asks=True),
    Command("resume", ("R",), "resume", "Go on with an interrupted run", "Run", ("resting", "interrupted"), bar=3,
            asks=True),
    Command("branch", ("B",), "branch", "A new run from this checkpoint", "Run",
            ("checkpoint",), asks=True),
    Command("answer", ("a",), "answer", "Approve what waits, or refuse it", "Agent",
            ("controls", "asked"), bar=1, asks=True),
    Command("onward", ("w",), "what next", "The agent has left: who goes on", "Agent", ("controls", "left"), bar=1,
            asks=True),
    Command("say", ("i",), "message", "Write to the agent", "Agent", ("controls", "evolving", "hearing"), bar=8,
            typed=True),
    Command("approval", ("A",), "approval", "Each submission asks you first, or none", "Agent",
            ("controls", "evolving", "unspent")),
    Command("hand_over", ("H",), "hand over", "Let another agent go on, or yourself", "Agent",
            ("controls", "evolving", "unspent"), asks=True),
    Command("folds", ("o",), "unfold", "Unfold long entries, or fold them", "Agent"),
    Command("edit", ("e",), "edit", "Edit policy.py in $EDITOR, live", "Policy",
            ("controls", "evolving", "unspent"), bar=9),
    Command("code", ("C",), "code", "Edit policy.py in the built-in editor", "Policy",
            ("controls", "evolving", "unspent"), asks=True),
    Command("submit", ("u",), "submit", "Submit it yourself, on chosen cases", "Policy",
            ("controls", "evolving", "unspent"), bar=10, asks=True),
    Command("diff_mode", ("d",), "diff", "Unified, side by side, whole file", "Policy", bar=11),
    Command("diff_against", ("D",), "against", "Against previous, best or start", "Policy"),
    Command("evidence", ("E",), "evidence", "What was read, said, changed, gained", "Policy"),
    Command("next_hunk", ("n",), "next hunk", "Next hunk", "Policy"),
    Command("previous_hunk", ("N",), "previous hunk", "Previous hunk", "Policy"),
    Command("code_left", ("less_than_sign",), "code left", "Long lines: to their start", "Policy"),
    Command("code_right", ("greater_than_sign",), "code right", "Long lines: to their end", "Policy"),
    Command("previous_episode", ("h",), "episode before", "Spotlight the episode before", "Environment", ("episode",)),
    Command("next_episode", ("l",), "next episode", "Spotlight the next episode", "Environment", ("episode",)),
    Command("spot", ("b",), "spotlight", "Newest, best, worst or first (also ↑ ↓)", "Environment", ("episode",)),
    Command("replay", ("r",), "replay", "Play the spotlit episode from its start", "Environment", ("episode",)),
    Command("drawing", ("T",), "as text", "Its drawing in characters, or its picture", "Environment", ("drawn",),
            bar=10, seldom=True),
    Command("faster", ("plus", "equals_sign"), "faster", "Play faster", "Environment"),
    Command("slower", ("minus",), "slower", "Play slower", "Environment"),
    Command("frame_back", ("comma",), "frame back", "One environment step back", "Environment",
            ("display paused", "episode")),
    Command("frame_on", ("full_stop",), "frame on", "One environment step on", "Environment",
            ("display paused", "episode")),
    Command("case_map", ("c",), "case map", "Score history, or cases × submissions", "Score"),
    Command("next_pane", ("tab",), "next pane", "Focus the next pane", "Panes"),
    Command("previous_pane", ("shift+tab",), "previous pane", "Focus the pane before", "Panes"),
    Command("pane_1", ("1",), "policy", "Focus the policy", "Panes"),
    Command("pane_2", ("2",), "environment", "Focus the environment", "Panes"),
    Command("pane_3", ("3",), "agent", "Focus the agent's transcript", "Panes"),
    Command("pane_4", ("4",), "score", "Focus the score", "Panes"),
    Command("pane_5", ("5",), "budget", "Focus the budget", "Panes"),
    Command("maximise", ("m",), "maximise", "Maximise the focused pane, or show all", "Panes", bar=13),
    Command("reset", ("0", "escape"), "reset", "All panes, unified diff, normal speed", "Panes"),
    Command("down", ("j", "down"), "down", "Scroll a line down", "Panes"),
    Command("up", ("k", "up"), "up", "Scroll a line up", "Panes"),
    Command("half_down", ("ctrl+d", "pagedown"), "half a page down", "Scroll half a page down", "Panes"),
    Command("half_up", ("ctrl+u", "pageup"), "half a page up", "Scroll half a page up", "Panes"),
    Command("top", ("g", "home"), "top", "Go to the top", "Panes"),
    Command("bottom", ("G", "end"), "bottom", "Go to the end", "Panes"),
    Command("copy", ("y",), "copy", "Copy the focused pane's text", "Panes"),
    *EVERYWHERE,
    Command("leave", ("q",), "back", "Back or quit; asks while a run is live", "Application",
            bar=1, asks=True),
)  # fmt: skip

HOME: tuple[Command, ...] = (
    Command("open", ("enter", "o"), "open", "Open the selected run", "Runs", ("runs",), bar=4, shown="⏎"),
    Command("new", ("n",), "new run", "Start a new run", "Runs", bar=5, asks=True),
    Command("filter", ("slash",), "filter", "Filter the list by words", "Runs", ("runs",), bar=6, typed=True),
    Command(
        "resume",
        ("R",),
        "resume",
        "Go on with an interrupted run; asks first",
        "Runs",
        ("runs", "unheld", "interrupted"),
        bar=5,
        asks=True,
    ),
    Command("refresh", ("r",), "refresh", "Look for runs again", "Runs", bar=7),
    Command("down", ("j", "down"), "down", "Next run", "Runs"),
    Command("up", ("k", "up"), "up", "Run before", "Runs"),
    Command("half_down", ("ctrl+d", "pagedown"), "half a page down", "Half a page down", "Runs"),
    Command("half_up", ("ctrl+u", "pageup"), "half a page up", "Half a page up", "Runs"),
    Command("top", ("g", "home"), "top", "First run", "Runs"),
    Command("bottom", ("G", "end"), "bottom", "Last run", "Runs"),
    Command("copy", ("y",), "copy", "Copy the selected run's path", "Runs", ("runs",)),
    *EVERYWHERE,
    Command("leave", ("q", "ctrl+c"), "quit", "Quit evotui", "Application", bar=1, shown="q"),
)

SUITE: tuple[Command, ...] = (
    Command("open", ("enter", "o"), "open", "Open the selected cell's run", "Suite", ("cells",), bar=4, shown="⏎"),
    Command("repeat", ("r",), "repeat", "Another repeat of the selected cell", "Suite", bar=6),
    Command("paper", ("P",), "paper", "Rank among the paper's entries, or not", "Suite", bar=5),
    Command("stop", ("x", "X", "ctrl+c"), "stop", "Stop the suite; asks first", "Suite", ("running",), bar=8,
            asks=True),
    Command("down", ("j", "down"), "down", "Next environment", "Suite"),
    Command("up", ("k", "up"), "up", "Environment before", "Suite"),
    Command("left", ("h", "left"), "left", "Agent before", "Suite"),
    Command("right", ("l", "right"), "right", "Next agent", "Suite"),
    Command("top", ("g", "home"), "top", "First environment", "Suite"),
    Command("bottom", ("G", "end"), "bottom", "Last environment", "Suite"),
    Command("copy", ("y",), "copy", "Copy the path of the selected cell's run", "Suite", ("cells",)),
    *EVERYWHERE,
    Command("leave", ("q",), "quit", "Quit; asks while the suite is live", "Application", bar=1, asks=True),
)  # fmt: skip

PLACES: dict[str, tuple[Command, ...]] = {"run": RUN, "home": HOME, "suite": SUITE}


def find(commands: Sequence[Command], id: str) -> Command:
    """The command of that id. Raises KeyError."""
    for command in commands:
        if command.id == id:
            return command
    raise KeyError(id)


def groups(commands: Sequence[Command]) -> dict[str, list[Command]]:
    """Commands by group, in the order of their declaration: the help screen."""
    found: dict[str, list[Command]] = {}
    for command in commands:
        found.setdefault(command.group, []).append(command)
    return found


_TURNED: dict[str, tuple[Callable[[Situation], bool], str]] = {
    "display": (lambda s: s.display_paused, "unfreeze"),
    "pause": (lambda s: s.gate != "run", "resume run"),
    "drawing": (lambda s: s.as_text, "as picture"),
    "maximise": (lambda s: s.maximised, "show all"),
    "approval": (lambda s: s.approval, "approval off"),
}
"""What a key that turns something on and off does next."""


def bar(commands: Sequence[Command], situation: Situation) -> list[Command]:
    """What the key bar shows: ranked commands that can do something now, the most needed first."""
    able = []
    for command in commands:
        if command.bar and not command.why_not(situation):
            is_on, label = _TURNED.get(command.id, (None, ""))
            able.append(replace(command, label=label) if is_on is not None and is_on(situation) else command)
    return sorted(able, key=lambda c: c.bar)
