"""Map a symbolic grid, explore it, and use what is found: keys, doors, boxes, things in the way."""

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

# Codes of the observation: channel 0 is the thing, 1 its colour, 2 the state of a door
UNSEEN, EMPTY, WALL, FLOOR, DOOR, KEY, BALL, BOX, GOAL = 0, 1, 2, 3, 4, 5, 6, 7, 8
OPEN, CLOSED, LOCKED = 0, 1, 2
THINGS = {"key": KEY, "ball": BALL, "box": BOX, "door": DOOR, "goal": GOAL}
COLOURS = {"red": 0, "green": 1, "blue": 2, "purple": 3, "yellow": 4, "grey": 5}
# Actions
LEFT, RIGHT, FORWARD, PICK_UP, PUT_DOWN, TOGGLE = 0, 1, 2, 3, 4, 5
# Where in the observation
IMAGE, HEADING, MISSION = "image", "direction", "mission"

# Tuned constants
PATIENCE = 10.0  # steps that count on top of every way: more of them, and near places lose their lead
MOST_NEWS = 49.0  # unknown cells in view beyond this count for nothing
DOOR_NEWS = 40.0  # unknown cells that a closed door is worth

Cell = tuple[int, int]
Place = tuple[Cell, int]  # a cell and a heading
Routes = tuple[dict[Place, tuple[int, Place] | None], dict[Place, int]]

STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # east, south, west, north


class Policy:
    """A state machine over a map that it draws while it walks.

    Every observation is added to the map. Then the first aim that can be reached is planned for, by a breadth-first
    search over cells and headings: finish; unlock with the key in hand; clear what blocks a door; fetch a key; explore
    and open doors; open boxes; clear what is in the way.
    """

    def __init__(self, obs_space: dict, action_space: dict, env_meta: dict) -> None:
        self.reset(0)

    def reset(self, episode_index: int) -> None:
        self.map: dict[Cell, tuple[int, int, int]] = {}  # (x, y) -> (thing, colour, state)
        self.here, self.heading = (0, 0), 0
        self.carried: tuple[int, int] | None = None  # (thing, colour)
        self.plan: list[int] = []
        self.looked: set[Place] = set()  # places and headings that were looked from
        self.hopes: dict[Place, int] = {}  # news when last counted: never more since, unless a known cell changed
        self.put_away: set[Cell] = set()  # cells where something in the way was laid down
        self.stuck = 0

    def act(self, obs: Any) -> int:
        if self._look(obs) or not self.plan:
            self.plan = self._think(str(obs[MISSION]) if MISSION else "")
        action = self.plan.pop(0)
        ahead = self._ahead(self.here, self.heading)
        if action == FORWARD and self._free(ahead):
            self.here = ahead
        elif action in (LEFT, RIGHT):
            self.heading = (self.heading + (1 if action == RIGHT else 3)) % 4
        elif action == PUT_DOWN and self.carried and self.carried[0] != KEY:
            self.put_away.add(ahead)
        return action

    def _look(self, obs: Any) -> bool:
        """Add the view to the map; True where it changed."""
        view = np.asarray(obs[IMAGE])
        if HEADING:
            self.heading = int(obs[HEADING])
        across, along = view.shape[0], view.shape[1]
        (fx, fy), (rx, ry) = STEPS[self.heading], STEPS[(self.heading + 1) % 4]
        hand = view[across // 2][along - 1]
        carried = (int(hand[0]), int(hand[1])) if hand[0] in (KEY, BALL, BOX) else None
        changed = carried != self.carried
        self.carried = carried
        self.sides, self.deep = range(-(across // 2), across - across // 2), along
        self.looked.add((self.here, self.heading))
        for i, column in enumerate(view.tolist()):
            for j, (thing, colour, state, *_) in enumerate(column):
                ahead, right = along - 1 - j, i - across // 2
                if thing == UNSEEN or (ahead == 0 and right == 0):
                    continue
                cell = (self.here[0] + ahead * fx + right * rx, self.here[1] + ahead * fy + right * ry)
                if self.map.get(cell) != (thing, colour, state):
                    if cell in self.map:
                        self.hopes.clear()
                    self.map[cell] = (thing, colour, state)
                    changed = True
        self.map.setdefault(self.here, (EMPTY, 0, 0))
        return changed

    def _ahead(self, cell: Cell, heading: int) -> Cell:
        return (cell[0] + STEPS[heading][0], cell[1] + STEPS[heading][1])

    def _free(self, cell: Cell) -> bool:
        thing, _, state = self.map.get(cell, (UNSEEN, 0, 0))
        return thing in (EMPTY, FLOOR, GOAL) or (thing == DOOR and state == OPEN)

    def _routes(self) -> Routes:
        """Every reachable (cell, heading) with its distance, nearest first, and where it is reached from."""
        start = (self.here, self.heading)
        came: dict[Place, tuple[int, Place] | None] = {start: None}
        distance, queue = {start: 0}, deque([start])
        while queue:
            place = queue.popleft()
            cell, heading = place
            moves = [(LEFT, (cell, (heading + 3) % 4)), (RIGHT, (cell, (heading + 1) % 4))]
            ahead = self._ahead(cell, heading)
            if self._free(ahead):
                moves.insert(0, (FORWARD, (ahead, heading)))
            for action, target in moves:
                if target not in came:
                    came[target], distance[target] = (action, place), distance[place] + 1
                    queue.append(target)
        return came, distance

    def _walk(self, routes: Routes, place: Place, *then: int) -> list[int]:
        """Actions that lead to ``place``, followed by ``then``."""
        actions: list[int] = []
        step = routes[0][place]
        while step is not None:
            actions.append(step[0])
            step = routes[0][step[1]]
        return [*reversed(actions), *then]

    def _face(self, routes: Routes, wanted: Callable[[Cell], bool], then: int) -> list[int] | None:
        """The shortest plan that ends with ``then`` in front of a cell for which ``wanted(cell)`` holds."""
        for place in routes[1]:
            cell = self._ahead(*place)
            if cell in self.map and wanted(cell):
                return self._walk(routes, place, then)
        return None

    def _think(self, mission: str) -> list[int]:
        """The actions of the first aim that can be reached now."""
        routes = self._routes()
        words = mission.lower().replace(",", " ").split()
        colour = next((COLOURS[w] for w in words if w in COLOURS), None)
        thing = next((THINGS[w] for w in words if w in THINGS and w != "door"), GOAL)
        if "goal" in words or not words:
            thing, colour = GOAL, None
        holding = self.carried

        def known(kind: int) -> list[Cell]:
            return [cell for cell, what in self.map.items() if what[0] == kind]

        def is_target(cell: Cell) -> bool:
            what = self.map[cell]
            return what[0] == thing and (colour is None or thing == GOAL or what[1] == colour)

        def locked_by(cell: Cell, key_colour: int) -> bool:
            return self.map[cell][0] == DOOR and self.map[cell][2] == LOCKED and self.map[cell][1] == key_colour

        locked = [cell for cell in known(DOOR) if self.map[cell][2] == LOCKED]
        # finish
        if thing == GOAL:
            plan = self._face(routes, is_target, FORWARD)
        else:
            plan = self._face(routes, is_target, PICK_UP)
            if plan and holding:
                plan = self._lay_down(routes)
        if plan:
            return plan
        if holding and holding[0] != KEY:
            return self._lay_down(routes) or self._wander()
        # unlock
        if holding:
            plan = self._face(routes, lambda cell: locked_by(cell, holding[1]), TOGGLE)
            if plan:
                return plan
        # clear what stands before a locked door
        reachable = {cell for cell, _ in routes[1]}
        for door in locked:
            sides = [self._ahead(door, heading) for heading in range(4)]
            if any(side in reachable for side in sides):
                continue
            blocks = [s for s in sides if self.map.get(s, (UNSEEN,))[0] in (BALL, BOX)]
            plan = self._face(routes, blocks.__contains__, PICK_UP)
            if plan:
                return plan if not holding else self._lay_down(routes) or plan
        # fetch a key
        colours = {self.map[door][1] for door in locked}
        if not holding:
            named = "key" in words  # the mission speaks of it: no need to see its door first
            plan = self._face(routes, lambda c: self.map[c][0] == KEY and (named or self.map[c][1] in colours), PICK_UP)
            if plan:
                return plan
        plan = self._explore(routes)
        if plan:
            return plan
        # open a box, then clear anything else in the way
        plan = self._face(routes, lambda cell: self.map[cell][0] == BOX and not is_target(cell), TOGGLE)
        if plan:
            return plan
        if holding:
            return self._lay_down(routes) or self._wander()
        plan = self._face(routes, lambda cell: self.map[cell][0] in (BALL, KEY) and cell not in self.put_away, PICK_UP)
        return plan or self._wander()

    def _explore(self, routes: Routes) -> list[int] | None:
        """Go where most unknown cells come into view per step, or open a closed door."""
        best: list[int] | None = None
        best_worth = 0.0
        for place, steps in routes[1].items():
            if max(MOST_NEWS, DOOR_NEWS) / (steps + PATIENCE) < best_worth:
                break
            thing, _, state = self.map.get(self._ahead(*place), (UNSEEN, 0, 0))
            if thing == DOOR and state == CLOSED:
                news, then = DOOR_NEWS, [TOGGLE]
            elif place in self.looked or self.hopes.get(place, MOST_NEWS) / (steps + PATIENCE) <= best_worth:
                continue
            else:
                self.hopes[place] = self._news(*place)
                news, then = min(MOST_NEWS, self.hopes[place]), []
            if news / (steps + PATIENCE) > best_worth:
                best, best_worth = self._walk(routes, place, *then), news / (steps + PATIENCE)
        return best or None

    def _news(self, cell: Cell, heading: int) -> int:
        """How many unknown cells would come into view, as far as the map tells: light spreads ahead and aside."""
        (fx, fy), (rx, ry) = STEPS[heading], STEPS[(heading + 1) % 4]
        lit, count = {0}, 0  # how far to the right of the line of sight light falls
        for ahead in range(self.deep):
            row = {r: (cell[0] + ahead * fx + r * rx, cell[1] + ahead * fy + r * ry) for r in self.sides}
            clear = {r for r in self.sides if row[r] == cell or self._see_through(row[r])}
            for way in (self.sides, self.sides[::-1]):
                for r, aside in pairwise(way):
                    if r in lit and r in clear:
                        lit.add(aside)
            count += sum(row[r] not in self.map for r in lit)
            lit &= clear
            lit |= {r + way for r in lit for way in (-1, 1) if r + way in row}
            if not lit:
                break
        return count

    def _see_through(self, cell: Cell) -> bool:
        thing, _, state = self.map.get(cell, (EMPTY, 0, 0))
        return thing != WALL and not (thing == DOOR and state != OPEN)

    def _lay_down(self, routes: Routes) -> list[int] | None:
        """Put what is carried on a free cell, away from doors where possible."""
        doors = [cell for cell, what in self.map.items() if what[0] == DOOR]

        def roomy(cell: Cell) -> bool:
            around = [(cell[0] + i, cell[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            far = all(abs(d[0] - cell[0]) + abs(d[1] - cell[1]) > 1 for d in doors)
            return self.map[cell][0] == EMPTY and far and sum(self._free(c) for c in around) >= 6

        return self._face(routes, roomy, PUT_DOWN) or self._face(
            routes, lambda cell: self.map[cell][0] == EMPTY, PUT_DOWN
        )

    def _wander(self) -> list[int]:
        """Nothing can be reached: look around from the start again."""
        self.stuck += 1
        self.looked = set()
        if self.stuck % 3 == 0 and self._free(self._ahead(self.here, self.heading)):
            return [FORWARD]
        return [LEFT]
