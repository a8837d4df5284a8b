"""What a policy can reach: nearly a hundred attacks at every level there is, and without walls, where they succeed."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evotui.rollout.engine import Engine
from evotui.rollout.limits import Limits

from .attacks import SOURCE
from .conftest import make_job, run_job

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="raw x86_64 Linux calls"),
]
LEVELS = {
    "A": {"namespaces", "landlock", "seccomp"},
    "B": {"landlock", "seccomp"},
    "C": {"namespaces", "seccomp"},
    "D": set(),
}
# Landlock hides what files hold, not that they are there; /proc of other users shows as much as to any user.
HARMLESS = {"B": {"see_host"}}


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Things on the host that attacks go for: a server, sockets, files."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "secret").write_text("canary")
    (folder / "moved").write_text("canary")
    (folder / "link").symlink_to(folder / "secret")
    servers = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    servers[1].bind(str(folder / "socket"))
    servers[2].bind(f"\0evotui-canary-{tmp_path}")

    def answer(server: socket.socket) -> None:
        while True:
            try:
                server.accept()[0].send(b"canary")
            except OSError:
                return

    for server in servers:
        server.listen()
        threading.Thread(target=answer, args=(server,), daemon=True).start()
    yield {
        "host": os.getpid(),
        "port": servers[0].getsockname()[1],
        "unix": str(folder / "socket"),
        "abstract": f"\0evotui-canary-{tmp_path}",
        "folder": str(folder),
        "secret": str(folder / "secret"),
        "link": str(folder / "link"),
    }
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


async def attacked(tmp_path: Path, canary: dict[str, Any], level: str) -> dict[str, str]:
    """What each attack came to at one level; skips where this machine cannot have the level."""
    async with Engine(workers=1, walls=frozenset(LEVELS[level])) as engine:
        if engine.isolation.level != level:
            pytest.skip(f"level {level} cannot be had here: {engine.isolation.missing}")
        place = json.dumps(canary | {"worker": engine.workers[0].pid, "isolated": level != "D"})
        job = make_job(tmp_path, SOURCE.replace("@CANARY@", place), limits=Limits(reset_seconds=20.0))
        outcome = await run_job(engine, job)
    assert outcome.load_fault is None and outcome.kinds == [None], (outcome.load_fault, outcome.results)
    return json.loads((tmp_path / "episodes" / "ep_000" / "stdout.txt").read_text())


@pytest.mark.parametrize("level", ["A", "B", "C"])
async def test_no_attack_gets_through(tmp_path, canary, level):
    told = await attacked(tmp_path, canary, level)
    assert len(told) >= 60
    through = {name for name, what in told.items() if what == "GOT THROUGH"}
    assert through <= HARMLESS.get(level, set()), through
    assert sorted(os.listdir(canary["folder"])) == ["link", "moved", "secret", "socket"]
    assert not any(os.path.exists(p) for p in ("/tmp/evotui-evil", "/dev/shm/evotui-evil"))


async def test_without_walls_the_attacks_succeed(tmp_path, canary):
    """The control: else the test above might prove nothing."""
    told = await attacked(tmp_path, canary, "D")
    try:
        through = [name for name, what in told.items() if what == "GOT THROUGH"]
        assert len(through) >= 40, sorted(set(told) - set(through))
        assert os.path.exists(canary["folder"] + "/evil")
    finally:
        evil = Path(os.__file__).parent / "evil.py"
        for path in (Path("/tmp/evotui-evil"), Path("/dev/shm/evotui-evil"), evil, Path("/dev/evil")):
            path.unlink(missing_ok=True)


async def test_episodes_find_no_traces_of_each_other(tmp_path):
    source = """
    import os
    class Policy:
        def __init__(self, *given): pass
        def reset(self, index):
            scratch = os.environ.get("TMPDIR")
            print(os.listdir(scratch))
            os.makedirs(scratch + "/deep/er"); open(scratch + "/deep/er/mark", "w").write("x")
        def act(self, obs): return 0
    """
    async with Engine(workers=1) as engine:
        if engine.isolation.level not in "AC":
            pytest.skip("no scratch space at this level")
        await run_job(engine, make_job(tmp_path, source, 3))
    assert [(tmp_path / "episodes" / f"ep_{i:03}" / "stdout.txt").read_text() for i in range(3)] == ["[]\n"] * 3


async def test_isolation_says_what_is_missing():
    async with Engine(workers=1, walls=frozenset({"landlock", "seccomp"})) as engine:
        assert engine.isolation.level in "BCD"
        assert "namespaces" not in engine.isolation.layers
    async with Engine(workers=1, walls=frozenset()) as engine:
        assert (engine.isolation.level, engine.isolation.layers) == ("D", ("rlimits",))
