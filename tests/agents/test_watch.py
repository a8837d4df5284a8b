"""Edits below ``system/`` as they are told while a program makes them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path

import pytest

from evotui.agents.watch import SystemWatch
from evotui.record.events import AgentRaw, FileEdited
from evotui.record.tree import MAX_BYTES, read_tree
from tests.agents.places import POLICY, Site
from tests.patience import PATIENCE


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def told(site: Site) -> list[tuple[str, int, int]]:
    facts = [(f.path, f.added, f.removed) for f in site.ear.of(FileEdited)]
    site.ear.facts.clear()
    return facts


async def test_each_change_is_told_once_with_its_content(site: Site) -> None:
    system = site.workspace.system
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        assert told(site) == []
        (system / "policy.py").write_text(POLICY + "# more\n")
        (system / "lib").mkdir()
        (system / "lib" / "a.py").write_text("x = 1\ny = 2\n")
        (system / "table.bin").write_bytes(bytes(range(256)))
        assert await watch.look() == 3
        assert told(site)[:2] == [("lib/a.py", 2, 0), ("policy.py", 1, 0)]
        assert await watch.look() == 0
        (system / "lib" / "a.py").rename(system / "b.py")
        (system / "policy.py").write_text(POLICY)
        await watch.look()
        assert told(site) == [("b.py", 2, 0), ("policy.py", 0, 1), ("lib/a.py", 0, 2)]
        (system / "table.bin").write_bytes(bytes(255))
        await watch.look()
        fact = site.ear.of(FileEdited)[0]
        assert (site.workspace.blobs / fact.sha256).read_bytes() == bytes(255) and fact.by == "agent"


async def test_it_follows_by_itself_and_waits_until_a_file_has_settled(site: Site) -> None:
    edited = asyncio.Event()
    site.ear.on = lambda fact: edited.set()
    async with SystemWatch(site.workspace, site.ear, every=0.05):
        (site.workspace.system / "policy.py").write_text("a = 1\n")
        await asyncio.wait_for(edited.wait(), PATIENCE)
    assert [(f.path, f.bytes) for f in site.ear.of(FileEdited)] == [("policy.py", 6)]
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        site.ear.facts.clear()
        (site.workspace.system / "policy.py").write_text("half")
        assert await watch.look(settled=True) == 0
        (site.workspace.system / "policy.py").write_text("half and half\n")
        assert await watch.look(settled=True) == 0
        assert await watch.look(settled=True) == 1


async def test_what_a_snapshot_leaves_out_is_left_out(site: Site) -> None:
    system = site.workspace.system
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        for path in ("__pycache__/policy.cpython-311.pyc", ".git/HEAD", "metrics.json", "_meta.json"):
            (system / path).parent.mkdir(exist_ok=True)
            (system / path).write_text("x")
        (system / "link.py").symlink_to(site.run / "events.jsonl")
        (system / "way").symlink_to(site.run)
        os.mkfifo(system / "pipe")
        assert await watch.look() == 0
        (system / "lib").mkdir()
        (system / "lib" / "metrics.json").write_text("{}")
        assert await watch.look() == 1
        assert {"policy.py", "lib/metrics.json"} == set(read_tree(system))
        with open(system / "huge.bin", "wb") as file:
            file.truncate(MAX_BYTES + 1)
        assert await watch.look() == 1 and await watch.look() == 0
        assert "larger than 64 MB" in site.ear.of(AgentRaw)[0].text


async def test_it_goes_by_the_record(site: Site) -> None:
    """What was edited before it began, and by whom else, is known from the record."""
    recorded = {"gone.py": "0" * 64}
    (site.workspace.system / "unrecorded.py").write_text("x\n")
    watch = SystemWatch(site.workspace, site.ear, lambda: recorded, every=60, by="human")
    async with watch:
        assert sorted(f.path for f in site.ear.of(FileEdited)) == ["gone.py", "policy.py", "unrecorded.py"]
        assert {f.by for f in site.ear.of(FileEdited)} == {"human"}
        for fact in site.ear.of(FileEdited):
            recorded[fact.path] = fact.sha256
        recorded.pop("gone.py")
        site.ear.facts.clear()
        (site.workspace.system / "policy.py").write_text("by somebody else\n")
        recorded["policy.py"] = hashlib.sha256(b"by somebody else\n").hexdigest()
        assert await watch.look() == 0


async def test_files_that_cannot_be_read_and_a_folder_that_is_gone(site: Site) -> None:
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        (site.workspace.system / "policy.py").unlink()
        site.workspace.system.rmdir()
        assert await watch.look() == 1
        assert told(site) == [("policy.py", 0, 2)]


async def test_a_full_disk_is_no_end(site: Site) -> None:
    async with SystemWatch(site.workspace, site.ear, every=0.02) as watch:
        blobs = site.workspace.blobs
        blobs.rename(blobs.with_name("away"))
        (site.workspace.system / "policy.py").write_text("z = 3\n")
        with pytest.raises(OSError):
            await watch.look()
        edited = asyncio.Event()
        site.ear.on = lambda fact: edited.set()
        blobs.with_name("away").rename(blobs)
        await asyncio.wait_for(edited.wait(), PATIENCE)
    assert [f.bytes for f in site.ear.of(FileEdited)] == [6]


async def test_what_could_not_be_told_is_told_later(site: Site) -> None:
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        for name in ("a.py", "b.py"):
            (site.workspace.system / name).write_text(f"# {name}\n")

        def full(fact: object) -> None:
            site.ear.facts.pop()
            raise OSError(28, "No space left on device")

        site.ear.on = full
        with pytest.raises(OSError):
            await watch.look()
        site.ear.on = lambda fact: None
        assert await watch.look() == 2
        assert [f.path for f in site.ear.of(FileEdited)] == ["a.py", "b.py"]
        assert await watch.look() == 0


async def test_an_edit_is_told_though_whoever_asked_is_gone(site: Site) -> None:
    told = asyncio.Event()
    site.ear.on = lambda fact: told.set()
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        (site.workspace.system / "policy.py").write_text("z = 1\n")
        asking = asyncio.create_task(watch.look())
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait_for(told.wait(), PATIENCE)
        assert await watch.look() == 0
    assert len(site.ear.of(FileEdited)) == 1


async def test_looking_costs_little(site: Site) -> None:
    for index in range(200):
        (site.workspace.system / f"m{index}.py").write_text("x = 1\n")
    async with SystemWatch(site.workspace, site.ear, every=60) as watch:
        looks = []
        for _ in range(20):
            begun = time.process_time()
            await watch.look(settled=True)
            looks.append(time.process_time() - begun)
    assert min(looks) < 0.01  # two hundred files, four looks a second: below 4 % of a core even so
