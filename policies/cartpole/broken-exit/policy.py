"""Broken on purpose: ends its own process at the third step of an episode."""

import os


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        self.step = 0

    def act(self, obs):
        self.step += 1
        if self.step == 3:
            os._exit(7)
        return self.step % 2
