"""Reference for Pusher: lower the fork over the object, and carry it to the goal between the fork's walls.

At the wrist the arm ends in a fork: a crossbar and, at its ends, two prongs that point forward. The object has no
weight to speak of and sits as if in honey: a wall that is pressed into it moves it slowly, and it stops at once when
left alone. The speed was measured for all places of the object in the fork. It is best, 4 to 5 mm a step, when crossbar
and prong are both pressed in by some 2 cm, and then the object runs diagonally. So the fork is lowered over the object,
turned aside from the way to the goal, and held so that each wall is pressed in as much as its push is wanted.

The arm is steered by its kinematics: joint speeds are found by damped least squares that give the wrist the wanted
velocity, turn the fork level and to the wanted heading, and draw the joints towards a pose at ease. Torques are dear,
so the way to the object is taken at a modest speed. Gains and pose were tuned by CMA-ES on the paper's train cases.
"""

import numpy as np

DT = 0.05  # seconds per step
ANGLES, SPEEDS = slice(0, 7), slice(7, 14)  # places in the observation
WRIST, OBJECT, GOAL = slice(14, 17), slice(17, 20), slice(20, 23)

# The arm: where each joint sits on the link before it (m), the axis it turns about (0 x, 1 y, 2 z), its friction.
BASE = np.array([0.0, -0.6, 0.0])
JOINTS = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0, 0], [0.4, 0, 0], [0, 0, 0], [0.321, 0, 0], [0, 0, 0]])
AXES = (2, 1, 0, 1, 0, 1, 0)
FRICTION = np.array([1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.1])
SERVO = np.array([0.91, 0.82, 0.64, 0.46, 0.27, 0.02, 0.20])  # torque per rad/s of missing speed

# What the least squares weigh, beside 1 for the wrist's velocity in m/s; and how fast what is off is put right (1/s).
EASE = np.array([-0.08, 0.79, -0.88, -0.88, -0.11, 0.09, 0.91])  # the pose, rad
EASE_WEIGHT = np.array([0.001, 0.029, 0.020, 0.009, 0.046, 0.037, 0.045])
SPIN_WEIGHT = np.array([0.12, 0.12, 0.008])  # about x and y (level), about z (heading)
EASE_PULL, SPIN_PULL = 2.0, 2.4

# The object's place in the fork (m): where it just touches the crossbar, or a prong; and how deep walls are pressed in.
TOUCH_AHEAD, TOUCH_ASIDE = 0.07, 0.03
PRESS = 0.02
SKEW = 0.34  # rad between the way to the goal and the fork's heading
TO_LEFT = 1.2  # rad: on ways to the goal beyond this the right prong pushes, on others the left one

APPROACH, FOLLOW = 2.7, 7.0  # wrist velocity per metre to go (1/s): above the table, and at the object
FAST = 0.57  # m/s
HOVER, PUSH_HEIGHT, LOW = 0.093, -0.01, 0.06  # m over the object's middle: to travel, to push, and what counts as down
OVER = 0.14  # m beside its place at which the fork is lowered
ARRIVED, ASTRAY = 0.012, 0.025  # m from the goal: good enough to let go, and bad enough to push again


def cross(a, b):
    """Cross products of vectors (… × 3); numpy's own takes longer than all else here."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def kinematics(angles):
    """The fork's frame (columns: forward, left, up), and how wrist position and frame answer to the joints (3 × 7)."""
    frame, place = np.eye(3), BASE
    axes, places = np.empty((7, 3)), np.empty((7, 3))
    cosines, sines = np.cos(angles), np.sin(angles)
    for n, axis in enumerate(AXES):
        place = place + frame @ JOINTS[n]
        axes[n], places[n] = frame[:, axis], place
        i, j = (axis + 1) % 3, (axis + 2) % 3
        frame, first, second = frame.copy(), frame[:, i], frame[:, j]
        frame[:, i] = cosines[n] * first + sines[n] * second
        frame[:, j] = cosines[n] * second - sines[n] * first
    return frame, cross(axes, place - places).T, axes.T


def turned(vector, angle):
    """A vector in the plane, turned to the left."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.before = None  # where the object was a step ago
        self.arrived = False

    def act(self, obs):
        obs = np.asarray(obs, float)
        angles = obs[ANGLES]
        frame, move, turn = kinematics(angles)
        drift = self.look(obs[OBJECT], obs[GOAL])

        velocity = self.velocity(frame, obs[WRIST], obs[OBJECT], drift)
        spin = self.spin(frame)
        matrix = move.T @ move + turn.T @ (SPIN_WEIGHT[:, None] * turn) + np.diag(EASE_WEIGHT)
        wanted = move.T @ velocity + turn.T @ (SPIN_WEIGHT * spin) + EASE_WEIGHT * EASE_PULL * (EASE - angles)
        rates = np.linalg.solve(matrix, wanted)
        return np.clip(FRICTION * rates + SERVO * (rates - obs[SPEEDS]), -2, 2)

    def look(self, thing, goal):
        """Keep the line to the goal (a unit vector) and whether it is reached; returns the object's velocity."""
        to_goal = (goal - thing)[:2]
        distance = np.linalg.norm(to_goal)
        self.arrived = distance < (ASTRAY if self.arrived else ARRIVED)
        if self.before is None:
            self.skew = -SKEW if np.arctan2(to_goal[1], to_goal[0]) > TO_LEFT else SKEW
            self.before = thing
            self.line = to_goal / distance
        if distance > ASTRAY:  # nearer by, the line would turn too quickly
            self.line = to_goal / distance
        drift = (thing - self.before)[:2] / DT
        self.before = thing
        return drift

    def velocity(self, frame, wrist, thing, drift):
        """The wrist's wanted velocity: to where the object has its place in the fork, first above it."""
        forward = frame[:2, 0] / np.linalg.norm(frame[:2, 0])
        left = turned(forward, np.pi / 2)
        ahead, aside = self.place(self.line @ forward, self.line @ left)
        gap = thing[:2] - ahead * forward - aside * left - wrist[:2]

        down = wrist[2] < thing[2] + LOW
        flat = drift + FOLLOW * gap if down else APPROACH * gap
        height = thing[2] + (PUSH_HEIGHT if down or np.linalg.norm(gap) < OVER else HOVER)
        velocity = np.append(flat, APPROACH * (height - wrist[2]))
        return velocity * min(1.0, FAST / max(np.linalg.norm(velocity), 1e-9))

    def place(self, forward, left):
        """Where in the fork the object should be (ahead, left) to be pushed along a direction, given likewise."""
        if self.arrived:
            return TOUCH_AHEAD, 0.0
        press = PRESS / max(abs(forward), abs(left))
        to_the_prong = np.clip(4 * left, -1, 1)  # all the way, but for directions that need nearly no push aside
        return TOUCH_AHEAD - press * max(forward, 0.0), -TOUCH_ASIDE * to_the_prong - press * left

    def spin(self, frame):
        """The fork's wanted angular velocity, which brings it level and to its heading."""
        heading = turned(self.line, self.skew)
        forward, left = np.append(heading, 0.0), np.append(turned(heading, np.pi / 2), 0.0)
        return SPIN_PULL * (cross(frame[:, 0], forward) + cross(frame[:, 1], left))
