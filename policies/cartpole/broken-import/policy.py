"""Broken on purpose: imports a module that does not exist."""

import a_module_that_nobody_has


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.helper = a_module_that_nobody_has.Helper()

    def reset(self, episode_index):
        pass

    def act(self, obs):
        return 0
