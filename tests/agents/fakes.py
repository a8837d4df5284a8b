"""A door without a kernel: rolls policies out in this process and writes the feedback files of the protocol."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evotui.agents.base import DoorClosed, Workspace
from evotui.protocol.budget import Budget, Rejected, parse_cases
from evotui.protocol.spaces import Schema, repair_action, to_jsonable
from evotui.protocol.verdict import Verdict
from evotui.record.events import Event


class SpaceWorld:
    """Random observations of any space; pays for small actions. Ends after ``length`` steps."""

    def __init__(self, obs_space: Schema, action_space: Schema, length: int = 12) -> None:
        self.obs_space, self.action_space, self.length = obs_space, action_space, length

    def reset(self, seed: int) -> Any:
        self._rng, self._t = random.Random(seed), 0
        return self.observe(self.obs_space)

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        self._t += 1
        size = (
            float(np.abs(np.asarray(action, dtype=float)).sum())
            if isinstance(action, (int, float, np.ndarray))
            else 0.0
        )
        return self.observe(self.obs_space), 1.0 - 0.1 * size, False, self._t >= self.length

    def observe(self, space: Schema) -> Any:
        """A random member of ``space``, with a NaN at step 3 where floats are allowed."""
        rng, kind = self._rng, space["type"]
        if kind in ("Box", "Image"):
            numbers = np.array([rng.gauss(0.0, 1.0) for _ in range(int(np.prod(space["shape"])))])
            values = numbers.reshape(space["shape"])
            if "int" in space["dtype"]:
                return np.abs(values * 3).astype(space["dtype"])
            if self._t == 3 and values.size:
                values.flat[0] = np.nan
            return values.astype(space["dtype"])
        if kind == "Discrete":
            return space.get("start", 0) + rng.randrange(space["n"])
        if kind == "MultiDiscrete":
            return np.array([rng.randrange(n) for n in space["nvec"]])
        if kind == "MultiBinary":
            return np.array([rng.randrange(2) for _ in range(space["shape"][0])], dtype=np.int8)
        if kind == "Tuple":
            return tuple(self.observe(part) for part in space["spaces"])
        if kind == "Dict":
            return {key: self.observe(part) for key, part in space["spaces"].items()}
        return "some words"


class FakeDoor:
    """Takes submissions as a run would, without isolation. ``meddle(submission, cases)`` may name a verdict."""

    def __init__(
        self,
        root: Path,
        world: Callable[[], Any],
        budget: Budget,
        meta: dict[str, Any] | None = None,
        meddle: Callable[[int, Sequence[int]], str | None] | None = None,
        task: str = "",
    ) -> None:
        self.root, self.world, self.budget, self.text = root, world, budget, task
        self.meddle = meddle
        self.closed_after: int | None = None
        self.codes: list[str] = []
        self.requests: list[list[int]] = []
        self.episode = 0
        sample = world()
        self.spaces = (sample.obs_space, sample.action_space)
        self.meta = {
            "env": "some/name", "env_version": "v", "n_env_instances": 1024, "max_episode_steps": 500,
            "obs_space": sample.obs_space, "action_space": sample.action_space, "obs_storage": "jsonl", **(meta or {}),
        }  # fmt: skip

    async def task(self) -> str:
        return self.text

    async def info(self) -> dict[str, Any]:
        return {
            "protocol_version": "2.0",
            "state": {"remaining_budget": self.budget.remaining, "n_submits": len(self.codes), "is_finalized": False},
            "env_meta": self.meta,
            "episode_budget": self.budget.total,
            "min_episodes_per_submit": self.budget.min_submit,
            "max_episodes_per_submit": self.budget.max_submit,
        }

    async def submit(self, cases: str | Sequence[int]) -> dict[str, Any]:
        if self.closed_after is not None and len(self.codes) >= self.closed_after:
            raise DoorClosed("finalized")
        ids = parse_cases(cases if isinstance(cases, str) else list(cases), self.meta["n_env_instances"])
        self.budget.check(ids)
        index = len(self.codes)
        verdict = self.meddle(index, ids) if self.meddle is not None else None
        if verdict == "reject":
            self.meddle = None
            raise Rejected(Verdict.BUDGET_INVALID, "not now")
        self.budget = self.budget.charge(len(ids))
        code = (self.root / "system" / "policy.py").read_text("utf-8")
        self.codes.append(code)
        self.requests.append(list(ids))
        name = f"submit_{index:03d}"
        summary: dict[str, Any] = {
            "submit_index": index, "status": verdict or "ok", "n_episodes": len(ids), "env_instances": list(ids),
            "remaining_budget": self.budget.remaining, "returns": None, "episode_lengths": None, "errors": None,
        }  # fmt: skip
        if verdict is None:
            returns, lengths = [], []
            for case in ids:
                total, length = self._episode(code, case, self.root / "feedback" / name / "episodes")
                returns.append(total)
                lengths.append(length)
            summary |= {"returns": returns, "episode_lengths": lengths, "errors": []}
        folder = self.root / "feedback" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "summary.json").write_text(json.dumps(summary))
        return {"submit_id": name, "status": summary["status"], "summary": summary}

    def _episode(self, code: str, case: int, folder: Path) -> tuple[float, int]:
        policy = load(code)(*self.spaces, dict(self.meta))
        random.seed(case)
        np.random.seed(case)
        world = self.world()
        obs, total = world.reset(case + 17), 0.0
        rows: list[str] = []
        policy.reset(0)
        over = False
        while not over:
            raw = policy.act(obs)
            action, invalid = repair_action(raw, self.spaces[1])
            assert not invalid, f"{raw!r} is no action of {self.spaces[1]}"
            after, reward, terminated, truncated = world.step(action)
            row = {"t": len(rows), "obs": to_jsonable(obs), "action": to_jsonable(raw), "reward": float(reward)}
            rows.append(json.dumps({**row, "terminated": terminated, "truncated": truncated, "info": {}}))
            obs, total, over = after, total + float(reward), terminated or truncated
        path = folder / f"ep_{self.episode:03d}"
        path.mkdir(parents=True)
        (path / "trajectory.jsonl").write_text("\n".join(rows) + "\n")
        self.episode += 1
        return total, len(rows)


def load(code: str) -> Any:
    """The class Policy of a source text."""
    names: dict[str, Any] = {"__name__": "policy"}
    exec(compile(code, "policy.py", "exec"), names)
    return names["Policy"]


class Transcript(list[Event]):
    """Collects what an agent tells."""

    async def __call__(self, fact: Event) -> None:
        self.append(fact)


def workspace(root: Path, tell: Transcript) -> Workspace:
    """An empty workspace under ``root``."""
    for name in ("system", "feedback", "blobs"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return Workspace(root, root / "blobs", tell)
