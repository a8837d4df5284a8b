"""Reference for FourRooms: look where most of the unseen floor comes into view, then walk straight to the goal.

The world is always 19×19 cells: an outer wall, a wall cross in the middle, one gap in each arm of the cross. From the
first glimpses of walls the policy works out where it is on that plan, so it knows which unseen cells are floor (and may
hold the goal) and which are wall, before it has seen them.
"""

from gridmap import GOAL, UNSEEN, GridMap, Layouts

SIDE, CROSS = 19, 9
GAP_WORTH = 0.5  # seeing a cell where a gap may be, against 1 for a cell where the goal may be
PATIENCE = 4.0


def plan():
    """The building plan: # wall, + wall or gap, . floor."""
    rows = []
    for y in range(SIDE):
        row = ""
        for x in range(SIDE):
            if x in (0, SIDE - 1) or y in (0, SIDE - 1) or (x == CROSS and y == CROSS):
                row += "#"
            else:
                row += "+" if CROSS in (x, y) else "."
        rows.append(row)
    return rows


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.grid = GridMap()
        self.layouts = Layouts([plan()], starts=".+")

    def act(self, obs):
        action = self.decide(obs)
        self.grid.last_action = action
        return action

    def decide(self, obs):
        grid = self.grid
        self.layouts.learn(grid, grid.look(obs))
        walls = self.layouts.average({"#": 1.0, "+": 0.88}, outside=1.0)
        entry = grid.entry_costs(walls)
        action, _ = grid.go_to(entry, grid.find(GOAL))
        if action is None:
            worth = self.layouts.average({".": 1.0, "+": GAP_WORTH}) * (grid.kind == UNSEEN)
            action = grid.explore(entry, walls, worth, PATIENCE)
        return 0 if action is None else action
