"""Starter for ObstructedMaze: open boxes and doors, pick up what can be picked up, else go straight on and turn right."""

RIGHT, FORWARD, PICKUP, TOGGLE = 1, 2, 3, 5
EMPTY, DOOR, KEY, BALL, BOX, GOAL = 1, 4, 5, 6, 7, 8
OPEN = 0


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        pass

    def reset(self, episode_index):
        self.step = 0

    def act(self, obs):
        self.step += 1
        thing, _color, state = (int(code) for code in obs["image"][3][5])
        hands = int(obs["image"][3][6][0])
        if thing == BOX:
            return TOGGLE
        if thing in (KEY, BALL) and hands == EMPTY:
            return PICKUP
        if thing == DOOR and state != OPEN and self.step % 2:
            return TOGGLE
        if thing in (EMPTY, DOOR, GOAL) and self.step % 7:
            return FORWARD
        return RIGHT
