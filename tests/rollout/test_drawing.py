"""Drawing where MuJoCo can, cannot, or could not any more: probed apart, remembered, and never a reason to fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evotui.protocol.pools import paper_pools
from evotui.protocol.spaces import action_reader
from evotui.rollout import drawing
from evotui.rollout.gauges import gauges
from evotui.rollout.overlay import cells, controls
from evotui.rollout.recorder import save_actions
from evotui.rollout.render import FrameWorker, Scene
from evotui.suite import worlds
from evotui.suite.catalog import availability, find_task
from evotui.suite.pictures import Grid

needs_mujoco = pytest.mark.skipif(not drawing.has_mujoco(), reason="mujoco is not installed")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which it is remembered what draws; an empty place."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return tmp_path / "evotui" / "drawing.json"


@needs_mujoco
def test_what_draws_is_tried_once_and_remembered(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    works = {"osmesa"}

    def probe(backend: str) -> str:
        asked.append(backend)
        return "" if backend in works else "no such library"

    monkeypatch.setattr(drawing, "why_no_gl", probe)
    assert drawing.working_gl() == "osmesa"
    assert asked == ["egl", "osmesa"]
    assert list(json.loads(memory.read_text()).values()) == ["osmesa"]
    assert drawing.working_gl() == "osmesa"
    assert asked == ["egl", "osmesa"]  # not again
    drawing.forget_gl()
    works.clear()
    assert drawing.working_gl() == ""
    assert drawing.working_gl() == ""
    assert asked == ["egl", "osmesa"] * 3  # what does not work is tried again: somebody may have installed it
    works.add("egl")
    assert drawing.working_gl() == "egl"
    memory.write_text("{ spoilt")
    assert drawing.working_gl() == "egl"
    memory.write_text(json.dumps({next(iter(json.loads(memory.read_text()))): "nonsense"}))
    assert drawing.working_gl() == "egl"


def test_a_window_system_is_used_only_where_there_is_a_display(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawing.gl_backends() == ("egl", "osmesa")
    monkeypatch.setenv("DISPLAY", ":7")
    assert drawing.gl_backends() == ("egl", "osmesa", "glfw")


def scene(name: str, folder: Path, steps: int = 12) -> Scene:
    task = find_task(name)
    if missing := availability(task):
        pytest.skip(missing)
    info = worlds.describe(task)
    read = action_reader(info.action_schema)
    seed, actions = paper_pools(16, 32).train[0], []
    world = worlds.make(task)
    world.reset(seed)
    for _ in range(steps):
        actions.append(read(world.sample())[0])
        world.step(actions[-1])
    world.close()
    save_actions(folder / name, actions)
    return Scene(task, info.obs_schema, info.action_schema, seed, folder / name)


async def test_without_opengl_values_and_the_hint_are_shown(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ant, push = scene("reacher5", tmp_path), scene("fetch_push", tmp_path)
    monkeypatch.setenv("PYOPENGL_PLATFORM", "none")  # as if neither library were there: importing both fails
    frames = FrameWorker()
    try:
        for shown in (ant, push):
            await frames.open(shown)
            for step in (0, 3):
                frame = await frames.frame(step, 60, 30)
                assert frame.pixels is None
                assert frame.why == drawing.GL_HINT
                lines = frame.text.splitlines()
                assert len(lines) <= 15
                assert lines[-1].startswith("no OpenGL without a display here")
                assert all(len(line) <= 60 for line in lines)
        assert lines[0].startswith("achieved x")
    finally:
        await frames.close()
    assert not memory.exists()


async def test_a_backend_that_has_gone_is_forgotten(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = scene("reacher5", tmp_path)
    memory.parent.mkdir(parents=True)
    memory.write_text(json.dumps({drawing._machine(): "egl"}))
    monkeypatch.setenv("PYOPENGL_PLATFORM", "none")
    frames = FrameWorker()
    try:
        for _ in range(2):
            assert await frames.open(shown) == 12
            frame = await frames.frame(2, 60, 40)
            assert frame.pixels is None
            assert "cannot draw" in frame.why
            assert "cos shoulder" in frame.text
    finally:
        await frames.close()
    assert json.loads(memory.read_text()) == {}


@needs_mujoco
@pytest.mark.parametrize("name", ["fetch_pickandplace", "ant5"])
async def test_frames_of_mujoco_in_the_size_that_is_asked_for(tmp_path: Path, name: str) -> None:
    if not drawing.working_gl():
        pytest.skip("nothing here draws OpenGL")
    shown = scene(name, tmp_path, 30)
    frames = FrameWorker()
    try:
        await frames.open(shown)
        small = await frames.frame(2, 60, 80)
        large = await frames.frame(20, 900, 900)
        again = await frames.frame(2, 60, 80)
        assert small.pixels is not None and large.pixels is not None and again.pixels is not None
        assert (small.pixels.shape, large.pixels.shape) == ((60, 60, 3), (480, 480, 3))
        assert small.pixels.std() > 10
        assert np.abs(small.pixels.astype(int) - again.pixels).mean() < 12  # the same moment, drawn larger and shrunk
        assert again.obs == small.obs
    finally:
        await frames.close()


BOX = {
    "type": "Box",
    "shape": [3],
    "dtype": "float32",
    "low": [-1.0, -float("inf"), 0.0],
    "high": [1.0, float("inf"), 2.0],
}


def test_gauges() -> None:
    text = gauges(BOX, ("angle", "speed", "fuel"), [-1.0, "Inf", 1.0], 40, 10, "no picture: why")
    lines = text.splitlines()
    assert [line.split()[0] for line in lines] == ["angle", "speed", "fuel", "no"]
    assert all(len(line) <= 40 for line in lines)
    angle, speed, fuel = (line[6:-9] for line in lines[:3])
    middle = len(angle) // 2
    assert angle.index("█") == 0
    assert angle.rindex("█") == middle  # from zero, in the middle, to the lower end
    assert "█" not in speed
    assert (fuel.index("█"), fuel.rindex("█")) == (0, middle)  # zero is at the left end: half of it is full


@pytest.mark.parametrize(("width", "height"), [(200, 60), (40, 6), (12, 2), (3, 1)])
def test_gauges_keep_to_their_place(width: int, height: int) -> None:
    schema = {
        "type": "Box",
        "shape": [105],
        "dtype": "float64",
        "low": [-float("inf")] * 105,
        "high": [float("inf")] * 105,
    }
    lines = gauges(schema, (), list(np.linspace(-1e6, 1e6, 105)), width, height, "why").splitlines()
    assert len(lines) <= max(height, 2)
    assert all(len(line) <= width for line in lines)
    assert lines[-1] == "why"[:width]


def test_gauges_of_other_spaces() -> None:
    assert gauges({"type": "Image", "shape": [96, 96, 3], "dtype": "uint8"}, (), None, 40, 10, "why") == "why"
    both = {
        "type": "Dict",
        "spaces": {"b": {"type": "Discrete", "n": 4, "start": 0}, "a": {"type": "Text", "max_length": 9}},
    }
    assert [line.split()[0] for line in gauges(both, (), {"a": "go", "b": 2}, 40, 10).splitlines()] == ["a", "b"]


def test_the_controls_of_a_car_are_drawn_into_the_corner() -> None:
    blank = np.full((40, 60, 3), 200, np.uint8)
    names = ("steering", "gas", "brake")
    right, left, braking = (controls(blank, names, action) for action in ([1.0, 0.5, 0.0], [-1, 0, 0], [0.0, 0.0, 1.0]))

    def reach(drawn: np.ndarray, row: int, colour: int) -> tuple[int, int]:
        vivid = (
            (drawn[row].max(axis=1) > 210) & (drawn[row].argmax(axis=1) == colour) & (np.ptp(drawn[row], axis=1) > 90)
        )
        columns = np.flatnonzero(vivid)
        return (int(columns.min()), int(columns.max())) if len(columns) else (-1, -1)

    assert reach(right, 2, 0) == (9, 14)  # yellow, from the middle to the right
    assert reach(left, 2, 0) == (2, 7)
    assert reach(right, 4, 1) == (9, 11)  # green: half gas
    assert reach(braking, 4, 0) == (2, 7)  # red, to the left
    assert (right[10:] == blank[10:]).all()
    assert (blank == 200).all()
    for other in (
        controls(blank, ("push",), [1.0]),
        controls(blank[:20], names, [1, 1, 1]),
        controls(blank, names, None),
    ):
        assert (other == 200).all()


def test_controls_leave_the_places_of_a_car_park_free() -> None:
    drawn = controls(np.full((60, 120, 3), 200, np.uint8), ("steering", "throttle"), [1.0, 1.0])
    assert (drawn[:20] == 200).all() and (drawn[40:] == 200).all() and (drawn[20:40] != 200).any()


def picture(heading: int) -> tuple[np.ndarray, Grid]:
    """A grid of 4 × 3 tiles of 8 pixels: black floors with grid lines, a wall, a ball of few pixels, the agent."""
    tiles = np.zeros((3, 8, 4, 8, 3), np.uint8)
    tiles[:, 0] = tiles[:, :, :, 0] = 100
    tiles[0, :, 0] = 100
    tiles[1, 3:5, 2, 3:5] = (0, 0, 255)
    tiles[2, 2:6, 1, 2:6] = (255, 0, 0)
    return tiles.reshape(24, 32, 3), Grid(4, 3, (1, 2), heading)


def test_cells_of_a_grid_world_stay_cells() -> None:
    drawn = cells(*picture(0), 7, 9)  # 1.75 pixels a cell
    assert drawn.shape == (5, 7, 3)
    colours = {tuple(colour) for colour in drawn.reshape(-1, 3).tolist()}
    assert {(0, 0, 0), (100, 100, 100), (0, 0, 255)} < colours and len(colours) <= 5  # nothing in between
    sharp = cells(*picture(0), 17, 40)
    assert sharp.shape == (12, 16, 3)  # a whole number of pixels a cell


@pytest.mark.parametrize(("heading", "ahead"), [(0, (0, 1)), (1, (1, 0)), (2, (0, -1)), (3, (-1, 0))])
def test_the_agent_is_brighter_where_it_looks(heading: int, ahead: tuple[int, int]) -> None:
    drawn = cells(*picture(heading), 8, 6).astype(int)[4:6, 2:4, 0]  # its cell, two pixels each way
    across, down = drawn[:, 1].sum() - drawn[:, 0].sum(), drawn[1].sum() - drawn[0].sum()
    assert (np.sign(down), np.sign(across)) == ahead


def test_one_pixel_a_cell_still_has_the_agent() -> None:
    drawn = cells(*picture(3), 4, 3)
    assert drawn.shape == (3, 4, 3) and drawn[2, 1, 0] > 200
