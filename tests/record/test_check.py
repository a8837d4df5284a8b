# ruff: noqa: E501  a table of damages reads best with one damage a line
"""The check: a golden run holds, at every moment of its making; each damage is named, and only it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evotui.record.check import check, examine
from evotui.record.log import NewerSchema
from evotui.record.rundir import NotFound, RunDir
from tests.golden_run import N_HELDOUT, rewrite_json, rewrite_log, write

Line = dict[str, Any]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return write(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def golden_images(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return write(tmp_path_factory.mktemp("golden_images"), images=True)


def copy(run: RunDir, target: Path) -> RunDir:
    shutil.copytree(run.root, target / run.root.name, symlinks=True)
    return RunDir(target / run.root.name, run.width)


def test_the_golden_run_holds(golden: RunDir, golden_images: RunDir) -> None:
    findings = examine(golden.root)
    assert findings.breaches == () and findings.notes == ()
    assert findings.state is not None and findings.state.selected == 4 and findings.state.ended is not None
    assert check(golden_images.root) == []


def test_every_moment_of_a_run_holds(tmp_path: Path) -> None:
    """Killed after any single write or fact, and inside the write of any fact."""
    moments = torn = 0

    def after(run: RunDir) -> None:
        nonlocal moments, torn
        if not run.events.exists():
            return
        moments += 1
        assert check(run.root) == [], f"after action {moments}"
        whole = run.events.read_bytes()
        last = whole.rstrip(b"\n").rfind(b"\n") + 1
        if moments % 3 == 0:  # inside the write of the newest fact; its files are there
            run.events.write_bytes(whole[: last + (len(whole) - last) // 2])
            if last:
                findings = examine(run.root)
                assert findings.breaches == () and findings.notes, f"torn after action {moments}"
                torn += 1
            run.events.write_bytes(whole)

    write(tmp_path, after)
    assert moments > 150 and torn > 50


def test_a_log_cut_anywhere_is_never_damaged_by_files_that_are_ahead(golden: RunDir, tmp_path: Path) -> None:
    """All files kept, the log cut at each fact: what is there too early is named as that, never as damage."""
    run = copy(golden, tmp_path)
    lines = golden.events.read_bytes().splitlines(keepends=True)
    for n in range(len(lines) + 1):
        run.events.write_bytes(b"".join(lines[:n]) + b'{"seq":')
        codes = {b.code for b in check(run.root)}
        assert codes <= {"orphan", "pools-early", "run-json-early", "run-json"}, f"cut after {n} facts"
        if n >= len(lines) - 1:
            assert codes == set()


def test_leftovers_of_killed_writes_are_no_damage(golden: RunDir, tmp_path: Path) -> None:
    run = copy(golden, tmp_path)
    for folder in (run.root, run.feedback, run.checkpoints, run.blobs, run.feedback_of(0), run.episodes_of(0)):
        (folder / ".x.json.0a1b2c3d.tmp").write_bytes(b"{")
    assert check(run.root) == []


# ── one damage at a time ─────────────────────────────────────────────────────────────────────────────────────────


def lines_of(kind: str, change: Callable[[Line], None], nth: int = 0) -> Callable[[RunDir], None]:
    def mutate(run: RunDir) -> None:
        rewrite_log(run, lambda lines: change([line for line in lines if line["kind"] == kind][nth]))

    return mutate


def without(kind: str, nth: int = 0) -> Callable[[RunDir], None]:
    def change(lines: list[Line]) -> None:
        lines.remove([line for line in lines if line["kind"] == kind][nth])

    return lambda run: rewrite_log(run, change)


def summary(key: str, value: Any, index: int = 0) -> Callable[[RunDir], None]:
    return lambda run: rewrite_json(run.feedback_of(index) / "summary.json", lambda d: d.update({key: value}))


def outcome(key: str, value: Any) -> Callable[[RunDir], None]:
    return lambda run: rewrite_json(run.run_json, lambda d: d["outcome"].update({key: value}))


def append(path: Callable[[RunDir], Path], data: bytes) -> Callable[[RunDir], None]:
    def mutate(run: RunDir) -> None:
        path(run).parent.mkdir(parents=True, exist_ok=True)
        with path(run).open("ab") as file:
            file.write(data)

    return mutate


def remove(path: Callable[[RunDir], Path]) -> Callable[[RunDir], None]:
    def mutate(run: RunDir) -> None:
        target = path(run)
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    return mutate


def row(change: Callable[[list[Line]], None], episode: int = 0) -> Callable[[RunDir], None]:
    def mutate(run: RunDir) -> None:
        path = run.episode(0, episode) / "trajectory.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        change(rows)
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))

    return mutate


def reopen(run: RunDir) -> None:
    """As if the run had been stopped before its end, when nothing is revealed."""
    rewrite_log(
        run,
        lambda lines: lines.__delitem__(slice(next(i for i, x in enumerate(lines) if x["kind"] == "AgentEnded"), None)),
    )
    run.run_json.unlink()
    shutil.rmtree(run.pools)


def live(then: Callable[[RunDir], None]) -> Callable[[RunDir], None]:
    def mutate(run: RunDir) -> None:
        reopen(run)
        assert check(run.root) == []
        then(run)

    return mutate


SEED = str(2**127 - 1)

DAMAGE: dict[str, tuple[Callable[[RunDir], None], str, str]] = {
    # the log
    "garbage in the middle": (lambda r: r.events.write_bytes(r.events.read_bytes().replace(b'"kind":"AgentStarted"', b'"kin')), "log", "line 3"),
    "a missing fact": (lambda r: r.events.write_bytes(b"".join(r.events.read_bytes().splitlines(True)[:5] + r.events.read_bytes().splitlines(True)[6:])), "log", "line 6"),
    "an impossible fact": (without("SubmissionAccepted"), "fold", "PhaseEntered"),
    "a double charge": (lines_of("SubmissionAccepted", lambda x: x.update(first_episode=1)), "fold", "begins at episode 1"),
    "facts after the end": (lambda r: rewrite_log(r, lambda ls: ls.append({"time": 1.0, "kind": "IncidentNoted", "text": "x"})), "order", "IncidentNoted"),
    # files of a submission
    "no checkpoint": (remove(lambda r: r.checkpoint(1)), "checkpoint", "submit_001"),
    "a changed checkpoint": (append(lambda r: r.checkpoint(1) / "policy.py", b"#"), "tree-hash", "submit_001"),
    "a file too many in a checkpoint": (append(lambda r: r.checkpoint(0) / "data.bin", b"x"), "tree-hash", "submit_000"),
    "another metrics.json": (lambda r: rewrite_json(r.checkpoint(0) / "metrics.json", lambda d: d.update(lines=99)), "metrics", "submit_000"),
    "no metrics.json": (remove(lambda r: r.checkpoint(0) / "metrics.json"), "metrics", "missing"),
    "another _meta.json": (lambda r: rewrite_json(r.checkpoint(0) / "_meta.json", lambda d: d.update(submit_index=7)), "meta", "submit_index is 7"),
    "no summary": (remove(lambda r: r.feedback_of(1) / "summary.json"), "summary", "missing"),
    "a torn summary": (lambda r: (r.feedback_of(1) / "summary.json").write_text("{"), "summary", "JSON"),
    "a nicer return": (summary("returns", [1.4, 99.0]), "summary", "returns"),
    "another length": (summary("episode_lengths", [3, 3]), "summary", "episode_lengths"),
    "a mean that is off by a bit": (summary("mean_return", 1.5500000000000003), "summary", "mean_return"),
    "a nicer std": (summary("std_return", 0.0), "summary", "std_return"),
    "another verdict": (summary("status", "ok", 1), "summary", "status"),
    "a cheaper charge": (summary("n_episodes", 1), "summary", "n_episodes"),
    "a refund": (summary("remaining_budget", 7), "summary", "remaining_budget"),
    "a hidden error": (summary("errors", [], 2), "summary", "errors"),
    "a hidden timeout": (summary("timeouts", [], 3), "summary", "timeouts"),
    "aggregates of a failure": (summary("mean_return", 0.0, 3), "summary", "mean_return"),
    "other cases": (summary("env_instances", [0, 2]), "summary", "env_instances"),
    "errors.txt of an ok one": (append(lambda r: r.feedback_of(0) / "errors.txt", b"{}\n"), "errors-txt", "submit_000"),
    "no errors.txt": (remove(lambda r: r.feedback_of(1) / "errors.txt"), "errors-txt", "denied_import"),
    "a fact's mean": (lines_of("SubmissionFinished", lambda x: x.update(mean=9.0)), "statistics", "mean is 9.0"),
    "a submission too many": (append(lambda r: r.feedback_of(5) / "summary.json", b"{}"), "orphan", "submit_005"),
    "a checkpoint too many": (append(lambda r: r.checkpoint(5) / "policy.py", b""), "orphan", "submit_005"),
    # episodes
    "no episode": (remove(lambda r: r.episode(0, 1)), "episode", "ep_001"),
    "an episode too many": (append(lambda r: r.episode(0, 7) / "x", b""), "orphan", "ep_007"),
    "no stdout": (remove(lambda r: r.episode(0, 1) / "stdout.txt"), "output", "stdout.txt"),
    "error.txt without a fault": (append(lambda r: r.episode(0, 1) / "error.txt", b"x"), "error-txt", "did not fail"),
    "a fault without error.txt": (remove(lambda r: r.episode(2, 4) / "error.txt"), "error-txt", "act_error"),
    "no trajectory": (remove(lambda r: r.episode(0, 0) / "trajectory.jsonl"), "trajectory", "missing"),
    "a lost row": (row(lambda rows: rows.__delitem__(1)), "trajectory", "2 rows"),
    "rows out of order": (row(lambda rows: rows.reverse()), "trajectory", "t = 2"),
    "another reward": (row(lambda rows: rows[0].update(reward=2.0)), "trajectory", "sum to 2.4"),
    "another ending": (row(lambda rows: rows[-1].update(truncated=True)), "trajectory", "terminated, truncated"),
    "an invalid action too many": (row(lambda rows: rows[0]["info"].update(action_invalid=True)), "trajectory", "invalid"),
    "a torn trajectory": (append(lambda r: r.episode(0, 0) / "trajectory.jsonl", b'{"t": 3'), "trajectory", "torn"),
    "a row that is none": (append(lambda r: r.episode(0, 0) / "trajectory.jsonl", b"[]\n"), "trajectory", "damaged"),
    # blobs, rules, configuration
    "a changed blob": (lambda r: next(iter(sorted(r.blobs.iterdir()))).write_bytes(b"x" * 55), "blob", "hash"),
    "no blob": (lambda r: next(iter(sorted(r.blobs.iterdir()))).unlink(), "blob", "missing"),
    "other rules": (append(lambda r: r.agents_md, b"Cheat.\n"), "agents-md", "run.json says"),
    "no run.toml": (remove(lambda r: r.run_toml), "run-toml", "missing"),
    "a bad run.toml": (append(lambda r: r.run_toml, b"= ="), "run-toml", "TOML"),
    # pools
    "another revealed pool": (append(lambda r: r.pools / "valid.json", b" "), "pools", "valid.json"),
    "a missing revealed pool": (remove(lambda r: r.pools / "heldout.json"), "pools", "heldout.json"),
    "another pool of the host": (append(lambda r: r.host_pools / "train.json", b" "), "pools", "train.json"),
    # after the agent
    "a nicer validation score": (lines_of("CheckpointValidated", lambda x: x.update(mean=99.0), 2), "validation", "mean is 99.0"),
    "files said to be the same": (lines_of("CheckpointValidated", lambda x: x.update(same_as=0), 1), "validation", "same_as"),
    "a repetition of what comes later": (lines_of("CheckpointValidated", lambda x: x.update(same_as=4), 1), "validation", "repeats 4"),
    "another selection": (lambda r: (lines_of("CheckpointSelected", lambda x: x.update(submission=2))(r)), "fold", "selected"),
    "a missing validation case": (without("HiddenEpisodeFinished"), "validation", "cases"),
    "a failed checkpoint to validate": (lines_of("FinalizationStarted", lambda x: x.update(checkpoints=[0, 2, 4, 1])), "fold", "not ok"),
    "a nicer held-out score": (lines_of("HeldoutScored", lambda x: x.update(std=0.0)), "heldout", "std is 0.0"),
    "another final score": (lines_of("HeldoutScored", lambda x: x.update(final_score=120.0)), "final-score", "120"),
    "a changed workspace": (append(lambda r: r.system / "policy.py", b"#"), "mirror", "workspace/system/policy.py"),
    "a file too many in the workspace": (append(lambda r: r.system / "notes.md", b"x"), "mirror", "notes.md"),
    # run.json
    "no run.json": (remove(lambda r: r.run_json), "run-json", "missing"),
    "another best": (outcome("best_submit_index", 0), "run-json", "best_submit_index"),
    "another status": (outcome("status", "error"), "run-json", "outcome.status"),
    "another score": (outcome("final_score", 100.0), "run-json", "final_score"),
    "another validation score": (outcome("val_scores", {"0": 1.0}), "run-json", "val_scores"),
    "other held-out returns": (outcome("heldout_returns", [1.0] * N_HELDOUT), "run-json", "heldout_returns"),
    "another held-out mean": (outcome("heldout_mean_return", 8.0), "run-json", "heldout_mean_return"),
    # before its time
    "pools revealed early": (live(lambda r: shutil.copytree(r.host_pools, r.pools)), "pools-early", "train.json"),
    "run.json early": (live(lambda r: r.run_json.write_text("{}")), "run-json-early", "run.json"),
    "an open host folder": (live(lambda r: r.host.chmod(0o755)), "host", "0755"),
    "no host folder": (live(lambda r: shutil.rmtree(r.host)), "host", ".host"),
    "a lost pool": (live(lambda r: (r.host_pools / "heldout.json").unlink()), "pools", "heldout.json"),
}  # fmt: skip

MORE_ALLOWED = {
    # one damage that is two breaches by its nature
    "a nicer validation score": {"validation", "selection", "run-json"},
    "a nicer held-out score": {"heldout", "run-json"},
    "another final score": {"final-score", "run-json"},
    "a fact's mean": {"statistics", "summary"},
    "no host folder": {"host", "pools"},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_named_and_only_it(golden: RunDir, tmp_path: Path, name: str) -> None:
    mutate, code, words = DAMAGE[name]
    run = copy(golden, tmp_path)
    mutate(run)
    breaches = check(run.root)
    codes = {b.code for b in breaches}
    assert code in codes and codes <= MORE_ALLOWED.get(name, {code}), breaches
    assert any(words in f"{b.where} {b.sentence}" for b in breaches if b.code == code), breaches


def test_extremes_of_a_partial_result_may_be_kept(golden: RunDir, tmp_path: Path) -> None:
    run = copy(golden, tmp_path)
    for key in ("min_return", "max_return", "mean_episode_length"):
        summary(key, 0.0, 3)(run)
    assert check(run.root) == []
    summary("max_return", 1.0, 3)(run)
    assert [b.code for b in check(run.root)] == ["summary"]


@pytest.mark.parametrize(
    ("mutate", "words"),
    [
        (lambda p: p.unlink(), "missing"),
        (lambda p: p.write_bytes(b"PK"), "cannot be read"),
        (lambda p: shutil.copy(p.parents[1] / "ep_001" / p.name, p), "2 rows"),
    ],
)
def test_observations(golden_images: RunDir, tmp_path: Path, mutate: Callable[[Path], Any], words: str) -> None:
    run = copy(golden_images, tmp_path)
    mutate(run.episode(0, 0) / "observations.npz")
    (breach,) = check(run.root)
    assert breach.code == "observations" and words in breach.sentence


def test_ties_go_to_the_latest(golden: RunDir, tmp_path: Path) -> None:
    run = copy(golden, tmp_path)

    def tie(lines: list[Line]) -> None:
        twins = [x for x in lines if x.get("split") == "validation" and x["submission"] in (2, 4)]
        for a, b in zip(twins[:3], twins[3:], strict=True):
            a["return_"], a["position"] = b["return_"], b["position"]
        two, four = (x for x in lines if x["kind"] == "CheckpointValidated" and x["submission"] in (2, 4))
        two.update(mean=four["mean"], std=four["std"])

    rewrite_log(run, tie)
    rewrite_json(run.run_json, lambda d: d["outcome"]["val_scores"].update({"2": d["outcome"]["val_scores"]["4"]}))
    assert check(run.root) == []
    rewrite_log(run, lambda lines: [x.update(submission=2) for x in lines if x["kind"] in ("CheckpointSelected", "HeldoutScored", "WorkspaceMirrored") or x.get("split") == "heldout"])  # fmt: skip
    assert "selection" in {b.code for b in check(run.root)}


def seed_of(run: RunDir, split: str, place: int = 0) -> str:
    return str(json.loads((run.host_pools / split).read_text())["cases"][place]["seed"])


@pytest.mark.parametrize("split", ["train.json", "valid.json", "heldout.json"])
@pytest.mark.parametrize(
    "path",
    ["workspace/system/notes.txt", "workspace/feedback/submit_000/episodes/ep_000/stdout.txt", "logs/agent.jsonl"],
)
def test_a_seed_where_the_agent_looks_is_a_breach(golden: RunDir, tmp_path: Path, split: str, path: str) -> None:
    run = copy(golden, tmp_path)
    reopen(run)
    append(lambda r: r.root / path, f"seed={seed_of(run, split)};".encode())(run)
    (breach,) = check(run.root)
    assert (breach.code, breach.where) == ("seed-leak", path)


def test_other_long_numbers_are_no_seeds(golden: RunDir, tmp_path: Path) -> None:
    run = copy(golden, tmp_path)
    reopen(run)
    text = f"{SEED} 1{seed_of(run, 'train.json')} {seed_of(run, 'train.json')}.5"
    append(lambda r: r.root / "workspace/system/notes.txt", text.encode())(run)
    assert check(run.root) == []


@pytest.mark.parametrize("path", ["workspace/feedback/notes.txt", "logs/agent.jsonl", "workspace/AGENTS.md"])
def test_a_hidden_figure_where_the_agent_looks_is_a_breach(golden: RunDir, tmp_path: Path, path: str) -> None:
    run = copy(golden, tmp_path)
    append(lambda r: r.root / path, b"you reached 6.90000000000001 there")(run)
    assert ("figure-leak", path) in {(b.code, b.where) for b in check(run.root)}


# ── what is no run ───────────────────────────────────────────────────────────────────────────────────────────────


def test_no_run_and_a_newer_one(golden: RunDir, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        check(tmp_path)
    run = copy(golden, tmp_path)
    lines_of("RunOpened", lambda x: x.update(schema_version=99))(run)
    with pytest.raises(NewerSchema, match="99"):
        check(run.root)


def test_an_empty_log_is_an_unfinished_run(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"")
    findings = examine(tmp_path)
    assert findings.breaches == () and findings.notes == ("the run was not opened yet",)


def test_a_run_that_is_written_meanwhile_is_looked_at_again(
    golden: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is read, then the run ends while its files are checked: no false alarm."""
    run = copy(golden, tmp_path)
    whole = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join(whole[:40]))
    import evotui.record.check as module

    first = module._examine
    looks = []

    def examine_then_grow(root: Path) -> Any:
        findings = first(root)
        looks.append(len(findings.breaches))
        run.events.write_bytes(b"".join(whole))
        return findings

    monkeypatch.setattr(module, "_examine", examine_then_grow)
    assert check(run.root) == []
    assert len(looks) == 2 and looks[0] > 0 and looks[1] == 0
