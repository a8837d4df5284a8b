"""Reference for DoorKey: find the key (and the door on the way), fetch it, unlock, walk to the corner with the goal.

The world is 16×16 cells, cut by one straight wall with a locked door in it; the agent and the key are on the west side,
the goal is always in the south-east corner. Where the wall stands, and where in all this the agent woke up, is
worked out from the walls it sees.
"""

from gridmap import DOOR, GOAL, KEY, LOCKED, PICKUP, TOGGLE, UNSEEN, GridMap, Layouts

SIDE = 16
DOOR_WORTH = 1.0  # seeing a cell where the door may be, against 1 for a cell where the key may be
PATIENCE = 4.0


def plans():
    """One plan per place of the dividing wall: # wall, + wall or door, w west floor, e east floor, G goal."""
    found = []
    for split in range(2, SIDE - 2):
        rows = []
        for y in range(SIDE):
            row = ""
            for x in range(SIDE):
                if x in (0, SIDE - 1) or y in (0, SIDE - 1):
                    row += "#"
                elif x == split:
                    row += "+" if y < SIDE - 2 else "#"
                else:
                    row += "w" if x < split else "e"
            rows.append(row)
        rows[SIDE - 2] = rows[SIDE - 2][: SIDE - 2] + "G#"
        found.append(rows)
    return found


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.grid = GridMap()
        self.layouts = Layouts(plans(), starts="w")

    def act(self, obs):
        action = self.decide(obs)
        self.grid.last_action = action
        return 0 if action is None else action

    def decide(self, obs):
        grid = self.grid
        self.layouts.learn(grid, grid.look(obs))
        walls = self.layouts.average({"#": 1.0, "+": 0.9}, outside=1.0)
        entry = grid.entry_costs(walls)
        locked = grid.find(DOOR, state=LOCKED)

        action = None
        if grid.find(GOAL):
            action, _ = grid.go_to(entry, grid.find(GOAL))
        if action is None and not locked and grid.find(DOOR):  # unlocked: the goal is in the corner, seen or not
            corner = self.layouts.average({"G": 1.0})
            action, _ = grid.go_to(entry, [tuple(divmod(int(corner.argmax()), corner.shape[1]))])
        if action is None and grid.carrying:
            action, _ = grid.face(entry, locked, TOGGLE)
        if action is None and not grid.carrying:
            action, _ = grid.face(entry, grid.find(KEY), PICKUP)
        if action is None:
            letters = {"+": DOOR_WORTH} if grid.carrying else {"w": 1.0, "+": 0.0 if locked else DOOR_WORTH}
            action = grid.explore(entry, walls, self.layouts.average(letters) * (grid.kind == UNSEEN), PATIENCE)
        return action
