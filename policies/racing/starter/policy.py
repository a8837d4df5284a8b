"""Starter for Car Racing: a little gas, and steering towards the side that shows more road just ahead of the car."""

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        row = obs[60].astype(int)
        road = row[:, 1] - row[:, 0] < 40  # grass is much greener than red
        columns = np.flatnonzero(road)
        middle = columns.mean() if len(columns) else 48
        return np.array([0.02 * (middle - 48), 0.02, 0], np.float32)
