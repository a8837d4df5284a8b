"""The form for pictures: steer along the ground that the controlled thing started on, at a speed that the bends allow.

What it needs to know of the pictures is in ``features_pixels.py``.
"""

from __future__ import annotations

from evotui.agents.search.code import Constant, Form, Start
from evotui.agents.search.features_pixels import Sight, study_pictures
from evotui.agents.search.feedback import Episode
from evotui.agents.search.plan import thrifty_cases
from evotui.agents.search.spaces import Situation

_WIDEST = 1.9
"""How far to either side the ground is looked for, in radians from straight ahead."""


def follow_form(situation: Situation, episodes: list[Episode]) -> Form | None:
    """Follow the ground; None without pictures, or where they show nothing that moves and steers."""
    if situation.view.kind != "picture" or situation.actions.kind != "box":
        return None
    sight = study_pictures(episodes, situation)
    return None if sight is None else _form(situation, sight)


def _form(situation: Situation, sight: Sight) -> Form:
    kind = situation.actions
    reach = float(sight.row - sight.top)
    full = min(abs(kind.low[sight.steer]), kind.high[sight.steer])
    most_gas = kind.high[sight.gas]
    most_brake = 0.0 if sight.brake < 0 else kind.high[sight.brake]
    if sight.brake == sight.gas:
        most_brake = -kind.low[sight.gas]
    constants = (
        Constant("NEAR", (0.2 * reach,), (0.03 * reach,), "pixels ahead where the ground is looked for first", low=2.0),
        Constant("FAR", (0.48 * reach,), (0.07 * reach,), "pixels ahead where bends are foreseen", 4.0, 1.5 * reach),
        Constant("STEER_NEAR", (0.6 * full,), (0.12 * full,), "steering per radian that the near ground is off"),
        Constant("STEER_FAR", (0.5 * full,), (0.12 * full,), "and per radian that the far ground is off"),
        Constant("DAMPING", (3.0 * full,), (0.9 * full,), "and per radian that the near ground turned in this step"),
        Constant("CRUISE", (1.1,), (0.15,), "speed on straight ground, in fastest speeds of the probe", low=0.1),
        Constant("SLOW", (0.5,), (0.08,), "share of it less per radian that the far ground is off"),
        Constant("CREEP", (0.4,), (0.0,), "least speed to keep, even in a bend"),
        Constant("EAGER", (1.25,), (0.25,), "gas or brake per unit of speed that is missing or too much", low=0.0),
        Constant("GAS", (0.5 * most_gas,), (0.1 * most_gas,), "most gas", 0.05 * most_gas, most_gas),
        Constant("BRAKE", (0.4 * most_brake,), (0.1 * most_brake,), "most brake", 0.0, most_brake),
        Constant("TOLERANCE", (min(40.0, max(10.0, 0.4 * sight.contrast)),), (0.0,), "how far a colour may be off"),
    )

    def start(why: str, **values: float) -> Start:
        return Start(tuple(values.get(c.name, c.values[0]) for c in constants), why)

    starts = (
        start("moderate gains; a little faster than the probe was where it is straight"),
        start("the same, faster", CRUISE=1.5),
        start("the same, slower", CRUISE=0.8),
        start("much faster: the probe may have been slow", CRUISE=2.0),
        start("more respect for bends, and seen from further", CRUISE=1.5, SLOW=0.65, FAR=0.55 * reach),
        start("calmer: less steering, more damping", STEER_NEAR=0.4 * full, STEER_FAR=0.4 * full, DAMPING=4.5 * full),
    )
    if sight.gauge is not None:
        g = sight.gauge
        fixed_speed = f"FASTEST = {g.fastest:.4g}  # brightness of the bar that tells the speed, in the probe"
        speed = f"speed = picture[{g.top}:{g.bottom}, {g.left}:{g.right}].mean() / FASTEST"
        speed_told = f"The bar in columns {g.left} to {g.right - 1} of the gauges tells the speed."
    else:
        fixed_speed = f"FASTEST = {sight.fastest:.4g}  # change of a pixel per step, in the probe"
        speed = "speed = np.abs(view - self.before).mean() / FASTEST"
        speed_told = "How much the picture changes tells the speed."
    sign = ("", "") if sight.turn > 0 else ("-(", ")")
    act = [
        f"picture = np.asarray({'obs' + ''.join(f'[{key!r}]' for key in situation.view.picture_path)})",
        "near = bearing(picture, NEAR, self.near)",
        "if near is None:  # off the ground: turn on to where it was last",
        "    near = WIDEST if self.near > 0.0 else -WIDEST",
        "far = bearing(picture, FAR, near)",
        "far = near if far is None else far",
        f"steering = {sign[0]}STEER_NEAR * near + STEER_FAR * far + DAMPING * (near - self.near){sign[1]}",
        "self.near = near",
    ]
    if sight.gauge is None:
        act += [
            f"view = picture[{sight.top}:{sight.bottom}:3, ::3].astype(float)",
            "self.before = view if self.before is None else self.before",
        ]
    act += [speed]
    if sight.gauge is None:
        act += ["self.before = view"]
    act += [
        "missing = EAGER * (max(CREEP, CRUISE * (1.0 - SLOW * abs(far))) - speed)",
        f"action = np.zeros({kind.n})",
        f"action[{sight.steer}] = steering  # {kind.names[sight.steer]}",
    ]
    if sight.brake == sight.gas:
        act += [f"action[{sight.gas}] = max(-BRAKE, min(GAS, missing))  # {kind.names[sight.gas]}"]
    else:
        act += [f"action[{sight.gas}] = max(0.0, min(GAS, missing))  # {kind.names[sight.gas]}"]
        if sight.brake >= 0:
            act += [f"action[{sight.brake}] = max(0.0, min(BRAKE, -missing))  # {kind.names[sight.brake]}"]
    shape = "" if kind.shape == (kind.n,) else f".reshape({kind.shape!r})"
    act += [f"return np.clip(action, LOWEST, HIGHEST){shape}"]
    idea = (
        f"the thing keeps its place at row {sight.row}, column {sight.column:g}, and starts on ground of the colour "
        f"{sight.ground}: steer to where that ground goes on, slower where it bends. {speed_told[:-1]}"
    )
    return Form(
        key="follow",
        title="follow the ground",
        idea=idea,
        how=(
            "Looks for the colour of the ground on two arcs ahead of the own place in the picture and steers to the "
            f"middle of it; slower where it bends. {speed_told}"
        ),
        fixed=(
            f"TOP, BOTTOM = {sight.top}, {sight.bottom}  # rows of the picture that show the world",
            f"FRONT, MIDDLE = {sight.row}, {sight.column:g}  # row and column of the own front",
            f"GROUND = np.array({list(sight.ground)!r})  # the colour that lies ahead at the start",
            f"WIDEST = {_WIDEST}  # radians to either side of straight ahead",
            "ANGLES = np.linspace(-WIDEST, WIDEST, 77)",
            fixed_speed,
            f"LOWEST, HIGHEST = {list(kind.low)!r}, {list(kind.high)!r}  # bounds of the action",
        ),
        constants=constants,
        helpers=_BEARING,
        reset=("self.near = 0.0", *(() if sight.gauge is not None else ("self.before = None",))),
        act=tuple(act),
        starts=starts,
        prior=20.0,
        least_cases=thrifty_cases(situation.budget),
    )


_BEARING = (
    "def bearing(picture, distance, wanted):",
    '    """Direction of the ground at this distance, in radians to the right; the stretch nearest to wanted."""',
    "    rows = np.clip(np.rint(FRONT - distance * np.cos(ANGLES)).astype(int), TOP, BOTTOM - 1)",
    "    columns = np.clip(np.rint(MIDDLE + distance * np.sin(ANGLES)).astype(int), 0, picture.shape[1] - 1)",
    "    off = np.abs(picture[rows, columns].astype(int) - GROUND).max(axis=1)",
    "    ground = np.flatnonzero(off < TOLERANCE)",
    "    if not ground.size:",
    "        return None",
    "    stretches = np.split(ground, np.flatnonzero(np.diff(ground) > 1) + 1)",
    "    middles = [float(ANGLES[stretch].mean()) for stretch in stretches]",
    "    return min(middles, key=lambda angle: abs(angle - wanted))",
)
