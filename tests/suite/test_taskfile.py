"""Task files: what is wrong is said with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from evotui.suite.errors import BadTaskFile
from evotui.suite.taskfile import line_of, read_task

GOOD = """\
slug = "gym/thing"
gym_id = "Thing-v0"
title = "Thing"
family = "custom"
packages = ["thing_env"]
max_episode_steps = 50
success = "reward > 0"
observation_fields = ["a", "b"]

[anchors.random]
mean = -3
se = 0.5
n = 256

[anchors.reference]
mean = 9.5
se = 0.1
n = 32
source = "measured"
"""


def write(folder: Path, toml: str, text: str = "# Thing\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "task.toml").write_text(toml, "utf-8")
    (folder / "task.md").write_text(text, "utf-8")
    return folder


def test_a_good_file(tmp_path: Path) -> None:
    task = read_task(write(tmp_path / "thing", GOOD))
    assert (task.name, task.slug, task.gym_id, task.text) == ("thing", "gym/thing", "Thing-v0", "# Thing\n")
    assert task.packages == ("thing_env",)
    assert task.observation_fields == ("a", "b")
    assert task.action_names == ()
    assert (task.max_episode_steps, task.success, task.extra) == (50, "reward > 0", "")
    assert (task.anchors["random"].mean, task.anchors["random"].n) == (-3.0, 256)
    assert task.anchors["reference"].source == "measured"
    assert not task.generated
    assert task.folder == str(tmp_path / "thing")


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("toml", "line", "field", "says"),
    [
        (replaced("family =", "famly ="), 4, "famly", "unknown field: did you mean family?"),
        (replaced("title =", "xyzzyq ="), 3, "xyzzyq", "unknown field"),
        (replaced('title = "Thing"\n', ""), 1, "title", "missing field"),
        (replaced("max_episode_steps = 50", "max_episode_steps = 0"), 6, "max_episode_steps", "at least 1, not 0"),
        (replaced("max_episode_steps = 50", "max_episode_steps = true"), 6, "max_episode_steps", "not True"),
        (replaced("max_episode_steps = 50", 'max_episode_steps = "50"'), 6, "max_episode_steps", "not '50'"),
        (replaced('["thing_env"]', '"thing_env"'), 5, "packages", "a list of module names"),
        (replaced('["thing_env"]', '["thing-env"]'), 5, "packages", "a list of module names"),
        (replaced('["a", "b"]', '["a", 2]'), 8, "observation_fields", "a list of texts"),
        (replaced('"reward > 0"', '"won"'), 7, "success", "not 'won'"),
        (replaced('"gym/thing"', '"../../etc"'), 1, "slug", "a name such as"),
        (replaced('"gym/thing"', '"/abs"'), 1, "slug", "a name such as"),
        (replaced('"Thing-v0"', '""'), 2, "gym_id", "a Gymnasium id"),
        (replaced("mean = -3", "mean = nan"), 11, "anchors.random.mean", "a finite number"),
        (replaced("n = 32", "n = 0"), 18, "anchors.reference.n", "at least 1, not 0"),
        (replaced("n = 32\n", ""), 15, "anchors.reference.n", "missing field"),
        (replaced("se = 0.1", "sd = 0.1"), 17, "anchors.reference.sd", "unknown field"),
        (replaced("[anchors.random]", "[anchors.rndom]"), 10, "anchors.rndom", "unknown anchor"),
        (replaced("family =", "family"), 4, "", "not TOML"),
        (replaced('source = "measured"', 'source = "measured'), 19, "", "not TOML"),
        (GOOD + "[other]\nx = 1\n", 20, "other", "unknown field"),
    ],
)
def test_a_bad_file_is_told_by_line_and_field(tmp_path: Path, toml: str, line: int, field: str, says: str) -> None:
    folder = write(tmp_path / "thing", toml)
    with pytest.raises(BadTaskFile) as caught:
        read_task(folder)
    problem = caught.value
    assert (problem.line, problem.field) == (line, field)
    assert str(problem).startswith(f"{folder / 'task.toml'}, line {line}: ")
    assert says in str(problem)
    assert "\n" not in str(problem)


def test_missing_and_unreadable_texts(tmp_path: Path) -> None:
    folder = write(tmp_path / "thing", GOOD)
    (folder / "task.md").unlink()
    with pytest.raises(BadTaskFile, match=r"task\.md, line 1: cannot be read"):
        read_task(folder)
    (folder / "task.toml").write_bytes(b'slug = "a"\ntitle = "\xff"\n')
    with pytest.raises(BadTaskFile, match=r"task\.toml, line 2: not UTF-8 text"):
        read_task(folder)


def test_lines_of_inline_and_dotted_keys() -> None:
    text = 'a = 1\n[anchors]\nrandom = { mean = 1 }\n"reference".mean = 2\n'
    assert line_of(text, ("anchors", "random", "mean")) == 3
    assert line_of(text, ("anchors", "reference", "mean")) == 4
    assert line_of(text, ("anchors", "other")) == 2
    assert line_of(text, ("nothing",)) == 1
