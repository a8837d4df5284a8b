"""Forms that use positions and velocities found in the feedback: pumping, swing-up and balance, springs, rhythms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features import Coordinate, Facts, Swing, fit_swing, reward_peak, scalar_push
from evotui.agents.search.feedback import Episode
from evotui.agents.search.forms_basic import (
    action_lines,
    as_array,
    box_lines,
    constant_names,
    has_axis,
    push_lines,
    unpack,
)
from evotui.agents.search.spaces import Situation


def velocities(facts: Facts) -> list[int]:
    """Velocity fields, the one that actions move most first."""
    found = [c.velocity for c in facts.coordinates if c.velocity >= 0]
    return sorted(found, key=lambda v: (v != facts.axis, v))


def pump_form(situation: Situation, facts: Facts) -> Form | None:
    """Push along the motion: every push then adds energy, like pumping a swing."""
    moving = velocities(facts)
    if not has_axis(situation) or situation.view.kind != "flat" or not 1 <= len(moving) <= 4:
        return None
    kind = situation.actions
    names, lines = unpack(situation)
    short = len(situation.view.names) <= 12
    upper = constant_names(situation) if short else [f"FIELD_{i}" for i in range(len(situation.view.names))]
    constants: list[Constant] = []
    terms: list[str] = []
    half = 0.5 * (kind.high[0] - kind.low[0]) if kind.kind == "box" else 1.0
    for v in moving:
        usual = float(facts.scale[v])
        # a Box pushes fully from half the usual speed on; a Discrete only needs the sign
        unit = (2.0 if kind.kind == "box" else 1.0) * half / usual
        constants.append(
            Constant(f"PUSH_{upper[v]}", (unit,), (0.4 * unit,), f"push per unit of {situation.view.names[v]}")
        )
        terms.append(f"PUSH_{upper[v]} * {names[v]}")
    still = [c for c in facts.coordinates if c.velocity >= 0]
    for c in still:
        field = c.sin if c.is_angle else c.index
        usual = float(facts.scale[field])
        offset = "" if c.is_angle else f" - {float(f'{facts.start[field]:.3g}')!r}"
        constants.append(
            Constant(
                f"LEAN_{upper[field]}",
                (0.0,),
                (0.25 * half / usual,),
                f"push per unit of {situation.view.names[field]}",
            )
        )
        terms.append(f"LEAN_{upper[field]} * {f'({names[field]}{offset})' if offset else names[field]}")
    extra: tuple[str, ...] = ()
    if kind.kind == "box":
        constants.append(Constant("STRENGTH", (half,), (0.05 * half,), "largest push", low=0.0, high=half))
        extra = ("push = max(-STRENGTH, min(STRENGTH, push))",)
    elif kind.n > 2:
        constants.append(Constant("DEAD_BAND", (0.0,), (0.05,), "no push for less than this", low=0.0))
    flat = f"push = {' + '.join(terms)}"
    total = [flat] if len(flat) <= 100 else ["push = (", f"    {terms[0]}", *(f"    + {t}" for t in terms[1:]), ")"]
    base = [v for c in constants for v in c.values]
    starts = []
    signs = [tuple(1.0 if i == j else 0.0 for i in range(len(moving))) for j in range(len(moving))]
    if len(moving) == 2:
        signs += [(1.0, -1.0), (1.0, 1.0)]
    for pattern in signs:
        for sign in (1.0, -1.0):
            values = [b * s * sign for b, s in zip(base, pattern, strict=False)] + base[len(moving) :]
            which = " and ".join(
                f"{'along' if s * sign > 0 else 'against'} {situation.view.names[v]}"
                for s, v in zip(pattern, moving, strict=True)
                if s
            )
            starts.append(Start(tuple(values), f"push {which}"))
    if kind.kind == "box":
        # where pushes cost, weak ones that last are cheaper: the same work takes less of their squares
        at = [c.name for c in constants].index("STRENGTH")
        for share, word in ((0.4, "with less than half the strength"), (0.15, "gently")):
            for start in starts[:2]:
                values = list(start.values)
                values[at] *= share
                starts.append(Start(tuple(values), f"{start.why}, {word}"))
    fixed = action_lines(situation, facts) if kind.kind == "discrete" else box_lines(situation)
    return Form(
        key="pump",
        title="push along the motion",
        idea="bang-bang on the direction of motion: a push along a velocity adds energy, against it takes energy out",
        how="Pumps energy like a child on a swing: velocities decide the push, positions may shift it.",
        fixed=fixed,
        constants=tuple(constants),
        act=(*lines, *total, *extra, *push_lines(situation, deadband=True)),
        starts=tuple(starts),
        prior=5.0 if facts.survival else 8.0,
    )


def swing_form(situation: Situation, facts: Facts, episodes: Sequence[Episode]) -> Form | None:
    """Pump up to the energy of the upright position, then catch and hold with position and velocity gains."""
    if not has_axis(situation) or situation.view.kind != "flat":
        return None
    angle = next((c for c in facts.coordinates if c.is_angle and c.velocity == facts.axis and c.velocity >= 0), None)
    if angle is None:
        return None
    x = np.vstack([e.obs[:-1] for e in episodes if len(e) > 1])
    y = np.vstack([e.obs[1:] for e in episodes if len(e) > 1])
    push = np.concatenate([scalar_push(e.actions[:-1], situation, facts) for e in episodes if len(e) > 1])
    rewards = np.concatenate([e.rewards[:-1] for e in episodes if len(e) > 1])
    swing = fit_swing(x, y, push, angle, rewards)
    if swing is None:
        return None
    peak, share = reward_peak(x, rewards, angle.cos, angle.sin, angle.velocity)
    paid = share > 0.3 and math.cos(peak - swing.up) > 0.5
    return _swing_policy(situation, facts, angle, swing, paid)


def _swing_policy(situation: Situation, facts: Facts, angle: Coordinate, swing: Swing, paid: bool) -> Form:
    kind = situation.actions
    names, lines = unpack(situation)
    view = situation.view
    c, s, v = names[angle.cos], names[angle.sin], names[angle.velocity]
    half = 0.5 * (kind.high[0] - kind.low[0]) if kind.kind == "box" else 1.0
    way = swing.push
    natural = 1.0 / math.sqrt(max(swing.inertia, 1e-9))  # speed gained by falling through one radian or so
    constants = (
        Constant("UP", (swing.up,), (0.02,), "upright angle in radians, where the force turns outwards"),
        Constant("INERTIA", (swing.inertia,), (0.2 * swing.inertia,), "turns speed into energy, in units of the height",
                 low=0.0),
        Constant("ENERGY", (1.0,), (0.15,), "energy to pump up to: 1 is just enough to stand"),
        Constant("PUMP", (way * 4.0 * half / natural,), (1.5 * half / natural,), "push per speed and missing energy"),
        Constant("CATCH", (0.85,), (0.05,), "cosine of the lean from which on it balances", low=-1.0, high=0.99),
        Constant("HOLD_ANGLE", (-way * 6.0 * half,), (1.5 * half,), "push per lean while balancing"),
        Constant("HOLD_SPEED", (-way * 6.0 * half / natural,), (2.0 * half / natural,), "push per speed in balance"),
    )  # fmt: skip
    fixed = action_lines(situation, facts)[:2] if kind.kind == "discrete" else box_lines(situation)
    evidence = f"the swing's law explains {swing.explained:.0%} of the changes of {view.names[angle.velocity]}"
    return Form(
        key="swing",
        title="swing up and balance",
        idea="pump energy until it suffices to stand upright, then hold with gains on the lean and its speed",
        how=(
            "Far from upright it pumps: it pushes along the motion while energy is missing and against it when there "
            "is too much. Near upright it balances with gains on the lean and its speed."
        ),
        fixed=fixed,
        constants=constants,
        act=(
            *lines,
            f"upright = {c} * math.cos(UP) + {s} * math.sin(UP)  # cosine of the lean",
            f"lean = {s} * math.cos(UP) - {c} * math.sin(UP)  # sine of the lean",
            f"energy = 0.5 * INERTIA * {v} * {v} + upright",
            "if upright > CATCH:",
            f"    push = HOLD_ANGLE * lean + HOLD_SPEED * {v}",
            "else:",
            f"    push = PUMP * (ENERGY - energy) * {v}",
            *push_lines(situation),
        ),
        starts=(Start(tuple(v for k in constants for v in k.values), evidence),),
        prior=10.0 if paid else 7.0,
    )


def periodic_form(situation: Situation, facts: Facts) -> Form | None:
    """A phase oscillator: every dimension of the action is an offset and a sine of a common phase."""
    kind = situation.actions
    if kind.kind != "box" or kind.n < 2:
        return None
    low, high = np.array(kind.low), np.array(kind.high)
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    n = kind.n
    spread = np.linspace(0.0, math.pi, n, endpoint=False)
    constants = (
        Constant("STEPS_PER_CYCLE", (16.0,), (4.0,), "length of one cycle of the rhythm", low=3.0, high=200.0),
        Constant("AMPLITUDE", tuple((0.6 * half).tolist()), tuple((0.3 * half).tolist()), "swing of each dimension",
                 labels=kind.names, is_tuple=True),
        Constant("PHASE", tuple(spread.tolist()), (1.0,) * n, "where in the cycle each dimension is, in radians",
                 labels=kind.names, is_tuple=True),
        Constant("OFFSET", tuple(middle.tolist()), tuple((0.2 * half).tolist()), "middle of each swing",
                 labels=kind.names, is_tuple=True),
    )  # fmt: skip

    def start(steps: float, amplitude: float, phases: Sequence[float] | np.ndarray, why: str) -> Start:
        return Start((steps, *(amplitude * half).tolist(), *[float(p) for p in phases], *middle.tolist()), why)

    alternating = [math.pi * (i % 2) for i in range(n)]
    sides = [math.pi * (i >= n // 2) for i in range(n)]
    return Form(
        key="periodic",
        title="a rhythm",
        idea="one rhythm for all dimensions of the action, each with its own amplitude, phase and offset",
        how="A phase oscillator: the action follows sines of a common cycle and does not look at the observation.",
        fixed=(f"LOWEST = np.array({list(kind.low)!r})", f"HIGHEST = np.array({list(kind.high)!r})"),
        constants=constants,
        init=("self.amplitude, self.phase, self.offset = np.array(AMPLITUDE), np.array(PHASE), np.array(OFFSET)",),
        reset=("self.t = 0",),
        act=(
            "cycle = 2.0 * math.pi * self.t / STEPS_PER_CYCLE",
            "self.t += 1",
            "action = self.offset + self.amplitude * np.sin(cycle + self.phase)",
            f"return np.clip(action, LOWEST, HIGHEST).reshape({kind.shape!r})",
        ),
        starts=(
            start(16.0, 0.6, spread, "phases spread over half a cycle"),
            start(10.0, 0.9, spread * 2.0, "faster and stronger, phases over a whole cycle"),
            start(16.0, 0.6, sides, "the two halves of the dimensions in opposition"),
            start(24.0, 0.6, alternating, "slower, neighbours in opposition"),
        ),
        prior=4.5 if not facts.sparse else 2.0,
    )


def spring_form(situation: Situation, facts: Facts) -> Form | None:
    """A spring and a damper per dimension of the action, on the coordinate that it moves most."""
    kind = situation.actions
    if kind.kind != "box" or kind.n < 2 or situation.view.kind != "flat" or facts.effect.size == 0:
        return None
    chosen: list[tuple[Coordinate, float]] = []
    for i in range(kind.n):
        options = [
            (abs(float(facts.effect[c.velocity, i])), c)
            for c in facts.coordinates
            if c.velocity >= 0 and not c.is_angle and all(c is not used for used, _ in chosen)
        ]
        if not options:
            return None
        best = max(options, key=lambda option: (round(option[0], 9), -option[1].velocity))[1]
        chosen.append((best, math.copysign(1.0, float(facts.effect[best.velocity, i]))))
    half = 0.5 * (np.array(kind.high) - np.array(kind.low))
    position = np.array([c.index for c, _ in chosen])
    speed = np.array([c.velocity for c, _ in chosen])
    sign = [s for _, s in chosen]
    target = facts.start[position]
    spread = np.maximum(facts.scale[position], 1e-3)
    stiff, damp = (half / spread).tolist(), (0.3 * half / np.maximum(facts.scale[speed], 1e-3)).tolist()
    constants = (
        Constant("TARGET", tuple(target.tolist()), tuple((0.7 * spread).tolist()), "position each dimension pulls to",
                 labels=tuple(situation.view.names[p] for p in position), is_tuple=True),
        Constant("STIFFNESS", tuple(stiff), tuple(0.3 * s for s in stiff), "pull per unit of distance",
                 labels=kind.names, is_tuple=True),
        Constant("DAMPING", tuple(damp), tuple(0.5 * d for d in damp), "pull per unit of velocity",
                 labels=kind.names, is_tuple=True),
    )  # fmt: skip
    return Form(
        key="spring",
        title="a spring and a damper per joint",
        idea="each dimension of the action pulls the coordinate that it moves most to a target, with damping",
        how="Proportional-derivative control: every action dimension holds its own coordinate at a target position.",
        fixed=(
            f"POSITION_FIELDS = {position.tolist()!r}  # of the observation, one per dimension of the action",
            f"VELOCITY_FIELDS = {speed.tolist()!r}",
            f"SIGN = np.array({sign!r})  # which way a positive action moves the coordinate",
            f"LOWEST = np.array({list(kind.low)!r})",
            f"HIGHEST = np.array({list(kind.high)!r})",
        ),
        constants=constants,
        init=("self.target, self.stiffness, self.damping = np.array(TARGET), np.array(STIFFNESS), np.array(DAMPING)",),
        act=(
            f"field = {as_array(situation)}",
            "distance = self.target - field[POSITION_FIELDS]",
            "pull = SIGN * (self.stiffness * distance - self.damping * field[VELOCITY_FIELDS])",
            f"return np.clip(pull, LOWEST, HIGHEST).reshape({kind.shape!r})",
        ),
        starts=(Start((*target.tolist(), *stiff, *damp), "hold the position that episodes start in"),),
        prior=3.5,
    )
