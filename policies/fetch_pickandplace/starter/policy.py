"""Starter for Fetch Pick and Place: go down to the block with open fingers, and close them there. (It lifts nothing.)"""

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        to_block = obs["observation"][6:9]
        move = np.clip(10 * to_block, -1, 1)
        there = np.linalg.norm(to_block) < 0.02
        return np.append(move, -1 if there else 1).astype(np.float32)
