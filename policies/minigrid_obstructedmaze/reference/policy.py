"""Reference for ObstructedMaze-1Q: clear the ball from the door, take the key out of its box, unlock, take the ball.

The world is 3×3 rooms of 4×4 cells of floor. The agent starts in the middle room, whose east wall has an unlocked door.
The room behind it has two locked doors, north and south, each with a ball in front, and two boxes that hide the two
keys. The ball of the mission lies behind the northern door. Hands hold one thing, so things are swapped on the way.
"""

from gridmap import BALL, BOX, COLORS, DOOR, DROP, KEY, LOCKED, PICKUP, TOGGLE, UNSEEN, GridMap, Layouts

PATIENCE = 3.0

# s where the agent starts, e the room east of it with boxes and keys, t the room with the wanted ball; # wall.
# Wall or door: d from the start to the east, n the northern locked door, x the southern one.
PLAN = [
    "################",
    "#....#....#tttt#",
    "#....#....#tttt#",
    "#....#....#tttt#",
    "#....#....#tttt#",
    "###########nnnn#",
    "#....#ssssdeeee#",
    "#....#ssssdeeee#",
    "#....#ssssdeeee#",
    "#....#ssssdeeee#",
    "###########xxxx#",
    "#....#....#....#",
    "#....#....#....#",
    "#....#....#....#",
    "#....#....#....#",
    "################",
]


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.grid = GridMap()
        self.layouts = Layouts([PLAN], starts="s", openings="dnx")
        self.laid = set()  # cells where we laid something down

    def act(self, obs):
        action = self.decide(obs)
        self.grid.last_action = action
        if action == DROP:
            self.laid.add(self.grid.front())
        return 0 if action is None else action

    def decide(self, obs):
        grid = self.grid
        self.layouts.learn(grid, grid.look(obs))
        walls = self.layouts.average({"#": 1.0, "d": 0.75, "n": 0.75, "x": 0.75}, outside=1.0)
        entry = grid.entry_costs(walls)
        unseen = grid.kind == UNSEEN
        action = None

        wanted = grid.find(BALL, COLORS.index(str(obs["mission"]).split()[-2]))
        if wanted:
            action = self.take(entry, wanted)
        north = self.doors(entry, "n")
        if action is None and north:
            action = self.work(entry, north[0])
        if action is None:
            letters = {"t": 1.0} if north and grid.state[north[0]] != LOCKED else {"e": 1.0, "d": 1.0, "n": 1.0}
            action = grid.explore(entry, walls, self.layouts.average(letters) * unseen, PATIENCE)
        if action is None:
            action = self.clear(entry)
        if action is None:
            action = grid.explore(entry, walls, 1.0 * unseen, PATIENCE)
        return action

    def clear(self, entry):
        """Towards moving the nearest thing out of the way (one may stand right behind a door); boxes are opened.

        What we laid down ourselves is left alone, or two things would be exchanged for ever.
        """
        grid = self.grid
        action, cost = grid.face(entry, grid.find(BOX), TOGGLE)
        things = [cell for cell in grid.find(BALL) + grid.find(KEY) if cell not in self.laid]
        if grid.face(entry, things, PICKUP)[1] < cost:
            action = self.take(entry, things)
        return action

    def doors(self, entry, letter):
        """Known doors at places of this letter of the plan."""
        chance = self.layouts.average({letter: 1.0})
        return [cell for cell in self.grid.find(DOOR) if chance[cell] > 0.5]

    def take(self, entry, cells, then_to=None):
        """Towards having one of the cells' things in hand, laying down first what we carry."""
        if self.grid.carrying:
            return self.grid.swap(entry, cells, then_to)[0]
        return self.grid.face(entry, cells, PICKUP)[0]

    def work(self, entry, door):
        """Towards the northern door being open: the next thing to do, or None where nothing is known to do."""
        grid = self.grid
        color = int(grid.color[door])
        if grid.state[door] != LOCKED:
            return None
        step = (door[0], door[1] + 1)  # the cell before the door
        blocked = grid.kind[step] in (BALL, BOX, KEY)
        keys = grid.find(KEY, color)
        if grid.carrying != (KEY, color) and not keys:
            action, cost = grid.face(entry, grid.find(BOX), TOGGLE)
            if blocked and not grid.carrying:
                lift, lift_cost = grid.face(entry, [step], PICKUP)
                action = lift if lift_cost < cost else action
            return action
        if blocked:
            return self.take(entry, [step])
        if grid.carrying == (KEY, color):
            return grid.face(entry, [door], TOGGLE)[0]
        return self.take(entry, keys, then_to=step)
