"""Reference for KeyCorridor: find the key in a western room, unlock the eastern door, swap the key for the ball.

The world is three columns of three small rooms (2×2 cells of floor each). The middle column is one corridor, in whose
middle the agent starts. One eastern room is locked and holds the ball that the mission names; the key lies in one of
the western rooms; the other doors are closed but not locked, and not every room has one to the corridor.
"""

from gridmap import BALL, CLOSED, COLORS, DOOR, KEY, LOCKED, PICKUP, TOGGLE, UNSEEN, GridMap, Layouts

DOOR_WORTH = 0.5  # seeing a cell where a western door may be, against 1 for floor where the key may be
LOCK_WORTH = 0.25  # the same for the locked door while the key is not yet found
PATIENCE = 3.0

# k western floor (the key is there), c corridor, s where the agent starts, b eastern floor; # wall.
# Wall or door: w to the corridor, v between western rooms, l to the east (one is locked), h between eastern rooms.
PLAN = [
    "##########",
    "#kkwcclbb#",
    "#kkwcclbb#",
    "#vv#cc#hh#",
    "#kkwsslbb#",
    "#kkwsslbb#",
    "#vv#cc#hh#",
    "#kkwcclbb#",
    "#kkwcclbb#",
    "##########",
]


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.grid = GridMap()
        self.layouts = Layouts([PLAN], starts="s", openings="wvlh")

    def act(self, obs):
        action = self.decide(obs)
        self.grid.last_action = action
        return 0 if action is None else action

    def decide(self, obs):
        grid = self.grid
        self.layouts.learn(grid, grid.look(obs))
        walls = self.layouts.average({"#": 1.0, "w": 0.7, "v": 0.7, "l": 0.7, "h": 0.7}, outside=1.0)
        entry = grid.entry_costs(walls)
        locked = grid.find(DOOR, state=LOCKED)
        wanted = grid.find(BALL, COLORS.index(str(obs["mission"]).split()[-2]))

        action = None
        if wanted and not locked:
            if grid.carrying:
                action, _ = grid.swap(entry, wanted)
            else:
                action, _ = grid.face(entry, wanted, PICKUP)
        if action is None and grid.carrying:
            action, _ = grid.face(entry, locked, TOGGLE)
        if action is None and not grid.carrying:
            action, _ = grid.face(entry, grid.find(KEY), PICKUP)
        if action is None:
            action = self.search(entry, walls, bool(locked))
        return action

    def search(self, entry, walls, lock_known):
        """Look for the key (with an eye on the locked door); with the key, for the lock; behind it, for the ball."""
        grid = self.grid
        if grid.carrying:
            letters = {"l": 1.0, "b": 1.0}
        else:
            letters = {"k": 1.0, "w": DOOR_WORTH, "v": 0.2, "l": 0.0 if lock_known else LOCK_WORTH}
        unseen = grid.kind == UNSEEN
        action = grid.explore(entry, walls, self.layouts.average(letters) * unseen, PATIENCE)
        if action is None:  # the western rooms may be reached only through others
            action = grid.explore(entry, walls, 1.0 * unseen, PATIENCE)
        if action is None:
            action, _ = grid.face(entry, grid.find(DOOR, state=CLOSED), TOGGLE)
        return action
