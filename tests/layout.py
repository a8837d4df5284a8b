"""What others' scripts may count on in a finished run's folder, as tables, and a reader that holds a folder to them.

It shares no code with evotui: it reads JSON, hashes files and counts syntax nodes by itself, so that a run that passes
is one that a stranger's checker, written from the protocol alone, would pass as well.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_HASH = re.compile(r"sha256:[0-9a-f]{64}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
Rule = Callable[[Any], bool]


def _integer(x: Any) -> bool:
    return type(x) is int


def _number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x)


def _text(x: Any) -> bool:
    return type(x) is str


def _time(x: Any) -> bool:
    return _text(x) and _TIME.match(x) is not None


def _hash(x: Any) -> bool:
    return _text(x) and _HASH.match(x) is not None


def _table(x: Any) -> bool:
    return type(x) is dict


def _is(*values: Any) -> Rule:
    return lambda x: any(type(x) is type(v) and x == v for v in values)


def _list(rule: Rule) -> Rule:
    return lambda x: type(x) is list and all(map(rule, x))


def _map(rule: Rule) -> Rule:
    return lambda x: type(x) is dict and all(map(rule, x.values()))


def _or_null(rule: Rule) -> Rule:
    return lambda x: x is None or rule(x)


_NUMBERS, _INTEGERS = _list(_number), _list(_integer)

SUMMARY: dict[str, Rule] = {
    "schema_version": _is("0.1"), "submit_index": _integer, "env": _text,
    "status": _is("ok", "missing_policy", "denied_import", "import_error", "init_error", "oom", "rollout_timeout"),
    "n_episodes": _integer, "first_global_episode": _integer, "env_instances": _INTEGERS, "remaining_budget": _integer,
    "submit_started_at": _time, "submit_completed_at": _time, "wall_time_seconds": _number,
    "returns": _or_null(_NUMBERS), "mean_return": _or_null(_number), "std_return": _or_null(_number),
    "min_return": _or_null(_number), "max_return": _or_null(_number), "episode_lengths": _or_null(_INTEGERS),
    "mean_episode_length": _or_null(_number), "timeouts": _or_null(_INTEGERS), "errors": _or_null(_INTEGERS),
    "reward_components_mean": _or_null(_map(_number)), "reward_components_per_episode": _or_null(_map(_NUMBERS)),
}  # fmt: skip
ROLLED = (
    "returns", "min_return", "max_return", "episode_lengths", "mean_episode_length", "timeouts", "errors",
    "mean_return", "std_return", "reward_components_mean", "reward_components_per_episode",
)  # fmt: skip
"""Null unless episodes were rolled out."""

ERROR_LINE: dict[str, Rule] = {
    "schema_version": _is("0.1"), "timestamp": _time, "category": _text, "message": _text, "traceback": _or_null(_text),
}  # fmt: skip
STEP: dict[str, Rule] = {
    "t": _integer, "obs": lambda x: True, "action": lambda x: True, "reward": _number,
    "terminated": _is(True, False), "truncated": _is(True, False), "info": _table,
}  # fmt: skip
METRICS: dict[str, Rule] = {
    "schema_version": _is("0.1"), "files": _integer, "python_files": _integer, "bytes": _integer,
    "policy_bytes": _integer, "lines": _integer, "source_lines": _integer, "classes": _integer, "functions": _integer,
    "imports": _list(_text), "import_count": _integer, "cyclomatic_total": _integer, "cyclomatic_max": _integer,
    "parse_errors": _list(_text), "test_files": _integer, "tree_hash": _hash,
}  # fmt: skip
RECORD: dict[str, Rule] = {
    "schema_version": _is("0.1"), "protocol_version": _is("protocol/v2.0"), "model": _text, "env": _text,
    "exp_id": _text, "experiment_dimensions": _table, "timing": _table, "outcome": _table, "artifacts": _table,
    "versions": _table,
}  # fmt: skip
PARTS: dict[str, dict[str, Rule]] = {
    "experiment_dimensions": {
        "episode_budget": _integer, "min_episodes_per_submit": _integer, "max_episodes_per_submit": _integer,
        "seed_pool_id": _is("secret", "paper", "files"), "agent_harness": _text, "model_config": _table,
    },
    "timing": {"start_time": _time, "end_time": _time, "wall_time_seconds": _number},
    "outcome": {
        "status": _is("completed", "no_ok_submit", "error"), "error": _or_null(_text),
        "final_score": _or_null(_number), "best_submit_index": _or_null(_integer), "val_scores": _map(_number),
        "heldout_mean_return": _or_null(_number), "heldout_std_return": _or_null(_number),
        "heldout_returns": _or_null(_NUMBERS), "auxiliary": _table,
    },
    "artifacts": {
        "workspace": _is("workspace/"), "feedback": _is("workspace/feedback/"), "checkpoints": _is("checkpoints/"),
        "logs_harness": _is("logs/harness.log"), "logs_agent": _is("logs/agent.jsonl"),
        "logs_env": _is("logs/env.log"),
    },
    "versions": {
        "harness": _text, "env": _text, "agents_md_hash": _hash, "data_train_hash": _hash, "data_valid_hash": _hash,
        "data_heldout_hash": _hash,
    },
}  # fmt: skip
AUXILIARY: dict[str, Rule] = {
    "code_metrics_best": _or_null(_table), "code_metrics_by_submit": _map(_table), "code_metrics_trend": _table,
    "final_score_kind": _or_null(_is("normalized", "raw")), "auc_in_loop": _or_null(_number),
    "episodes_to_50pct": _or_null(_integer), "episodes_to_80pct": _or_null(_integer),
    "held_out_gap": _or_null(_number), "val_heldout_gap": _or_null(_number),
}  # fmt: skip
TREND = ("source_lines", "functions", "classes", "cyclomatic_total", "cyclomatic_max", "policy_bytes", "bytes")
HARNESS: dict[str, tuple[str, ...]] = {
    "run.open": ("budget", "env", "exp", "model", "protocol"),
    "submit.start": ("submit_index", "cases", "remaining_budget"),
    "submit.snapshot": ("submit_index", "cases", "checkpoint", "tree_hash", "source_lines", "cyclomatic_total"),
    "submit.feedback": ("submit_index", "status", "n_episodes", "cost", "mean_return", "path", "wall_time_seconds"),
    "submit.finish": ("submit_index", "status", "code", "cost", "remaining_budget", "snap", "steps"),
    "submit.reject": ("verdict", "message", "remaining_budget"),
    "run.auto_close.start": ("n_snaps", "budget_used"),
    "eval.record": ("kind", "snap", "mean_return", "value", "pool"),
    "workspace.mirror": ("submit_index", "checkpoint", "workspace"),
    "run.close": ("outcome", "state", "budget_used", "budget_left", "best_submit_index"),
    "run.auto_close.finish": ("status", "final_score", "best_submit_index", "n_validation"),
}
"""Events of ``logs/harness.log`` and what each of their lines has, ``timestamp`` apart."""

INFO: dict[str, Rule] = {
    "protocol_version": _is("protocol/v2.0"), "state": _table, "env_meta": _table, "episode_budget": _integer,
    "min_episodes_per_submit": _integer, "max_episodes_per_submit": _integer, "resource_limits": _map(_number),
    "allowed_imports": _list(_text), "denied_imports": _list(_text),
}  # fmt: skip
INFO_PARTS: dict[str, dict[str, Rule]] = {
    "state": {"remaining_budget": _integer, "n_submits": _integer, "is_finalized": _is(True, False)},
    "env_meta": {
        "env": _text, "env_version": _text, "n_env_instances": _integer, "max_episode_steps": _integer,
        "obs_space": _table, "action_space": _table, "obs_storage": _text, "reward_components": _list(_text),
    },
}  # fmt: skip
ENV_META = {
    "env", "env_version", "submit_index", "n_episodes_this_submit", "remaining_budget_after", "max_episode_steps",
    "n_env_instances", "obs_space", "action_space", "obs_storage", "reward_components", "allowed_imports",
}  # fmt: skip
"""Keys of what a policy is constructed with."""

_CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
_HOSTS = {"_meta.json", "metrics.json"}


def deviations(run: Path) -> list[str]:
    """What in a finished run's folder is not as the tables say; one sentence each, none for a run that is."""
    found: list[str] = []
    try:
        found.extend(_run(run))
    except (OSError, LookupError, TypeError, ValueError) as error:
        found.append(f"the rest cannot be read: {error!r}")
    return found


def answers(info: Any) -> list[str]:
    """What in a run's ``/info`` is not as the tables say."""
    found = list(_fields("/info", info, INFO))
    for name, rules in INFO_PARTS.items():
        found += _fields(f"/info {name}", info.get(name), rules)
    return found


def _fields(where: str, document: Any, rules: dict[str, Rule]) -> Iterator[str]:
    if type(document) is not dict:
        yield f"{where} is no JSON object"
        return
    for name, rule in rules.items():
        if name not in document:
            yield f"{where}: {name} is missing"
        elif not rule(document[name]):
            yield f"{where}: {name} is {document[name]!r}"[:200]


def _same(where: str, found: Any, expected: Any) -> Iterator[str]:
    close = _number(found) and _number(expected) and math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    if not close and found != expected:
        yield f"{where} is {found!r}, not {expected!r}"[:300]


def _json(path: Path) -> Any:
    def strict(token: str) -> Any:
        raise ValueError(f"{path} holds a bare {token}")

    return json.loads(path.read_text("utf-8"), parse_constant=strict)


def _lines(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    assert text == "" or text.endswith("\n"), f"{path} ends inside a line"
    return [json.loads(line) for line in text.splitlines()]


def _sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _run(run: Path) -> Iterator[str]:
    record = _json(run / "run.json")
    yield from _fields("run.json", record, RECORD)
    for name, rules in PARTS.items():
        yield from _fields(f"run.json {name}", record[name], rules)
    outcome, versions = record["outcome"], record["versions"]
    yield from _same("the folder", run.parts[-2 - record["env"].count("/") - 1 :],
                     (record["model"], *record["env"].split("/"), record["exp_id"]))  # fmt: skip
    for name, path in record["artifacts"].items():
        if not (run / path).exists():
            yield f"run.json artifacts: {name} names {path}, which is not there"
    yield from _same("agents_md_hash", versions["agents_md_hash"], _sha((run / "workspace/AGENTS.md").read_bytes()))
    for split in ("train", "valid", "heldout"):
        yield from _same(f"data_{split}_hash", versions[f"data_{split}_hash"],
                         _sha((run / f"pools/{split}.json").read_bytes()))  # fmt: skip
        pool = _json(run / f"pools/{split}.json")
        yield from _fields(f"pools/{split}.json", pool,
                           {"env": _is(record["env"]), "split": _is(split), "cases": _list(_table)})  # fmt: skip
        if not all(_integer(case.get("seed")) for case in pool["cases"]):
            yield f"pools/{split}.json: a case has no integer seed"
    budget = record["experiment_dimensions"]["episode_budget"]
    width = max(3, len(str(budget)))
    names = sorted(p.name for p in (run / "workspace/feedback").iterdir() if p.is_dir())
    yield from _same("the submissions", names, [f"submit_{i:0{width}d}" for i in range(len(names))])
    summaries, used = [], 0
    for index, name in enumerate(names):
        summary = _json(run / "workspace/feedback" / name / "summary.json")
        yield from _submission(run, name, index, used, budget, width, summary)
        used += summary["n_episodes"]
        summaries.append(summary)
    figures = {}
    for name in sorted(p.name for p in (run / "checkpoints").iterdir()):
        figures[int(name.removeprefix("submit_"))] = metrics = _json(run / "checkpoints" / name / "metrics.json")
        yield from _fields(f"{name}/metrics.json", metrics, METRICS)
        for key, value in code_figures(run / "checkpoints" / name).items():
            yield from _same(f"{name}/metrics.json {key}", metrics[key], value)
        if not (run / "checkpoints" / name / "_meta.json").is_file():
            yield f"checkpoints/{name}: _meta.json is missing"
    yield from _outcome(run, outcome, summaries, figures, budget, width)
    yield from _logs(run, record, summaries)


def _submission(
    run: Path, name: str, index: int, used: int, budget: int, width: int, summary: dict[str, Any]
) -> Iterator[str]:
    folder = run / "workspace/feedback" / name
    yield from _fields(f"{name}/summary.json", summary, SUMMARY)
    status, n = summary["status"], summary["n_episodes"]
    yield from _same(f"{name} submit_index", summary["submit_index"], index)
    yield from _same(f"{name} first_global_episode", summary["first_global_episode"], used)
    yield from _same(f"{name} remaining_budget", summary["remaining_budget"], budget - used - n)
    yield from _same(f"{name} env_instances", len(summary["env_instances"]), n)
    if (folder / "errors.txt").exists() == (status == "ok"):
        yield f"{name}: errors.txt is there or not, against the status {status}"
    if status != "ok":
        for line in _lines(folder / "errors.txt"):
            yield from _fields(f"{name}/errors.txt", line, ERROR_LINE)
    if status not in ("ok", "oom", "rollout_timeout"):
        for key in ROLLED:
            yield from _same(f"{name} {key}", summary[key], None)
        return
    returns, lengths, faults = [], [], []
    for position in range(len(summary["returns"])):
        episode = folder / "episodes" / f"ep_{used + position:0{width}d}"
        rows = _lines(episode / "trajectory.jsonl")
        yield from _episode(episode, rows)
        returns.append(math.fsum(row["reward"] for row in rows))
        lengths.append(len(rows))
        if (episode / "error.txt").exists():
            faults.append(position)
    if extra := sorted(p.name for p in (folder / "episodes").iterdir())[len(returns) :]:
        yield f"{name}: {extra} are no episodes of it"
    yield from _same(f"{name} episode_lengths", summary["episode_lengths"], lengths)
    yield from _same(f"{name} mean_episode_length", summary["mean_episode_length"], statistics.fmean(lengths))
    yield from _same(f"{name} errors and timeouts", sorted(summary["errors"] + summary["timeouts"]), faults)
    for said, measured in zip(summary["returns"], returns, strict=True):
        if not math.isclose(said, measured, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{name}: a return is {said}, its rewards sum to {measured}"
    told = summary["returns"]
    yield from _same(f"{name} extremes", [summary["min_return"], summary["max_return"]], [min(told), max(told)])
    if status == "ok":
        yield from _same(f"{name} mean_return", summary["mean_return"], statistics.fmean(told))
        yield from _same(f"{name} std_return", summary["std_return"], statistics.pstdev(told))
    parts = summary["reward_components_per_episode"]
    if parts is not None and status == "ok":
        yield from _same(f"{name} reward_components_mean", set(summary["reward_components_mean"]), set(parts))
        for key, values in parts.items():
            yield from _same(f"{name} {key}", len(values), len(told))
            yield from _same(f"{name} mean {key}", summary["reward_components_mean"][key], statistics.fmean(values))


def _episode(folder: Path, rows: list[Any]) -> Iterator[str]:
    for t, row in enumerate(rows):
        yield from _fields(f"{folder.name}/trajectory.jsonl", row, STEP | {"t": _is(t)})
    if any(row["terminated"] or row["truncated"] for row in rows[:-1]):
        yield f"{folder.name}: steps follow the end"
    for name in ("stdout.txt", "stderr.txt"):
        if not (folder / name).is_file():
            yield f"{folder.name}: {name} is missing"
    outside = [p for p in (folder / "observations.npy", folder / "observations.npz") if p.exists()]
    if any((row["obs"] is None) != bool(outside) for row in rows):
        yield f"{folder.name}: observations are in the trajectory or in a file, not in neither or both"
    for path in outside:
        stored = np.load(path, allow_pickle=False)
        array = stored["observations"] if path.suffix == ".npz" else stored
        yield from _same(f"{folder.name} rows of {path.name}", len(array), len(rows))


def _counted(folder: Path) -> dict[str, bytes]:
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    kept = {
        name: path
        for name, path in files.items()
        if path.name not in _HOSTS | {".keep"} and not _CACHES & set(path.relative_to(folder).parts)
    }
    return {name: kept[name].read_bytes() for name in sorted(kept)}


def code_figures(folder: Path) -> dict[str, Any]:
    """The figures of ``metrics.json``, counted anew from a checkpoint's files."""
    files = _counted(folder)
    python = {name: data.decode() for name, data in files.items() if name.endswith(".py")}
    digest = hashlib.sha256()
    for name, data in files.items():
        for part in (name.encode(), b"\0", data, b"\0"):
            digest.update(part)
    trees, wrong = [], []
    for name, text in python.items():
        try:
            trees.append((text, ast.parse(text)))
        except SyntaxError:
            wrong.append(name)
    rows = [line.strip() for text in python.values() for line in text.splitlines()]
    nodes = [node for _, tree in trees for node in ast.walk(tree)]
    numbers, imports = [], set()
    for text, tree in trees:
        found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        numbers += [_cyclomatic(node) for node in found] or ([_cyclomatic(tree)] if text.strip() else [])
    for node in nodes:
        if isinstance(node, ast.Import):
            imports |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.add(str(node.module).split(".")[0])
    return {
        "files": len(files), "python_files": len(python), "bytes": sum(map(len, files.values())),
        "policy_bytes": len(files.get("policy.py", b"")), "lines": len(rows),
        "source_lines": len([row for row in rows if row and not row.startswith("#")]),
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "functions": sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in nodes),
        "imports": sorted(imports), "import_count": len(imports), "cyclomatic_total": sum(numbers),
        "cyclomatic_max": max(numbers, default=0), "parse_errors": wrong,
        "test_files": sum(name.split("/")[-1].startswith("test_") for name in python),
        "tree_hash": "sha256:" + digest.hexdigest(),
    }  # fmt: skip


def _cyclomatic(unit: ast.AST) -> int:
    def weight(node: ast.AST) -> int:
        match node:
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.IfExp() | ast.ExceptHandler():
                return 1
            case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers):
                return len(handlers)
            case ast.BoolOp(values=values):
                return len(values) - 1
            case ast.comprehension(ifs=ifs):
                return len(ifs)
            case ast.Match(cases=cases):
                return len(cases)
        return 0

    return 1 + sum(map(weight, ast.walk(unit)))


def _outcome(
    run: Path, outcome: dict[str, Any], summaries: list[Any], figures: dict[int, Any], budget: int, width: int
) -> Iterator[str]:
    extra = outcome["auxiliary"]
    yield from _fields("run.json auxiliary", extra, AUXILIARY)
    by_submit, trend = extra["code_metrics_by_submit"], extra["code_metrics_trend"]
    yield from _same("code_metrics_by_submit", by_submit, {str(i): m for i, m in figures.items()})
    yield from _same("code_metrics_trend submits", trend["submits"], sorted(figures))
    for key in TREND:
        yield from _same(f"code_metrics_trend {key}", trend.get(key), [figures[i][key] for i in sorted(figures)])
    ok = [i for i, summary in enumerate(summaries) if summary["status"] == "ok"]
    scores = {int(index): score for index, score in outcome["val_scores"].items()}
    yield from _same("the validated checkpoints", sorted(scores), ok)
    if not ok:
        yield from _same("status without an ok submission", outcome["status"], "no_ok_submit")
        yield from _same("final_score without an ok submission", outcome["final_score"], 0.0)
        return
    best = max(scores, key=lambda index: (scores[index], index))
    yield from _same("status", outcome["status"], "completed")
    yield from _same("best_submit_index", outcome["best_submit_index"], best)
    yield from _same("code_metrics_best", extra["code_metrics_best"], figures[best])
    returns = outcome["heldout_returns"]
    mean = statistics.fmean(returns)
    yield from _same("heldout_returns", len(returns), len(_json(run / "pools/heldout.json")["cases"]))
    yield from _same("heldout_mean_return", outcome["heldout_mean_return"], mean)
    yield from _same("heldout_std_return", outcome["heldout_std_return"], statistics.pstdev(returns))
    yield from _same("val_heldout_gap", extra["val_heldout_gap"], scores[best] - mean)
    means = [summaries[i]["mean_return"] for i in ok]
    yield from _same("held_out_gap", extra["held_out_gap"], max(means) - mean)
    anchors = json.loads((run / "events.jsonl").open().readline())["anchors"]
    if {"random", "reference"} <= set(anchors):
        low, high = anchors["random"], anchors["reference"]
        share = (mean - low) / (high - low)
        yield from _same("final_score", outcome["final_score"], min(max(share, 0), 1.2) * 100)
        yield from _same("final_score_kind", extra["final_score_kind"], "normalized")
        ends = [summaries[i]["first_global_episode"] + summaries[i]["n_episodes"] for i in ok]
        heights = [(m - low) / (high - low) for m in means]
        area = np.trapezoid([0, *heights], [0, *ends]) / budget * 100
        yield from _same("auc_in_loop", extra["auc_in_loop"], float(area))
        for percent in (50, 80):
            first = next((x for x, y in zip(ends, heights, strict=True) if y >= percent / 100), None)
            yield from _same(f"episodes_to_{percent}pct", extra[f"episodes_to_{percent}pct"], first)
    else:
        yield from _same("final_score", outcome["final_score"], mean)
        yield from _same("final_score_kind", extra["final_score_kind"], "raw")
    system = {p.relative_to(run / "workspace/system").as_posix(): p.read_bytes()
              for p in (run / "workspace/system").rglob("*") if p.is_file()}  # fmt: skip
    chosen = run / "checkpoints" / f"submit_{best:0{width}d}"
    snapshot = {p.relative_to(chosen).as_posix(): p.read_bytes() for p in chosen.rglob("*") if p.is_file()}
    expected = {name: data for name, data in snapshot.items() if name not in _HOSTS}
    if system != expected:
        yield f"workspace/system differs from {chosen.name}"


def _logs(run: Path, record: dict[str, Any], summaries: list[Any]) -> Iterator[str]:
    seen: dict[str, list[Any]] = {}
    for line in _lines(run / "logs/harness.log"):
        if not _time(line.get("timestamp")):
            yield f"harness.log: a line without a time: {line}"[:200]
        seen.setdefault(line["event"], []).append(line)
        for name in HARNESS.get(line["event"], ()):
            if name not in line:
                yield f"harness.log {line['event']}: {name} is missing"
    for event, n in {
        "run.open": 1, "run.close": 1, "run.auto_close.start": 1, "run.auto_close.finish": 1,
        "submit.start": len(summaries), "submit.feedback": len(summaries), "submit.finish": len(summaries),
        "eval.record": len(record["outcome"]["val_scores"]) + (record["outcome"]["heldout_returns"] is not None),
    }.items():  # fmt: skip
        yield from _same(f"harness.log lines of {event}", len(seen.get(event, [])), n)
    for summary, line in zip(summaries, seen.get("submit.finish", []), strict=True):
        verdicts = [step["verdict"] for step in line["steps"] if step["verdict"] is not None]
        yield from _same("steps of submit.finish", verdicts, [] if summary["status"] == "ok" else [summary["status"]])
    _lines(run / "logs/agent.jsonl")
    _lines(run / "logs/env.log")
