"""Reference for BipedalWalker: a walk made of two half-steps per leg, after the idea of SIMBICON.

One leg swings, the other stands. The swinging leg is first lifted forwards, knee bent, for a fixed time; then it
reaches for the ground, and when it touches, the legs change roles. Its thigh is held at an angle against the world,
not against the hull, and swings further when the walker is faster than it should be: that catches a fall forwards. The
standing leg's hip keeps the hull upright, its knee carries the weight and yields a little when the other leg reaches
out. The torques are proportional to what is missing, with some damping.

The numbers were found by a search (CMA-ES over the mean return) on training cases, and two of them (lift steps, lean)
adjusted by hand on more training cases, for fewer falls.
"""

import numpy as np

HULL_ANGLE, HULL_TURN, SPEED = 0, 1, 2  # places in the observation
LEGS = (4, 9)  # where each leg's five values begin: hip angle, hip speed, knee angle, knee speed, contact
TURN_UNIT, SPEED_UNIT = 0.04, 0.12  # an observed value of this is 1 radian/s, 1 m/s

LIFT_STEPS = 10  # of lifting the swinging leg (0.02 s each)
REACH_STEPS = 49  # at most, of reaching for the ground
LIFT_HIP, LIFT_KNEE = 1.018, -0.307  # of the swinging leg, radians; the hip against the world, the knee as observed
REACH_HIP, REACH_KNEE = 0.377, 0.335
CARRY_KNEE, YIELD_KNEE = 0.555, 0.122  # of the standing leg while the other is lifted, and while it reaches
CRUISE = 2.96  # m/s, wanted
STRETCH = 0.139  # radians that the swinging hip goes further, per m/s above that

HIP_GAIN, HIP_DAMPING = 4.19, 0.53
KNEE_GAIN = 3.20
HULL_LEAN = -0.045  # radians, wanted: forwards
HULL_GAIN, HULL_DAMPING = 6.80, 0.387  # per radian, per radian/s
STANCE_DAMPING = 0.318
REACH_PUSH = 0.113  # torque of the standing hip while the other leg reaches


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.swinging = 0  # number of the leg that swings
        self.steps = 0  # since the legs changed roles

    def act(self, obs):
        obs = [float(value) for value in obs]
        self.steps += 1
        touches = obs[LEGS[self.swinging] + 4] > 0
        if self.steps > LIFT_STEPS + 1 and (touches or self.steps > LIFT_STEPS + REACH_STEPS):
            self.swinging, self.steps = 1 - self.swinging, 0
        reaching = self.steps > LIFT_STEPS

        action = np.zeros(4, np.float32)
        action[2 * self.swinging : 2 * self.swinging + 2] = self.swing(obs, reaching)
        standing = 1 - self.swinging
        action[2 * standing : 2 * standing + 2] = self.stand(obs, reaching)
        return np.clip(action, -1, 1)

    def swing(self, obs, reaching):
        """Torques of hip and knee of the swinging leg."""
        hip, hip_speed, knee = obs[LEGS[self.swinging] :][:3]
        hip_goal, knee_goal = (REACH_HIP, REACH_KNEE) if reaching else (LIFT_HIP, LIFT_KNEE)
        hip_goal += STRETCH * (obs[SPEED] / SPEED_UNIT - CRUISE)
        hip_torque = HIP_GAIN * (hip_goal - hip - obs[HULL_ANGLE]) - HIP_DAMPING * hip_speed
        return hip_torque, KNEE_GAIN * (knee_goal - knee)

    def stand(self, obs, reaching):
        """Torques of hip and knee of the standing leg."""
        _, hip_speed, knee = obs[LEGS[1 - self.swinging] :][:3]
        knee_goal = YIELD_KNEE if reaching else CARRY_KNEE
        hip_torque = HULL_GAIN * (obs[HULL_ANGLE] - HULL_LEAN) + HULL_DAMPING * obs[HULL_TURN] / TURN_UNIT
        hip_torque += (REACH_PUSH if reaching else 0.0) - STANCE_DAMPING * hip_speed
        return hip_torque, KNEE_GAIN * (knee_goal - knee)
