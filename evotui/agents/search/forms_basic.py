"""Forms that need little: random, constant, one threshold. And the lines that read observations and return actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features import Facts
from evotui.agents.search.names import identifier
from evotui.agents.search.spaces import Situation


def as_array(situation: Situation) -> str:
    """An expression for the observation as one flat float array."""
    paths = ["obs" + "".join(f"[{key!r}]" for key in leaf.path) for leaf in situation.view.leaves]
    parts = [f"np.asarray({path}, dtype=float).ravel()" for path in paths]
    whole = parts[0] if len(parts) == 1 else f"np.concatenate([{', '.join(parts)}])"
    return f"np.nan_to_num({whole})" if situation.holes else whole


def field_expression(situation: Situation, fields: Sequence[int]) -> str:
    """An expression for flattened fields that stand in one leaf, as a float array; all of them as a whole array."""
    first = 0
    whole: list[str] = []
    for leaf in situation.view.leaves:
        path = "obs" + "".join(f"[{key!r}]" for key in leaf.path)
        array = f"np.asarray({path}, dtype=float).ravel()"
        array = f"np.nan_to_num({array})" if situation.holes else array
        inside = [f - first for f in fields]
        if all(0 <= i < leaf.size for i in inside):
            if inside == list(range(leaf.size)):
                return array
            if inside == list(range(inside[0], inside[0] + len(inside))):
                return f"{array}[{inside[0] or ''}:{inside[-1] + 1}]"
            return f"{array}[{inside!r}]"
        whole.append(array)
        first += leaf.size
    return f"np.concatenate([{', '.join(whole)}])[{list(fields)!r}]"


def unpack(situation: Situation) -> tuple[list[str], list[str]]:
    """(one expression per observation field, the lines of ``act`` that make them valid).

    Up to twelve fields get local variables of their own names; more stay in a list called ``field``.
    """
    view = situation.view
    whole = as_array(situation)
    if len(view.names) > 12:
        return [f"field[{i}]" for i in range(len(view.names))], [f"field = {whole}.tolist()"]
    taken: set[str] = set()
    names = [identifier(name, taken) for name in view.names]
    if len(names) == 1:
        return names, [f"({names[0]},) = {whole}.tolist()"]
    line = f"{', '.join(names)} = {whole}.tolist()"
    if len(line) <= 104:
        return names, [line]
    return names, [f"{names[0]}, *rest = {whole}.tolist()", f"{', '.join(names[1:])} = rest"]


def constant_names(situation: Situation) -> list[str]:
    """Upper-case names for the observation fields, to put into names of constants."""
    taken: set[str] = set()
    return [identifier(name, taken).upper() for name in situation.view.names]


def action_lines(situation: Situation, facts: Facts) -> tuple[str, ...]:
    """Names for the Discrete actions at the ends of the axis, as fixed constants."""
    kind = situation.actions

    def line(name: str, action: int) -> str:
        return f"{name} = {action + kind.start}  # {kind.names[action]}"

    lines = [line("LOW", facts.low_action), line("HIGH", facts.high_action)]
    if kind.n > 2:
        lines.append(line("IDLE", facts.idle_action))
    return tuple(lines)


def has_axis(situation: Situation) -> bool:
    """Whether one signed number can choose the action: two or three Discrete actions, or one Box dimension."""
    kind = situation.actions
    return (kind.kind == "discrete" and kind.n in (2, 3)) or (kind.kind == "box" and kind.n == 1)


def push_lines(situation: Situation, name: str = "push", deadband: bool = False) -> tuple[str, ...]:
    """Lines that return the action for a signed number: past a dead band for Discrete, clipped for Box."""
    kind = situation.actions
    if kind.kind == "box":
        shape = "" if kind.shape == (1,) else f".reshape({kind.shape!r})"
        return (
            f"{name} = max(LOWEST, min(HIGHEST, MIDDLE + {name}))",
            f"return np.array([{name}]){shape}",
        )
    if kind.n == 2 or not deadband:
        return (f"return HIGH if {name} > 0.0 else LOW",)
    return (
        f"if abs({name}) < DEAD_BAND:",
        "    return IDLE",
        f"return HIGH if {name} > 0.0 else LOW",
    )


def box_lines(situation: Situation) -> tuple[str, ...]:
    """Fixed constants of a one-dimensional Box: its bounds and middle."""
    kind = situation.actions
    low, high = kind.low[0], kind.high[0]
    return (
        f"LOWEST, HIGHEST = {low!r}, {high!r}  # bounds of the action: {kind.names[0]}",
        f"MIDDLE = {0.5 * (low + high)!r}",
    )


def random_form(situation: Situation, hold: int = 1, rests: bool = False, seed: int = 0) -> Form:
    """Random actions, each held for up to ``hold`` steps: what to do in spaces that nothing else fits, and a probe.

    ``rests``: half of the time a dimension of a Box is zero, so that the others' effects show alone."""
    kind = situation.actions
    if kind.kind == "discrete":
        pick: tuple[str, ...] = (f"self.action = {kind.start} + random.randrange({kind.n})",)
    elif kind.kind == "box":
        pick = (
            (
                "push = [random.choice((0.0, random.uniform(low, high))) for low, high in zip(LOWEST, HIGHEST)]",
                "self.action = np.clip(push, LOWEST, HIGHEST)",
                *(() if kind.shape == (kind.n,) else (f"self.action = self.action.reshape({kind.shape!r})",)),
            )
            if rests
            else (
                "self.action = np.array([random.uniform(low, high) for low, high in zip(LOWEST, HIGHEST)])",
                *(() if kind.shape == (kind.n,) else (f"self.action = self.action.reshape({kind.shape!r})",)),
            )
        )
    else:
        pick = ("self.action = sample(self.action_space)",)
    fixed: tuple[str, ...] = ()
    if kind.kind == "box":
        fixed = (f"LOWEST = {kind.low!r}", f"HIGHEST = {kind.high!r}")
    helpers = _SAMPLE if kind.kind == "other" else ()
    if hold > 1:
        act: tuple[str, ...] = (
            "if self.left == 0:",
            "    self.left = random.randint(1, LONGEST_HOLD)",
            *(f"    {line}" for line in pick),
            "self.left -= 1",
            "return self.action",
        )
        fixed = (*fixed, f"LONGEST_HOLD = {hold}  # steps that an action may last", f"SEED = {seed}  # of the draws")
        how = "Draws an action at random and holds it for a few steps, so that its effect shows in the observations."
    else:
        act = (*pick, "return self.action")
        how = "Draws each action at random: no form of the library fits these spaces better."
    return Form(
        key="random",
        title="random actions" if hold == 1 else "a probe: random actions, held for a while",
        idea="random actions" if hold == 1 else "random actions that last a few steps, to see what moves what",
        how=how,
        fixed=fixed,
        helpers=helpers,
        init=("self.action_space = action_space", "self.action = None"),
        reset=(*(("random.seed(SEED + random.getrandbits(32))",) if hold > 1 else ()), "self.left = 0"),
        act=act,
        starts=(Start((), "there is nothing to set"),),
    )


_SAMPLE = (
    "def sample(space):",
    '    """A random member of a space schema."""',
    '    kind = space.get("type")',
    '    if kind == "Discrete":',
    '        return space.get("start", 0) + random.randrange(space["n"])',
    '    if kind == "MultiDiscrete":',
    '        return np.array([random.randrange(n) for n in np.ravel(space["nvec"])]).reshape(np.shape(space["nvec"]))',
    '    if kind == "MultiBinary":',
    '        return np.array(np.random.randint(0, 2, size=space["shape"]), dtype=np.int8)',
    '    if kind == "Tuple":',
    '        return tuple(sample(part) for part in space["spaces"])',
    '    if kind == "Dict":',
    '        return {key: sample(part) for key, part in space["spaces"].items()}',
    '    if kind in ("Box", "Image"):',
    '        low = np.clip(np.broadcast_to(np.asarray(space["low"], dtype=float), space["shape"]), -1e3, 1e3)',
    '        high = np.clip(np.broadcast_to(np.asarray(space["high"], dtype=float), space["shape"]), -1e3, 1e3)',
    "        return np.random.uniform(low, high)",
    '    if kind == "Text":',
    '        return ""',
    "    return 0",
    "",
)


def constant_form(situation: Situation, facts: Facts) -> Form | None:
    """The same action always: a floor that everything else must beat, and sometimes hard to beat."""
    kind = situation.actions
    if kind.kind == "discrete":
        if kind.n > 12:
            return None
        return Form(
            key="constant",
            title="one action, always",
            idea="the same action at every step",
            how="Ignores the observation and repeats one action.",
            constants=(Constant("ACTION", (float(kind.start),), (0.0,), "which action"),),
            act=("return int(ACTION)",),
            starts=tuple(Start((float(kind.start + a),), f"always '{kind.names[a]}'") for a in range(kind.n)),
            prior=2.0,
        )
    if kind.kind != "box":
        return None
    low, high = np.array(kind.low), np.array(kind.high)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    zero = np.clip(np.zeros(kind.n), low, high)
    starts = [Start(tuple(zero.tolist()), "doing nothing is the cheapest thing to compare with")]
    if kind.n == 1:
        starts.append(Start((float(high[0]),), "full action up"))
        starts.append(Start((float(low[0]),), "full action down"))
    return Form(
        key="constant",
        title="one constant action",
        idea="one constant action per dimension",
        how="Ignores the observation: every dimension of the action keeps its constant.",
        constants=(
            Constant(
                "ACTION", tuple(middle.tolist()), tuple((0.35 * half).tolist()), "the action", labels=kind.names,
                is_tuple=True, low=float(low.min()), high=float(high.max()),
            ),
        ),
        init=(f"self.action = np.array(ACTION).reshape({kind.shape!r})",),
        act=("return self.action",),
        starts=tuple(starts),
        prior=5.0 if kind.n > 1 else 2.0,
    )  # fmt: skip


def threshold_form(situation: Situation, facts: Facts) -> Form | None:
    """One field against one threshold: the simplest thing that looks at the observation."""
    if not has_axis(situation) or situation.view.kind != "flat" or facts.rows == 0:
        return None
    names, lines = unpack(situation)
    field = _telling_field(facts)
    if field < 0:
        return None
    kind = situation.actions
    name = constant_names(situation)[field] if len(situation.view.names) <= 12 else f"FIELD_{field}"
    shown = situation.view.names[field]
    fixed = action_lines(situation, facts)[:2] if kind.kind == "discrete" else box_lines(situation)
    if kind.kind == "discrete":
        act: tuple[str, ...] = (f"return HIGH if SIDE * ({names[field]} - {name}_THRESHOLD) > 0.0 else LOW",)
    else:
        act = (
            f"push = HIGHEST if SIDE * ({names[field]} - {name}_THRESHOLD) > 0.0 else LOWEST",
            f"return np.full({kind.shape!r}, push)",
        )
    middle, scale = float(facts.start[field]), float(facts.scale[field])
    return Form(
        key="threshold",
        title=f"one threshold on {shown}",
        idea=f"push one way above a threshold of {shown} and the other way below it",
        how=f"Compares {shown} with a threshold and pushes to one side or the other.",
        fixed=fixed,
        constants=(
            Constant(f"{name}_THRESHOLD", (middle,), (0.5 * scale,), f"where the push changes, on {shown}"),
            Constant("SIDE", (1.0,), (0.0,), "+1: push up above the threshold; -1: push down"),
        ),
        act=(*lines, *act),
        starts=(
            Start((middle, 1.0), "push up where it is high"),
            Start((middle, -1.0), "push down where it is high"),
        ),
        prior=3.0,
    )


def _telling_field(facts: Facts) -> int:
    """The position whose velocity the actions move most, else the field that they move most."""
    for coordinate in facts.coordinates:
        if coordinate.velocity == facts.axis and coordinate.index >= 0:
            return coordinate.index
    return facts.axis
