"""Reference for Acrobot: plan the whole swing-up with a model of the two links, then carry it out.

The dynamics have no noise, so a plan made from the first observation holds. It is found by beam search: all torque
sequences are extended step by step, and of those only the most promising are kept, by a measure that counts energy
first and the height of the tip second. If the real state ever leaves the plan, a new plan is made from there.
"""

import numpy as np

TORQUES = np.array([-1.0, 0.0, 1.0])
DT = 0.2
G = 9.8
BEAM = 300  # sequences kept at each step
HORIZON = 120
HEIGHT = 0.5  # what a unit of height is worth beside a unit of energy
TOLERANCE = 0.05  # difference of observation and plan that asks for a new plan


def acceleration(state, torque):
    """Time derivative of states (4 × n: two angles, two angular velocities) under torques (n)."""
    angle1, angle2, speed1, speed2 = state
    cos2, sin2 = np.cos(angle2), np.sin(angle2)
    d1 = 0.25 + (1.25 + cos2) + 2.0
    d2 = 0.25 + 0.5 * cos2 + 1.0
    pull2 = 0.5 * G * np.sin(angle1 + angle2)
    pull1 = -0.5 * speed2**2 * sin2 - speed2 * speed1 * sin2 + 1.5 * G * np.sin(angle1) + pull2
    turn2 = (torque + d2 / d1 * pull1 - 0.5 * speed1**2 * sin2 - pull2) / (1.25 - d2**2 / d1)
    turn1 = -(d2 * turn2 + pull1) / d1
    return np.array([speed1, speed2, turn1, turn2])


def advance(state, torque):
    """States one environment step later: one Runge–Kutta step of 0.2 s."""
    k1 = acceleration(state, torque)
    k2 = acceleration(state + DT / 2 * k1, torque)
    k3 = acceleration(state + DT / 2 * k2, torque)
    k4 = acceleration(state + DT * k3, torque)
    return state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def height(state):
    """Height of the tip above the upper joint, −2 to 2; above 1 the episode is won."""
    return -np.cos(state[0]) - np.cos(state[0] + state[1])


def energy(state):
    """Kinetic and potential energy of the two links; −19.6 when they hang still."""
    angle1, angle2, speed1, speed2 = state
    cos2 = np.cos(angle2)
    mass11, mass12, mass22 = 3.5 + cos2, 1.25 + 0.5 * cos2, 1.25
    kinetic = 0.5 * mass11 * speed1**2 + mass12 * speed1 * speed2 + 0.5 * mass22 * speed2**2
    return kinetic - 1.5 * G * np.cos(angle1) - 0.5 * G * np.cos(angle1 + angle2)


def observe(state):
    """The observation of a state (4): cosines and sines of both angles, then the speeds."""
    return np.array(
        [np.cos(state[0]), np.sin(state[0]), np.cos(state[1]), np.sin(state[1]), state[2], state[3]]
    )


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.plan = []  # pairs of action and the observation that is expected after it
        self.expected = None

    def act(self, obs):
        obs = np.asarray(obs, float)
        if not self.plan or np.abs(obs - self.expected).max() > TOLERANCE:
            self.plan = self.search(obs)
        action, self.expected = self.plan.pop(0)
        return action

    def search(self, obs):
        """The best torque sequence found from here."""
        start = np.array([np.arctan2(obs[1], obs[0]), np.arctan2(obs[3], obs[2]), obs[4], obs[5]])
        states = start[:, None]
        history = []
        for _ in range(HORIZON):
            n = states.shape[1]
            parents = np.tile(np.arange(n), len(TORQUES))
            actions = np.repeat(np.arange(len(TORQUES)), n)
            after = advance(states[:, parents], TORQUES[actions])
            tip = height(after)
            merit = energy(after) + HEIGHT * tip
            merit[tip > 1.0] = np.inf
            keep = np.argsort(-merit, kind="stable")[:BEAM]
            states = after[:, keep]
            history.append((parents[keep], actions[keep], states))
            if tip[keep[0]] > 1.0:
                break
        return self.trace(history)

    def trace(self, history):
        """The plan that ends in the best entry of the last step."""
        plan, index = [], 0
        for parents, actions, states in reversed(history):
            plan.append((int(actions[index]), observe(states[:, index])))
            index = parents[index]
        return plan[::-1]
