"""The resolved configuration of a run: profiles, what each name means, and how it is written as ``run.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from evotui.protocol.pools import PoolKind
from evotui.rollout.limits import MOST_WORKERS, Limits


class ConfigError(ValueError):
    """A configuration that cannot be run; the message is one sentence for a person."""


class WeakIsolation(Exception):
    """Hidden cases would lie open to the policies: the message says what to do."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What a run is asked to be. Sizes are in episodes; ``pools_from`` is a folder of pool files for ``pools = files``.

    ``submit_max`` 0 means the whole budget. ``start`` names the policy of ``policies/<env>/`` that the agent starts
    from. ``allow_weak_isolation`` lets a run with hidden cases go on where nothing keeps policies from them.
    A branch starts from a checkpoint of the run in the folder ``branch_from``, that of submission ``branch_at``, on the
    same cases.
    """

    env: str
    agent: str = "search"
    model: str = ""
    seed: int = 0
    budget: int = 128
    submit_min: int = 1
    submit_max: int = 0
    validation: int = 16
    heldout: int = 32
    pools: str = PoolKind.SECRET
    pools_from: str = ""
    policy_lifetime: str = "episode"
    profile: str = "default"
    start: str = "starter"
    workers: int = 0
    allow_weak_isolation: bool = False
    branch_from: str = ""
    branch_at: int = -1
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        def need(truth: bool, sentence: str) -> None:
            if not truth:
                raise ConfigError(sentence)

        need(self.budget >= 1, f"the budget must be at least 1 episode, not {self.budget}")
        need(self.budget <= 1_000_000, f"a budget of {self.budget} episodes is beyond what a run can hold (1,000,000)")
        need(self.submit_min >= 1, f"a submission takes at least 1 episode, not {self.submit_min}")
        need(
            self.submit_min <= self.max_submit,
            f"submissions of {self.submit_min} to {self.max_submit} episodes cannot be",
        )
        need(self.submit_min <= self.budget, f"a budget of {self.budget} allows no submission of {self.submit_min}")
        need(1 <= self.validation <= 10_000, f"validation takes 1 to 10,000 cases, not {self.validation}")
        need(1 <= self.heldout <= 10_000, f"held-out takes 1 to 10,000 cases, not {self.heldout}")
        need(self.seed >= 0, f"the agent's seed is 0 or more, not {self.seed}")
        need(
            self.policy_lifetime in ("episode", "submission"),
            f"policy lifetime is episode or submission, not {self.policy_lifetime!r}",
        )
        need(
            0 <= self.workers <= MOST_WORKERS,
            f"the number of workers is 0 (one a core) to {MOST_WORKERS}, not {self.workers}",
        )

    @property
    def max_submit(self) -> int:
        return self.submit_max or self.budget

    def to_table(self) -> dict[str, Any]:
        """The configuration as TOML tables (no None, no tuples)."""
        table = {key: value for key, value in asdict(self).items() if key not in ("limits", "options")}
        table["pools"] = str(self.pools)
        table["limits"] = asdict(self.limits)
        table["agent_options"] = dict(self.options)
        return table


PROFILES: dict[str, dict[str, Any]] = {
    "core16-paper": {
        "budget": 128,
        "validation": 16,
        "heldout": 32,
        "pools": PoolKind.PAPER,
        "policy_lifetime": "submission",
    },
    "default": {"budget": 128, "validation": 16, "heldout": 32, "pools": PoolKind.SECRET, "policy_lifetime": "episode"},
    "full": {"budget": 128, "validation": 64, "heldout": 256, "pools": PoolKind.SECRET, "policy_lifetime": "episode"},
}
"""The paper's experiments, ours, and the published harness's sizes."""


def resolve(profile: str = "default", **wishes: Any) -> RunConfig:
    """A profile with wishes laid over it; a wish of None is none. Raises ConfigError."""
    if profile not in PROFILES:
        raise ConfigError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    values = PROFILES[profile] | {key: value for key, value in wishes.items() if value is not None}
    pools = str(values["pools"])
    if pools not in (PoolKind.SECRET, PoolKind.PAPER):
        if not pools or not Path(pools).is_dir():
            raise ConfigError(
                "--pools takes secret, paper, or a folder with train.json, valid.json and heldout.json; "
                f"{pools!r} is none of them"
            )
        values |= {"pools": PoolKind.FILES, "pools_from": str(Path(pools).resolve())}
    return RunConfig(profile=profile, **values)


def with_sizes(config: RunConfig, validation: int, heldout: int) -> RunConfig:
    """The configuration with the sizes that pool files turned out to have."""
    return replace(config, validation=validation, heldout=heldout)
