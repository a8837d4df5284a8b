"""Starter for Lunar Lander: the main engine whenever the fall is fast. (It never steers.)"""

NOTHING, MAIN = 0, 2


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        falling = float(obs[3])
        return MAIN if falling < -0.3 else NOTHING
