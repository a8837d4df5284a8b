"""Edit classes, sizes, changed lines, constants that moved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.analysis.edits import (
    ConstantChange,
    EditKind,
    EditSize,
    changed,
    constant_changes,
    edit_size,
    edits,
    load_bundles,
)
from evotui.analysis.source import Bundle, read_bundle
from evotui.protocol.budget import Budget
from evotui.protocol.verdict import Verdict
from evotui.record.fold import fold_all
from evotui.record.log import read
from evotui.record.state import RunState, Submission
from tests.golden_run import write

ONE = "K = {k}\nclass Policy:\n    def act(self, obs):\n        return int(K * obs[0] > 0)\n"
TWO = "class Policy:\n    def act(self, obs):\n        return int(obs[0] + obs[1] > {k})\n"


def bundle(text: str, **more: str) -> Bundle:
    return read_bundle({"policy.py": text.encode(), **{f"{n}.py": t.encode() for n, t in more.items()}})


def state_of(verdicts: Sequence[Verdict | None]) -> RunState:
    items = tuple(
        Submission(i, (0,), i, "agent", 0.0, tree_hash="x", verdict=v, mean=1.0 if v is Verdict.OK else None)
        for i, v in enumerate(verdicts)
    )
    return RunState(budget=Budget(64, len(items)), submissions=items)


def kinds(texts: Sequence[str], verdicts: Sequence[Verdict | None] | None = None) -> list[str]:
    state = state_of(verdicts or [Verdict.OK] * len(texts))
    return [str(edit.kind) for edit in edits(state, {i: bundle(text) for i, text in enumerate(texts)})]


def test_the_four_classes() -> None:
    one, one_b, two = ONE.format(k=1), ONE.format(k=2), TWO.format(k=0)
    assert kinds([one, one, one_b, two, one_b, TWO.format(k=3), one, one_b]) == [
        "first", "retest", "parametric", "synthesis", "rollback", "rollback", "rollback", "parametric",
    ]  # fmt: skip


def test_the_previous_topology_with_other_numbers_is_parametric_though_it_was_seen() -> None:
    assert kinds([ONE.format(k=1), TWO.format(k=1), TWO.format(k=2)])[2] == "parametric"


def test_comments_alone_are_parametric_not_a_retest() -> None:
    """The bundle changed, its topology did not."""
    assert kinds([ONE.format(k=1), "# why\n" + ONE.format(k=1)])[1] == "parametric"


def test_failed_submissions_are_events_and_leave_no_trace() -> None:
    failed, ok = Verdict.IMPORT_ERROR, Verdict.OK
    one, two = ONE.format(k=1), TWO.format(k=1)
    assert kinds([one, two, two], [ok, failed, ok]) == ["first", "failed", "synthesis"]
    assert kinds([two, one, one], [failed, ok, ok]) == ["failed", "first", "retest"]
    assert kinds([one, two, one], [ok, failed, ok])[2] == "retest"  # against the last scored one


def test_a_submission_on_its_way_is_provisional() -> None:
    state = state_of([Verdict.OK, None])
    found = edits(state, {0: bundle(ONE.format(k=1)), 1: bundle(ONE.format(k=2))})
    assert [(e.kind, e.provisional) for e in found] == [(EditKind.FIRST, False), (EditKind.PARAMETRIC, True)]
    assert len(edits(state, {0: bundle(ONE.format(k=1))})) == 1  # no snapshot yet: nothing to say


def test_against_what_it_is_compared() -> None:
    found = edits(state_of([Verdict.OK, Verdict.OOM, Verdict.OK]), {i: bundle(ONE.format(k=i)) for i in range(3)})
    assert [(e.submission, e.previous) for e in found] == [(0, None), (1, 0), (2, 0)]


def test_lines_and_share() -> None:
    before, after = bundle("a\nb\nc\nd\n"), bundle("a\nB\nc\nd\ne\n")
    assert changed(before, after) == (2, 1, 2 / 5)
    assert changed(before, before) == (0, 0, 0.0)
    assert changed(bundle(""), bundle("")) == (0, 0, 0.0)
    assert changed(before, bundle("")) == (0, 4, 1.0)
    two = bundle("import m\n", m="x = 1\ny = 2\n")
    assert changed(bundle("import m\n", m="x = 1\n"), two) == (1, 0, 1 / 3)
    assert changed(bundle("x = 1\n"), two) == (3, 1, 1.0)


def test_other_line_ends_are_a_change_that_no_line_shows() -> None:
    added, removed, share = changed(bundle("a\nb\n"), bundle("a\r\nb\r\n"))
    assert (added, removed) == (0, 0) and share > 0


@settings(derandomize=True, deadline=None)
@given(*[st.lists(st.sampled_from("abc"), max_size=12)] * 2)
def test_lines_balance(old: list[str], new: list[str]) -> None:
    before, after = bundle("\n".join(old)), bundle("\n".join(new))
    added, removed, share = changed(before, after)
    assert added - removed == len("\n".join(new).splitlines()) - len("\n".join(old).splitlines())
    assert 0 <= share <= 1 and (share == 0) == (before.identity == after.identity)
    assert 0 <= removed <= len(old) and 0 <= added <= len(new)


@pytest.mark.parametrize(
    ("share", "size"),
    [
        (0, "same"),
        (0.01, "small"),
        (0.05, "small"),
        (0.0501, "medium"),
        (0.2, "medium"),
        (0.21, "large"),
        (0.6, "large"),
        (0.61, "rewrite"),
        (1, "rewrite"),
    ],
)
def test_sizes(share: float, size: str) -> None:
    assert edit_size(share) == EditSize(size)


def test_constants_that_moved_one_to_one() -> None:
    before, after = bundle(ONE.format(k=0.5)), bundle(ONE.format(k=-0.75))
    assert constant_changes(before, after) == (ConstantChange("policy.py", "K", 0.5, -0.75, 1),)
    assert constant_changes(before, before) == ()
    assert constant_changes(before, after)[0].percent == -250.0


def test_unnamed_numbers_are_compared_by_place_where_the_topology_stayed() -> None:
    (change,) = constant_changes(bundle(TWO.format(k=0)), bundle(TWO.format(k=0.5)))
    assert (change.name, change.old, change.new, change.percent) == ("act, number 3", 0, 0.5, None)


def test_where_the_topology_changed_names_decide() -> None:
    before = bundle("A = 1\nB = 2\nC = 3\n")
    after = bundle("C = 3\nB = 4\nD = 5\nprint(99)\n")
    assert [(c.name, c.old, c.new) for c in constant_changes(before, after)] == [
        ("B", 2, 4),
        ("D", None, 5),
        ("A", 1, None),
    ]


def test_a_module_that_came_or_went() -> None:
    one, two = bundle("x = 1\n"), bundle("import m\nx = 1\n", m="G = 2\n")
    assert constant_changes(one, two) == (ConstantChange("m.py", "G", None, 2, 1),)
    assert constant_changes(two, one) == (ConstantChange("m.py", "G", 2, None, 1),)


def test_an_int_is_not_a_float_and_percent_never_fails() -> None:
    assert [c.percent for c in constant_changes(bundle("A = 1\n"), bundle("A = 1.0\n"))] == [0.0]
    assert constant_changes(bundle("A = 1\n"), bundle(f"A = 1{'0' * 400}\n"))[0].percent is None
    assert constant_changes(bundle("A = 1j\n"), bundle("A = 2j\n"))[0].percent is None


def test_from_a_run_on_disk(tmp_path: Path) -> None:
    run = write(tmp_path)
    state = fold_all(read(run.events))
    bundles = load_bundles(run, state)
    found = edits(state, bundles)
    assert [str(e.kind) for e in found] == ["first", "failed", "parametric", "failed", "synthesis"]
    assert [e.previous for e in found] == [None, 0, 0, 2, 2]
    assert set(bundles[4].modules) == {"policy.py", "control.py"}
    (change,) = constant_changes(bundles[0], bundles[2])
    assert (change.name, change.old, change.new) == ("LIMIT", 0.1, 0.15) and change.percent == pytest.approx(50)
    marked = {0: bundles[2]}
    assert load_bundles(run, state, marked)[0] is bundles[2]  # what is known is not read again
