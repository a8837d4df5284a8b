"""Golden runs: whole run folders made of real facts at fixed times, for every stage that a screen must show.

``build(runs, stage)`` writes ``events.jsonl``, blobs, checkpoints, feedback and (where the run ended) ``run.json``, and
returns the run's folder. Nothing here is random: the same call makes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from pathlib import Path

from evotui.protocol.results import stats
from evotui.protocol.verdict import Fault, FaultKind, Phase, Verdict
from evotui.record import events as e
from evotui.record.fold import fold_all
from evotui.record.log import encode, read
from evotui.record.rundir import RunDir, create
from evotui.record.state import RunState

START = 1_790_000_000.0
"""When every golden run began, in seconds since the epoch."""

_HEAD = '''"""CartPole policy system."""

import math


class Policy:
    def __init__(self, obs_space, action_space, env_meta):
        self.n_actions = action_space["n"]

    def reset(self, episode_index):
        self.t = 0

'''

STARTER = (
    _HEAD
    + """    def act(self, obs):
        self.t += 1
        return self.t % self.n_actions
"""
)

THRESHOLD = (
    _HEAD
    + """    def act(self, obs):
        x, x_dot, theta, theta_dot = obs
        return 1 if theta > 0.0 else 0
"""
)

_LINEAR = (
    _HEAD.replace(
        "class Policy:",
        """# gains on (position, velocity, angle, angular velocity)
K_X = {kx}
K_V = {kv}
K_THETA = {kt}
K_OMEGA = {kw}


class Policy:""",
    )
    + """    def act(self, obs):
        x, x_dot, theta, theta_dot = (float(v) for v in obs)
        push = K_X * x + K_V * x_dot + K_THETA * theta + K_OMEGA * theta_dot
        return 1 if push > 0.0 else 0
"""
)


def linear(kx: float, kv: float, kt: float, kw: float) -> str:
    return _LINEAR.format(kx=kx, kv=kv, kt=kt, kw=kw)


BROKEN = linear(0.12, 0.35, 1.8, 0.9).replace("import math", "import mathx")

SMOOTHED = (
    linear(0.18, 0.42, 2.1, 1.05)
    .replace(
        "        self.t = 0\n",
        "        self.t = 0\n        self.drift = 0.0\n",
    )
    .replace(
        "        push = K_X * x",
        "        # a slow integral of the position keeps the cart from wandering off the track\n"
        "        self.drift += DRIFT_GAIN * x\n"
        "        self.drift = max(-DRIFT_LIMIT, min(DRIFT_LIMIT, self.drift))\n"
        "        push = self.drift + K_X * x",
    )
    .replace("K_OMEGA = 1.05\n", "K_OMEGA = 1.05\nDRIFT_GAIN = 0.004\nDRIFT_LIMIT = 0.25\n")
)

CARTPOLE_OBS = {
    "type": "Box",
    "shape": [4],
    "dtype": "float32",
    "low": [-4.8, -math.inf, -0.418, -math.inf],
    "high": [4.8, math.inf, 0.418, math.inf],
}


def opening(run: RunDir, budget: int) -> e.RunOpened:
    return e.RunOpened(
        schema_version=e.SCHEMA_VERSION,
        run=run.root.name,
        env="gym/cartpole",
        env_name="cartpole",
        env_version="CartPole-v1",
        agent="search",
        model="search",
        agent_seed=0,
        profile="default",
        pools="secret",
        pool_hashes={},
        n_train=1024,
        n_validation=16,
        n_heldout=32,
        budget=budget,
        min_submit=1,
        max_submit=128,
        policy_lifetime="episode",
        max_episode_steps=500,
        obs_space={**CARTPOLE_OBS, "low": [-4.8, "-Inf", -0.418, "-Inf"], "high": [4.8, "Inf", 0.418, "Inf"]},
        action_space={"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"},
        observation_fields=("cart position", "cart velocity", "pole angle", "pole angular velocity"),
        action_names=("push left", "push right"),
        success_rule="return >= 475",
        anchors={"random": 22.1, "reference": 500.0},
        isolation_level="A",
        isolation_layers=("user namespace", "seccomp", "landlock"),
        versions={"evotui": "0.1.0", "gymnasium": "1.4.0"},
    )


class Teller:
    """Appends facts to a run's log with a clock of its own, and writes the files that the facts name first."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.now = START
        self.seq = 0
        self.files: dict[str, str] = {}
        self.submissions = 0
        self.consumed = 0
        self._log = run.events.open("ab")

    def tell(self, *events: e.Event, dt: float = 0.05) -> None:
        for event in events:
            self._log.write(encode(e.Record(self.seq, round(self.now, 3), event)))
            self.seq += 1
            self.now += dt
        self._log.flush()

    def edit(self, text: str, path: str = "policy.py", by: str = "agent", dt: float = 0.6) -> None:
        before = self.files.get(path, "")
        self.files[path] = text
        (self.run.system / path).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.run.blob(digest).write_text(text)
        old, new = before.splitlines(), text.splitlines()
        added, removed = len([x for x in new if x not in old]), len([x for x in old if x not in new])
        self.tell(e.FileEdited(path, digest, len(text.encode()), added, removed, by), dt=dt)

    def accept(self, cases: tuple[int, ...], by: str = "agent") -> int:
        index = self.submissions
        self.tell(e.SubmissionAccepted(index, cases, self.consumed, by))
        self.submissions += 1
        self.consumed += len(cases)
        return index

    def load(self, index: int, until: Phase = Phase.EXECUTE) -> None:
        checkpoint = self.run.checkpoint(index)
        checkpoint.mkdir(parents=True)
        for path, text in self.files.items():
            (checkpoint / path).write_text(text)
        digest = hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()
        for phase in (Phase.SNAPSHOT, Phase.VALIDATE, Phase.COMPILE, Phase.INITIALIZE, Phase.EXECUTE):
            self.tell(e.PhaseEntered(index, phase), dt=0.02)
            if phase is Phase.SNAPSHOT:
                self.tell(e.SnapshotTaken(index, f"sha256:{digest}", {"source_lines": 30}), dt=0.01)
            if phase is until:
                return

    def roll(
        self, index: int, cases: tuple[int, ...], returns: list[float], stop: int | None = None,
        faults: dict[int, Fault] | None = None,
    ) -> None:  # fmt: skip
        """Episodes in order; ``stop`` leaves the ones from there on started and unfinished (two of them)."""
        first = self.consumed - len(cases)
        stop = len(cases) if stop is None else stop
        for p, case in enumerate(cases):
            if p >= stop + 2:
                break
            self.tell(e.EpisodeStarted(index, p, first + p, case), dt=0.02)
            if p >= stop:
                continue
            folder = self.run.episode(index, first + p)
            folder.mkdir(parents=True, exist_ok=True)
            length = int(abs(returns[p])) or 1
            fault = (faults or {}).get(p)
            done = {"terminated": returns[p] < 500 and fault is None, "truncated": returns[p] >= 500}
            self.tell(
                e.EpisodeFinished(
                    index, p, first + p, case, returns[p], length, **done, success=returns[p] >= 475,
                    fault=fault, wall_seconds=length / 9000, cpu_seconds=length / 20000,
                ),
                dt=0.12,
            )  # fmt: skip

    def finish(self, index: int, returns: list[float], verdict: Verdict = Verdict.OK, phase: Phase = Phase.COMMIT,
               message: str = "") -> None:  # fmt: skip
        s = stats(returns)
        ok = verdict is Verdict.OK and s is not None
        self.tell(e.SubmissionFinished(index, verdict, phase, message, s.mean if ok else None, s.std if ok else None))

    def close(self) -> None:
        self._log.close()


def returns_for(seed: int, n: int, centre: float, spread: float) -> list[float]:
    rng = random.Random(seed)
    return [float(round(min(500.0, max(8.0, rng.gauss(centre, spread))))) for _ in range(n)]


_THOUGHTS = [
    "Pole falls toward its lean: push the same way. A threshold on the angle is the simplest controller that reacts.",
    "The threshold oscillates and drifts off the track. Combine all four signals linearly; the physics give the signs.",
    "Linear form survives longer. Move the gains with CMA-ES around the best point, sigma 0.3.",
    "Angular velocity deserves more weight: late episodes end in growing oscillation.",
    "Try the larger gains with a helper from the standard library.",
    "That module does not exist. Back to the last working gains and confirm them on fresh cases.",
    "Same policy, other cases: is the mean real or were the cases easy?",
    "Add a slow integral of the position: the remaining failures all leave the track on the right.",
]

_PLAN: list[tuple[str, tuple[int, ...], float, float]] = [
    (THRESHOLD, (0, 1, 2, 3), 44, 9),
    (linear(0.05, 0.1, 1.0, 0.4), (0, 1, 2, 3), 138, 40),
    (linear(0.08, 0.22, 1.4, 0.7), (0, 1, 2, 3, 4, 5), 260, 80),
    (linear(0.12, 0.35, 1.8, 0.9), (0, 1, 2, 3, 4, 5, 6, 7), 388, 90),
    (BROKEN, (0, 1, 2, 3), 0, 0),
    (linear(0.08, 0.22, 1.4, 0.7), (4, 5, 6, 7, 8, 9), 240, 70),
    (linear(0.12, 0.35, 1.8, 0.9), (8, 9, 10, 11, 12, 13, 14, 15), 402, 84),
    (SMOOTHED, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), 492, 14),
]


def _evolve(t: Teller, upto: int) -> None:
    """Submissions 0 … upto − 1 of the plan, whole."""
    for i, (text, cases, centre, spread) in enumerate(_PLAN[:upto]):
        t.tell(e.AgentThought(_THOUGHTS[i]), dt=0.8)
        t.tell(e.ToolCalled(f"c{i}", "edit", {"path": "policy.py"}), dt=0.2)
        t.edit(text)
        t.tell(e.ToolReturned(f"c{i}", True, "written"), dt=0.2)
        index = t.accept(cases)
        if text is BROKEN:
            t.load(index, Phase.COMPILE)
            t.finish(index, [], Verdict.IMPORT_ERROR, Phase.COMPILE, "ModuleNotFoundError: No module named 'mathx'")
        else:
            returns = returns_for(i, len(cases), centre, spread)
            t.load(index)
            t.roll(index, cases, returns)
            t.tell(e.PhaseEntered(index, Phase.COMMIT), dt=0.02)
            t.finish(index, returns)
        t.tell(e.AgentMessage(f"submission {index}: {'failed to import' if text is BROKEN else 'scored'}"), dt=0.5)


def _open(t: Teller, budget: int = 64) -> None:
    t.tell(opening(t.run, budget))
    t.run.agents_md.write_text("# Task\n\nBalance the pole.\n")
    t.edit(STARTER, by="start", dt=0.1)
    t.tell(e.AgentStarted("search", "search"), dt=0.4)


def _opening(t: Teller) -> None:
    _open(t)


def _editing(t: Teller) -> None:
    _open(t)
    t.tell(e.AgentThought(_THOUGHTS[0]))
    t.edit(THRESHOLD)


def _rolling(t: Teller) -> None:
    """Four submissions done, the fifth of eight cases under way: three finished, two running."""
    _open(t)
    _evolve(t, 3)
    text, cases, centre, spread = _PLAN[3]
    t.tell(e.AgentThought(_THOUGHTS[3]), dt=0.8)
    t.edit(text)
    index = t.accept(cases)
    t.load(index)
    t.roll(index, cases, returns_for(3, len(cases), centre, spread), stop=3)


def _between(t: Teller) -> None:
    _open(t)
    _evolve(t, 4)
    t.tell(e.AgentThought(_THOUGHTS[7]), dt=0.8)
    t.edit(SMOOTHED)


def _paused(t: Teller) -> None:
    _between(t)
    t.tell(e.GateMoved("pause"), e.GateHeld("submission 4"))


def _human(t: Teller) -> None:
    """A person edited and submitted."""
    _open(t)
    _evolve(t, 4)
    t.tell(e.GateMoved("pause"), e.Intervened("edit", "policy.py"))
    t.edit(SMOOTHED, by="human")
    t.tell(e.Intervened("submit", "0-7"))
    cases = tuple(range(8))
    index = t.accept(cases, by="human")
    returns = returns_for(70, 8, 470, 30)
    t.load(index)
    t.roll(index, cases, returns, faults={2: Fault(FaultKind.ACT_ERROR, 211, "ZeroDivisionError: [bold]float[/bold]")})
    t.finish(index, returns)


def _failed(t: Teller) -> None:
    _open(t)
    _evolve(t, 5)


def _hidden(t: Teller, indexes: list[int], stop: int | None = None) -> dict[int, float]:
    """Validation of checkpoints; ``stop`` leaves the last one with that many episodes."""
    means: dict[int, float] = {}
    for i in indexes:
        _, _, centre, spread = _PLAN[i]
        returns = returns_for(100 + i, 16, centre - 6, spread)
        last = stop if stop is not None and i == indexes[-1] else 16
        for p in range(last):
            t.tell(e.HiddenEpisodeFinished("validation", i, p, returns[p], int(returns[p])), dt=0.05)
        if last == 16:
            s = stats(returns)
            assert s is not None
            means[i] = s.mean
            t.tell(e.CheckpointValidated(i, s.mean, s.std, s.n))
    return means


LINEAR_TEXTS = tuple(text for text, *_ in _PLAN[1:4])

_OK = [0, 1, 2, 3, 5, 6, 7]


def _validating(t: Teller) -> None:
    _open(t)
    _evolve(t, 8)
    t.tell(e.AgentMessage("The budget is spent."), e.AgentEnded("done", "The budget is spent."))
    t.tell(e.FinalizationStarted(tuple(_OK), "agent_ended"))
    _hidden(t, _OK[:4], stop=9)


def _finished(t: Teller) -> None:
    _open(t)
    _evolve(t, 8)
    t.tell(e.AgentMessage("The budget is spent."), e.AgentEnded("done", "The budget is spent."))
    t.tell(e.FinalizationStarted(tuple(_OK), "agent_ended"))
    means = _hidden(t, _OK)
    best = max(means, key=lambda i: (means[i], i))
    t.tell(e.CheckpointSelected(best, means[best]))
    returns = returns_for(300, 32, 489, 15)
    for p, value in enumerate(returns):
        t.tell(e.HiddenEpisodeFinished("heldout", best, p, value, int(value)), dt=0.04)
    s = stats(returns)
    assert s is not None
    score = min(max((s.mean - 22.1) / (500.0 - 22.1), 0.0), 1.2) * 100
    t.tell(e.HeldoutScored(best, s.mean, s.std, s.n, score, "normalized"))
    t.tell(e.WorkspaceMirrored(best), e.PoolsRevealed("secret"), e.RunEnded("completed"))
    run_json = {
        "schema_version": "0.1", "protocol_version": "2.0", "model": "search", "env": "gym/cartpole",
        "exp_id": t.run.root.name, "experiment_dimensions": {"episode_budget": 64, "agent_harness": "search"},
        "timing": {"start_time": "2026-09-21T14:13:20.000Z", "end_time": "2026-09-21T14:14:02.000Z",
                   "wall_time_seconds": 42.0},
        "outcome": {"status": "completed", "error": None, "final_score": score, "best_submit_index": best,
                    "val_scores": {str(i): m for i, m in means.items()}, "heldout_mean_return": s.mean,
                    "heldout_std_return": s.std, "heldout_returns": returns, "auxiliary": {}},
    }  # fmt: skip
    t.run.run_json.write_text(json.dumps(run_json, indent=2))


def _broken_all(t: Teller) -> None:
    """No submission ever scored; the run ends with nothing to select."""
    _open(t, budget=8)
    for i in range(2):
        t.edit(BROKEN + f"# {i}\n")
        index = t.accept(tuple(range(4)))
        t.load(index, Phase.COMPILE)
        t.finish(index, [], Verdict.IMPORT_ERROR, Phase.COMPILE, "ModuleNotFoundError: No module named 'mathx'")
    t.tell(e.AgentEnded("done"), e.RunEnded("no_ok_submit"))


def _error(t: Teller) -> None:
    _open(t)
    _evolve(t, 2)
    t.tell(e.IncidentNoted("the worker died and was started anew"), e.AgentEnded("failed", "connection refused"))
    t.tell(e.RunEnded("error", "the agent failed: connection refused"))


STAGES: dict[str, Callable[[Teller], None]] = {
    "opening": _opening,
    "editing": _editing,
    "rolling": _rolling,
    "between": _between,
    "paused": _paused,
    "human": _human,
    "failed": _failed,
    "validating": _validating,
    "finished": _finished,
    "no_ok": _broken_all,
    "error": _error,
}


def build(runs: Path, stage: str, name: str = "b3f2a1") -> RunDir:
    """Write the golden run of ``stage`` below ``runs``."""
    run = create(runs, "search", "gym/cartpole", 64, name)
    teller = Teller(run)
    STAGES[stage](teller)
    teller.close()
    return run


def state_of(run: RunDir) -> RunState:
    return fold_all(read(run.events))
