"""Policies in the form of the published harness's version 0.3, run as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evotui.cli.main import run
from evotui.protocol.verdict import Phase, Verdict

from .conftest import GOOD

RULE = "return int(observation[2] + 0.5 * observation[3] > 0)"
PLAIN = f"""
class Balance:
    def __init__(self, context): self.steps = context["max_episode_steps"]
    def act(self, observation):
        assert self.steps == 500
        {RULE}
def make_policy(context): return Balance(context)
"""
# As its own examples are: a class Policy that takes nothing, and names imported for annotations.
EXAMPLE = f"""
from evopolicygym.policy import PolicyContext, PolicyValue, TensorValue
class Policy:
    def act(self, observation: PolicyValue) -> PolicyValue:
        assert isinstance(observation, TensorValue) and observation.shape == (4,)
        {RULE}
def make_policy(context: PolicyContext) -> Policy:
    assert context.observation_space["shape"] == [4] and context.action_space["n"] == 2
    assert context.metadata["env"] == context.env == "gym/cartpole" and type(context.policy_seed) is int
    assert context.environment_parameters.get("gravity") is None and not hasattr(context, "seed")
    return Policy()
"""
# A helper that happens to have that name does not replace a class of our form.
OURS = GOOD + "\ndef make_policy(gain): raise AssertionError\n"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("source", [PLAIN, EXAMPLE, OURS], ids=["plain", "example", "ours"])
@pytest.mark.parametrize("mode", ["episode", "batch"])
async def test_they_play_as_the_same_rule_in_our_form(roll, source, mode):
    expected = await roll(GOOD, 4)
    outcome = await roll(source, 4, mode=mode)
    assert outcome.load_fault is None and outcome.kinds == [None] * 4, outcome
    lengths = [(r.return_, r.length) for _, r in sorted(outcome.results.items())]
    assert lengths == [(r.return_, r.length) for _, r in sorted(expected.results.items())]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def make_policy(context): 1 / 0", "ZeroDivisionError"),
        ("def make_policy(context): pass", "make_policy returned NoneType"),
        ("def make_policy(context): context.gravity", "the context has no 'gravity'"),
        ("def make_policy(): pass", "TypeError"),
    ],
)
async def test_what_cannot_be_made_is_an_initialization_error(roll, source, words):
    fault = (await roll(source)).load_fault
    assert fault is not None and (fault.phase, fault.verdict) == (Phase.INITIALIZE, Verdict.INIT_ERROR)
    assert words in fault.message and "/guest/" not in fault.traceback


def test_evaluate_takes_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.py"
    policy.write_text(EXAMPLE)
    assert run(["evaluate", str(policy), "--env", "cartpole", "--pools", "paper", "--cases", "0,1", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["faults"] == [] and found["returns"] == [500.0, 500.0]
