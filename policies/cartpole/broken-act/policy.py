"""Broken on purpose: act raises at its fourth call."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        self.calls = 0

    def act(self, obs):
        self.calls += 1
        if self.calls == 4:
            raise ZeroDivisionError("the fourth step is too much")
        return self.calls % 2
