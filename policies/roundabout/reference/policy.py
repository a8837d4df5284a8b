"""Reference for the roundabout: imagine when to go, and what the others may do meanwhile.

A decision is worth 1 at full speed, a little less at half speed or standing, and a crash ends everything. So it pays to
enter the ring soon, but more to come through unharmed. Each decision compares simple plans (brake or keep the speed for
some seconds, then go) in a small model: our car follows its way at the speed that the plan asks for; each of the others
may go round and round, or leave at any of the exits. The plan of the highest expected worth is begun, and a second
later everything is thought over again.
"""

import numpy as np

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
SPEEDS = np.array([0.0, 8.0, 16.0])  # metres per second, the three that can be chosen
WORTH = np.array([1 / 1.2, 1.1 / 1.2, 1.0])  # reward of a decision at each of them
DECISIONS = 11  # of an episode, one a second
METRES, METRES_PER_SECOND = 100.0, 15.0  # what one unit of the observed positions and velocities is
TYPICAL_SPEED = 16.0  # of the others; what is faster than 15 is observed as 15
SLOW = 10.0  # others slower than this are taken to roll to a stop: they met an obstacle or had an accident
LAG = 0.6  # seconds, time constant with which a car takes on the speed that it wants
DT = 0.2  # seconds, of the model
STEPS = round(1 / DT)  # of the model in a decision

RING = 24.0  # radius of the outer lane, which is ours, metres
RING_EDGE = 27.5  # cars nearer to the middle than this are on the ring
ENTRY, EXIT = np.deg2rad(72), np.deg2rad(-66)  # angles at which our way enters and leaves the ring (east 0, south 90)
QUARTER = np.pi / 2  # the four arms are alike
LATE = 0.05  # of a full turn, past an exit, until which a car may still take it
TRAVEL = 200.0  # metres, longer than anything is driven

LONG, WIDE, ASKEW = (
    8.5,
    2.8,
    3.8,
)  # half axes of the ellipse around our car that another's middle must not enter, metres
GROWTH = 0.6  # of the long one, metres for each second that is looked ahead
SIGHT = 6.0  # seconds looked ahead for accidents


def turned(points, angle):
    """Points (n × 2) turned around the middle of the ring."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.asarray(points) @ np.array([[cos, sin], [-sin, cos]])


def bend(y):
    """Distance from the axis of an arm, for our side of the road between 42.5 and 25.5 m from the middle."""
    return 7 - 5 * np.cos(2 * np.pi / 85 * (42.5 - y))


INTO = np.array([(2.0, TRAVEL)] + [(bend(y), y) for y in np.arange(42.5, 25.0, -1.0)])  # the road in, south arm
OUT = INTO[::-1] * [1, -1]  # the road out, north arm


def arc(start, end, radius):
    """Points (n × 2) on the ring from an angle to a smaller one."""
    angles = np.append(np.arange(start, end, -0.05), end)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


class Way:
    """A line that a car follows."""

    def __init__(self, points):
        self.points = points
        self.along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])

    def at(self, place):
        """Points (n × 2) at distances (n) from the start."""
        return np.stack([np.interp(place, self.along, self.points[:, i]) for i in (0, 1)], axis=1)

    def place(self, point):
        """Distance from the start of what is nearest to a point."""
        places = np.arange(0, self.along[-1], 0.5)
        return places[np.argmin(np.linalg.norm(self.at(places) - point, axis=1))]


OURS = Way(np.concatenate([INTO, arc(ENTRY, EXIT, RING), OUT]))


def ways_of(car):
    """The ways (list of Way, each starting at the car) that another car (x, y, vx, vy) may take."""
    here = car[:2]
    angle, radius = np.arctan2(here[1], here[0]), np.hypot(*here)
    lead = [here]
    if radius > RING_EDGE:
        if here @ car[2:] > 0:  # outward bound
            return [Way(np.array([here, here + TRAVEL * car[2:] / (np.hypot(*car[2:]) + 1e-6)]))]
        arm = np.rint(angle / QUARTER) - 1  # quarter turns from the south arm
        road = turned(INTO, arm * QUARTER)
        lead = np.concatenate([lead, road[np.linalg.norm(road, axis=1) < radius]])
        angle, radius = ENTRY + arm * QUARTER, RING
    ways = [Way(np.concatenate([lead, arc(angle, angle - 4 * QUARTER, lane)])) for lane in {radius, RING}]
    for turn in (0, 1, 2, 3):
        leave = EXIT + turn * QUARTER
        leave -= np.ceil((leave - angle) / (4 * QUARTER) - LATE) * 4 * QUARTER
        out = OUT[np.linalg.norm(OUT, axis=1) > radius]
        ways.append(Way(np.concatenate([lead, arc(angle, min(leave, angle), radius), turned(out, turn * QUARTER)])))
    return ways


def foresee(car, times):
    """Where another car (x, y, vx, vy) may be (ways × times × 2), and half the width to leave free for it, metres."""
    speed = np.hypot(*car[2:])
    if np.abs(car[2:]).max() > 0.999 * METRES_PER_SECOND:
        speed = max(speed, TYPICAL_SPEED)
    driven, wide = (speed * times, WIDE) if speed > SLOW else (speed * (1 - np.exp(-times)), ASKEW)
    return np.array([way.at(driven) for way in ways_of(car)]), wide


def plans():
    """All plans, each a list of actions: brake or keep the speed for some decisions, then go."""
    return [[first] * n + [FASTER] * (DECISIONS - n) for n in range(DECISIONS + 1) for first in (SLOWER, IDLE)]


def drive(place, speed, level, plan):
    """Places on our way (per DT) and chosen speeds (per decision) if we carry out a plan."""
    places, levels = [], []
    for action in plan:
        nearest = int(np.argmin(np.abs(SPEEDS - speed)))
        if action == FASTER:
            level = min(nearest + 1, 2)
        elif action == SLOWER:
            level = max(nearest - 1, 0)
        levels.append(level)
        for _ in range(STEPS):
            place += speed * DT
            speed += (SPEEDS[level] - speed) * DT / LAG
            places.append(place)
    return np.array(places), levels


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.plans = plans()
        self.reset(0)

    def reset(self, episode_index):
        self.level = 1  # the speed that we last asked for
        self.left = DECISIONS

    def act(self, obs):
        cars = obs[obs[:, 0] > 0, 1:] * [METRES, METRES, METRES_PER_SECOND, METRES_PER_SECOND]
        times = np.arange(1, self.left * STEPS + 1) * DT
        others = [foresee(car, times) for car in cars[1:]]
        place, speed = OURS.place(cars[0, :2]), np.hypot(*cars[0, 2:])
        best, choice = -np.inf, None
        for plan in self.plans:
            places, levels = drive(place, speed, self.level, plan[: self.left])
            safe = self.survival(places, times, others)
            worth = (WORTH[levels] * safe).sum()
            if worth > best + 1e-9:
                best, choice = worth, (plan[0], levels[0])
        self.left = max(self.left - 1, 1)
        self.level = choice[1]
        return choice[0]

    def survival(self, places, times, others):
        """Chance (per decision) that nothing has happened until its end."""
        here = OURS.at(places)
        ahead = OURS.at(places + 1) - here
        ahead /= np.linalg.norm(ahead, axis=1)[:, None]
        safe = np.ones(len(times))
        for paths, room in others:
            gap = paths - here
            long = (gap * ahead).sum(axis=2) / (LONG + GROWTH * times)
            wide = (gap[:, :, 0] * ahead[:, 1] - gap[:, :, 1] * ahead[:, 0]) / room
            hit = (long**2 + wide**2 < 1) & (times < SIGHT)
            safe *= 1 - np.maximum.accumulate(hit, axis=1).mean(axis=0)
        return safe[STEPS - 1 :: STEPS]
