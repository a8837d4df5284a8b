"""The state of a run, and the part of it that the agent may know. How facts lead to it is ``record.fold``'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evotui.protocol.budget import Budget
from evotui.protocol.pools import PoolKind
from evotui.protocol.results import Stats, stats
from evotui.protocol.verdict import Phase, Verdict
from evotui.record import events as e
from evotui.record.grown import Grown

NOTHING_YET = "the log holds no RunOpened yet"
"""What a FoldError says of a run whose log was never begun."""


class FoldError(ValueError):
    """A fact that contradicts the facts before it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One accepted submission and everything known of it. Times are seconds since the epoch.

    ``episodes`` are in the order they finished; bit p of ``finished_mask`` says that position p has finished.
    """

    index: int
    cases: tuple[int, ...]
    first_episode: int
    by: str
    accepted_at: float
    phase: Phase = Phase.SNAPSHOT
    phases: tuple[tuple[Phase, float], ...] = ()
    tree_hash: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    running: tuple[int, ...] = ()
    episodes: Grown[e.EpisodeFinished] = field(default_factory=Grown)
    finished_mask: int = 0
    verdict: Verdict | None = None
    message: str = ""
    mean: float | None = None
    std: float | None = None
    finished_at: float | None = None
    validation: tuple[e.HiddenEpisodeFinished, ...] = ()
    val_score: float | None = None
    val_std: float | None = None

    @property
    def cost(self) -> int:
        return len(self.cases)

    @property
    def ok(self) -> bool:
        return self.verdict is Verdict.OK

    @property
    def consumed_after(self) -> int:
        """Episodes consumed by the run once this submission was charged."""
        return self.first_episode + self.cost

    @property
    def in_order(self) -> tuple[e.EpisodeFinished, ...]:
        """Finished episodes by position (they finish in any order)."""
        return tuple(sorted(self.episodes, key=lambda ep: ep.position))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money so far; money only where a price was known."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Heldout:
    submission: int
    episodes: tuple[e.HiddenEpisodeFinished, ...] = ()
    score: e.HeldoutScored | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that a run's facts say. ``seq`` is the last fact's number, −1 before the first."""

    seq: int = -1
    opened: e.RunOpened | None = None
    started_at: float = 0.0
    last_at: float = 0.0
    budget: Budget = field(default_factory=lambda: Budget(1))
    submissions: tuple[Submission, ...] = ()
    rejected: tuple[e.Record, ...] = ()
    transcript: Grown[e.Record] = field(default_factory=Grown)
    files: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()
    agent: str = ""
    agent_name: str = ""
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    """Those of an agent that the run was handed over to; the first one's are in ``run.toml``."""
    agent_session: str = ""
    agent_model: str = ""
    agent_live: bool = False
    streaming: Mapping[str, Grown[str]] = field(default_factory=dict)
    """What the agent is saying right now, piece by piece: channel (text, thought, tool) → pieces."""
    messages: tuple[str, ...] = ()
    """What a person said that the agent has not been told yet."""
    approval: bool = False
    asked: str | None = None
    """The request that waits for a person's approval, if any."""
    agent_ended: str = ""
    gate: str = "run"
    held: str = ""
    interventions: int = 0
    finalizing: tuple[int, ...] | None = None
    finalize_reason: str = ""
    selected: int | None = None
    heldout: Heldout | None = None
    mirrored: int | None = None
    pools_revealed: bool = False
    ended: e.RunEnded | None = None

    @property
    def header(self) -> e.RunOpened:
        """The opening fact. Raises FoldError before it."""
        if self.opened is None:
            raise FoldError(NOTHING_YET)
        return self.opened

    @property
    def stage(self) -> str:
        """Where the run is: opening, evolving, validating, held-out, ended."""
        if self.opened is None:
            return "opening"
        if self.ended is not None:
            return "ended"
        if self.selected is not None:
            return "held-out"
        if self.finalizing is not None:
            return "validating"
        return "evolving"

    @property
    def active(self) -> Submission | None:
        """The submission that is on its way, if any."""
        last = self.submissions[-1] if self.submissions else None
        return last if last is not None and last.verdict is None else None

    @property
    def assisted(self) -> bool:
        return self.interventions > 0

    @property
    def best_in_loop(self) -> Submission | None:
        """The ok submission of the greatest mean train return (a proxy: not what selects); the first to reach it."""
        scored = [s for s in self.submissions if s.ok and s.mean is not None]
        return max(scored, key=lambda s: (s.mean, -s.index), default=None)

    def submission(self, index: int) -> Submission:
        """Raises FoldError where there is no such submission."""
        if not 0 <= index < len(self.submissions):
            raise FoldError(f"there is no submission {index}")
        return self.submissions[index]

    def width(self) -> int:
        """Digits of NNN and XXX in ``submit_NNN`` and ``ep_XXX``."""
        return max(3, len(str(self.budget.total)))


@dataclass(frozen=True, slots=True)
class AgentView:
    """What an agent may know of its run. Nothing hidden has a place in this type."""

    env: str
    env_version: str
    budget: Budget
    n_train: int
    max_episode_steps: int
    obs_space: Mapping[str, Any]
    action_space: Mapping[str, Any]
    reward_components: tuple[str, ...]
    observation_fields: tuple[str, ...]
    action_names: tuple[str, ...]
    finalized: bool
    verdicts: tuple[Verdict | None, ...]
    returns: tuple[tuple[float, ...], ...]

    @property
    def n_submits(self) -> int:
        return len(self.verdicts)


def agent_view(state: RunState) -> AgentView:
    """The visibility boundary: the one way from a state to what is served to an agent."""
    head = state.header
    return AgentView(
        head.env,
        head.env_version,
        state.budget,
        head.n_train,
        head.max_episode_steps,
        head.obs_space,
        head.action_space,
        head.reward_components,
        head.observation_fields,
        head.action_names,
        state.finalizing is not None or state.ended is not None,
        tuple(s.verdict for s in state.submissions),
        tuple(tuple(ep.return_ for ep in s.in_order) for s in state.submissions),
    )


def train_stats(submission: Submission) -> Stats | None:
    """Return statistics over the finished episodes so far, by position."""
    return stats([ep.return_ for ep in submission.in_order])


def hidden_pools_are_secret(state: RunState) -> bool:
    """Whether this run's hidden cases cannot be known from outside (paper pools are public)."""
    return state.header.pools == PoolKind.SECRET
