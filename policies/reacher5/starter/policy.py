"""Starter for Reacher: turn the shoulder towards the target and leave the elbow alone."""

import math

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        shoulder = math.atan2(obs[2], obs[0])
        target = math.atan2(obs[5], obs[4])
        turn = math.remainder(target - shoulder, math.tau)
        return np.array([0.1 * turn - 0.02 * obs[6], 0.0], np.float32)
