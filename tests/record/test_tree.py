"""The snapshot: what is copied, what is left out, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evotui.record.tree import SnapshotError, copy_system, read_tree, restore


def fill(root: Path) -> None:
    (root / "lib").mkdir(parents=True)
    (root / "policy.py").write_bytes(b"x = 1\r\n")
    (root / "lib" / "a.py").write_bytes(b"\x00\xff")
    (root / ".hidden").write_bytes(b"h")


def test_copies_bytes_and_returns_them(tmp_path: Path) -> None:
    fill(tmp_path / "system")
    files = copy_system(tmp_path / "system", tmp_path / "checkpoint")
    assert files == {".hidden": b"h", "lib/a.py": b"\x00\xff", "policy.py": b"x = 1\r\n"}
    assert read_tree(tmp_path / "checkpoint") == files == read_tree(tmp_path / "system")


@pytest.mark.parametrize("folder", ["__pycache__", ".git", ".pytest_cache", "lib/.mypy_cache", ".ruff_cache"])
def test_caches_and_git_stay_behind(tmp_path: Path, folder: str) -> None:
    fill(tmp_path / "system")
    (tmp_path / "system" / folder).mkdir()
    (tmp_path / "system" / folder / "x").write_bytes(b"x")
    assert set(copy_system(tmp_path / "system", tmp_path / "c")) == {".hidden", "lib/a.py", "policy.py"}


def test_links_and_special_files_stay_behind(tmp_path: Path) -> None:
    fill(tmp_path / "system")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "seeds.json").write_bytes(b"[1]")
    (tmp_path / "system" / "file_link.json").symlink_to(tmp_path / "secret" / "seeds.json")
    (tmp_path / "system" / "folder_link").symlink_to(tmp_path / "secret")
    (tmp_path / "system" / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "system" / "pipe")
    assert set(copy_system(tmp_path / "system", tmp_path / "c")) == {".hidden", "lib/a.py", "policy.py"}
    assert sorted(p.name for p in (tmp_path / "c").rglob("*")) == [".hidden", "a.py", "lib", "policy.py"]


def test_the_hosts_names_at_the_top_are_not_the_policys(tmp_path: Path) -> None:
    fill(tmp_path / "system")
    for name in ("metrics.json", "_meta.json", "lib/metrics.json"):
        (tmp_path / "system" / name).write_bytes(b"{}")
    files = copy_system(tmp_path / "system", tmp_path / "c")
    assert "metrics.json" not in files and "_meta.json" not in files and files["lib/metrics.json"] == b"{}"


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"max_bytes": 9}, "larger than"), ({"max_files": 3}, "more than 3 files")],
)
def test_too_large_is_refused_and_nothing_is_written(tmp_path: Path, limits: dict[str, int], words: str) -> None:
    fill(tmp_path / "system")
    with pytest.raises(SnapshotError, match=words):
        copy_system(tmp_path / "system", tmp_path / "c", **limits)
    assert not (tmp_path / "c").exists()


def test_exactly_the_limits_is_allowed(tmp_path: Path) -> None:
    fill(tmp_path / "system")
    assert len(copy_system(tmp_path / "system", tmp_path / "c", max_bytes=10, max_files=4)) == 3


def test_absurd_nesting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "system" / "/".join("d" * 40)).mkdir(parents=True)
    with pytest.raises(SnapshotError, match="flatter"):
        copy_system(tmp_path / "system", tmp_path / "c")


def test_a_missing_system_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot be read"):
        copy_system(tmp_path / "system", tmp_path / "c")


def test_restore_makes_a_folder_hold_exactly_the_files(tmp_path: Path) -> None:
    """Folders where files belong, files where folders belong, links: all give way, nothing else is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"mine")
    system = tmp_path / "system"
    (system / "policy.py").mkdir(parents=True)
    (system / "data").write_bytes(b"")
    (system / "lib").symlink_to(outside)
    (system / "link.py").symlink_to(outside / "a.py")
    (system / "__pycache__").mkdir()
    os.mkfifo(system / "pipe")
    files = {"policy.py": b"p", "data/w.bin": b"\0", "lib/a.py": b"a", "link.py": b"l"}
    restore(files, system)
    assert read_tree(system) == files and not (system / "lib").is_symlink()
    assert (outside / "a.py").read_bytes() == b"mine" and sorted(p.name for p in outside.iterdir()) == ["a.py"]
    assert sorted(p.name for p in system.iterdir()) == ["data", "lib", "link.py", "policy.py"]
    restore({}, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
