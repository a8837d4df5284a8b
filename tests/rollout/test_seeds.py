"""Seeds: no process with a policy in it holds one, and every shipped environment takes those of 128 bits."""

from __future__ import annotations

import os
import re
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evotui.protocol.pools import Split, secret_pools
from evotui.protocol.spaces import to_jsonable
from evotui.rollout.engine import Engine
from evotui.rollout.limits import EpisodeStep, Limits
from evotui.suite import worlds
from evotui.suite.catalog import availability, list_tasks

from .conftest import make_job

SLOW = """
import time
import numpy as np
class Policy:
    def __init__(self, obs_space, action_space, env_meta): self.meta = env_meta
    def reset(self, episode_index):
        import os
        if "TMPDIR" in os.environ:
            open(os.environ["TMPDIR"] + "/mark", "w").write("in scratch")
    def act(self, obs):
        time.sleep(0.02)
        return int(obs[2] + 0.5 * obs[3] > 0)
"""
POOLS = secret_pools(b"a secret of this test", 8, 8)
WANTED = [POOLS.of(split)[0] for split in Split] + [POOLS.train[1]]


def forms(seed: int) -> dict[str, bytes]:
    """A seed as it may lie in memory: text, machine words, a Python integer (30 bits to a 32-bit word)."""
    digits = [seed >> shift & (1 << 30) - 1 for shift in range(0, seed.bit_length(), 30)]
    return {
        "decimal": str(seed).encode(),
        "hex": f"{seed:x}".encode(),
        "HEX": f"{seed:X}".encode(),
        "little": seed.to_bytes(16, "little"),
        "big": seed.to_bytes(16, "big"),
        "integer": struct.pack(f"<{len(digits)}I", *digits),
    }


def found(data: bytes, seeds: list[int]) -> set[str]:
    return {name for seed in seeds for name, form in forms(seed).items() if form in data}


def memory(pid: int) -> Iterator[bytes]:
    """Each readable mapping of a process, except those that only show a file: the interpreter's and its libraries'."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r(.)..", line)
            if match is None or (match[3] == "-" and "/" in line) or "[v" in line:
                continue
            start, end = (int(part, 16) for part in match.groups()[:2])
            try:
                mem.seek(start)
                yield mem.read(end - start)
            except OSError:
                continue  # a mapping of a device or beyond the end of its file


def outside_memory(pid: int) -> Iterator[bytes]:
    """Environment, command line, open files, and the files of its own that a process sees."""
    yield from (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline", "comm", "maps"))
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        yield os.readlink(fd).encode()
        if fd.is_file():
            yield fd.read_bytes()
    root, at = Path(f"/proc/{pid}/root"), os.readlink(f"/proc/{pid}/cwd")
    own = [root / "system", root / "scratch"]  # what else is there in a namespace is the interpreter
    if at != "/":  # that is where whoever waits for a namespace's first process is, in a tree of mounts that is gone
        own.append(Path(f"/proc/{pid}/cwd"))
    for folder in filter(Path.is_dir, own):
        yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def descendants(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return children + [below for child in children for below in descendants(child)]


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root reads another process's memory")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("mode", ["episode", "batch"])
async def test_no_process_with_a_policy_holds_a_seed(tmp_path, mode):
    seeds = WANTED * 8
    job = make_job(tmp_path, SLOW, n=len(seeds), seeds=seeds, mode=mode, limits=Limits())
    async with Engine(workers=1) as engine, engine.open(job) as rollout:
        assert await rollout.compile() is None and await rollout.initialize() is None
        worker = engine.workers[0].pid
        async for event in rollout.episodes():
            if isinstance(event, EpisodeStep) and event.step > 0:
                break
        os.kill(worker, signal.SIGSTOP)  # nothing ends while it is looked at; the policy waits for an observation
        try:
            guests = descendants(worker)
            assert len(guests) >= 2, "the zygote and a policy process"
            held = {pid: [found(data, WANTED) for data in memory(pid)] for pid in guests}
            files = {pid: list(outside_memory(pid)) for pid in guests}
            in_worker = any(found(data, WANTED) for data in memory(worker))
        finally:
            os.kill(worker, signal.SIGCONT)
    assert in_worker, "the control: the same search finds the seeds where they are"
    assert all(len(parts) > 10 for parts in held.values())
    assert {pid: set().union(*parts) for pid, parts in held.items()} == {pid: set() for pid in guests}
    assert any(b"class Policy" in data for parts in files.values() for data in parts)
    assert not any(found(data, WANTED) for parts in files.values() for data in parts)


@pytest.mark.parametrize("task", list_tasks(), ids=lambda task: task.name)
def test_seeds_of_128_bits_reset_every_environment(task):
    if why := availability(task):
        pytest.skip(why)
    seed = WANTED[0] | 1 << 127
    starts, states = [], []
    for given in (seed, seed, seed ^ 1 << 127, seed ^ 1):
        world = worlds.make(task)
        try:
            starts.append(to_jsonable(world.reset(given)))
            states.append(world._env.unwrapped.np_random.bit_generator.state)
        finally:
            world.close()
    assert starts[0] == starts[1] and states[0] == states[1]
    assert states[2] != states[0] and states[3] != states[0], "the highest and the lowest bit count"
