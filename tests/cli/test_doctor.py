"""``evotui doctor``, and what a run does where isolation is weak."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from evotui.cli.layers import Host, layers
from evotui.cli.main import run
from evotui.record import events as e
from evotui.record.log import read
from evotui.record.rundir import scan
from evotui.rollout.attacks import GROUPS
from evotui.rollout.engine import walls_to_try
from evotui.rollout.limits import ALL_WALLS, Isolation

linux = pytest.mark.skipif(sys.platform != "linux", reason="walls are Linux's")
SMALL = ["--budget", "2", "--validation", "1", "--heldout", "1", "--workers", "1", "--headless", "--quiet"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVOTUI_WALLS", raising=False)
    return tmp_path


def examined(capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    code = run(["doctor", "--json", *options])
    out, err = capfd.readouterr()
    assert err == ""
    return code, json.loads(out)


def held(document: dict[str, Any]) -> set[str]:
    return {layer["name"] for layer in document["isolation"]["layers"] if layer["held"]}


@linux
def test_the_document_holds_everything_and_the_code_follows_from_it(capfd: pytest.CaptureFixture[str]) -> None:
    code, found = examined(capfd)
    assert {
        "schema_version", "versions", "terminal", "isolation", "attacks", "drawing", "environments", "workers", "runs",
        "error", "ok",
    } == set(found)  # fmt: skip
    assert found["schema_version"] == 1 and found["error"] == "" and found["workers"]["n"] >= 1
    assert {"evotui", "python", "platform", "kernel", "textual", "gymnasium", "numpy"} <= set(found["versions"])
    assert [layer["name"] for layer in found["isolation"]["layers"]] == [
        "namespaces", "landlock", "seccomp", "unprivileged", "rlimits",
    ]  # fmt: skip
    assert all(layer["held"] or (layer["why"] and layer["how"]) for layer in found["isolation"]["layers"])
    assert len(found["attacks"]) >= 60 and {a["group"] for a in found["attacks"]} == set(GROUPS)
    safe = found["isolation"]["level"] in "AB"
    through = [a["name"] for a in found["attacks"] if a["got_through"]]
    assert not safe or through == []
    assert code == (0 if safe and not through else 1) and found["ok"] == (code == 0)
    assert found["drawing"]["sdl"] == ""
    assert {env["name"] for env in found["environments"]} >= {"cartpole", "taxi"}
    assert all(env["available"] or env["why_not"] for env in found["environments"])
    assert found["runs"]["writable"] and found["runs"]["free_bytes"] > 0


@linux
def test_without_walls_it_fails_and_names_what_got_through(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "")
    assert run(["doctor"]) == 1
    out, err = capfd.readouterr()
    assert err == "" and "isolation D" in out and "THROUGH" in out and "read the hidden cases" in out
    assert "EVOTUI_WALLS leaves it out" in out and "unset EVOTUI_WALLS" in out and "NOT OK" in out
    assert max(map(len, out.splitlines())) < 80 and "\x1b" not in out


def test_quick_attacks_nothing(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "seccomp")
    code, found = examined(capfd, "--quick", "--runs", "/proc/none")
    assert (code, found["attacks"], found["drawing"]) == (1, None, None)
    assert found["isolation"]["level"] == "D" and not found["runs"]["writable"]
    assert "landlock" not in held(found)
    assert run(["doctor", "--quick"]) == 1
    assert "none were tried" in capfd.readouterr().out


def test_a_wall_that_is_none_is_told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "landlock,moat")
    assert run(["doctor", "--quick"]) == 1
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "EVOTUI_WALLS takes landlock, namespaces, seccomp" in err


def test_walls_are_all_unless_some_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert walls_to_try() == ALL_WALLS
    monkeypatch.setenv("EVOTUI_WALLS", " landlock, seccomp ")
    assert walls_to_try() == {"landlock", "seccomp"}
    monkeypatch.setenv("EVOTUI_WALLS", "")
    assert walls_to_try() == frozenset()


PLAIN = Host("linux", "6.1.0-25-amd64", "x86_64", 1000, container=False)
WITHOUT = {
    "namespaces": Isolation("B", ("unprivileged", "landlock", "seccomp", "rlimits"), missing=("namespaces: refused",)),
    "landlock": Isolation("C", ("namespaces", "unprivileged", "seccomp", "rlimits"), missing=("landlock: refused",)),
    "unprivileged": Isolation("A", ("namespaces", "landlock", "seccomp", "rlimits"), missing=("unprivileged: hidden",)),
}


@pytest.mark.parametrize(
    ("off", "host", "how"),
    [
        ("namespaces", {"knobs": {"user/max_user_namespaces": "0"}}, "sysctl -w user.max_user_namespaces=15000"),
        ("namespaces", {"knobs": {"kernel/unprivileged_userns_clone": "0"}}, "kernel.unprivileged_userns_clone=1"),
        ("namespaces", {"knobs": {"kernel/apparmor_restrict_unprivileged_userns": "1"}}, "unprivileged_userns=0"),
        ("namespaces", {"container": True}, "--security-opt seccomp=unconfined"),
        ("namespaces", {"uid": 0, "knobs": {"kernel/unprivileged_userns_clone": "0"}}, "CAP_SYS_ADMIN"),
        ("namespaces", {}, "let ordinary users make user namespaces"),
        ("landlock", {"kernel": "5.10.0-30"}, "a kernel of 5.13 or newer (here: 5.10.0-30)"),
        ("landlock", {"modules": "lockdown,yama,apparmor"}, "lsm=landlock,lockdown,yama,apparmor"),
        ("landlock", {"modules": "landlock,yama"}, "CONFIG_SECURITY_LANDLOCK"),
        ("landlock", {"container": True}, "newer container runtime"),
        ("unprivileged", {"uid": 0}, "not below /root"),
        ("namespaces", {"system": "darwin"}, "run evotui on Linux"),
    ],
)
def test_each_layer_that_is_off_is_explained(off: str, host: dict[str, Any], how: str) -> None:
    values = {name: getattr(PLAIN, name) for name in PLAIN.__dataclass_fields__} | host
    rows = {row["name"]: row for row in layers(WITHOUT[off], ALL_WALLS, Host(**values))}
    assert not rows[off]["held"] and rows[off]["why"] and how in rows[off]["how"], rows[off]
    assert all(row["held"] and row["why"] == row["how"] == "" for name, row in rows.items() if name != off)


@pytest.mark.parametrize(("mapped", "how"), [(True, "that of a user namespace"), (False, "please report it")])
def test_a_wall_that_came_down_half_way_is_a_fault_but_for_a_mapped_root(mapped: bool, how: str) -> None:
    came_down = Isolation("B", ("landlock", "seccomp", "rlimits"), missing=("namespaces: it did not start: EPERM",))
    host = Host("linux", "6.1.0", "x86_64", 0, container=False, mapped=mapped)
    rows = {row["name"]: row for row in layers(came_down, ALL_WALLS, host)}
    assert how in rows["namespaces"]["how"]


def test_hidden_cases_are_not_run_where_policies_could_read_them(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "")
    assert run(["run", "cartpole", *SMALL]) == 1
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "--allow-weak-isolation" in err and "--pools paper" in err and "evotui doctor" in err
    assert not Path("runs").exists() or not list(scan(Path("runs")))


def test_a_weak_run_that_was_allowed_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "")
    assert run(["run", "cartpole", *SMALL, "--allow-weak-isolation"]) == 0
    facts = [record.event for record in read(next(scan(Path("runs"))) / "events.jsonl")]
    opened = facts[0]
    assert isinstance(opened, e.RunOpened) and (opened.isolation_level, opened.isolation_layers) == ("D", ("rlimits",))
    assert any(isinstance(fact, e.IncidentNoted) and "weak isolation" in fact.text for fact in facts)


def test_public_cases_need_no_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOTUI_WALLS", "")
    assert run(["run", "cartpole", *SMALL, "--pools", "paper"]) == 0
    facts = [record.event for record in read(next(scan(Path("runs"))) / "events.jsonl")]
    assert not any(isinstance(fact, e.IncidentNoted) for fact in facts)


@linux
def test_a_run_is_not_resumed_behind_weaker_walls(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["run", "cartpole", *SMALL]) == 0
    root = next(scan(Path("runs")))
    facts = read(root / "events.jsonl")
    opened = facts[0].event
    assert isinstance(opened, e.RunOpened)
    if opened.isolation_level == "D":
        pytest.skip("no walls here")
    log = (root / "events.jsonl").read_bytes().splitlines(keepends=True)
    cut = next(i for i, record in enumerate(facts) if isinstance(record.event, e.FinalizationStarted))
    (root / "events.jsonl").write_bytes(b"".join(log[:cut]))
    (root / "run.json").unlink()  # as a kill before finalization leaves it
    shutil.rmtree(root / "pools")
    monkeypatch.setenv("EVOTUI_WALLS", "")
    before = (root / "events.jsonl").read_bytes()
    resume = ["run", "--resume", str(root), "--headless", "--quiet"]
    capfd.readouterr()
    assert run(resume) == 1
    assert "--allow-weak-isolation" in capfd.readouterr().err and (root / "events.jsonl").read_bytes() == before
    assert run([*resume, "--allow-weak-isolation"]) == 0
    told = [r.event.text for r in read(root / "events.jsonl") if isinstance(r.event, e.IncidentNoted)]
    assert f"resumed at isolation D; the run began at {opened.isolation_level}" in told
    assert any("weak isolation was allowed" in text for text in told)
