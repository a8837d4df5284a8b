"""Symbolic grids: a state machine that maps, explores and interacts, and a plain walker to compare it with.

The state machine's source is the module ``grid_policy``; here its codes are set to what the task text says (the usual
ones where it says nothing) and its constants become tunable.
"""

from __future__ import annotations

import re
from importlib import resources

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.spaces import Situation

_WORDS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal")
_THINGS = tuple((word, i) for i, word in enumerate(_WORDS))
_STATES = (("open", 0), ("closed", 1), ("locked", 2))
_COLOURS = (("red", 0), ("green", 1), ("blue", 2), ("purple", 3), ("yellow", 4), ("grey", 5))
_ACTIONS = (
    (("turn left", "left"), 0),
    (("turn right", "right"), 1),
    (("forward", "ahead"), 2),
    (("pick",), 3),
    (("drop", "lay down", "put down"), 4),
    (("toggle", "open", "use"), 5),
)


def codes_in_text(text: str, words: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """The number that a task text gives each word in a list such as "0 open, 1 closed"; the usual one where none."""
    found = []
    for word, usual in words:
        names = ("not visible", "unseen") if word == "unseen" else (word,)
        match = re.search(rf"\b(\d{{1,2}})\s*[:=]?\s*(?:{'|'.join(names)})\b", text.lower())
        found.append(int(match[1]) if match else usual)
    return tuple(found) if len(set(found)) == len(found) else tuple(usual for _, usual in words)


def actions_by_name(situation: Situation) -> tuple[int, ...]:
    """Which action turns left, turns right, moves, picks up, lays down, toggles: by name, else in the usual order."""
    names = [name.lower() for name in situation.actions.names]
    found: list[int] = []
    for words, usual in _ACTIONS:
        index = next((i for i, name in enumerate(names) if any(w in name for w in words) and i not in found), usual)
        found.append(index)
    if len(set(found)) < len(found) or max(found) >= situation.actions.n:
        found = [usual for _, usual in _ACTIONS]
    return tuple(situation.actions.start + i for i in found)


def _set_line(source: str, start: str, line: str) -> str:
    lines = [line if old.startswith(start) else old for old in source.split("\n")]
    return "\n".join(lines)


def _key(path: tuple[str | int, ...] | None) -> str:
    return repr(path[0]) if path else "None"


def fits(situation: Situation) -> bool:
    """Whether the state machine can read these observations: a Dict with the grid at its top, six actions or more."""
    view, kind = situation.view, situation.actions
    return (
        view.kind == "grid" and kind.kind == "discrete" and kind.n >= 6
        and view.grid_path is not None and len(view.grid_path) == 1 and view.grid_shape[2] == 3
    )  # fmt: skip


def explorer_form(situation: Situation) -> Form | None:
    """The mapping state machine, with its codes and keys set for this task."""
    if not fits(situation):
        return None
    source = resources.files(__package__).joinpath("grid_policy.py").read_text("utf-8")
    things = codes_in_text(situation.task, _THINGS)
    states = codes_in_text(situation.task, _STATES)
    colours = codes_in_text(situation.task, _COLOURS)
    view = situation.view
    names = ", ".join(word.upper() for word, _ in _THINGS)
    source = _set_line(source, "UNSEEN, EMPTY", f"{names} = {', '.join(map(str, things))}")
    source = _set_line(source, "OPEN, CLOSED", f"OPEN, CLOSED, LOCKED = {', '.join(map(str, states))}")
    pairs = ", ".join(f'"{word}": {code}' for (word, _), code in zip(_COLOURS, colours, strict=True))
    source = _set_line(source, "COLOURS", f"COLOURS = {{{pairs}}}")
    actions = ", ".join(map(str, actions_by_name(situation)))
    source = _set_line(source, "LEFT, RIGHT", f"LEFT, RIGHT, FORWARD, PICK_UP, PUT_DOWN, TOGGLE = {actions}")
    keys = ", ".join((_key(view.grid_path), _key(view.heading_path), _key(view.text_path)))
    source = _set_line(source, "IMAGE, HEADING", f"IMAGE, HEADING, MISSION = {keys}".replace("'", '"'))
    constants = (
        Constant("PATIENCE", (10.0,), (3.0,), "steps that count on top of every way", low=0.5, high=30.0),
        Constant(
            "MOST_NEWS", (30.0,), (8.0,), "unknown cells in view beyond this count for nothing", low=1.0, high=60.0
        ),
        Constant("DOOR_NEWS", (40.0,), (8.0,), "unknown cells that a closed door is worth", low=0.5, high=60.0),
    )
    return Form(
        key="explorer",
        title="a state machine that maps, explores and interacts",
        idea="draw a map from the views, plan to the first aim that can be reached, explore where nothing is known yet",
        how="",
        act=(),
        template=source,
        constants=constants,
        starts=(
            Start((10.0, 49.0, 40.0), "most new cells per step, with some patience"),
            Start((8.0, 30.0, 40.0), "near doors first"),
            Start((3.0, 49.0, 15.0), "nearer places first, doors later"),
        ),
        least_cases=4,
        prior=10.0,
    )


def walker_form(situation: Situation) -> Form | None:
    """Walk on, turn at random, try the other actions now and then: the least that moves through a grid."""
    if not fits(situation):
        return None
    left, right, forward, pick_up, _, toggle = actions_by_name(situation)
    return Form(
        key="walker",
        title="a random walk that mostly goes straight on",
        idea="walk forward, turn now and then, try to pick up and to toggle now and then",
        how="Walks straight on for a while, turns at random, and sometimes picks up or toggles what is in front.",
        fixed=(
            f"TURNS = ({left}, {right})",
            f"FORWARD = {forward}",
            f"TRIES = ({pick_up}, {toggle})  # pick up, toggle",
            "TURN_SHARE, TRY_SHARE = 0.2, 0.15",
        ),
        act=(
            "chance = random.random()",
            "if chance < TURN_SHARE:",
            "    return random.choice(TURNS)",
            "return random.choice(TRIES) if chance < TURN_SHARE + TRY_SHARE else FORWARD",
        ),
        starts=(Start((), "nothing to set"),),
        least_cases=4,
        prior=11.0,
    )
