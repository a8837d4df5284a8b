"""Success rules: what is understood, and what they say of an episode's end."""

from __future__ import annotations

from typing import Any

import pytest

from evotui.protocol.task import is_success_rule, succeeded


def judge(rule: str, **end: Any) -> bool | None:
    facts: dict[str, Any] = {"reward": 0.0, "terminated": False, "truncated": False, "info": {}, "return_": 0.0}
    return succeeded(rule, **{**facts, **end})


def test_rules() -> None:
    assert judge("") is None
    assert judge("terminated", terminated=True) is True
    assert judge("terminated", truncated=True) is False
    assert judge("reward > 0", reward=0.5) is True
    assert judge("reward > 0", reward=0.0) is False
    assert judge("return >= 475", return_=475.0) is True
    assert judge("return >= 475", return_=474.9) is False
    assert judge("return >= -1.5e2", return_=-150.0) is True
    assert judge("info.is_success", info={"is_success": 1.0}) is True
    assert judge("info.is_success", info={}) is False
    assert judge("info.distance < 0.05", info={"distance": 0.01}) is True
    assert judge("info.distance < 0.05", info={}) is False


@pytest.mark.parametrize("rule", ["won", "reward", "reward > x", "return => 3", "__import__('os')", "info.", "a > 1"])
def test_other_texts_are_no_rules(rule: str) -> None:
    assert not is_success_rule(rule)
    with pytest.raises(ValueError, match="no success rule"):
        judge(rule)
