"""The facts of a run: one frozen dataclass each, the class name is the tag in the log.

A fact says what happened, never what should follow. Whatever it names is complete on disk before it is appended.
No fact ever holds a seed. Unknown kinds decode to :class:`Unknown`, so that an older evotui can read a newer run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evotui.protocol.verdict import Fault, Phase, Verdict

SCHEMA_VERSION = 1
"""Version of the log. A reader refuses a newer one; additions of kinds and of optional fields do not raise it."""


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all facts."""


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RunOpened(Event):
    """First fact of every log: what is run, under which rules. ``schema_version`` is the log's."""

    schema_version: int
    run: str
    env: str
    env_name: str
    env_version: str
    agent: str
    model: str
    agent_seed: int
    profile: str
    pools: str
    pool_hashes: Mapping[str, str]
    n_train: int
    n_validation: int
    n_heldout: int
    budget: int
    min_submit: int
    max_submit: int
    policy_lifetime: str
    max_episode_steps: int
    obs_space: Mapping[str, Any]
    action_space: Mapping[str, Any]
    observation_fields: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    reward_components: tuple[str, ...] = ()
    success_rule: str = ""
    anchors: Mapping[str, float] = field(default_factory=dict)
    isolation_level: str = "D"
    isolation_layers: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    branched_from: str = ""
    """The run whose checkpoint ``branched_at`` this one started from, with the budget that was left there."""
    branched_at: int = -1


@dataclass(frozen=True, slots=True)
class RunResumed(Event):
    """Another process took the log up where it ended."""

    evotui: str = ""


@dataclass(frozen=True, slots=True)
class GateMoved(Event):
    """Somebody paused, resumed or stepped the run. ``mode`` is run, pause, iteration or phase."""

    mode: str
    by: str = "human"


@dataclass(frozen=True, slots=True)
class GateHeld(Event):
    """Somebody waits at the gate: ``where`` names what comes next ("" when it goes on)."""

    where: str


@dataclass(frozen=True, slots=True)
class ApprovalSet(Event):
    """Whether each of the agent's submissions waits for a person's approval from here on."""

    on: bool


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Event):
    """The agent wants to submit; its request waits for a person."""

    request: str


@dataclass(frozen=True, slots=True)
class ApprovalGiven(Event):
    """What the person said to the request that waited. A refusal costs nothing; ``text`` is told to the agent."""

    approved: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class Intervened(Event):
    """A person took part (edited the policy, submitted, steered): the run is assisted from here on.

    ``what`` is edit, submit, message, refusal or hand over; ``text`` is what was said.
    """

    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class MessageDelivered(Event):
    """A person's messages reached the agent: ``how`` is ``at once`` or ``at the gate``."""

    texts: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class IncidentNoted(Event):
    """Something on the host's side went wrong and was survived; a person should know."""

    text: str


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """Last fact. ``status`` is completed, no_ok_submit or error."""

    status: str
    error: str | None = None


# ── the agent ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AgentStarted(Event):
    """An agent session began. ``agent`` is search, human, …; ``name`` is what to call it on a screen.

    ``options`` are those of an agent that a run was handed over to; the first one's are in ``run.toml``.
    """

    agent: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentSession(Event):
    """How the agent's own program calls its conversation, so that it can be taken up again."""

    session: str
    model: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class AgentDelta(Event):
    """A piece of what the agent is saying (``channel`` text), thinking (thought) or passing to a tool (tool).

    Pieces in order make the whole; the message, thought or call that follows on the same channel repeats and ends it.
    """

    channel: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentRetried(Event):
    """A model call failed and is made again after ``seconds``; whatever it had streamed is void."""

    reason: str
    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class AgentRaw(Event):
    """Something in the agent's stream that nobody here understands, kept as it came; ``what`` is its own word."""

    what: str
    text: str


@dataclass(frozen=True, slots=True)
class WriteReverted(Event):
    """The agent wrote where it may not, below its workspace but outside ``system/``: ``what``: how it was undone."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class AgentThought(Event):
    """The agent's reasoning, as far as it shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentMessage(Event):
    """What the agent says to whoever watches."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled(Event):
    """The agent called a tool. ``call`` pairs it with its :class:`ToolReturned`."""

    call: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolReturned(Event):
    """What came of a call. ``denied``: it was not carried out, because it is not allowed."""

    call: str
    ok: bool
    text: str = ""
    denied: bool = False


@dataclass(frozen=True, slots=True)
class FileEdited(Event):
    """A file of ``system/`` changed. Its content is the blob named by ``sha256`` ("" where the file was deleted)."""

    path: str
    sha256: str
    bytes: int
    added: int
    removed: int
    by: str = "agent"


@dataclass(frozen=True, slots=True)
class UsageReported(Event):
    """Tokens and money of one model call (a turn). ``cost_usd`` is None where no price is known.

    ``input_tokens`` are those that no cache held; cached and cache-written ones are counted apart. ``estimated``: the
    server told none, and they were counted here.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class AgentEnded(Event):
    """The agent session is over and reaped. ``reason`` is done, stopped, limit, failed or handed_over."""

    reason: str
    text: str = ""


# ── submissions ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SubmissionRejected(Event):
    """A request that took no index and cost nothing."""

    verdict: Verdict
    message: str
    request: str
    by: str = "agent"


@dataclass(frozen=True, slots=True)
class SubmissionAccepted(Event):
    """Acceptance *is* the charge of ``len(cases)`` episodes."""

    submission: int
    cases: tuple[int, ...]
    first_episode: int
    by: str = "agent"


@dataclass(frozen=True, slots=True)
class PhaseEntered(Event):
    submission: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class SnapshotTaken(Event):
    """The checkpoint is on disk. ``metrics`` are the figures of its ``metrics.json``."""

    submission: int
    tree_hash: str
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpisodeStarted(Event):
    submission: int
    position: int
    episode: int
    case: int


@dataclass(frozen=True, slots=True)
class EpisodeFinished(Event):
    """One train episode; its files are under ``feedback/submit_NNN/episodes/ep_XXX``."""

    submission: int
    position: int
    episode: int
    case: int
    return_: float
    length: int
    terminated: bool
    truncated: bool
    success: bool | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    invalid_actions: int = 0
    fault: Fault | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SubmissionFinished(Event):
    """The submission's folder is complete. ``phase`` is where it ended; statistics are None unless it is ok."""

    submission: int
    verdict: Verdict
    phase: Phase
    message: str = ""
    mean: float | None = None
    std: float | None = None


# ── finalization: only after the agent was reaped ────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FinalizationStarted(Event):
    """The hidden pools are opened for these checkpoints. ``reason`` is spent, stopped or agent_ended."""

    checkpoints: tuple[int, ...]
    reason: str = "spent"


@dataclass(frozen=True, slots=True)
class HiddenEpisodeFinished(Event):
    """One validation or held-out episode. ``position`` is the case's place in its pool."""

    split: str
    submission: int
    position: int
    return_: float
    length: int
    success: bool | None = None
    invalid_actions: int = 0
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class CheckpointValidated(Event):
    """``same_as``: the checkpoint of the same files whose validation episodes are stated for this one again."""

    submission: int
    mean: float
    std: float
    n: int
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSelected(Event):
    submission: int
    val_score: float


@dataclass(frozen=True, slots=True)
class HeldoutScored(Event):
    """``final_score_kind`` is normalized (by anchors) or raw (no anchors measured)."""

    submission: int
    mean: float
    std: float
    n: int
    final_score: float
    final_score_kind: str


@dataclass(frozen=True, slots=True)
class WorkspaceMirrored(Event):
    """``workspace/system`` now equals the selected checkpoint, byte for byte."""

    submission: int


@dataclass(frozen=True, slots=True)
class PoolsRevealed(Event):
    """The pool files are part of the record from here on, under ``pools/``."""

    pools: str


# ── what we do not know ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Unknown(Event):
    """A fact of a kind that this evotui does not know; kept, shown folded, never lost."""

    kind: str
    raw: Mapping[str, Any] = field(default_factory=dict)


# Not Event.__subclasses__(): a dataclass with slots is a second class, and the first may still be listed there.
KINDS: dict[str, type[Event]] = {
    name: cls
    for name, cls in list(globals().items())
    if isinstance(cls, type) and issubclass(cls, Event) and cls not in (Event, Unknown)
}


@dataclass(frozen=True, slots=True)
class Record:
    """A fact with its place in the log: ``seq`` from 0 without gaps, ``time`` in seconds since the epoch (UTC)."""

    seq: int
    time: float
    event: Event
