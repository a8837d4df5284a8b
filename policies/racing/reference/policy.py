"""Reference for CarRacing: find the road in the picture, follow its middle with the eyes, steer to where it will be.

The picture is turned into a mask of what is not grass. From the car, the middle of the road is followed in strides: at
the end of each, the road is cut across, and the end is moved to the middle of the cut. This gives a path in metres
around the car. The wheel aims at the path some way ahead, further when fast, and is corrected by the measured turn
rate. The pedals hold the highest speed at which every bend in sight can be taken, given how well the car brakes; in a
bend there is only as much gas as the tyres have to spare. Speed and turn rate are read from the bars below the picture.
"""

import numpy as np

FPS = 50
CAR_COLUMN, CAR_ROW = 48.0, 72.0  # where the middle of the car is in the picture
CAR = np.s_[64:82, 44:53]  # what the car covers; taken to be road
BARS_ROW = 84  # the road's picture ends here, the bars begin
ZOOM_START, ZOOM_END = 0.6, 16.2  # of the camera, at the start and after one second
PIXELS_ACROSS, PIXELS_ALONG = 0.096, 0.12  # of a metre at zoom 1
GREEN_EXCESS = 40  # grass is greener than it is red and blue by more than this
SPEED_COLUMN, SPEED_PIXELS, SPEED_OFFSET = (
    13,
    0.048,
    2.6,
)  # white bar: its column, pixels per m/s, what it shows at rest
TURN_ROW, TURN_COLUMN, TURN_PIXELS = 88, 72, 1.92  # red bar: row, column where it is zero, pixels per radian/s
TURN_BAR = 48  # first column that it can reach

BLIND = 24  # steps at the start in which the road is too small to see
STRIDE, STRIDES = 2.5, 16  # of following the road, metres
CUT = np.arange(-9.0, 9.01, 0.5)  # where a cut looks for the road, metres to the right of the stride's end
FEWEST = 4  # strides that are needed for driving by them

WHEELBASE, LOCK = 3.24, 0.4  # of the car, metres; of its front wheels, radians
AIM, AIM_TIME = 5.0, 0.14  # look-ahead of the wheel: metres, and seconds at the present speed
TURN_GAIN = 0.035  # wheel angle per difference of wanted and measured turn rate
GRIP, TYRES = 145.0, 220.0  # sideways acceleration that is planned with, and at which the tyres slip, m/s²
BRAKING = 120.0  # deceleration that is planned with, m/s²
TOP_SPEED, SLACK = 85.0, 2.0  # m/s; the brake is used beyond that much too fast
GAS, BRAKE, MOST_BRAKE = 0.12, 0.06, 0.8  # pedals per m/s too slow or too fast; the brake locks the wheels at 0.9


def read_bars(picture):
    """Speed (m/s) and turn rate (radians/s, positive to the right)."""
    speed = picture[BARS_ROW:, SPEED_COLUMN].mean(axis=1).sum() / 255 / SPEED_PIXELS - SPEED_OFFSET
    red = (picture[TURN_ROW, :, 0].astype(float) - picture[TURN_ROW, :, 1]) / 255 / TURN_PIXELS
    return max(speed, 0.0), red[TURN_COLUMN:].sum() - red[TURN_BAR:TURN_COLUMN].sum()


class View:
    """The road as seen from the car. Points are (ahead, right) of the car's middle, metres."""

    def __init__(self, picture, zoom):
        red, green, blue = np.moveaxis(picture.astype(int), 2, 0)
        self.road = green - (red + blue) // 2 < GREEN_EXCESS
        self.road[BARS_ROW:] = False
        self.road[CAR] = True
        self.across, self.along = zoom * PIXELS_ACROSS, zoom * PIXELS_ALONG

    def is_road(self, ahead, right):
        """Whether there is road at points; outside of the picture there is none."""
        row = np.rint(CAR_ROW - ahead * self.along - 0.5).astype(int)
        column = np.rint(CAR_COLUMN + right * self.across - 0.5).astype(int)
        rows, columns = self.road.shape
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        return inside & self.road[row % rows, column % columns]

    def middle(self, point, heading):
        """How far to the right of a point the middle of the road is, looking along a heading; None without a road."""
        hits = self.is_road(point[0] - CUT * np.sin(heading), point[1] + CUT * np.cos(heading))
        if not hits.any():
            return None
        nearest = min(np.flatnonzero(hits), key=lambda i: abs(CUT[i]))
        gaps = np.flatnonzero(~hits)
        first = max(gaps[gaps < nearest], default=-1) + 1
        last = min(gaps[gaps > nearest], default=len(CUT)) - 1
        return (CUT[first] + CUT[last]) / 2

    def path(self):
        """The middle of the road from the car on (n × 2), as far as it is seen."""
        point, heading, points = np.zeros(2), 0.0, []
        for _ in range(STRIDES):
            end = point + STRIDE * np.array([np.cos(heading), np.sin(heading)])
            shift = self.middle(end, heading)
            if shift is None:
                break
            step = end - point + shift * np.array([-np.sin(heading), np.cos(heading)])
            heading = np.arctan2(step[1], step[0])
            point = point + STRIDE * step / np.linalg.norm(step)
            points.append(point)
        return np.array(points)


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.reset(0)

    def reset(self, episode_index):
        self.steps = 0

    def act(self, obs):
        picture = np.asarray(obs)
        self.steps += 1
        if self.steps < BLIND:
            return np.array([0.0, 1.0, 0.0], np.float32)
        speed, turn = read_bars(picture)
        grown = min(self.steps / FPS, 1.0)
        path = View(picture, ZOOM_START * (1 - grown) + ZOOM_END * grown).path()
        if len(path) < FEWEST:
            return np.array([LOCK, 0.1 if speed < 15 else 0.0, 0.3 if speed > 25 else 0.0], np.float32)  # look around
        return np.array([self.steer(path, speed, turn), *self.pedals(path, speed, turn)], np.float32)

    def steer(self, path, speed, turn):
        """The angle of the wheel: along the circle through the aim, and more or less by how the car turns now."""
        aim = path[min(round((AIM + AIM_TIME * speed) / STRIDE), len(path)) - 1]
        curvature = 2 * aim[1] / (aim @ aim)
        wheel = np.arctan(WHEELBASE * curvature) + TURN_GAIN * (speed * curvature - turn)
        return np.clip(wheel, -LOCK, LOCK)

    def pedals(self, path, speed, turn):
        """Gas and brake that hold the highest speed at which we can take, or brake for, each bend in sight."""
        headings = np.unwrap(np.arctan2(*np.diff(path, axis=0).T[::-1]))
        bends = np.abs(np.convolve(np.diff(headings) / STRIDE, np.ones(3) / 3, "valid"))  # curvature, 1/m
        distances = STRIDE * (2 + np.arange(len(bends)))
        goal = np.sqrt((GRIP / np.maximum(bends, 0.01) + 2 * BRAKING * distances).min(initial=TOP_SPEED**2))
        if speed > goal + SLACK:
            return 0.0, min(BRAKE * (speed - goal), MOST_BRAKE)
        spare = max(1 - (speed * turn / TYRES) ** 2, 0.0)  # of the tyres' force, beside what the bend takes
        return min(max(GAS * (goal - speed), 0.0), spare), 0.0
