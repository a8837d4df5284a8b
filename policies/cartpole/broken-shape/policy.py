"""Broken on purpose: every action has the wrong shape."""

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return np.zeros((3, 2))
