"""The catalog: names, near names, folders in their order, what is missing and how to install it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import evotui
from evotui.analysis.paper import core16
from evotui.suite import catalog, worlds
from evotui.suite.catalog import (
    BadTaskFile,
    MissingExtra,
    SuiteError,
    UnknownEnvironment,
    UnknownPolicy,
    WrongVersion,
    availability,
    environment_folders,
    find_task,
    list_policies,
    list_tasks,
    policy_folder,
    scan_tasks,
)
from evotui.suite.probe import probe

SHIPPED = {
    "acrobot": ("gym/acrobot", "Acrobot-v1"),
    "ant5": ("gym/ant5", "Ant-v5"),
    "bipedal": ("gym/bipedal", "BipedalWalker-v3"),
    "cartpole": ("gym/cartpole", "CartPole-v1"),
    "continuouscar": ("gym/continuouscar", "MountainCarContinuous-v0"),
    "fetch_pickandplace": ("gymnasium/FetchPickAndPlace-v4", "FetchPickAndPlace-v4"),
    "fetch_push": ("gymnasium/FetchPush-v4", "FetchPush-v4"),
    "halfcheetah5": ("gym/halfcheetah5", "HalfCheetah-v5"),
    "lunarlander": ("gym/lunarlander", "LunarLander-v3"),
    "minigrid_doorkey": ("gymnasium/MiniGrid-DoorKey-16x16-v0", "MiniGrid-DoorKey-16x16-v0"),
    "minigrid_fourrooms": ("gymnasium/MiniGrid-FourRooms-v0", "MiniGrid-FourRooms-v0"),
    "minigrid_keycorridor": ("gymnasium/MiniGrid-KeyCorridorS4R3-v0", "MiniGrid-KeyCorridorS4R3-v0"),
    "minigrid_obstructedmaze": ("gymnasium/MiniGrid-ObstructedMaze-1Q-v1", "MiniGrid-ObstructedMaze-1Q-v1"),
    "parking": ("gymnasium/parking-v0", "parking-v0"),
    "pendulum": ("gym/pendulum", "Pendulum-v1"),
    "pusher5": ("gym/pusher5", "Pusher-v5"),
    "racing": ("gym/racing", "CarRacing-v3"),
    "reacher5": ("gym/reacher5", "Reacher-v5"),
    "roundabout": ("gymnasium/roundabout-v0", "roundabout-v0"),
    "taxi": ("gym/taxi", "Taxi-v4"),
}
TASK = 'slug = "my/{0}"\ngym_id = "CartPole-v1"\ntitle = "{0}"\nfamily = "custom"\n'


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory and a user data folder of our own, both empty."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(catalog.platformdirs, "user_data_path", lambda *a, **k: tmp_path / "data")
    return tmp_path


def add(root: Path, name: str, toml: str | None = None) -> Path:
    folder = root / "environments" / name
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(TASK.format(name) if toml is None else toml, "utf-8")
    (folder / "task.md").write_text(f"# {name}\n", "utf-8")
    return folder


def test_the_shipped_environments_are_found_from_anywhere(elsewhere: Path) -> None:
    names = [task.name for task in list_tasks()]
    assert names == sorted(names)
    assert set(SHIPPED) <= set(names)
    slugs = [task.slug for task in list_tasks()]
    assert len(set(slugs)) == len(slugs)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("acrobot", "acrobot"),
        ("gym/acrobot", "acrobot"),
        ("Acrobot-v1", "acrobot"),
        ("ACROBOT-V1", "acrobot"),
        ("doorkey", "minigrid_doorkey"),
        ("gymnasium/MiniGrid-DoorKey-16x16-v0", "minigrid_doorkey"),
        ("MountainCarContinuous-v0", "continuouscar"),
        ("carracing", "racing"),
        ("HalfCheetah", "halfcheetah5"),
        ("reacher", "reacher5"),
        ("FetchPush", "fetch_push"),
    ],
)
def test_names(asked: str, name: str) -> None:
    assert find_task(asked).name == name


@pytest.mark.parametrize("name", SHIPPED)
def test_short_names_slugs_and_ids_all_work(name: str) -> None:
    slug, gym_id = SHIPPED[name]
    for asked in (name, slug, gym_id):
        task = find_task(asked)
        assert (task.name, task.slug, task.gym_id) == (name, slug, gym_id)


def test_no_two_environments_share_a_name() -> None:
    names = [known.lower() for task in list_tasks() for known in {task.name, task.slug, task.gym_id, *task.aliases}]
    assert len(set(names)) == len(names)


OBVIOUS = {
    "acrobot": "Acrobot acrobot-v1",
    "ant5": "ant Ant Ant5",
    "bipedal": "bipedalwalker BipedalWalker bipedal-walker walker",
    "cartpole": "CartPole cart-pole cart_pole",
    "continuouscar": "mountaincar MountainCar MountainCarContinuous mountain-car-continuous continuous_car",
    "fetch_pickandplace": "pick pickandplace PickAndPlace pick-and-place fetchpick FetchPick FetchPickAndPlace",
    "fetch_push": "push Push fetchpush FetchPush fetch-push",
    "halfcheetah5": "halfcheetah half_cheetah HalfCheetah cheetah",
    "lunarlander": "lander lunar_lander LunarLander",
    "minigrid_doorkey": "doorkey DoorKey door_key minigrid-doorkey doorkey16x16",
    "minigrid_fourrooms": "fourrooms FourRooms four-rooms MiniGrid-FourRooms",
    "minigrid_keycorridor": "keycorridor KeyCorridor KeyCorridorS4R3 key_corridor",
    "minigrid_obstructedmaze": "obstructedmaze ObstructedMaze ObstructedMaze-1Q maze",
    "parking": "Parking parking-v0",
    "pendulum": "Pendulum",
    "pusher5": "pusher Pusher",
    "racing": "carracing CarRacing car_racing Racing",
    "reacher5": "reacher Reacher",
    "roundabout": "Roundabout",
    "taxi": "Taxi",
}


@pytest.mark.parametrize("name", OBVIOUS)
def test_what_somebody_would_type_finds_it(name: str) -> None:
    assert set(OBVIOUS) == set(SHIPPED)
    assert {asked: find_task(asked).name for asked in OBVIOUS[name].split()} == dict.fromkeys(
        OBVIOUS[name].split(), name
    )


def test_the_papers_names_and_those_of_the_readmes_tables_are_found() -> None:
    readme = (Path(evotui.__file__).parents[1] / "README.md").read_text("utf-8")
    labels = {line.split("|")[1].strip() for line in readme.splitlines() if line.startswith("| ")}
    for env in core16():
        for asked in (env.key, env.slug, env.gym_id, env.gym_id.rpartition("-v")[0]):
            assert find_task(asked).name == env.key
        assert labels & {env.key} and labels & {env.gym_id}


def test_an_own_environment_keeps_its_name_where_another_is_called_so_too(elsewhere: Path) -> None:
    assert find_task("push").name == "fetch_push"
    add(elsewhere / "cwd", "push")
    assert (find_task("push").name, find_task("PUSH").name) == ("push", "push")
    assert find_task("fetchpush").name == "fetch_push"
    with pytest.raises(UnknownEnvironment, match="did you mean cartpole"):  # my/push is made of CartPole-v1 as well
        find_task("cartpol")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("fetch", ["fetch_pickandplace", "fetch_push"]),
        ("minigrid", ["minigrid_doorkey", "minigrid_fourrooms", "minigrid_keycorridor", "minigrid_obstructedmaze"]),
        ("key", ["minigrid_doorkey", "minigrid_keycorridor"]),
        ("cheeta", ["halfcheetah5"]),
        ("Ant-v4", ["ant5"]),
        ("cartpol", ["cartpole"]),
        ("---", []),
        ("x", []),
        ("", []),
    ],
)
def test_suggestions_are_environments_each_once(asked: str, near: list[str]) -> None:
    with pytest.raises(UnknownEnvironment) as caught:
        find_task(asked)
    assert list(caught.value.near) == near


def test_unknown_names_suggest_near_ones() -> None:
    with pytest.raises(UnknownEnvironment, match=r"unknown environment 'cartpol': did you mean cartpole") as caught:
        find_task("cartpol")
    assert caught.value.near[0] == "cartpole"
    with pytest.raises(UnknownEnvironment, match=r"'qqqqqq'; `evotui envs` lists them$"):
        find_task("qqqqqq")
    with pytest.raises(UnknownEnvironment, match="write gymnasium:FrozenLake-v1"):
        find_task("FrozenLake-v1")


def test_own_folders_come_before_shipped_ones(elsewhere: Path) -> None:
    add(elsewhere / "data", "cartpole")
    add(elsewhere / "data", "mine")
    assert find_task("cartpole").slug == "my/cartpole"
    add(elsewhere / "cwd", "cartpole", TASK.format("cartpole").replace("my/", "here/"))
    assert find_task("cartpole").slug == "here/cartpole"
    assert find_task("mine").folder == str(elsewhere / "data" / "environments" / "mine")
    assert [f.parent for f in environment_folders()][:2] == [elsewhere / "cwd", elsewhere / "data"]


def test_one_bad_file_does_not_hide_the_others(elsewhere: Path) -> None:
    add(elsewhere / "cwd", "broken", "slug = 3\n")
    tasks, problems = scan_tasks()
    assert set(SHIPPED) <= {t.name for t in tasks}
    assert [p.field for p in problems] == ["slug"]
    assert find_task("cartpole").name == "cartpole"
    with pytest.raises(BadTaskFile, match="slug: expected"):
        find_task("broken")
    with pytest.raises(UnknownEnvironment, match="one task file could not be read"):
        find_task("something")


def test_a_checkout_wins_over_a_stale_copy(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editable install leaves evotui/shipped behind; beside the package's pyproject.toml lie the true ones."""
    package = elsewhere / "repo" / "evotui"
    add(package / "shipped", "old")
    monkeypatch.setattr(evotui, "__file__", str(package / "__init__.py"))
    assert [t.name for t in list_tasks()] == ["old"]
    add(elsewhere / "repo", "new")
    assert [t.name for t in list_tasks()] == ["old"]  # another package's folder beside an installed one: not ours
    (elsewhere / "repo" / "pyproject.toml").touch()
    assert [t.name for t in list_tasks()] == ["new"]


def test_availability_names_the_command() -> None:
    task = find_task("cartpole")
    assert availability(task) is None
    missing = replace(task, packages=("no_such_package_here",), extra="core16")
    assert availability(missing) == (
        "CartPole needs no_such_package_here, which is not installed: pip install 'evotui[core16]'"
    )
    assert availability(replace(missing, extra="")).endswith("pip install no-such-package-here")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "package", "version", "command"),
    [
        ("ant5", "mujoco", "3.11.0", "pip install 'mujoco>=3.8,<3.11'"),
        ("fetch_push", "mujoco", "3.12.1", "pip install 'mujoco>=3.8,<3.11'"),
        ("reacher5", "mujoco", "3.7.2", "pip install 'mujoco>=3.8,<3.11'"),
        ("parking", "highway-env", "1.11", "pip install 'highway-env>=1.12'"),
        ("fetch_pickandplace", "gymnasium-robotics", "1.4.1", "pip install 'gymnasium-robotics>=1.4.2'"),
        ("minigrid_doorkey", "minigrid", "2.5.0", "pip install 'minigrid>=3.1'"),
        ("cartpole", "gymnasium", "1.5.0rc1", "pip install 'gymnasium>=1.4,<1.5'"),
    ],
)
def test_versions_that_do_not_serve_are_told_with_the_command(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, version: str, command: str
) -> None:
    good = {"gymnasium": "1.4.0", "minigrid": "3.1.0", "mujoco": "3.8.0", "highway-env": "1.12"}
    good["gymnasium-robotics"] = "1.4.2"
    versions = dict(good)
    monkeypatch.setattr(catalog, "_version", lambda name: versions.get(name, ""))
    monkeypatch.setattr(catalog, "_installed", lambda module: True)
    task = find_task(name)
    assert availability(task) is None
    versions[package] = version
    told = availability(task)
    assert told is not None
    assert told.startswith(f"{task.title} needs {package}>=")
    assert version in told
    assert told.endswith(f": {command}")
    with pytest.raises(WrongVersion):
        worlds.describe(task)
    with pytest.raises(WrongVersion):
        asyncio.run(probe(name))


def test_the_versions_are_those_of_the_package() -> None:
    document = tomllib.loads((Path(evotui.__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    wanted = document["project"]["dependencies"] + document["project"]["optional-dependencies"]["core16"]
    for module, rule in catalog._VERSIONS.items():
        assert any(re.fullmatch(rf"{catalog.distribution(module)}(\[.*\])?{re.escape(str(rule))}", w) for w in wanted)


def test_any_registered_id_works() -> None:
    task = find_task("gymnasium:FrozenLake-v1")
    assert task.generated
    assert (task.gym_id, task.slug) == ("FrozenLake-v1", "gymnasium/FrozenLake-v1")
    assert find_task(task.name) == task
    for told in ("0 to 15", "0 to 3", "At most 100 steps", "not known"):
        assert told in task.text


def test_a_generated_text_tells_bounds_and_inner_limits() -> None:
    text = find_task("gymnasium:Pendulum-v1").text
    assert "`[2]`: -8 to 8" in text
    assert "shape [1], each from -2 to 2" in text
    assert "At most 200 steps" in text
    grid = find_task("gymnasium:MiniGrid-FourRooms-v0")
    assert grid.packages == ("minigrid",)
    assert "`mission`" in grid.text
    assert "At most 100 steps" in grid.text


def test_unknown_ids_suggest_registered_ones() -> None:
    with pytest.raises(UnknownEnvironment, match="did you mean gymnasium:LunarLander-v3"):
        find_task("gymnasium:LunarLandr-v3")
    with pytest.raises(UnknownEnvironment, match="gymnasium:Taxi-v4"):
        find_task("gymnasium:Taxi-v3")
    with pytest.raises(SuiteError):
        find_task("gymnasium:")


@pytest.mark.parametrize(
    ("gym_id", "module"),
    [("LunarLander-v3", "Box2D"), ("HalfCheetah-v5", "mujoco"), ("parking-v0", "highway_env")],
)
def test_a_missing_package_is_told_with_its_command(gym_id: str, module: str) -> None:
    """Told as on a machine without the package, whether or not it is installed here."""
    code = f"import sys; sys.modules[{module!r}] = None\nfrom evotui.suite.catalog import find_task, MissingExtra\n"
    code += f"try: find_task('gymnasium:{gym_id}')\nexcept MissingExtra as error: print(error.command, '|', error)\n"
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.startswith("pip install 'evotui[core16]' | ")
    assert gym_id in out
    assert "Traceback" not in out


def test_a_module_that_does_not_exist() -> None:
    with pytest.raises(MissingExtra, match="pip install no-such-module-here"):
        find_task("gymnasium:no_such_module_here:Thing-v0")


def test_the_catalog_is_light() -> None:
    code = (
        "import sys; from evotui.suite import catalog; catalog.list_tasks(); import evotui.suite.worlds\n"
        "print([m for m in ('gymnasium', 'minigrid', 'pygame', 'textual', 'litellm') if m in sys.modules])\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
    code = "import sys; from evotui.suite import catalog; catalog.list_tasks(); print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_policies() -> None:
    task = find_task("cartpole")
    names = list_policies(task)
    assert names[:2] == ["starter", "reference"]
    assert "broken-syntax" in names
    assert (policy_folder(task, "starter") / "policy.py").is_file()
    with pytest.raises(UnknownPolicy, match="did you mean starter"):
        policy_folder(task, "startr")
    for bad in ("../cartpole/starter", "", "..", "starter/.."):
        with pytest.raises(UnknownPolicy):
            policy_folder(task, bad)


def test_own_policies_come_first(elsewhere: Path) -> None:
    own = elsewhere / "cwd" / "policies" / "cartpole"
    for name in ("starter", "mine"):
        (own / name).mkdir(parents=True)
        (own / name / "policy.py").write_text("class Policy: ...\n", "utf-8")
    task = find_task("cartpole")
    assert policy_folder(task, "starter") == own / "starter"
    assert "mine" in list_policies(task)
    assert "reference" in list_policies(task)
