"""What editors leave beside a file is no policy; a checkpoint of an older version that holds some still checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from evotui.agents.watch import files_of
from evotui.protocol.codemetrics import is_litter, tree_hash
from evotui.record.tree import copy_system, read_tree
from evotui.ui.bundles import read_folder

LITTER = (".policy.py.swp", ".policy.py.swo", ".policy.py.swx", "policy.py~", ".#policy.py", "#policy.py#", "4913")


@pytest.mark.parametrize("name", ["policy.py", ".hidden", "a.swp", "49130", "4913.json", "#a", "a#", "~a", ".swp"])
def test_a_policys_own_names_stay(name: str) -> None:
    assert not is_litter(name)


def test_litter_is_in_no_snapshot_and_no_edit(tmp_path: Path) -> None:
    system = tmp_path / "system"
    (system / "lib").mkdir(parents=True)
    for name in ("policy.py", *LITTER):
        (system / name).write_text("x = 1\n")
        (system / "lib" / name).write_text("x = 1\n")
    kept = {"policy.py", "lib/policy.py"}
    assert set(copy_system(system, tmp_path / "c")) == kept
    assert {p.name for p in (tmp_path / "c").rglob("*")} == {"lib", "policy.py"}
    assert set(read_tree(system)) == kept == set(read_folder(system)) == {path for path, _ in files_of(system)}


def test_what_an_older_checkpoint_holds_counts_in_its_hash(tmp_path: Path) -> None:
    files = {"policy.py": b"x = 1\n", "policy.py~": b"x = 0\n"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert tree_hash(read_tree(tmp_path, litter=True)) == tree_hash(files) != tree_hash(read_tree(tmp_path))
