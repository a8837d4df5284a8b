"""Broken on purpose: imports a simulator, which a policy may not."""

import gymnasium


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.env = gymnasium.make("CartPole-v1")

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return 0
