"""Starter for Acrobot: torque against the bend of the chain, full to either side."""


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        bend = float(obs[3])  # sine of the second link's angle
        return 0 if bend > 0 else 2
