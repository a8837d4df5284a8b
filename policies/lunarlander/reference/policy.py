"""Reference for Lunar Lander: lean towards the pad, sink as fast as the height allows, cut the engines on the ground.

In each step only one engine can fire. The side engines turn the lander to the wanted angle: against its drift and
towards the pad. The main engine fires when the lander sinks faster than its height allows; far from the pad it counts
as lower than it is, so that it stays up until it is over the pad. Turning comes first, for thrust in a wrong direction
helps nobody. On its legs the lander only dampens a hard bounce and then rests.

The numbers were found by a search (CMA-ES over the mean return) on training cases.
"""

NOTHING, LEFT, MAIN, RIGHT = range(4)

LEAN_X, LEAN_VX, MOST_LEAN = 0.53, 1.22, 0.72  # radians per unit of distance and of drift, and in all
FORESIGHT = 1.54  # units of spin that are worth a radian: where the lander will have turned to
TURN_ZONE = 0.1  # radians of wrong angle that are left alone
SLOPE = 0.49  # height that is wanted for each unit of distance from the pad
SINK, SINK_GROWTH, MOST_SINK = 0.144, 1.56, 0.674  # allowed: on the ground, more for each unit of height, and in all
BOUNCE = 0.09  # sinking with a leg on the ground that is still braked


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        x, y, vx, vy, angle, spin, left, right = (float(v) for v in obs)
        if left or right:
            return MAIN if vy < -BOUNCE else NOTHING
        wanted = min(max(LEAN_X * x + LEAN_VX * vx, -MOST_LEAN), MOST_LEAN)
        error = wanted - angle - FORESIGHT * spin
        if abs(error) > TURN_ZONE:
            return LEFT if error > 0 else RIGHT
        height = max(y - SLOPE * abs(x), 0.0)
        return MAIN if vy < -min(SINK + SINK_GROWTH * height, MOST_SINK) else NOTHING
