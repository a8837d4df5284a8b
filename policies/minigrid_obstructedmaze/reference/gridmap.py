"""A map drawn from 7×7 glimpses: where things are, what may be where nobody looked yet, and how to get there.

The four MiniGrid reference policies share this module (each folder holds its own copy, so that a policy folder is
complete by itself). Three ideas:

* ``GridMap`` turns egocentric views into one map. The agent starts at its centre; position is kept by dead reckoning.
* ``Layouts`` knows how such worlds are built (templates of letters) and keeps every placement of a template that
  agrees with what was seen. From it come the chance of a wall, and of a wanted thing, in each unseen cell.
* ``explore`` walks where the most of what is wanted comes into view per step, the view being computed with the
  environment's own rule of sight.
"""

import heapq

import numpy as np

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)
UNSEEN, EMPTY, WALL, FLOOR, DOOR, KEY, BALL, BOX, GOAL, LAVA = range(10)
OPEN, CLOSED, LOCKED = range(3)
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
STEP = ((1, 0), (0, 1), (-1, 0), (0, -1))  # headings: east, south, west, north; y grows downwards

SIZE = 64  # side of the map
VIEW = 7  # side of a glimpse; the agent is at its bottom middle
NEVER = 10**6

# Offsets of the glimpse's cells [i][j] from the agent, for each heading, flattened with i slow and j fast.
_AHEAD = np.array([VIEW - 1 - j for i in range(VIEW) for j in range(VIEW)])
_ASIDE = np.array([i - VIEW // 2 for i in range(VIEW) for j in range(VIEW)])
_DX = np.array([fx * _AHEAD - fy * _ASIDE for fx, fy in STEP])
_DY = np.array([fy * _AHEAD + fx * _ASIDE for fx, fy in STEP])
_SELF = (VIEW // 2) * VIEW + VIEW - 1


class GridMap:
    """Everything seen so far. ``kind``, ``color``, ``state`` are indexed [x, y]; UNSEEN where nobody looked."""

    def __init__(self):
        self.kind = np.zeros((SIZE, SIZE), int)
        self.color = np.zeros((SIZE, SIZE), int)
        self.state = np.zeros((SIZE, SIZE), int)
        self.x = self.y = SIZE // 2
        self.heading = 0
        self.carrying = None  # (kind, color) or None
        self.last_action = None

    def look(self, obs):
        """Take in an observation; returns the cells (x, y) that were seen for the first time."""
        if self.last_action == FORWARD and self.is_open(*self.front()):
            self.x, self.y = self.front()
        self.heading = int(obs["direction"])
        view = np.asarray(obs["image"]).reshape(VIEW * VIEW, 3).tolist()
        kind, color, _ = view[_SELF]
        self.carrying = (kind, color) if kind in (KEY, BALL, BOX) else None
        xs, ys = self.x + _DX[self.heading], self.y + _DY[self.heading]
        fresh = []
        for n, (x, y) in enumerate(zip(xs.tolist(), ys.tolist())):
            kind, color, state = view[n]
            if n == _SELF:
                if self.kind[x, y] != UNSEEN:
                    continue  # what we stand on is hidden by ourselves; an open door stays an open door
                kind, color, state = EMPTY, 0, 0
            if kind == UNSEEN:
                continue
            if self.kind[x, y] == UNSEEN:
                fresh.append((x, y))
            self.kind[x, y], self.color[x, y], self.state[x, y] = kind, color, state
        return fresh

    def front(self, pose=None):
        """The cell in front of a pose (x, y, heading); in front of us by default."""
        x, y, heading = pose or (self.x, self.y, self.heading)
        return x + STEP[heading][0], y + STEP[heading][1]

    def is_open(self, x, y):
        """Whether the cell is known and can be walked on as it is."""
        kind = self.kind[x, y]
        return kind in (EMPTY, FLOOR, GOAL) or (kind == DOOR and self.state[x, y] == OPEN)

    def find(self, kind, color=None, state=None):
        """Known cells that hold such a thing, as a list of (x, y)."""
        hits = self.kind == kind
        if color is not None:
            hits &= self.color == color
        if state is not None:
            hits &= self.state == state
        return [(int(x), int(y)) for x, y in np.argwhere(hits)]

    def entry_costs(self, wall_chance):
        """Actions that it takes to step into each cell from a neighbour that faces it (a closed door: 2)."""
        cost = np.full((SIZE, SIZE), NEVER)
        cost[(self.kind == EMPTY) | (self.kind == FLOOR) | (self.kind == GOAL)] = 1
        cost[(self.kind == UNSEEN) & (wall_chance < 0.5)] = 1
        doors = self.kind == DOOR
        cost[doors & (self.state == OPEN)] = 1
        cost[doors & (self.state == CLOSED)] = 2
        return cost

    def routes(self, entry):
        """Cheapest ways from here: ({pose: cost}, {pose: the pose before it})."""
        enter = entry.tolist()
        start = (self.x, self.y, self.heading)
        cost, before = {start: 0}, {}
        queue, done = [(0, start)], set()
        while queue:
            spent, pose = heapq.heappop(queue)
            if pose in done:
                continue
            done.add(pose)
            x, y, heading = pose
            fx, fy = x + STEP[heading][0], y + STEP[heading][1]
            ways = [(1, (x, y, (heading + 1) % 4)), (1, (x, y, (heading - 1) % 4))]
            if enter[fx][fy] < NEVER:
                ways.append((enter[fx][fy], (fx, fy, heading)))
            for step, after in ways:
                if spent + step < cost.get(after, NEVER):
                    cost[after] = spent + step
                    before[after] = pose
                    heapq.heappush(queue, (spent + step, after))
        return cost, before

    def first_action(self, before, pose):
        """The action that starts the way to ``pose``; None when we are there."""
        start, after = (self.x, self.y, self.heading), None
        while pose != start:
            pose, after = before[pose], pose
        if after is None:
            return None
        if after[2] != self.heading:
            return RIGHT if (after[2] - self.heading) % 4 == 1 else LEFT
        closed = self.kind[after[0], after[1]] == DOOR and self.state[after[0], after[1]] == CLOSED
        return TOGGLE if closed else FORWARD

    def go_to(self, entry, cells):
        """First action of the cheapest way onto one of the cells, and its cost; (None, NEVER) where there is none."""
        if not cells:
            return None, NEVER
        cost, before = self.routes(entry)
        wanted = set(cells)
        there = [(c, pose) for pose, c in cost.items() if pose[:2] in wanted]
        if not there:
            return None, NEVER
        spent, pose = min(there)
        return self.first_action(before, pose), spent

    def face(self, entry, cells, then):
        """First action of the cheapest way to stand before one of the cells, or ``then`` when we do; and its cost."""
        if not cells:
            return None, NEVER
        cost, before = self.routes(entry)
        wanted = set(cells)
        there = [(c, pose) for pose, c in cost.items() if self.front(pose) in wanted]
        if not there:
            return None, NEVER
        spent, pose = min(there)
        return (then if spent == 0 else self.first_action(before, pose)), spent + 1

    def swap(self, entry, cells, then_to=None):
        """First action of the cheapest way to lay down what we carry and then pick up at one of the cells.

        What is laid down blocks its cell, and can be laid on empty cells only. The cell ``then_to`` stays within reach
        afterwards. Returns (action, cost), (None, NEVER) where there is no way.
        """
        enter, wanted = entry.tolist(), set(cells)
        start = (self.x, self.y, self.heading, None)
        queue, best = [(0, 0, start, None)], {start: 0}
        order = 0
        while queue:
            spent, _, (x, y, heading, laid), first = heapq.heappop(queue)
            fx, fy = x + STEP[heading][0], y + STEP[heading][1]
            ahead = (fx, fy)
            if laid is not None and ahead in wanted and self._leads(enter, (x, y), ahead, laid, then_to):
                return (PICKUP if first is None else first), spent + 1
            moves = [
                (RIGHT, 1, (x, y, (heading + 1) % 4, laid)),
                (LEFT, 1, (x, y, (heading - 1) % 4, laid)),
            ]
            if enter[fx][fy] < NEVER and ahead != laid:
                action = TOGGLE if enter[fx][fy] == 2 else FORWARD
                moves.append((action, enter[fx][fy], (fx, fy, heading, laid)))
            if laid is None and self.kind[fx, fy] == EMPTY:
                moves.append((DROP, 1, (x, y, heading, ahead)))
            for action, step, after in moves:
                if spent + step < best.get(after, NEVER):
                    best[after] = spent + step
                    order += 1
                    heapq.heappush(queue, (spent + step, order, after, action if first is None else first))
        return None, NEVER

    def _leads(self, enter, start, freed, laid, goal):
        """Whether ``goal`` can be walked to from ``start`` once ``freed`` is empty and ``laid`` is taken."""
        if goal is None:
            return True
        stack, known = [start], {start, laid}
        while stack:
            x, y = stack.pop()
            if (x, y) == goal:
                return True
            for dx, dy in STEP:
                cell = (x + dx, y + dy)
                if cell not in known and (enter[cell[0]][cell[1]] < NEVER or cell == freed):
                    known.add(cell)
                    stack.append(cell)
        return False

    def explore(self, entry, wall_chance, worth, patience=2.0):
        """First action of the way on which the most comes into view per action, or None where nothing can.

        ``worth`` is what seeing each cell is worth (only unseen cells should count). ``patience`` is added to the
        length of each way: the larger, the longer the ways that are preferred.
        """
        cost, before = self.routes(entry)
        poses = sorted(cost, key=lambda p: (cost[p], p))  # cheapest first, so that a way's start comes before its end
        opaque = (self.kind == WALL) | ((self.kind == UNSEEN) & (wall_chance >= 0.5))
        opaque |= (self.kind == DOOR) & (self.state != OPEN)
        views = _views(np.array(poses), opaque)
        top = worth.max()
        if top <= 0:
            return None
        scaled = np.rint(worth / top * 15).astype(int).ravel()
        planes = [_bits((scaled >> b) & 1) for b in range(4)]  # worth in binary digits, each a set of cells
        seen, best, target = {}, 0.0, None
        for pose, view in zip(poses, views):
            seen[pose] = view | seen.get(before.get(pose), 0)
            gain = sum((seen[pose] & plane).bit_count() << b for b, plane in enumerate(planes))
            if gain > best * (cost[pose] + patience):
                best, target = gain / (cost[pose] + patience), pose
        return None if target is None else self.first_action(before, target)


def _bits(flags):
    """A row of zeros and ones as one integer."""
    return int.from_bytes(np.packbits(np.asarray(flags, np.uint8), bitorder="little").tobytes(), "little")


def _views(poses, opaque):
    """What is seen from each pose (n×3 array), as integers with one bit per cell of the map.

    Sight spreads row by row away from the agent, sideways and ahead, from cells that can be seen through.
    """
    xs = np.clip(poses[:, :1] + _DX[poses[:, 2]], 0, SIZE - 1)
    ys = np.clip(poses[:, 1:2] + _DY[poses[:, 2]], 0, SIZE - 1)
    clear = ~opaque[xs, ys].T.reshape(VIEW, VIEW, len(poses))
    lit = np.zeros((VIEW, VIEW, len(poses)), bool)
    lit[VIEW // 2, VIEW - 1] = True
    for j in range(VIEW - 1, -1, -1):
        for columns, side in ((range(VIEW - 1), 1), (range(VIEW - 1, 0, -1), -1)):
            for i in columns:
                through = lit[i, j] & clear[i, j]
                lit[i + side, j] |= through
                if j > 0:
                    lit[i + side, j - 1] |= through
                    lit[i, j - 1] |= through
    flags = np.zeros((len(poses), SIZE * SIZE), np.uint8)
    rows, cells = np.nonzero(lit.reshape(VIEW * VIEW, len(poses)).T)
    flags[rows, xs[rows, cells] * SIZE + ys[rows, cells]] = 1
    packed = np.packbits(flags, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


class Layouts:
    """Every placement of the known building plans that agrees with what was seen.

    A plan is a list of strings, one per row. ``#`` is always wall, letters of ``openings`` are wall or way through,
    any other letter is never wall. The agent starts on a letter of ``starts``.
    """

    def __init__(self, plans, starts, openings="+"):
        self.plans = [np.array([list(row) for row in plan]).T for plan in plans]
        # For each plan, padded with wall so that every cell of the map lies on it: what its letters allow to be there.
        pad = ((SIZE, SIZE), (SIZE, SIZE))
        self.may_be_wall = [np.pad((p == "#") | np.isin(p, list(openings)), pad, constant_values=True) for p in self.plans]
        self.may_be_free = [np.pad(p != "#", pad, constant_values=False) for p in self.plans]
        self.may_be_door = [np.pad(np.isin(p, list(openings)), pad, constant_values=False) for p in self.plans]
        middle = SIZE // 2
        # For each plan, its possible places (rows of x, y): the map's cell at which its corner lies.
        self.places = [middle - np.argwhere(np.isin(p, list(starts))) for p in self.plans]
        self.averages = {}

    def learn(self, grid, cells):
        """Drop the placements that disagree with these cells of the map."""
        if not cells:
            return
        cells = np.array(cells)
        kinds = grid.kind[cells[:, 0], cells[:, 1]]
        kept = []
        for n, places in enumerate(self.places):
            x = cells[None, :, 0] - places[:, :1] + SIZE
            y = cells[None, :, 1] - places[:, 1:] + SIZE
            agrees = np.where(kinds == WALL, self.may_be_wall[n][x, y], self.may_be_free[n][x, y])
            agrees = np.where(kinds == DOOR, self.may_be_door[n][x, y], agrees)
            kept.append(places[agrees.all(axis=1)])
        if any(len(places) for places in kept):  # a world built otherwise: better a poor plan than none
            if sum(map(len, kept)) < sum(map(len, self.places)):
                self.averages.clear()
            self.places = kept

    def average(self, values, outside=0.0):
        """Mean over the placements of ``values[letter]`` (0 where a letter is missing), as a map."""
        asked = (tuple(values.items()), outside)
        if asked not in self.averages:
            total = np.zeros((SIZE, SIZE))
            for plan, places in zip(self.plans, self.places):
                lookup = np.zeros(plan.shape)
                for letter, value in values.items():
                    lookup[plan == letter] = value
                w, h = plan.shape
                for ox, oy in places.tolist():
                    total += outside
                    total[ox : ox + w, oy : oy + h] += lookup - outside
            self.averages[asked] = total / sum(map(len, self.places))
        return self.averages[asked]
