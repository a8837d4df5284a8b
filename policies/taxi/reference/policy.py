"""Reference for Taxi: the shortest way to the passenger, then to the destination.

Distances to the four stands are computed once, by breadth-first search over the map's cells.
"""

from collections import deque

SOUTH, NORTH, EAST, WEST, PICKUP, DROPOFF = range(6)
MOVES = {SOUTH: (1, 0), NORTH: (-1, 0), EAST: (0, 1), WEST: (0, -1)}
STANDS = ((0, 0), (0, 4), (4, 0), (4, 3))  # red, green, yellow, blue: (row, column)
IN_TAXI = 4
# Walls stand between a cell and its eastern neighbour.
WALLS_EAST_OF = {(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)}


def step(cell, move):
    """The cell that a move leads to; the same cell where a wall or the border is in the way."""
    row, column = cell[0] + MOVES[move][0], cell[1] + MOVES[move][1]
    if not (0 <= row < 5 and 0 <= column < 5):
        return cell
    if move == EAST and cell in WALLS_EAST_OF:
        return cell
    if move == WEST and (row, column) in WALLS_EAST_OF:
        return cell
    return row, column


def distances(goal):
    """Steps from every cell to the goal (moves can be undone, so the search may start there)."""
    found, queue = {goal: 0}, deque([goal])
    while queue:
        cell = queue.popleft()
        for move in MOVES:
            after = step(cell, move)
            if after not in found:
                found[after] = found[cell] + 1
                queue.append(after)
    return found


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.distances = [distances(stand) for stand in STANDS]

    def reset(self, episode_index):
        pass

    def act(self, obs):
        rest, destination = divmod(int(obs), 4)
        rest, passenger = divmod(rest, 5)
        cell = divmod(rest, 5)
        stand = destination if passenger == IN_TAXI else passenger
        if cell == STANDS[stand]:
            return DROPOFF if passenger == IN_TAXI else PICKUP
        return min(MOVES, key=lambda move: self.distances[stand][step(cell, move)])
