"""Broken on purpose: reset raises."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        raise ValueError("cannot start over")

    def act(self, obs):
        return 0
