"""Verdicts: which faults of episodes become the submission's."""

from __future__ import annotations

from evotui.protocol.verdict import STRIKES, Fault, FaultKind, Verdict, verdict_of_faults


def fault(kind: FaultKind) -> Fault:
    return Fault(kind, 3, "text")


def test_no_faults_is_ok() -> None:
    assert verdict_of_faults([]) is Verdict.OK
    assert verdict_of_faults([None] * 8) is Verdict.OK


def test_raised_errors_are_the_episodes_own_affair() -> None:
    for kind in (FaultKind.RESET_ERROR, FaultKind.ACT_ERROR, FaultKind.EXITED, FaultKind.PROTOCOL):
        assert verdict_of_faults([fault(kind)] * 8) is Verdict.OK


def test_time_limits_become_the_submissions_after_the_strikes() -> None:
    few: list[Fault | None] = [fault(FaultKind.ACT_TIMEOUT)] * (STRIKES - 1)
    assert verdict_of_faults([*few, None, None]) is Verdict.OK
    mixed = [fault(FaultKind.ACT_TIMEOUT), None, fault(FaultKind.RESET_TIMEOUT), fault(FaultKind.EPISODE_TIMEOUT)]
    assert verdict_of_faults(mixed) is Verdict.ROLLOUT_TIMEOUT


def test_memory_likewise() -> None:
    assert verdict_of_faults([fault(FaultKind.OOM)] * STRIKES + [None] * 5) is Verdict.OOM
    assert verdict_of_faults([fault(FaultKind.OOM)] * (STRIKES - 1) + [None] * 5) is Verdict.OK


def test_a_small_submission_of_only_faults_is_judged() -> None:
    assert verdict_of_faults([fault(FaultKind.ACT_TIMEOUT)]) is Verdict.ROLLOUT_TIMEOUT
    assert verdict_of_faults([fault(FaultKind.OOM), fault(FaultKind.OOM)]) is Verdict.OOM
    assert verdict_of_faults([fault(FaultKind.OOM), None]) is Verdict.OK


def test_only_the_request_phase_is_free() -> None:
    assert [v.value for v in Verdict][:2] == ["budget_invalid", "invalid_env_instance"]
    assert {k for k in FaultKind if k.is_timeout} == {
        FaultKind.RESET_TIMEOUT,
        FaultKind.ACT_TIMEOUT,
        FaultKind.EPISODE_TIMEOUT,
    }


def test_numbers_that_are_not_finite_become_an_environment_fault() -> None:
    from evotui.protocol.results import EpisodeResult, sound

    fine = EpisodeResult(0, 1.5, 3, True, False, components={"a": 1.0})
    assert sound(fine) is fine
    bad = sound(EpisodeResult(1, float("nan"), 3, True, False, components={"a": 1.0, "b": float("inf")}))
    assert bad.return_ == 0.0 and bad.components == {"a": 1.0}
    assert bad.fault is not None and bad.fault.kind is FaultKind.ENVIRONMENT and "nan" in bad.fault.message
    odd = sound(EpisodeResult(1, 2.0, 3, True, False, components={"b": float("inf")}))
    assert odd.return_ == 2.0 and odd.components == {} and odd.fault is None
