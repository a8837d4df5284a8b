"""A complete protocol run written action by action: files first, then the fact, as the kernel does it.

``write(runs, after)`` calls ``after(run)`` following every single action (one file, or one fact), so that a test sees
each state that a killed process can leave behind. Returns have fractions, so that a hidden figure is recognisable.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evotui.protocol.codemetrics import metrics, trend
from evotui.protocol.pools import Pools, Split, secret_pools
from evotui.protocol.results import final_score, stats
from evotui.protocol.verdict import Fault, FaultKind, Phase, Verdict
from evotui.record import events as e
from evotui.record.log import encode
from evotui.record.rundir import RunDir, create, to_json, width_of

START = 1_790_000_000.0
N_VALIDATION, N_HELDOUT = 3, 4
ANCHORS = {"random": 2.0, "reference": 12.0}
STARTER = "class Policy:\n    def act(self, obs):\n        return 0\n"
THRESHOLD = "LIMIT = 0.1\n\n\nclass Policy:\n    def act(self, obs):\n        return int(obs[2] > LIMIT)\n"
MODULES = "from control import push\n\n\nclass Policy:\n    def act(self, obs):\n        return push(obs)\n"
CONTROL = "GAIN = 1.5\n\n\ndef push(obs):\n    return int(GAIN * obs[2] + obs[3] > 0)\n"
DENIED = "import gymnasium\n" + STARTER


class GoldenRun:
    """Writes a run and remembers what its records must say."""

    def __init__(self, run: RunDir, after: Callable[[RunDir], None], images: bool) -> None:
        self.run = run
        self.after = after
        self.images = images
        self.pools: Pools = secret_pools(bytes(range(32)), N_VALIDATION, N_HELDOUT)
        self.seq = 0
        self.used = 0
        self.budget = 8
        self.sources: dict[str, str] = {}
        self.metrics: dict[int, dict[str, Any]] = {}

    # ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def file(self, path: Path, data: bytes | str, mode: int = 0o644) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(mode)
        self.after(self.run)

    def fact(self, *events: e.Event) -> None:
        for event in events:
            with self.run.events.open("ab") as log:
                log.write(encode(e.Record(self.seq, START + self.seq * 0.25, event)))
            self.seq += 1
            self.after(self.run)

    def edit(self, path: str, text: str, by: str = "agent") -> None:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        self.file(self.run.system / path, data)
        self.file(self.run.blob(digest), data)
        self.sources[path] = text
        self.fact(e.FileEdited(path, digest, len(data), 3, 1, by))

    # ── the parts of a run ───────────────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        for split in Split:
            self.file(self.run.host_pools / split.file_name, self.pools.file_bytes(split, "gym/cartpole"), 0o600)
        self.file(self.run.run_toml, 'env = "cartpole"\nbudget = 8\n')
        box = {"type": "Box", "shape": [4], "dtype": "float32", "low": "-Inf", "high": "Inf"}
        image = {"type": "Image", "shape": [4, 6, 3], "dtype": "uint8", "low": 0, "high": 255}
        self.fact(
            e.RunOpened(
                schema_version=e.SCHEMA_VERSION, run=self.run.root.name, env="gym/cartpole", env_name="cartpole",
                env_version="CartPole-v1", agent="search", model="search", agent_seed=3, profile="default",
                pools="secret", pool_hashes=self.pools.hashes("gym/cartpole"), n_train=1024, n_validation=N_VALIDATION,
                n_heldout=N_HELDOUT, budget=self.budget, min_submit=1, max_submit=8, policy_lifetime="episode",
                max_episode_steps=500, obs_space=image if self.images else box,
                action_space={"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"},
                reward_components=("upright",), anchors=ANCHORS, limits={"act_seconds": 1.0}, versions={"evotui": "0"},
            )
        )  # fmt: skip
        self.file(self.run.agents_md, "# Rules\n\nBalance the pole.\n")
        self.edit("policy.py", STARTER, "start")
        self.fact(e.AgentStarted("search", "search"))

    def submit(
        self,
        cases: Sequence[int],
        episodes: Sequence[tuple[list[float], Fault | None]],
        verdict: Verdict = Verdict.OK,
        phase: Phase = Phase.COMMIT,
        order: Sequence[int] | None = None,
    ) -> None:
        """One submission: rewards and fault of each episode; ``order`` is the order in which they finish."""
        index = len(self.metrics)
        first, self.used = self.used, self.used + len(cases)
        self.fact(e.SubmissionAccepted(index, tuple(cases), first), e.PhaseEntered(index, Phase.SNAPSHOT))
        files = {path: text.encode() for path, text in self.sources.items()}
        figures = self.metrics[index] = metrics(files)
        folder = self.run.checkpoint(index)
        for path, data in files.items():
            self.file(folder / path, data)
        meta = {"submit_index": index, "env": "gym/cartpole", "env_instances": list(cases),
                "first_global_episode": first, "tree_hash": figures["tree_hash"]}  # fmt: skip
        self.file(folder / "_meta.json", to_json(meta))
        self.file(folder / "metrics.json", to_json(figures))
        self.fact(e.SnapshotTaken(index, figures["tree_hash"], figures), e.PhaseEntered(index, Phase.VALIDATE))
        if episodes:
            self.fact(*(e.PhaseEntered(index, p) for p in (Phase.COMPILE, Phase.INITIALIZE, Phase.EXECUTE)))
        finished = {}
        for place in order if order is not None else range(len(episodes)):
            rewards, fault = episodes[place]
            finished[place] = self.episode(index, place, first + place, cases[place], rewards, fault)
        self.commit(index, cases, first, [finished[p] for p in sorted(finished)], verdict, phase)

    def episode(
        self, index: int, place: int, episode: int, case: int, rewards: list[float], fault: Fault | None
    ) -> e.EpisodeFinished:
        self.fact(e.EpisodeStarted(index, place, episode, case))
        folder = self.run.episode(index, episode)
        ends = fault is None
        rows = [
            {
                "t": t, "obs": None if self.images else [0.1, 0.25, -0.1, 1e-3], "action": 1, "reward": reward,
                "terminated": ends and t == len(rewards) - 1, "truncated": False,
                "info": {"upright": 0.5, **({"action_invalid": True} if case == 2 and t == 0 else {})},
            }
            for t, reward in enumerate(rewards)
        ]  # fmt: skip
        text = "".join(json.dumps(row) + "\n" for row in rows)
        # a worker is killed inside a file, too: half a trajectory without its fact is no damage
        self.file(folder / "trajectory.jsonl", text[: len(text) // 2])
        self.file(folder / "trajectory.jsonl", text)
        self.file(folder / "stdout.txt", "reset\n")
        self.file(folder / "stderr.txt", "")
        if self.images:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, observations=np.zeros((len(rewards), 4, 6, 3), dtype=np.uint8))
            self.file(folder / "observations.npz", buffer.getvalue())
        if fault is not None:
            self.file(folder / "error.txt", f"{fault.kind}: {fault.message}\n")
        total = 0.0
        for reward in rewards:
            total += reward
        fact = e.EpisodeFinished(
            submission=index, position=place, episode=episode, case=case, return_=total, length=len(rewards),
            terminated=ends, truncated=False, success=ends, components={"upright": 0.5 * len(rewards)},
            invalid_actions=int(case == 2), fault=fault, wall_seconds=0.01, cpu_seconds=0.004,
        )  # fmt: skip
        self.fact(fact)
        return fact

    def commit(
        self,
        index: int,
        cases: Sequence[int],
        first: int,
        done: list[e.EpisodeFinished],
        verdict: Verdict,
        phase: Phase,
    ) -> None:
        returns, lengths = [ep.return_ for ep in done], [ep.length for ep in done]
        scored = stats(returns) if verdict is Verdict.OK else None
        sized = stats(lengths) if verdict is Verdict.OK else None
        rolled = bool(done)
        components = [ep.components["upright"] for ep in done]
        summary = {
            "schema_version": "0.1", "submit_index": index, "env": "gym/cartpole", "status": str(verdict),
            "n_episodes": len(cases), "first_global_episode": first, "env_instances": list(cases),
            "remaining_budget": self.budget - self.used, "submit_started_at": "2026-09-21T13:33:20.000Z",
            "submit_completed_at": "2026-09-21T13:33:21.000Z", "wall_time_seconds": 1.0,
            "returns": returns if rolled else None,
            "mean_return": scored.mean if scored else None, "std_return": scored.std if scored else None,
            "min_return": scored.low if scored else None, "max_return": scored.high if scored else None,
            "episode_lengths": lengths if rolled else None, "mean_episode_length": sized.mean if sized else None,
            "timeouts": [ep.position for ep in done if ep.fault and ep.fault.kind.is_timeout] if rolled else None,
            "errors": [ep.position for ep in done if ep.fault and not ep.fault.kind.is_timeout] if rolled else None,
            "reward_components_mean": {"upright": sum(components) / len(components)} if scored else None,
            "reward_components_per_episode": {"upright": components} if rolled else None,
        }  # fmt: skip
        message = "" if verdict is Verdict.OK else f"ended with {verdict}"
        if verdict is not Verdict.OK:
            line = {"schema_version": "0.1", "category": str(verdict), "message": message, "traceback": None}
            self.file(self.run.feedback_of(index) / "errors.txt", json.dumps(line) + "\n")
        self.file(self.run.feedback_of(index) / "summary.json", to_json(summary))
        mean, std = (scored.mean, scored.std) if scored else (None, None)
        self.fact(e.SubmissionFinished(index, verdict, phase, message, mean, std))

    def hidden(self, split: str, index: int, returns: list[float]) -> None:
        places = list(range(len(returns)))
        for place in places[1:] + places[:1]:  # they finish in any order
            self.fact(e.HiddenEpisodeFinished(split, index, place, returns[place], 5, success=True))

    def finalize(self, ok: Sequence[int], validation: Sequence[list[float]], heldout: list[float]) -> None:
        self.fact(e.AgentEnded("done", "The budget is spent."), e.FinalizationStarted(tuple(ok)))
        scores = {}
        for index, returns in zip(ok, validation, strict=True):
            self.hidden("validation", index, returns)
            s = stats(returns)
            assert s is not None
            scores[index] = s.mean
            self.fact(e.CheckpointValidated(index, s.mean, s.std, s.n))
        best = max(scores, key=lambda i: (scores[i], i))
        self.fact(e.CheckpointSelected(best, scores[best]))
        self.hidden("heldout", best, heldout)
        s = stats(heldout)
        assert s is not None
        score = final_score(s.mean, ANCHORS["random"], ANCHORS["reference"])
        self.fact(e.HeldoutScored(best, s.mean, s.std, s.n, score, "normalized"))
        for path in sorted(self.run.checkpoint(best).iterdir()):
            if path.name not in ("_meta.json", "metrics.json"):
                self.file(self.run.system / path.name, path.read_bytes())
        self.fact(e.WorkspaceMirrored(best))
        for split in Split:
            self.file(self.run.pools / split.file_name, self.pools.file_bytes(split, "gym/cartpole"))
        self.fact(e.PoolsRevealed("secret"))
        self.file(self.run.run_json, to_json(self.record(best, scores, s.mean, s.std, heldout, score)))
        self.fact(e.RunEnded("completed"))

    def record(
        self, best: int, scores: dict[int, float], mean: float, std: float, heldout: list[float], score: float
    ) -> dict[str, Any]:
        hashes = self.pools.hashes("gym/cartpole")
        rules = "sha256:" + hashlib.sha256(self.run.agents_md.read_bytes()).hexdigest()
        return {
            "schema_version": "0.1", "protocol_version": "protocol/v2.0", "model": "search", "env": "gym/cartpole",
            "exp_id": self.run.root.name,
            "experiment_dimensions": {
                "episode_budget": self.budget, "min_episodes_per_submit": 1, "max_episodes_per_submit": 8,
                "seed_pool_id": "secret", "agent_harness": "search",
            },
            "timing": {"start_time": "2026-09-21T13:33:20.000Z", "end_time": "2026-09-21T13:33:50.000Z",
                       "wall_time_seconds": 30.0},
            "outcome": {
                "status": "completed", "error": None, "final_score": score, "best_submit_index": best,
                "val_scores": {str(i): value for i, value in scores.items()}, "heldout_mean_return": mean,
                "heldout_std_return": std, "heldout_returns": heldout,
                "auxiliary": {
                    "code_metrics_best": self.metrics[best],
                    "code_metrics_by_submit": {str(i): m for i, m in self.metrics.items()},
                    "code_metrics_trend": trend(self.metrics),
                    "in_loop_means": {str(i): None for i in self.metrics}, "episodes_used": self.used,
                    "final_score_kind": "normalized",
                },
            },
            "artifacts": {"workspace": "workspace/"},
            "versions": {"harness": "evotui", "env": "CartPole-v1", "agents_md_hash": rules,
                         "data_train_hash": hashes["train"], "data_valid_hash": hashes["validation"],
                         "data_heldout_hash": hashes["heldout"]},
        }  # fmt: skip


def nothing(run: RunDir) -> None:
    """The default ``after``: the run is only wanted whole."""


def write(runs: Path, after: Callable[[RunDir], None] = nothing, images: bool = False, name: str = "g01d3n") -> RunDir:
    """The golden run: ok, denied, ok with a failing episode, timed out, ok with a module; all 8 episodes; completed."""
    run = create(runs, "search", "gym/cartpole", 8, name)
    golden = GoldenRun(run, after, images)
    golden.open()
    golden.fact(e.AgentThought("Push toward the lean."), e.ToolCalled("c1", "edit", {"path": "policy.py"}))
    golden.edit("policy.py", THRESHOLD)
    golden.fact(e.ToolReturned("c1", True, "written"))
    golden.fact(e.SubmissionRejected(Verdict.INVALID_ENV_INSTANCE, "case 5000 does not exist", "5000"))
    golden.submit((0, 1), [([1.0, 0.1, 0.3], None), ([1.0, 0.7], None)], order=(1, 0))
    golden.edit("policy.py", DENIED)
    golden.submit((0,), [], Verdict.DENIED_IMPORT, Phase.VALIDATE)
    golden.edit("policy.py", THRESHOLD.replace("0.1", "0.15"))
    boom = Fault(FaultKind.ACT_ERROR, 1, "ZeroDivisionError: division by zero", "Traceback …")
    golden.submit((2, 2), [([1.0, 0.9, 0.2, 0.4], None), ([1.0, 0.6], boom)])
    golden.edit("policy.py", THRESHOLD.replace("0.1", "0.2"))
    late = Fault(FaultKind.ACT_TIMEOUT, 0, "act took more than 1 s")
    golden.submit((3,), [([], late)], Verdict.ROLLOUT_TIMEOUT, Phase.EXECUTE)
    golden.edit("control.py", CONTROL)
    golden.edit("policy.py", MODULES)
    golden.submit((0, 1), [([1.0] * 5 + [0.3], None), ([1.0] * 6 + [0.1], None)])
    golden.edit("policy.py", STARTER)
    golden.fact(e.Intervened("edit", "policy.py"), e.GateMoved("pause"), e.GateMoved("run"))
    golden.finalize(
        (0, 2, 4),
        [[1.1, 2.30000000000007, 1.7], [3.3, 2.9, 2.2], [7.1, 6.6, 7.90000000000003]],
        [7.3, 6.1, 7.7, 6.90000000000001],
    )
    assert golden.used == golden.budget and width_of(golden.budget) == run.width
    return run


def rewrite_log(run: RunDir, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the log's lines as plain JSON objects; ``seq`` is numbered anew."""
    lines = [json.loads(line) for line in run.events.read_text().splitlines()]
    change(lines)
    for seq, line in enumerate(lines):
        line["seq"] = seq
    run.events.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def rewrite_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_bytes(to_json(document))
