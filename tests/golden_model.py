"""Golden runs of a language model: a scripted transcript with everything that such an agent can tell.

Importing this module adds its stages to ``tests.golden.STAGES``: ``model`` (it is thinking about the next edit),
``asked`` (a submission waits for approval), ``left`` (the agent ended early; the run waits for a person), ``modelled``
(finished, watched afterwards).
"""

from __future__ import annotations

import json

from evotui.protocol.verdict import Verdict
from evotui.record import events as e
from tests.golden import (
    _PLAN,
    LINEAR_TEXTS,
    STAGES,
    STARTER,
    THRESHOLD,
    Teller,
    opening,
    returns_for,
)

NAME = "litellm"
MODEL = "anthropic/claude-sonnet-4-5"
_OPTIONS = f"""\
env = "cartpole"
agent = "litellm"

[agent_options]
model = "{MODEL}"
max_cost = 2.0
max_turns = 60
max_wall = 1800
"""


def _open(t: Teller) -> None:
    from dataclasses import replace

    t.tell(replace(opening(t.run, 64), agent=NAME, model=MODEL))
    t.run.run_toml.write_text(_OPTIONS)
    t.run.agents_md.write_text("# Task\n\nBalance the pole.\n")
    t.edit(STARTER, by="start", dt=0.1)
    t.tell(e.AgentStarted(NAME, MODEL), e.AgentSession("3f2a1b9c-77aa", MODEL, "litellm 1.110.0"), dt=0.4)


def _turn(t: Teller, fresh: int, cached: int, out: int, cost: float | None = 0.01, estimated: bool = False) -> None:
    t.tell(e.UsageReported(fresh, cached, 200, out, cost, estimated, MODEL), dt=0.1)


def _feedback(t: Teller, index: int, returns: list[float]) -> None:
    folder = t.run.feedback_of(index)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps({"mean_return": sum(returns) / len(returns), "returns": returns}))
    for episode in sorted(p for p in t.run.episodes_of(index).iterdir() if p.is_dir()):
        for name in ("trajectory.jsonl", "stdout.txt", "stderr.txt"):
            (episode / name).write_text("")


def _submission(t: Teller, number: int) -> None:
    _, cases, centre, spread = _PLAN[number]
    listed = f"{cases[0]}-{cases[-1]}"
    t.tell(e.ToolCalled(f"s{number}", "submit", {"cases": listed}), dt=0.2)
    index = t.accept(cases)
    returns = returns_for(number, len(cases), centre, spread)
    t.load(index)
    t.roll(index, cases, returns)
    t.finish(index, returns)
    _feedback(t, index, returns)
    answer = json.dumps({"submit_id": f"submit_{index:03d}", "status": "ok", "mean_return": centre, "returns": returns})
    t.tell(e.ToolReturned(f"s{number}", True, answer), dt=0.2)


def _evolve(t: Teller) -> None:
    """Three submissions: each with what the agent read, said, was refused and paid."""
    t.tell(e.AgentThought("Let me read the task and the starter before I change anything."), dt=1.2)
    t.tell(e.ToolCalled("r0", "read_file", {"path": "system/policy.py"}), dt=0.1)
    t.tell(e.ToolReturned("r0", True, STARTER), dt=0.3)
    _turn(t, 3200, 0, 180)
    t.tell(e.AgentMessage("The starter alternates. A threshold on the pole's angle is the simplest thing that reacts."))
    t.tell(e.ToolCalled("w0", "write_file", {"path": "system/policy.py", "content": THRESHOLD}), dt=0.1)
    t.edit(THRESHOLD)
    t.tell(e.ToolReturned("w0", True, "written, 18 lines"), dt=0.2)
    _turn(t, 900, 3000, 420)
    _submission(t, 0)
    t.tell(e.AgentRetried("429 Too Many Requests", 2.0, 1), dt=2.1)
    t.tell(e.ToolCalled("r1", "read_file", {"path": "feedback/submit_000/summary.json"}), dt=0.1)
    t.tell(e.ToolReturned("r1", True, '{"mean_return": 42.0}'), dt=0.3)
    code = (
        "import json\nrows = [json.loads(line) for line in open("
        "'feedback/submit_000/episodes/ep_001/trajectory.jsonl')]\nprint(len(rows))"
    )
    t.tell(e.ToolCalled("p1", "run_python", {"code": code}), dt=0.1)
    t.tell(e.ToolReturned("p1", True, "\n".join(f"step {i:3d}  angle {i * 0.004:+.3f}" for i in range(24))), dt=0.3)
    _turn(t, 1400, 4100, 640)
    t.tell(e.AgentThought(
        "Every episode ends within fifty steps: the pole passes through upright too fast and falls on the other side. "
        "The threshold reacts to the angle only. The angular velocity must weigh in, and the cart's position should "
        "have a small say, or it leaves the track."), dt=0.9)  # fmt: skip
    t.tell(e.AgentMessage("The pole oscillates with growing amplitude; I add the velocities with small gains."))
    t.tell(e.ToolCalled("w1", "write_file", {"path": "system/policy.py", "content": LINEAR_TEXTS[0]}), dt=0.1)
    t.edit(LINEAR_TEXTS[0])
    t.tell(e.ToolReturned("w1", True, "written, 24 lines"), dt=0.2)
    _turn(t, 800, 6100, 700)
    _submission(t, 1)
    t.tell(e.ToolCalled("x1", "write_file", {"path": "feedback/notes.md", "content": "remember"}), dt=0.1)
    t.tell(e.ToolReturned("x1", False, "only files below system/ can be written", denied=True), dt=0.2)
    t.tell(e.WriteReverted("feedback/notes.md", "removed: only system/ is the agent's"), dt=0.1)
    t.tell(e.AgentRaw("thread/tokenUsage", '{"total": 123, "unknown": ["a", "b"]}'), dt=0.1)
    t.tell(e.Intervened("message", "Watch the cart's drift: most failures are on the right."), dt=0.3)
    t.tell(e.MessageDelivered(("Watch the cart's drift: most failures are on the right.",), "at once"), dt=0.2)
    t.tell(e.AgentMessage("Larger gains on all four, since the linear form holds."))
    t.tell(e.ToolCalled("w2", "str_replace", {"path": "system/policy.py", "old_str": "K_X = 0.05\nK_V = 0.1",
                                              "new_str": "K_X = 0.08\nK_V = 0.22"}), dt=0.1)  # fmt: skip
    t.edit(LINEAR_TEXTS[1])
    t.tell(e.ToolReturned("w2", True, "1 replacement"), dt=0.2)
    _turn(t, 900, 7300, 520)
    _submission(t, 2)


def _model(t: Teller) -> None:
    _open(t)
    _evolve(t)
    t.tell(e.ToolCalled("r2", "read_file", {"path": "feedback/submit_002/summary.json"}), dt=0.1)
    t.tell(e.ToolReturned("r2", True, '{"mean_return": 260.0}'), dt=0.2)
    _turn(t, 700, 8200, 300, None)
    for piece in ("The mean rose to 260, ", "but two of six episodes still end ", "on the right edge of the track. ",
                  "An integral of the position would "):  # fmt: skip
        t.tell(e.AgentDelta("thought", piece), dt=0.07)


def _asked(t: Teller) -> None:
    _open(t)
    t.tell(e.ApprovalSet(True))
    _evolve(t)
    t.edit(LINEAR_TEXTS[2])
    t.tell(e.ToolCalled("s9", "submit", {"cases": "0-7"}), e.ApprovalAsked("0-7"), dt=0.2)


def _left(t: Teller) -> None:
    _open(t)
    _evolve(t)
    t.tell(e.AgentEnded("limit", "60 turns are spent"), e.GateHeld("what next, with 50 episodes left"))


def _modelled(t: Teller) -> None:
    """Refused once, then finished by the person who finalized it."""
    _asked(t)
    t.tell(e.ApprovalGiven(False, "too few cases to tell"), e.Intervened("refusal", "too few cases to tell"))
    t.tell(e.SubmissionRejected(Verdict.REFUSED, "the operator refused this submission: too few cases to tell", "0-7"))
    t.tell(e.ToolReturned("s9", False, "the operator refused this submission: too few cases to tell"))
    t.tell(e.AgentEnded("stopped", "asked to finalize"), e.RunEnded("no_ok_submit"))


STAGES.update(model=_model, asked=_asked, left=_left, modelled=_modelled)
