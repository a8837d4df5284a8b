"""Reference for CartPole: linear state feedback, then the sign of it.

The gains are those of a linear-quadratic regulator for the linearized cart and pole, rounded: the pole's angle and its
speed decide, the cart's position and speed bend the decision towards the middle of the track.
"""

POSITION = 0.1
VELOCITY = 0.25
ANGLE = 3.0
ANGULAR_VELOCITY = 0.6


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        pass

    def act(self, obs):
        position, velocity, angle, angular_velocity = (float(value) for value in obs)
        push = POSITION * position + VELOCITY * velocity + ANGLE * angle + ANGULAR_VELOCITY * angular_velocity
        return 1 if push > 0 else 0
