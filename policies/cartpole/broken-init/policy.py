"""Broken on purpose: the constructor raises."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        raise RuntimeError("no policy today")

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return 0
