"""Starter for Parking: drive towards the space at walking pace, whatever the heading on arrival will be."""

import math

import numpy as np


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        car, space = obs["achieved_goal"], obs["desired_goal"]
        x, y = (space - car)[:2]
        heading = math.atan2(car[5], car[4])
        turn = math.remainder(math.atan2(y, x) - heading, math.tau)
        speed = 5 * math.hypot(car[2], car[3])
        return np.clip(np.array([2.0 - speed, 2.0 * turn], np.float32), -1, 1)
