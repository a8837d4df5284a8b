"""Reference for Ant: a trot at two strides per second, springs that pull each joint along it, and a hand on the wheel.

Each leg has a swing (hip, forward) and a bend (ankle, more bent), both sine waves. The two front legs share one pair
of waves and the two hind legs another; the right side is half a stride behind the left. Torques are small since the
springs are weak; strong ones would cost more than they bring. To keep the course, the legs on the side to
which the torso has turned take longer strides and those on the other side shorter ones, and all hips lean against it.

The numbers were tuned by CMA-ES on the paper's train cases: some 160 generations of 14 to 18 gaits, 400 steps each, on
other cases in every generation.
"""

import numpy as np

DT = 0.05  # seconds per step
STRIDES = 2.01  # per second

# Waves as (mean, size, phase), in rad.
FRONT_SWING, FRONT_BEND = (-0.22, 0.96, -0.95), (0.81, 0.91, 1.90)
HIND_SWING, HIND_BEND = (0.25, 0.78, 2.13), (0.59, 0.98, 1.11)

# Springs and brakes, in torque per rad and per rad/s.
HIP_SPRING, HIP_BRAKE = 0.61, 0.135
ANKLE_SPRING, ANKLE_BRAKE = 0.52, 0.060

STRIDE_BY_YAW = 0.67  # longer strides on the side turned to, per rad
HIP_BY_YAW = -0.31  # lean of the hips, per rad

# The legs in the order of the observation: front left, back left, back right, front right.
LEFT = np.array([1.0, 1.0, -1.0, -1.0])  # +1 on the left; a hip angle is counted backward there, forward on the right
BENT = np.array([1.0, -1.0, -1.0, 1.0])  # the sign of a bent ankle
IS_FRONT = np.array([True, False, False, True])
ACTION_ORDER = [6, 7, 0, 1, 2, 3, 4, 5]  # actions begin with the front right leg
HIP_ANGLES, ANKLE_ANGLES = slice(5, 13, 2), slice(6, 13, 2)
HIP_SPEEDS, ANKLE_SPEEDS = slice(19, 27, 2), slice(20, 27, 2)


def yaw(quaternion):
    """Angle about the vertical, positive to the left."""
    w, x, y, z = quaternion
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def wave(front, hind, phase, stretch=1.0):
    """The four legs' values of a wave, at the legs' phases."""
    mean, size, lead = np.where(IS_FRONT, np.array(front)[:, None], np.array(hind)[:, None])
    return mean + stretch * size * np.sin(phase + lead)


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.time = 0.0

    def act(self, obs):
        obs = np.asarray(obs, float)
        turned = yaw(obs[1:5])
        phase = 2 * np.pi * STRIDES * self.time + np.where(LEFT > 0, 0.0, np.pi)
        self.time += DT

        swing = wave(FRONT_SWING, HIND_SWING, phase, 1.0 + STRIDE_BY_YAW * turned * LEFT)
        bend = wave(FRONT_BEND, HIND_BEND, phase)
        hips = -LEFT * swing + HIP_BY_YAW * turned
        ankles = BENT * bend

        torques = np.empty(8)
        torques[0::2] = HIP_SPRING * (hips - obs[HIP_ANGLES]) - HIP_BRAKE * obs[HIP_SPEEDS]
        torques[1::2] = ANKLE_SPRING * (ankles - obs[ANKLE_ANGLES]) - ANKLE_BRAKE * obs[ANKLE_SPEEDS]
        return np.clip(torques[ACTION_ORDER], -1, 1)
