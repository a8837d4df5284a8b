"""Broken on purpose: keeps 64 MB more at every step."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.hoard = []

    def reset(self, episode_index):
        self.step = 0

    def act(self, obs):
        self.step += 1
        self.hoard.append(b"x" * (64 << 20))
        return self.step % 2
