"""Reference for Lunar Lander: lean towards the pad, sink at a speed that fits the height, cut the engines on the ground.

Two wishes compete for the one engine that may fire in a step: to turn to a wanted angle (side engines) and to sink no
faster than wanted (main engine). The larger one wins.
"""

NOTHING, LEFT, MAIN, RIGHT = range(4)

LEAN_X, LEAN_VX, MOST_LEAN = 0.5, 0.46, 0.25  # wanted angle from place and speed sideways
TURN, TURN_DAMPING = 0.55, 0.38
HOVER = 0.97  # wanted height for each unit of distance from the pad
CLIMB, SINK = 0.27, 0.37
DEAD_ZONE = 0.05


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        x, y, vx, vy, angle, spin, left, right = (float(v) for v in obs)
        if left or right:
            turn, lift = 0.0, -SINK * vy
        else:
            wanted = min(max(LEAN_X * x + LEAN_VX * vx, -MOST_LEAN), MOST_LEAN)
            turn = TURN * (wanted - angle) - TURN_DAMPING * spin
            lift = CLIMB * (HOVER * abs(x) - y) - SINK * vy
        if lift > max(abs(turn), DEAD_ZONE):
            return MAIN
        if turn < -DEAD_ZONE:
            return RIGHT
        if turn > DEAD_ZONE:
            return LEFT
        return NOTHING
