"""Reference for parking: imagine thousands of short manoeuvres, vary the best ones, drive the very best.

The car is a bicycle without noise, so a manoeuvre that was worked out at the start is carried out to the millimetre.
A manoeuvre has a few legs, each with one position of the pedal, one of the steering wheel, and a duration. Many are
drawn at random and rolled out at once in a model of the car; then the best are varied, by less and less. They are
measured by the environment's own reward. The goal asks for place and heading, not for standing still, so the best
manoeuvres are bold: often a piece backwards at full throttle, then nose first into the spot without braking.
"""

import numpy as np

LEGS = 3  # legs of a manoeuvre
HORIZON = 30  # decisions that a manoeuvre lasts
SUBSTEPS, DT = 3, 1 / 15  # the car moves three times between two decisions, each time by DT seconds
LENGTH = 5.0  # of the car, metres
ACCELERATION, STEERING = 5.0, np.pi / 4  # at full pedal (m/s²) and at full wheel (radians)
METRES, METRES_PER_SECOND = 100.0, 5.0  # what one unit of the observed positions and velocities is

REWARD_X, REWARD_Y, REWARD_HEADING = 1.0 / METRES, 0.3 / METRES, 0.02  # weights of the distance to the goal
ARRIVED = 0.12**2  # weighted distance at which the episode is won
ROOM_X, ROOM_Y = 31.8, 17.8  # the middle of the car hits no wall within ± these, metres
CRASH = 100.0  # cost of a crash: never worth it

DRAWS = 3000  # manoeuvres drawn at random
ROUNDS = 8  # of varying them
VARIATIONS, ELITE = 600, 40  # new manoeuvres of a round, and how many best ones they are made from
LONGEST_LEG = 14.0  # decisions
SPREAD = np.array([0.5, 0.6, 4.0])  # of the first variations: pedal, wheel, duration
SHRINK = 0.7  # of the spread, from round to round


def cost(start, goal, actions):
    """What it costs to drive action sequences (n × horizon × 2) from a state to a goal (n)."""
    n, horizon, _ = actions.shape
    x, y, heading, speed = (np.full(n, value) for value in start)
    slip = np.arctan(np.tan(actions[:, :, 1] * STEERING) / 2)
    turn = np.sin(slip) / (LENGTH / 2)
    total, driving = np.zeros(n), np.ones(n, bool)
    for t in range(horizon):
        for _ in range(SUBSTEPS):
            x = x + speed * np.cos(heading + slip[:, t]) * DT
            y = y + speed * np.sin(heading + slip[:, t]) * DT
            heading = heading + speed * turn[:, t] * DT
            speed = speed + actions[:, t, 0] * ACCELERATION * DT
        distance = REWARD_X * np.abs(x - goal[0]) + REWARD_Y * np.abs(y - goal[1])
        distance += REWARD_HEADING * (np.abs(np.cos(heading) - goal[2]) + np.abs(np.sin(heading) - goal[3]))
        crashed = (np.abs(x) > ROOM_X) | (np.abs(y) > ROOM_Y)
        total += driving * (np.sqrt(distance) + CRASH * crashed)
        driving &= (distance > ARRIVED) & ~crashed
    return total


def expand(legs):
    """Action sequences (n × horizon × 2) of manoeuvres (n × legs × 3); the last leg lasts to the end."""
    ends = np.cumsum(np.rint(legs[:, :-1, 2]), axis=1)
    leg = (np.arange(HORIZON)[None, :, None] >= ends[:, None, :]).sum(axis=2)
    return np.take_along_axis(legs[:, :, :2], leg[:, :, None], axis=1)


def limit(legs):
    """The same manoeuvres with pedal, wheel and duration within their bounds."""
    return np.clip(legs, [-1, -1, 0], [1, 1, HORIZON])


def best_plan(start, goal, rng):
    """The cheapest action sequence (horizon × 2) that the search finds."""
    low, high = [-1.5, -1.5, 0.0], [1.5, 1.5, LONGEST_LEG]  # beyond the bounds: full pedal and full wheel are frequent
    legs = limit(rng.uniform(low, high, (DRAWS, LEGS, 3)))
    spread = SPREAD
    for _ in range(ROUNDS):
        elite = legs[np.argsort(cost(start, goal, expand(legs)), kind="stable")[:ELITE]]
        parents = elite[rng.integers(ELITE, size=VARIATIONS)]
        legs = np.concatenate([elite, limit(parents + spread * rng.normal(size=parents.shape))])
        spread = spread * SHRINK
    return expand(legs[[np.argmin(cost(start, goal, expand(legs)))]])[0]


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.rng = np.random.default_rng(0)
        self.plan = []

    def act(self, obs):
        if not self.plan:
            self.plan = list(best_plan(*self.read(obs), self.rng))
        return self.plan.pop(0).astype(np.float32)

    def read(self, obs):
        """The state (x, y, heading, speed) and the goal (x, y, cosine, sine), in metres, radians, m/s."""
        x, y, vx, vy, cos, sin = np.asarray(obs["observation"], float)
        goal_x, goal_y, _, _, goal_cos, goal_sin = np.asarray(obs["desired_goal"], float)
        speed = (vx * cos + vy * sin) * METRES_PER_SECOND  # negative when it drives backwards
        start = (x * METRES, y * METRES, np.arctan2(sin, cos), speed)
        return start, (goal_x * METRES, goal_y * METRES, goal_cos, goal_sin)
