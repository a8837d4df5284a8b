"""Starter for Ant: the hips of the two diagonals swing against each other. (It costs more than it earns.)"""

import math

import numpy as np

STEPS_PER_STRIDE = 16
SWING = 0.6


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        self.step = 0

    def act(self, obs):
        self.step += 1
        swing = SWING * math.sin(math.tau * self.step / STEPS_PER_STRIDE)
        # hips and ankles of: front right, front left, back left, back right
        return np.array([swing, 0, -swing, 0, swing, 0, -swing, 0], np.float32)
