"""Reference for Reacher: plan the torques of the whole rest of the episode with a model of the arm, at every step anew.

The rotors are so heavy beside the links that each joint moves as if it were alone: 200 × torque − speed = acceleration.
So all future angles are linear in the torques, and only the way from angles to the fingertip is curved. The plan
minimises exactly what the reward charges, Σ distance + Σ torque², by Gauss–Newton steps: the fingertip is linearised,
and a distance d is replaced by the parabola that touches it where the plan now is. The first plan is tried with the
elbow to either side, and the better one is kept.
"""

import numpy as np

STEPS = 50  # in an episode
DT = 0.02  # seconds per step
GEAR = 200.0
LINK1, LINK2 = 0.1, 0.11  # metres: shoulder to elbow, elbow to fingertip
ELBOW_LIMIT = 2.9  # rad, a little before the stop
NEAR = 1e-3  # metres: distances below this count as this much when the parabola is chosen
FIRST_THRIFT = 3.0  # what the first guess pays for squared torque, beside squared radians
FIRST_ROUNDS = 40  # Gauss–Newton steps of the first plan
ROUNDS = 4  # and of every later one
HALVINGS = 8  # a step that makes the plan worse is halved, at most so often


def responses(steps):
    """How the angle after each step answers to a unit of speed at the start (n) and of torque at each step (n × n)."""
    fade = np.exp(-DT)
    speed_kept = fade ** np.arange(1, steps + 1)
    free = 1.0 - speed_kept
    kick = GEAR * (DT - (1.0 - fade))  # angle gained within a step of unit torque
    push = GEAR * (1.0 - fade)  # speed gained by it
    torque = np.zeros((steps, steps))
    for t in range(steps):
        torque[t:, t] = kick
        torque[t + 1 :, t] += push * free[: steps - t - 1]
    return free, torque


def fingertip(angles):
    """Positions (n × 2) and their derivatives by the two angles (n × 2 × 2) of angles (n × 2)."""
    first, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    x1, y1 = LINK1 * np.cos(first), LINK1 * np.sin(first)
    x2, y2 = LINK2 * np.cos(both), LINK2 * np.sin(both)
    slopes = np.array([[-y1 - y2, -y2], [x1 + x2, x2]]).transpose(2, 0, 1)
    return np.stack([x1 + x2, y1 + y2], axis=1), slopes


def solutions(target):
    """The pairs of angles that put the fingertip at the target (or as near as the arm can), elbow to either side."""
    reach = np.clip(np.hypot(*target), 1e-6, None)
    bend = np.arccos(np.clip((reach**2 - LINK1**2 - LINK2**2) / (2 * LINK1 * LINK2), -1, 1))
    bend = min(bend, ELBOW_LIMIT)
    bearing = np.arctan2(target[1], target[0])
    inner = np.arctan2(LINK2 * np.sin(bend), LINK1 + LINK2 * np.cos(bend))
    return [np.array([bearing - side * inner, side * bend]) for side in (1, -1)]


class Planner:
    """Torques for the rest of an episode, from the present angles and speeds (2 each) to a target."""

    def __init__(self, angles, speeds, target, steps):
        free, self.torque = responses(steps)
        self.drift = angles + np.outer(free, speeds)
        self.target = target

    def cost(self, plan):
        tips, _ = fingertip(self.drift + self.torque @ plan)
        return np.linalg.norm(tips - self.target, axis=1).sum() + np.square(plan).sum()

    def towards(self, angles):
        """A first plan: come near to given angles soon, without using too much torque."""
        wanted = self.torque.T @ (angles - self.drift)
        return np.linalg.solve(self.torque.T @ self.torque + FIRST_THRIFT * np.eye(len(wanted)), wanted)

    def improve(self, plan, rounds):
        """The plan (n × 2) after so many Gauss–Newton steps, and its cost."""
        steps = len(plan)
        best = self.cost(plan)
        for _ in range(rounds):
            tips, slopes = fingertip(self.drift + self.torque @ plan)
            gaps = tips - self.target
            weight = 0.5 / np.maximum(np.linalg.norm(gaps, axis=1), NEAR)
            curve = np.einsum("t,tki,tkj->ijt", weight, slopes, slopes)
            pull = np.einsum("t,tki,tk->it", weight, slopes, gaps)
            hessian = np.block([[self.torque.T * curve[i, j] @ self.torque for j in range(2)] for i in range(2)])
            gradient = np.concatenate([self.torque.T @ pull[i] + plan[:, i] for i in range(2)])
            step = np.linalg.solve(hessian + np.eye(2 * steps), -gradient).reshape(2, steps).T
            costs = [self.cost(plan + step * 0.5**n) for n in range(HALVINGS)]
            n = int(np.argmin(costs))
            if costs[n] >= best:
                break
            plan, best = plan + step * 0.5**n, costs[n]
        return plan, best


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.left = STEPS
        self.plan = None

    def act(self, obs):
        obs = np.asarray(obs, float)
        angles, target, speeds = np.arctan2(obs[2:4], obs[:2]), obs[4:6], obs[6:8]
        planner = Planner(angles, speeds, target, self.left)
        if self.plan is None:
            self.plan = self.first(planner, angles, target)
        self.plan, _ = planner.improve(self.plan, ROUNDS)
        action = self.plan[0]
        if self.left > 1:
            self.plan, self.left = self.plan[1:], self.left - 1
        return np.clip(action, -1, 1)

    def first(self, planner, angles, target):
        """The better of two plans, one for each side of the elbow; the shoulder goes the shorter way round."""
        plans = []
        for goal in solutions(target):
            goal[0] = angles[0] + (goal[0] - angles[0] + np.pi) % (2 * np.pi) - np.pi
            plans.append(planner.improve(planner.towards(goal), FIRST_ROUNDS))
        return min(plans, key=lambda found: found[1])[0]
