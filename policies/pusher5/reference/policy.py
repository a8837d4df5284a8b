"""Reference for Pusher: lower the fork over the object, and carry it to the goal between the fork's walls.

At the wrist the arm ends in a fork: a crossbar and, at its ends, two prongs that point forward. The object has no
weight to speak of and sits as if in honey: it follows a wall of the fork only at a speed that grows with how deep the
wall is pressed into it, and stops at once when left alone. So the fork is lowered over the object, and then held so
that the crossbar and one prong are pressed in, each in the measure in which its push is wanted; pressed by both, the
object runs diagonally and fastest.

The arm is steered by its kinematics: joint speeds are found by damped least squares that give the wrist the wanted
velocity, turn the fork level and to the wanted heading, and draw the joints towards a pose at ease. Torques are dear,
so the way to the object is taken at a modest speed.
"""

import numpy as np

DT = 0.05  # seconds per step

# The arm: where each joint sits on the link before it, the axis it turns about (0 x, 1 y, 2 z), and its friction.
BASE = np.array([0.0, -0.6, 0.0])
JOINTS = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0, 0], [0.4, 0, 0], [0, 0, 0], [0.321, 0, 0], [0, 0, 0]])
AXES = (2, 1, 0, 1, 0, 1, 0)
FRICTION = np.array([1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.1])
SERVO = np.array([1.0, 1.0, 0.35, 0.35, 0.17, 0.17, 0.17])  # torque per rad/s of missing speed

# What the least squares weigh, beside 1 for the wrist's velocity in m/s.
POSE = np.array([0.14, 0.58, -1.0, -0.8, 0.2, 0.2, 0.4])  # rad
POSE_WEIGHT = np.array([0.009, 0.02, 0.007, 0.008, 0.045, 0.041, 0.043])
POSE_PULL = 2.0  # 1/s
LEVEL_WEIGHT, HEADING_WEIGHT = 0.28, 0.012
TURN_PULL = 1.8  # 1/s

# The fork: distances in m between the object's middle and the middle of the crossbar when they just touch.
TOUCH_AHEAD = 0.07  # the crossbar
TOUCH_ASIDE = 0.03  # the prong on the other side
PRESS = 0.045  # how deep a wall is pressed in
SKEW = 0.8  # rad between the way to the goal and the heading, so that two walls push
SWAP = 1.0  # rad: ways to the goal beyond this are pushed by the right prong
BELOW = -0.02  # the fork's height over the object's middle when it pushes
HOVER = 0.09  # and on the way
OVER = 0.04  # m beside its place at which the fork is lowered

APPROACH = 5.0  # 1/s
FAST = 0.5  # m/s
FOLLOW = 8.0
LEAD = 1.0
ARRIVED, LEFT_AGAIN = 0.012, 0.025  # m from the goal


def rotation(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    turned = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turned[i, i] = turned[j, j] = c
    turned[i, j], turned[j, i] = -s, s
    return turned


def kinematics(angles):
    """The fork's frame (columns: forward, left, up), and how wrist position and frame answer to the joints (3 × 7)."""
    frame, place = np.eye(3), BASE
    axes, places = [], []
    for offset, axis, angle in zip(JOINTS, AXES, angles):
        place = place + frame @ offset
        axes.append(frame[:, axis])
        places.append(place)
        frame = frame @ rotation(axis, angle)
    axes = np.array(axes)
    return frame, np.cross(axes, place - np.array(places)).T, axes.T


def unit(vector):
    return vector / max(np.linalg.norm(vector), 1e-9)


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.before = None
        self.arrived = False
        self.skew = None

    def act(self, obs):
        obs = np.asarray(obs, float)
        angles, speeds = obs[:7], obs[7:14]
        wrist, thing, goal = obs[14:17], obs[17:20], obs[20:23]
        frame, move, turn = kinematics(angles)
        to_goal = (goal - thing)[:2]
        distance = np.linalg.norm(to_goal)
        self.arrived = distance < (LEFT_AGAIN if self.arrived else ARRIVED)
        if self.skew is None:
            self.skew = -SKEW if np.arctan2(to_goal[1], to_goal[0]) > SWAP else SKEW
        if distance > LEFT_AGAIN or self.before is None:
            self.line = to_goal / distance
        drift = (thing - self.before)[:2] / DT if self.before is not None else np.zeros(2)
        self.before = thing

        velocity = self.velocity(frame, wrist, thing, drift)
        spin = self.spin(frame)
        spin_weight = np.array([LEVEL_WEIGHT, LEVEL_WEIGHT, HEADING_WEIGHT])
        pose_weight = np.abs(POSE_WEIGHT)
        normal = move.T @ move + turn.T @ (spin_weight[:, None] * turn) + np.diag(pose_weight)
        wanted = move.T @ velocity + turn.T @ (spin_weight * spin) + pose_weight * POSE_PULL * (POSE - angles)
        rates = np.linalg.solve(normal, wanted)
        return np.clip(FRICTION * rates + SERVO * (rates - speeds), -2, 2)

    def velocity(self, frame, wrist, thing, drift):
        forward = unit(frame[:2, 0])
        left = np.array([-forward[1], forward[0]])
        ahead, aside = self.line @ forward, self.line @ left
        most = max(abs(ahead), abs(aside))
        press = 0.0 if self.arrived else PRESS / most
        place_ahead = TOUCH_AHEAD - press * max(ahead, 0.0)
        place_aside = 0.0 if self.arrived else -TOUCH_ASIDE * np.clip(4 * aside, -1, 1) - press * aside
        gap = thing[:2] - place_ahead * forward - place_aside * left - wrist[:2]
        low = wrist[2] < thing[2] + 0.06
        if low:
            flat = LEAD * drift + FOLLOW * gap
        else:
            flat = APPROACH * gap
        height = thing[2] + (BELOW if low or np.linalg.norm(gap) < OVER else HOVER)
        velocity = np.append(flat, APPROACH * (height - wrist[2]))
        return velocity * min(1.0, FAST / max(np.linalg.norm(velocity), 1e-9))

    def spin(self, frame):
        c, s = np.cos(self.skew), np.sin(self.skew)
        heading = np.array([c * self.line[0] - s * self.line[1], s * self.line[0] + c * self.line[1], 0.0])
        level = np.array([-heading[1], heading[0], 0.0])
        return TURN_PULL * (np.cross(frame[:, 0], heading) + np.cross(frame[:, 1], level))
