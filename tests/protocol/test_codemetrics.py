"""Code figures: equal to what the published harness recorded, and each rule on its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from evotui.protocol.codemetrics import TREND, cyclomatic, metrics, tree_hash, trend
from evotui.protocol.syntax import parse
from evotui.record.tree import read_tree

GOLDEN = sorted((Path(__file__).parents[1] / "data" / "checkpoints").iterdir())


@pytest.mark.parametrize("checkpoint", GOLDEN, ids=lambda p: p.name)
def test_equal_to_the_published_harness(checkpoint: Path) -> None:
    assert metrics(read_tree(checkpoint)) == json.loads((checkpoint / "metrics.json").read_text())


def test_there_are_golden_checkpoints() -> None:
    assert len(GOLDEN) >= 4


def test_tree_hash_is_path_zero_bytes_zero_in_path_order() -> None:
    files = {"b.py": b"B", "a/x.txt": b"X", "a.py": b""}
    # as strings "a.py" < "a/x.txt": the dot sorts before the slash
    assert tree_hash(files) == "sha256:" + hashlib.sha256(b"a.py\0\0a/x.txt\0X\0b.py\0B\0").hexdigest()


@pytest.mark.parametrize(
    "path",
    [".keep", "lib/.keep", "_meta.json", "metrics.json", "__pycache__/p.pyc", "a/.ruff_cache/x", ".mypy_cache/b"],
)
def test_uncounted_files_change_nothing(path: str) -> None:
    files = {"policy.py": b"x = 1\n"}
    assert metrics({**files, path: b"anything"}) == metrics(files)


def test_lines_bytes_and_files() -> None:
    got = metrics({
        "policy.py": b"# head\n\nimport os, numpy.linalg\nx = 1  # one\n    # indented\n",
        "lib/test_it.py": b"from .a import b\nfrom json.decoder import x",
        "lib/test_data.txt": b"not python\n",
        "weights.bin": b"\xff\x00",
    })  # fmt: skip
    assert got["files"] == 4 and got["python_files"] == 2 and got["test_files"] == 1
    assert got["lines"] == 5 + 2 and got["source_lines"] == 2 + 2
    assert got["imports"] == ["json", "numpy", "os"] and got["import_count"] == 3
    assert got["policy_bytes"] == 60 and got["bytes"] == 60 + 43 + 11 + 2


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("pass", 1),
        ("if a: pass\n elif b: pass\n else: pass", 3),
        ("for i in x:\n  while i: pass", 3),
        ("return 1 if a else 2", 2),
        ("return a and b and c or d", 1 + 2 + 1),
        ("return [i for i in x if i if i > 1]", 3),
        ("try: pass\n except A: pass\n except B: pass", 1 + 2 + 2),
        ("match a:\n  case 1: pass\n  case 2: pass\n  case _: pass", 4),
        ("def g():\n  if a: pass", 2),
    ],
)
def test_cyclomatic_rules(body: str, number: int) -> None:
    assert cyclomatic(parse(f"def f():\n {body}\n").body[0]) == number


def test_nested_functions_count_in_their_outer_one_and_alone() -> None:
    got = metrics({"policy.py": b"def f():\n  async def g():\n    if a: pass\n"})
    assert (got["functions"], got["cyclomatic_total"], got["cyclomatic_max"]) == (2, 4, 2)


def test_a_file_without_functions_is_one_unit_if_it_has_text() -> None:
    got = metrics({"policy.py": b"if a:\n  pass\n", "empty.py": b" \n\n"})
    assert (got["functions"], got["cyclomatic_total"], got["cyclomatic_max"]) == (0, 2, 2)


@pytest.mark.parametrize("bad", [b"def f(:\n", b"\0", b"\xff\xfe = 1\n", b"x = " + b"-" * 100_000 + b"1", b"(" * 5000])
def test_what_does_not_parse_is_named_and_its_lines_count(bad: bytes) -> None:
    got = metrics({"policy.py": b"x = 1\n", "lib/bad.py": bad})
    assert got["parse_errors"] == ["lib/bad.py"]
    assert got["lines"] == 1 + len(bad.decode("utf-8", "replace").splitlines())
    assert got["cyclomatic_total"] == 1


def test_reading_source_never_warns(recwarn: pytest.WarningsRecorder) -> None:
    metrics({"policy.py": b'x = "\\d"\ny = 1 is 2\n'})
    assert not recwarn.list


def test_trend_is_in_submission_order() -> None:
    got = trend({10: {"lines": 3}, 2: {"lines": 5, "tree_hash": "sha256:x"}})
    assert got["submits"] == [2, 10] and got["lines"] == [5, 3] and got["tree_hash"] == ["sha256:x", None]
    assert set(TREND) <= set(metrics({}))
