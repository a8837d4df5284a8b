"""Reference for FetchPickAndPlace: over the block, down around it, close, carry it to the goal.

Every step that the block is away from the goal costs the same, so the phases overlap as far as the fingers allow.
They open along y, and so the hand may go down while it still has to travel along x; and while they close, it already
moves along y, which only presses one finger to the block sooner. A block that is already at the goal is grasped too.
"""

import numpy as np

HAND_TO_BLOCK = slice(6, 9)  # place in obs["observation"]
X, Y, Z = 0, 1, 2

GAIN = 25.0  # action per metre to go; full speed from 4 cm
HOVER = 0.05  # metres over the block's middle, on the way to it
MAY_DESCEND_X, MAY_DESCEND_Y = 0.12, 0.035  # metres beside the block from which on the hand comes down
MAY_CLOSE_SIDE, MAY_CLOSE_HEIGHT = 0.04, 0.03  # metres from the block at which the fingers start to close
CLOSING_STEPS = 2
LOST = 0.06  # metres: a block farther from the hand than this was not grasped
OPEN, CLOSE = 1.0, -1.0


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.closed_for = 0  # steps since the fingers began to close; 0 while they are open

    def act(self, obs):
        to_block = np.asarray(obs["observation"], float)[HAND_TO_BLOCK]
        to_goal = np.asarray(obs["desired_goal"], float) - np.asarray(obs["achieved_goal"])

        if self.closed_for and np.linalg.norm(to_block) > LOST:
            self.closed_for = 0
        if self.closed_for or self.may_close(to_block):
            self.closed_for += 1

        if self.closed_for == 0:
            return self.action(self.approach(to_block), OPEN)
        if self.closed_for <= CLOSING_STEPS:
            return self.action(to_block + [0.0, to_goal[Y], 0.0], CLOSE)
        return self.action(to_goal, CLOSE)

    def may_close(self, to_block):
        return np.abs(to_block[:Z]).max() < MAY_CLOSE_SIDE and abs(to_block[Z]) < MAY_CLOSE_HEIGHT

    def approach(self, to_block):
        """The way still to go: to the block, or to a point over it while a finger would hit it on the way down."""
        beside = abs(to_block[X]) > MAY_DESCEND_X or abs(to_block[Y]) > MAY_DESCEND_Y
        return to_block + [0.0, 0.0, HOVER if beside else 0.0]

    def action(self, way, fingers):
        return np.append(np.clip(GAIN * way, -1, 1), fingers).astype(np.float32)
