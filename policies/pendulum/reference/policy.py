"""Reference for Pendulum: a swing-up and balancing law, improved by looking ahead with a model.

The law pumps energy until there is just enough to stand, and balances near the top. Every few steps the policy
simulates what would come of pushing one way for a while first and only then following the law, for both ways and many
lengths, and starts whichever costs least over the rest of the episode.
"""

import numpy as np

DT = 0.05
MAX_SPEED, MAX_TORQUE = 8.0, 2.0
STEPS = 200
PUMP = 1.0  # torque per missing unit of energy
NEAR_ANGLE, NEAR_SPEED = 0.7, 3.5  # within these the law balances
BALANCE_ANGLE, BALANCE_SPEED = 10.0, 2.5
LONGEST_PUSH = 40
REPLAN_EVERY = 5
PUSHES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])


def law(angle, speed):
    """Torques for states (arrays), angle 0 standing up, within ±MAX_TORQUE."""
    energy = 0.5 * speed**2 + 15.0 * (np.cos(angle) - 1.0)  # 0 when it is just enough to stand
    pump = -PUMP * energy * np.where(speed >= 0, 1.0, -1.0)
    balance = -BALANCE_ANGLE * angle - BALANCE_SPEED * speed
    near = (np.abs(angle) < NEAR_ANGLE) & (np.abs(speed) < NEAR_SPEED)
    return np.clip(np.where(near, balance, pump), -MAX_TORQUE, MAX_TORQUE)


def advance(angle, speed, torque):
    """``(angle, speed, cost)`` one step later, the angle within ±π."""
    cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * DT, -MAX_SPEED, MAX_SPEED)
    return (angle + speed * DT + np.pi) % (2 * np.pi) - np.pi, speed, cost


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        lengths = np.arange(LONGEST_PUSH + 1)
        self.push = np.repeat(PUSHES, len(lengths))
        self.length = np.tile(lengths, len(PUSHES))
        self.reset(0)

    def reset(self, episode_index):
        self.step = 0
        self.pushing = (0.0, 0)  # torque, steps left

    def act(self, obs):
        cosine, sine, speed = (float(value) for value in obs)
        angle = float(np.arctan2(sine, cosine))
        if self.step % REPLAN_EVERY == 0 and (abs(angle) > 0.1 or abs(speed) > 0.3):
            self.pushing = self.best_push(angle, speed, STEPS - self.step)
        torque, left = self.pushing
        if left <= 0:
            torque = float(law(np.array(angle), np.array(speed)))
        self.pushing = (torque, left - 1)
        self.step += 1
        return np.array([torque], np.float32)

    def best_push(self, angle, speed, steps):
        """The push (torque, length) to begin with that makes the rest of the episode cheapest."""
        angles, speeds = np.full(len(self.push), angle), np.full(len(self.push), speed)
        total = np.zeros(len(self.push))
        for t in range(steps):
            torque = np.where(t < self.length, self.push, law(angles, speeds))
            angles, speeds, cost = advance(angles, speeds, torque)
            total += cost
        best = int(total.argmin())
        return float(self.push[best]), int(self.length[best])
