"""Starter for Pendulum: push against the lean and against the speed. (Holds near the top, but cannot swing up.)"""

import math

import numpy as np

ANGLE = 4.0
SPEED = 1.0


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        angle = math.atan2(float(obs[1]), float(obs[0]))
        torque = -ANGLE * angle - SPEED * float(obs[2])
        return np.array([min(max(torque, -2.0), 2.0)], np.float32)
