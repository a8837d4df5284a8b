"""Reference for HalfCheetah: a gallop of sine waves at the joints, followed by springs.

Every joint is drawn by a spring towards an angle that swings as a sine wave, all at one frequency, each with its own
mean, size and phase. A brake takes out what is too fast. So that the body does not topple, the angles also lean with
the body's pitch. The rhythm itself goes by the clock, whatever happens.

The joints have stops, and some of the waves go well beyond them: such a joint is thrown against its stop. One spring and
one brake came out negative, and drive their joint on.

The numbers were tuned by CMA-ES on the paper's train cases: first for speed (some 200 generations of 17, on 400 steps of
one case each), then against falls (some 25 generations of 16, on four whole episodes each). Before that second part a
third of the episodes ended on the back, after it one in fifty.
"""

import numpy as np

DT = 0.05  # seconds per step
STRIDES = 4.23  # per second

# For each joint: mean, size and phase of its wave (rad), torque per rad off the wave, torque per rad/s, and how far the
# wave leans per rad of pitch and per rad/s of its speed. Torques are in the action's units.
MEAN, SIZE, PHASE, SPRING, BRAKE, LEAN, LEAN_SPEED = np.array(
    [
        [ 0.77, 1.25, -0.01,  1.61,  0.084, -0.34,  0.004],  # back thigh
        [ 0.14, 1.17,  2.62,  2.19, -0.077,  0.76, -0.037],  # back shin
        [ 0.09, 0.52, -0.05,  2.04,  0.028, -1.05, -0.047],  # back foot
        [-0.55, 1.07,  2.57,  1.25,  0.062,  0.73, -0.026],  # front thigh
        [ 0.56, 0.95,  1.38, -0.39,  0.041, -0.35, -0.004],  # front shin
        [-0.25, 1.17, -2.40,  1.32,  0.001,  0.72, -0.044],  # front foot
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
