"""Reference for FetchPush: circle around the block to its far side, push it straight at the goal, let it slide in.

The hand stays at the block's height all the time. Off the pushing line it steers for a point on a circle around the
block, some way further round towards the side that is opposite the goal, and so never touches the block too soon.
On the line it pushes at full speed, and corrects sideways to keep behind the block's middle. It stops as soon as the
block would come to rest near enough to the goal by itself.
"""

import numpy as np

HAND, BLOCK = slice(0, 3), slice(3, 6)  # places in obs["observation"]
BLOCK_SPEED, HAND_SPEED = slice(14, 17), slice(20, 23)  # metres per step; the block's is relative to the hand's

GAIN = 25.0  # action per metre to go; full speed from 4 cm
CIRCLE = 0.075  # metres from the block's middle at which the hand goes around it
TURN = 1.0  # rad further round that the hand aims for
BEHIND = 0.02  # metres that the hand must be behind the block's middle to push
BESIDE = 0.015  # metres that it may be beside the pushing line
SIDEWAYS = 2.0  # correction towards the line, per metre beside it
LEAST_PUSH = 0.03  # metres: a push aims at least so far ahead, or the block would not move
SLIDE = 1.0  # steps at its present speed that the block still slides
NEAR = 0.04  # metres from the goal that are near enough (the reward asks for 0.05)


def wrap(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        seen = np.asarray(obs["observation"], float)
        block, hand = seen[BLOCK], seen[HAND]
        to_goal = (np.asarray(obs["desired_goal"]) - block)[:2]
        slide = SLIDE * (seen[BLOCK_SPEED] + seen[HAND_SPEED])[:2]
        hand_at = (hand - block)[:2]  # seen from the block

        if min(np.linalg.norm(to_goal), np.linalg.norm(to_goal - slide)) < NEAR:
            way = np.zeros(2)
        else:
            way = self.way(hand_at, to_goal)
        way = GAIN * np.append(way, block[2] - hand[2])
        way /= max(1.0, np.abs(way).max())  # not clipped, so that the direction is kept
        return np.append(way, 0.0).astype(np.float32)

    def way(self, hand_at, to_goal):
        """Where the hand should go from here (x, y): along the push, or around the block."""
        distance = np.linalg.norm(to_goal)
        line = to_goal / distance
        ahead = hand_at @ line
        beside = hand_at - ahead * line
        if ahead < -BEHIND and np.linalg.norm(beside) < BESIDE:
            return max(distance, LEAST_PUSH) * line - SIDEWAYS * beside
        now = np.arctan2(hand_at[1], hand_at[0])
        wanted = np.arctan2(-line[1], -line[0])
        bearing = now + np.clip(wrap(wanted - now), -TURN, TURN)
        return CIRCLE * np.array([np.cos(bearing), np.sin(bearing)]) - hand_at
