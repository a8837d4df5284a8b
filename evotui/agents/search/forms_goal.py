"""Forms for tasks with goals: reach with the hand, push a thing from behind, grasp it and carry it there.

They need a hand found in the feedback (``features_goal.find_hand``). All lengths begin as multiples of the stride, the
way of the hand in a step of full action, which is what the feedback shows about how large things are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Constant, Form, Start, tidy
from evotui.agents.search.features_goal import Goals, Hand, find_goals, find_hand
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_basic import field_expression
from evotui.agents.search.forms_vehicle import lookahead_form
from evotui.agents.search.spaces import Situation


def goal_forms(situation: Situation, episodes: Sequence[Episode]) -> list[Form]:
    """The forms that fit a task with goals; none where it has none or nothing convincing is found."""
    goals = find_goals(situation.view)
    if goals is None or situation.actions.kind != "box":
        return []
    hand = find_hand(episodes, situation)
    found: list[Form | None] = [lookahead_form(situation, episodes)]
    if hand is not None:
        found += [reach_form(situation, hand), push_form(situation, hand), grasp_form(situation, hand)]
    return [form for form in found if form is not None]


def _read(situation: Situation, goals: Goals, hand: Hand) -> tuple[str, ...]:
    return (
        f"thing = {field_expression(situation, goals.achieved)}",
        f"goal = {field_expression(situation, goals.desired)}",
        f"hand = {field_expression(situation, hand.fields)}",
    )


def _fixed(situation: Situation, hand: Hand) -> tuple[str, ...]:
    kind = situation.actions
    names = ", ".join(kind.names[a] for a in hand.actions)
    stride = ", ".join(repr(tidy(s)) for s in hand.stride)
    comma = "," if len(hand.actions) == 1 else ""
    flat = [axis for axis in range(len(hand.fields)) if axis != hand.up]
    surface: tuple[str, ...] = ()
    if hand.up >= 0:
        surface = (f"LEVEL, UP = {flat!r}, {hand.up}  # the axes along the surface, and the one away from it",)
    return (
        f"LOWEST = np.array({list(kind.low)!r})",
        f"HIGHEST = np.array({list(kind.high)!r})",
        f"MOVES = {list(hand.actions)!r}  # the action dimension that moves the hand along each axis: {names}",
        "# How far the hand goes in one step per unit of action, per axis (fitted to the feedback)",
        f"STRIDE = np.array(({stride}{comma}))",
        *surface,
    )


_SEND = (
    "action = np.zeros(len(LOWEST))",
    "action[MOVES] = move / STRIDE",
)


def _return(situation: Situation) -> tuple[str, ...]:
    kind = situation.actions
    shape = "" if kind.shape == (kind.n,) else f".reshape({kind.shape!r})"
    return (f"return np.clip(action, LOWEST, HIGHEST){shape}",)


def _stride(situation: Situation, hand: Hand) -> float:
    """The way of the hand in a step of full action, the usual one of its axes."""
    high = np.abs(np.array(situation.actions.high)[list(hand.actions)])
    return float(np.median(np.abs(hand.stride) * high))


def _evidence(situation: Situation, hand: Hand) -> str:
    names = situation.view.names
    pairs = [
        f"{situation.actions.names[a]} moves {names[f]} by {tidy(s):.2g} a step"
        for a, f, s in zip(hand.actions, hand.fields, hand.stride, strict=True)
    ]
    return f"the feedback shows a hand ({', '.join(pairs)}; {hand.fit:.0%} of its motion explained)"


def _length(name: str, strides: float, unit: float, note: str, low: float = 0.0, spread: float = 0.2) -> Constant:
    return Constant(name, (strides * unit,), (spread * max(abs(strides), 0.5) * unit,), note, low=low)


def reach_form(situation: Situation, hand: Hand) -> Form | None:
    """Move the hand to the goal: right where the hand itself is what has to be there."""
    goals = find_goals(situation.view)
    if goals is None or not hand.is_thing:
        return None
    lines = _read(situation, goals, hand)
    return Form(
        key="hand-to-goal",
        title="move the hand to the goal",
        idea=f"a step towards the goal along each axis; {_evidence(situation, hand)}, and that is what has to arrive",
        how="Moves the hand straight to the goal, slower near it.",
        fixed=_fixed(situation, hand),
        constants=(Constant("SPEED", (0.7,), (0.2,), "share of the way that is asked for in a step", low=0.0),),
        act=(*lines[1:], "move = SPEED * (goal - hand)", *_SEND, *_return(situation)),
        starts=(Start((0.7,), "most of the way at once, since the hand follows with some delay"),),
        prior=34.0,
    )


def push_form(situation: Situation, hand: Hand) -> Form | None:
    """Go behind the thing on the side away from the goal, then push it through to the goal."""
    goals = find_goals(situation.view)
    if goals is None or hand.is_thing or len(hand.fields) < 2 or (len(hand.fields) == 3 and hand.up < 0):
        return None
    unit, over = _stride(situation, hand), hand.up >= 0
    constants = [
        _length("BEHIND", 2.5, unit, "how far behind the thing the push begins"),
        _length("WIDTH", 0.7, unit, "how far off the line of the push the hand may be", low=0.05 * unit),
        Constant("SPEED", (0.6,), (0.15,), "share of the way to that point that is asked for in a step", low=0.0),
        Constant("STEER", (1.0,), (0.3,), "share of the way back onto the line that is asked for in a step", low=0.0),
        _length("SLOW", 3.0, unit, "distance from the goal from which the push slows down", low=0.1 * unit),
        _length("NEAR", 0.7, unit, "the thing is left alone this near to the goal"),
    ]
    if over:
        constants.insert(
            1, _length("CLEAR", 2.0, unit, "height over the thing at which the hand passes it", low=0.1 * unit)
        )
        read: tuple[str, ...] = (f"height = {'hand[UP] - thing[UP]' if hand.up_sign > 0 else 'thing[UP] - hand[UP]'}",)
        behind = "ahead < 0.0 and np.hypot(*side) < WIDTH and height < 0.5 * CLEAR"
        down = "rise = -height"
        travel: tuple[str, ...] = (
            "# to the point behind it, over the thing, and down where nothing is in the way",
            "way = SPEED * (thing[LEVEL] - BEHIND * along - hand[LEVEL])",
            "there = np.hypot(*way) < SPEED * WIDTH",
            "rise = SPEED * ((0.0 if there else CLEAR) - height)",
            "if not there and height < 0.6 * CLEAR and np.hypot(*offset) < BEHIND:",
            "    way *= 0.3  # up first, so as not to touch it",
        )
    else:
        constants.insert(1, _length("AROUND", 3.0, unit, "distance at which the hand passes the thing"))
        read, down = (), ""
        behind = "ahead < 0.0 and np.hypot(*side) < WIDTH"
        travel = (
            "# to the point behind it, around the thing",
            "start = thing - BEHIND * along",
            "if ahead > -0.5 * BEHIND:",
            "    normal = np.array([-along[1], along[0]])",
            "    start = start + AROUND * normal * (1.0 if offset @ normal > 0.0 else -1.0)",
            "way = SPEED * (start - hand)",
        )
    sub = "[LEVEL]" if over else ""
    act = (
        *_read(situation, goals, hand),
        f"gap = (goal - thing){sub}",
        "far = np.hypot(*gap)",
        "along = gap / max(far, 1e-6)",
        f"offset = (hand - thing){sub}",
        "ahead = offset @ along",
        "side = offset - ahead * along",
        *read,
        "if far < NEAR:",
        f"    way{', rise' if over else ''} = np.zeros(2){', 0.0' if over else ''}",
        f"elif {behind}:",
        "    # behind it: push, and stay on the line",
        "    way = min(1.0, far / SLOW) * FULL_STEP * along - STEER * side",
        *((f"    {down}",) if down else ()),
        "else:",
        *(f"    {line}" for line in travel),
        *(("move = np.zeros(3)", f"move[LEVEL], move[UP] = way, {'' if hand.up_sign > 0 else '-'}rise") if over
          else ("move = way",)),
        *_SEND,
        *_return(situation),
    )  # fmt: skip
    lies = f"; things begin at the same {situation.view.names[goals.achieved[hand.up]]}" if over else ""
    return Form(
        key="push",
        title="go behind the thing and push it to the goal",
        idea=f"behind the thing, on the line from the goal through it, then along that line; "
        f"{_evidence(situation, hand)}{lies}",
        how="Goes to the side of the thing that faces away from the goal, then pushes it along the line to the goal.",
        fixed=(
            *_fixed(situation, hand),
            f"FULL_STEP = {tidy(unit)!r}  # how far the hand goes in a step of full action",
        ),
        constants=tuple(constants),
        act=act,
        starts=(Start(tuple(v for c in constants for v in c.values), "lengths in multiples of a full step"),),
        prior=26.0 if hand.aloft else 30.0,
        least_cases=5,
    )


def grasp_form(situation: Situation, hand: Hand) -> Form | None:
    """Over the thing, down, close the gripper, carry it to the goal."""
    goals = find_goals(situation.view)
    if goals is None or hand.is_thing or hand.grip < 0 or len(hand.fields) != 3 or hand.up < 0:
        return None
    unit = _stride(situation, hand)
    kind = situation.actions
    opened, closed = kind.high[hand.grip], kind.low[hand.grip]
    if hand.grip_sign < 0:
        opened, closed = closed, opened
    constants = (
        _length("HOVER", 2.0, unit, "height over the thing until the hand is right above it"),
        _length("ALIGN", 0.9, unit, "how far off the middle of the thing the hand may go down", low=0.05 * unit),
        _length("REACHED", 0.5, unit, "height over the thing's middle at which the gripper closes", low=0.05 * unit),
        Constant("DEPTH", (0.0,), (0.15 * unit,), "how far above (+) the thing's middle it is gripped"),
        _length("LOST", 1.5, unit, "a thing further away than this is not held", low=0.1 * unit),
        Constant("CLOSING", (3.0,), (0.7,), "steps that the gripper takes to close", low=0.0),
        Constant("SPEED", (0.7,), (0.15,), "share of the way that is asked for in a step", low=0.0),
    )
    plus = "+" if hand.up_sign > 0 else "-"
    values = tuple(v for c in constants for v in c.values)
    shown = ""
    starts = [Start((*values, opened, closed), "open is where the fingers' field is high")]
    if hand.fingers >= 0:
        shown = f", and {kind.names[hand.grip]} moves only {situation.view.names[hand.fingers]}: a gripper"
    else:
        starts = [Start((*values, opened, closed), "the name of the action speaks of a gripper; + opens")]
    starts.append(Start((*values, closed, opened), "the gripper the other way round"))
    return Form(
        key="grasp",
        title="grasp the thing and carry it to the goal",
        idea=f"over the thing, down, close the gripper, carry; {_evidence(situation, hand)}{shown}",
        how="Opens the gripper over the thing, goes down, closes it, and carries the thing to the goal.",
        fixed=(
            *_fixed(situation, hand),
            f"GRIP = {hand.grip}  # the action dimension of the gripper: {kind.names[hand.grip]}",
        ),
        constants=(
            *constants,
            Constant("OPEN", (opened,), (0.0,), "action that opens the gripper"),
            Constant("CLOSE", (closed,), (0.0,), "action that closes it"),
        ),
        reset=("self.closed = 0  # steps since the gripper began to close; 0: it is open",),
        act=(
            *_read(situation, goals, hand),
            "offset = thing - hand",
            f"offset[UP] {plus}= DEPTH",
            "off = np.hypot(*offset[LEVEL])",
            "if max(off, abs(offset[UP])) > LOST:",
            "    self.closed = 0",
            "if self.closed or (off < ALIGN and abs(offset[UP]) < REACHED):",
            "    self.closed += 1",
            "if self.closed:",
            "    # held: wait until the fingers are closed, then carry it",
            "    move = SPEED * (goal - thing) if self.closed > CLOSING else np.zeros(3)",
            "else:",
            "    # over it first, and lower the better the hand is above it",
            f"    offset[UP] {plus}= HOVER * np.clip(off / ALIGN - 1.0, 0.0, 1.0)",
            "    move = SPEED * offset",
            *_SEND,
            "action[GRIP] = CLOSE if self.closed else OPEN",
            *_return(situation),
        ),
        starts=tuple(starts),
        prior=32.0 if hand.fingers >= 0 and hand.aloft else 28.0 if hand.fingers >= 0 else 24.0,
        least_cases=5,
    )
