"""Reference for HalfCheetah: a gallop of sine waves at the joints, followed by springs.

Every joint is drawn by a spring towards an angle that swings as a sine wave, all at one frequency, each with its own
mean, size and phase. A brake takes out what is too fast. So that the body does not topple, the angles also lean with
the body's pitch. Nothing else is fed back: the rhythm goes on by the clock.

The joints have stops, and some of the waves go well beyond them: such a joint is thrown against its stop.

The numbers were tuned by CMA-ES on the paper's train cases. At this speed the cheetah sometimes falls on its back.
"""

import numpy as np

DT = 0.05  # seconds per step
STRIDES = 4.20  # per second

# For each joint: mean, size and phase of its wave (rad), torque per rad off the wave, torque per rad/s, and how far the
# wave leans per rad of pitch and per rad/s of its speed. Torques are in the action's units.
MEAN, SIZE, PHASE, SPRING, BRAKE, LEAN, LEAN_SPEED = np.array(
    [
        [ 0.82, 1.21,  0.00,  1.52,  0.075, -0.13,  0.000],  # back thigh
        [ 0.08, 1.15,  2.46,  2.38, -0.095,  0.60,  0.000],  # back shin
        [ 0.09, 0.57,  0.06,  2.04,  0.008, -1.05,  0.000],  # back foot
        [-0.54, 1.02,  2.56,  1.31,  0.053,  0.74,  0.000],  # front thigh
        [ 0.64, 0.93,  1.35, -0.22,  0.063, -0.28,  0.000],  # front shin
        [-0.34, 1.09, -2.33,  1.60, -0.000,  0.67,  0.000],  # front foot
    ]
).T

PITCH, PITCH_SPEED = 1, 10  # places in the observation
ANGLES, SPEEDS = slice(2, 8), slice(11, 17)


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.time = 0.0

    def act(self, obs):
        obs = np.asarray(obs, float)
        wave = MEAN + SIZE * np.sin(2 * np.pi * STRIDES * self.time + PHASE)
        wanted = wave + LEAN * obs[PITCH] + LEAN_SPEED * obs[PITCH_SPEED]
        self.time += DT
        return np.clip(SPRING * (wanted - obs[ANGLES]) - BRAKE * obs[SPEEDS], -1, 1)
