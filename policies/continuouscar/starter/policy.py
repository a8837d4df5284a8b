"""Starter for MountainCarContinuous: full power towards the goal. (It is too weak to climb without a run-up.)"""

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return np.array([1.0], np.float32)
