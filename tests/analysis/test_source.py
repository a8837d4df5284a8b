"""Bundles, topologies, constants."""

from __future__ import annotations

import pytest

from evotui.analysis.source import Bundle, read_bundle


def bundle(**files: str) -> Bundle:
    return read_bundle({path.replace("__", "/") + ".py": text.encode() for path, text in files.items()})


def topology(source: str) -> str:
    return bundle(policy=source).topology


def constants(source: str) -> list[tuple[str, object]]:
    return [(c.name, c.value) for c in bundle(policy=source).modules["policy.py"].constants]


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("import a", {"a.py"}),
        ("import a, os, numpy", {"a.py"}),
        ("import lib.b", {"lib/__init__.py", "lib/b.py"}),
        ("from lib import b", {"lib/__init__.py", "lib/b.py"}),
        ("from lib.b import f", {"lib/__init__.py", "lib/b.py"}),
        ("from lib import f", {"lib/__init__.py"}),
        ("def act():\n    from c import f", {"c.py", "a.py"}),
        ("import lib.deep.e", {"lib/__init__.py", "lib/deep/e.py", "lib/b.py", "a.py"}),
        ("import importlib\nimportlib.import_module('a')", {"a.py"}),
        ("__import__('a')", {"a.py"}),
        ("x = 'import a'", set()),
        ("from . import a", {"a.py"}),
        ("from ... import a", set()),
    ],
)
def test_a_bundle_is_what_imports_reach(source: str, reached: set[str]) -> None:
    deep = "from .. import b\nfrom ...a import A\nimport a\nfrom . import nothing"
    files = {
        "policy.py": source,
        "a.py": "A = 1",
        "c.py": "import a",
        "unused.py": "",
        "test_policy.py": "import policy",
    }
    files |= {"lib/__init__.py": "", "lib/b.py": "", "lib/deep/e.py": deep}
    found = read_bundle({path: text.encode() for path, text in files.items()} | {"w.npz": b"\0"})
    assert set(found.modules) == {"policy.py"} | reached


def test_cycles_and_broken_modules_end() -> None:
    found = bundle(policy="import a", a="import policy, b", b="def (:")
    assert set(found.modules) == {"policy.py", "a.py", "b.py"}
    assert found.topology != bundle(policy="import a", a="import policy, b", b="def ((:").topology
    assert read_bundle({}).modules == {}


BASE = "import math\nK = 0.5\nclass P:\n    def act(self, o):\n        return K * o[0] - 2 if o[1] > 1e-3 else 'x'\n"


@pytest.mark.parametrize(
    "same",
    [
        BASE.replace("0.5", "7"),
        BASE.replace("0.5", "-0.5"),
        BASE.replace("0.5", "--3j"),
        BASE.replace("1e-3", "-1"),
        "# a comment\n" + BASE.replace("K = 0.5", "K  =  (0.5)  # half"),
        '"""Doc."""\n' + BASE.replace("class P:", "class P:\n    'doc'").replace("o):", "o):\n        '''doc'''"),
    ],
)
def test_numbers_comments_docstrings_and_layout_are_no_topology(same: str) -> None:
    assert topology(same) == topology(BASE)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("K = 0.5", "K = 0.5 + 1"),
        BASE.replace("K", "G"),
        BASE.replace("'x'", "'y'"),
        BASE.replace("'x'", "b'x'"),
        BASE.replace("0.5", "True"),
        BASE.replace("0.5", "None"),
        BASE.replace("0.5", "+0.5"),
        BASE.replace("0.5", "[0.5]"),
        BASE.replace(" > ", " < "),
        BASE.replace("act", "reset"),
        BASE.replace("import math\n", ""),
        BASE + "'not a docstring'\n",
    ],
)
def test_everything_else_is(other: str) -> None:
    assert topology(other) != topology(BASE)


def test_topology_knows_in_which_file_things_are() -> None:
    assert bundle(policy="import a", a="X = 1").topology != bundle(policy="import b", b="X = 1").topology
    assert bundle(policy="import a\nX = 1", a="").topology != bundle(policy="import a", a="X = 1").topology


def test_absurd_sources_are_read() -> None:
    long_sum = "x = " + " + ".join(str(i) for i in range(900))
    assert topology(long_sum) == topology(long_sum.replace("899", "1"))
    assert len(constants(long_sum)) == 900


def test_constants_are_named_by_where_they_stand() -> None:
    source = """
GAIN = -0.5
LO, HI = 1, 2
W = np.array([[1.0, 2], [3, -4]])
TABLE = {"left": 0.1, 2: 0.3}
RATE: float = 2 * 0.7
class Policy:
    LIMIT = 3
    def __init__(self, o, a, m, scale=10, *, bias=0.25):
        self.kp = 1.5
        self.k = [1, 2]
    def act(self, obs):
        threshold = 0.2
        if obs[2] > threshold:
            return clip(obs[0], 7)
        return 1
"""
    assert constants(source) == [
        ("GAIN", -0.5), ("LO", 1), ("HI", 2), ("W[0][0]", 1.0), ("W[0][1]", 2), ("W[1][0]", 3), ("W[1][1]", -4),
        ("module, number 1", 2), ("TABLE['left']", 0.1), ("TABLE[2]", 0.3), ("RATE", 2), ("RATE (2)", 0.7),
        ("Policy.LIMIT", 3), ("__init__(bias)", 0.25), ("__init__(scale)", 10), ("self.kp", 1.5), ("self.k[0]", 1),
        ("self.k[1]", 2), ("act.threshold", 0.2), ("act, number 1", 2), ("act, number 2", 0), ("act, number 3", 7),
        ("act, number 4", 1),
    ]  # fmt: skip


def test_names_are_unique_and_booleans_are_no_numbers() -> None:
    source = "A = 1\nA = 2\nB = True\ndef f():\n    x = 3\ndef g():\n    x = 4\n"
    assert constants(source) == [("A", 1), ("A (2)", 2), ("f.x", 3), ("g.x", 4)]
