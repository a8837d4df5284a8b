"""Broken on purpose: prints far more than anybody wants to read, on both streams."""

import sys


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        self.step = 0

    def act(self, obs):
        self.step += 1
        for line in range(200):
            print(f"step {self.step} line {line} " + "x" * 100)
            print(f"step {self.step} line {line} " + "y" * 100, file=sys.stderr)
        return self.step % 2
