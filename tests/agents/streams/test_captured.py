"""Every captured stream gives the facts that happened: said once, counted once, calls with their results."""

from __future__ import annotations

import json

import pytest

from evotui.agents.streams import ClaudeStream, CodexExecStream, CodexServerStream
from evotui.agents.streams.base import status_of
from evotui.record import events as e
from tests.agents.streams.captured import NAMES, lines_of, read

EDITED = [name for name in NAMES if not any(
    part in name for part in ("401", "429", "bad_resume", "resume", "sigint", "max_turns", "max_budget")
)]  # fmt: skip


def of(facts: list[e.Event], kind: type[e.Event]) -> list:
    return [fact for fact in facts if isinstance(fact, kind)]


def tokens(facts: list[e.Event]) -> tuple[int, int, int, int]:
    used = of(facts, e.UsageReported)
    return (
        sum(u.input_tokens for u in used), sum(u.cached_tokens for u in used),
        sum(u.cache_write_tokens for u in used), sum(u.output_tokens for u in used),
    )  # fmt: skip


def test_there_are_captures_of_every_dialect():
    assert len(NAMES) >= 31


@pytest.mark.parametrize("name", NAMES)
def test_every_result_has_its_call_and_every_call_one_result(name: str):
    _, facts = read(name)
    opened: list[str] = []
    for fact in facts:
        if isinstance(fact, e.ToolCalled):
            assert fact.call not in opened
            opened.append(fact.call)
        if isinstance(fact, e.ToolReturned):
            assert fact.call in opened
    assert sorted(f.call for f in of(facts, e.ToolReturned)) == sorted(opened)


@pytest.mark.parametrize("name", NAMES)
def test_everything_captured_can_be_read(name: str):
    _, facts = read(name)
    assert not [raw for raw in of(facts, e.AgentRaw) if raw.what.startswith(("unreadable", "not "))]


@pytest.mark.parametrize("name", NAMES)
def test_pieces_of_a_message_or_thought_make_the_whole(name: str):
    _, facts = read(name)
    streamed = {"text": "", "thought": ""}
    for fact in facts:
        if isinstance(fact, e.AgentDelta) and fact.channel in streamed:
            streamed[fact.channel] += fact.text
        if isinstance(fact, e.AgentMessage | e.AgentThought):
            channel = "thought" if isinstance(fact, e.AgentThought) else "text"
            assert streamed[channel] in ("", fact.text)
            streamed[channel] = ""
    assert streamed == {"text": "", "thought": ""}


@pytest.mark.parametrize("name", EDITED)
def test_the_edit_is_a_call_with_its_path(name: str):
    _, facts = read(name)
    edits = [f for f in of(facts, e.ToolCalled) if f.name.lower() in ("edit", "replace")]
    assert [f.arguments["path"] for f in edits] == ["system/policy.py"]
    if not name.startswith("codex") or name == "codex_app_server":
        given = edits[0].arguments
        change = [given.get(key) for key in ("old_string", "new_string", "oldString", "newString") if key in given]
        assert change == ["GAIN = 1.0", "GAIN = 2.0"] or "-GAIN = 1.0\n+GAIN = 2.0" in given["diff"]


@pytest.mark.parametrize("name", [n for n in EDITED if "app_server" not in n])
def test_each_thing_is_said_once(name: str):
    _, facts = read(name)
    said = [f.text for f in of(facts, e.AgentMessage)]
    assert said[-1] == "Done: I changed GAIN from 1.0 to 2.0."
    assert len(said) == len(set(said))


@pytest.mark.parametrize(
    ("name", "session", "model", "version"),
    [
        ("claude_code_2.1.332_partial", "34ce46dd-6f69-4d68-a2e1-c6f9e742db79", "claude-opus-5-5", "2.1.332"),
        ("codex_app_server", "01a22b42-736e-7072-adc9-9917b0a026da", "fake-model", "0.171.0"),
        ("codex_workspace_write", "01a22b16-bcc6-7a83-ba2e-6885127a5529", "", ""),
        ("gemini_cli_0.61.0", "37d72fff-ba6a-4ba5-81aa-4c1c5d75368c", "gemini-2.5-pro", ""),
        ("kimi_code_2.1.0", "session_23eb4666-5fad-483a-a7a4-e742763f6d7f", "", "2.1.0"),
        ("opencode_1.18.33", "ses_dd4d699b2ffeVVtwxpLu5LOglo", "", ""),
        ("qwen_code_0.24.4", "7c5e5869-ad29-4e90-8069-66d3fae5f723", "fake-model", "0.24.4"),
        ("acp_gemini", "321cbae4-cda1-4616-9bf0-b03a4c6f52a8", "gemini-2.5-pro", "0.61.0"),
        ("acp_kimi", "session_6adf3f6e-b502-4806-a9d1-6577e2c409fa", "fake", "2.1.0"),
    ],
)
def test_the_session_is_told_once_with_model_and_version(name: str, session: str, model: str, version: str):
    stream, facts = read(name)
    assert of(facts, e.AgentSession) == [e.AgentSession(session, model, version)]
    assert stream.finished and not stream.is_error and not stream.reason


@pytest.mark.parametrize(
    ("name", "calls", "expected"),
    [
        ("claude_code_2.1.332_partial", 4, (700, 1200, 40, 100)),
        ("claude_code_plain", 4, (700, 1200, 40, 100)),
        ("claude_code_sigint_stream", 1, (100, 0, 10, 4)),
        ("codex_workspace_write", 1, (330, 120, 0, 75)),
        ("codex_app_server", 3, (330, 120, 0, 75)),
        ("qwen_code_0.24.4", 4, (460, 240, 0, 100)),
        ("qwen_code_partial", 4, (460, 240, 0, 100)),
        ("gemini_cli_0.61.0", 1, (460, 240, 0, 100)),
        ("opencode_1.18.33", 4, (460, 240, 0, 100)),
        ("acp_gemini", 1, (700, 0, 0, 100)),
    ],
)
def test_tokens_add_up_to_what_the_program_says_in_the_end(name: str, calls: int, expected: tuple[int, ...]):
    _, facts = read(name)
    assert len(of(facts, e.UsageReported)) == calls
    assert tokens(facts) == expected


def test_money_of_claude_is_the_last_total_and_not_their_sum():
    stream, facts = read("claude_code_2.1.332_partial")
    assert [u.cost_usd for u in of(facts, e.UsageReported)] == [None, None, None, 0.00524]
    result = json.loads(lines_of("claude_code_2.1.332_partial")[-1])
    stream.begin()
    result["total_cost_usd"] = 0.006
    result["model_usage_since_last_result"] = {
        "claude-opus-5-5": {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokens": 0, "costBasis": "list"}
    }
    (more,) = [f for f in stream.feed(json.dumps(result)) if isinstance(f, e.UsageReported)]
    assert (more.input_tokens, more.output_tokens) == (5, 7)
    assert more.cost_usd == pytest.approx(0.00076)


def test_a_model_that_the_result_calls_by_a_longer_name_is_counted_once():
    lines = lines_of("claude_code_2.1.332_partial")
    lines[-1] = lines[-1].replace('"claude-opus-5-5":', '"claude-opus-5-5[1m]":')
    stream = ClaudeStream()
    facts = [fact for line in lines for fact in stream.feed(line)] + stream.end()
    assert (len(of(facts, e.UsageReported)), tokens(facts)) == (4, (700, 1200, 40, 100))


def test_an_invented_price_of_claude_is_no_price():
    result = json.loads(lines_of("claude_code_plain")[-1])
    for basis in ("fallback", "default"):
        for usage in result["modelUsage"].values():
            usage["costBasis"] = basis
        facts = ClaudeStream().feed(json.dumps(result))
        assert [u.cost_usd for u in of(facts, e.UsageReported)] == [None]
        assert tokens(facts)[0] == 700
    old = {"custom-model": {"inputTokens": 1, "outputTokens": 1}}
    facts = ClaudeStream().feed(json.dumps({**result, "modelUsage": old, "model_usage_since_last_result": old}))
    assert [u.cost_usd for u in of(facts, e.UsageReported)] == [None]


def test_opencode_tells_money_step_by_step():
    _, facts = read("opencode_1.18.33")
    assert [u.cost_usd for u in of(facts, e.UsageReported)] == [0.00015, 0.000164, 0.000178, 0.000192]


def test_a_resumed_codex_thread_counts_only_what_is_new():
    first = lines_of("codex_workspace_write")
    stream = CodexExecStream()
    before = [f for line in first for f in stream.feed(line)]
    stream.begin()
    after = [f for line in lines_of("codex_resume") for f in stream.feed(line)]
    assert tokens(before) == (330, 120, 0, 75)
    assert tokens(after) == (120, 80, 0, 25)

    later = CodexExecStream()
    later.seen(json.loads(first[-1])["usage"])
    assert tokens([f for line in lines_of("codex_resume") for f in later.feed(line)]) == (120, 80, 0, 25)


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("name", ["claude_code_permission_denied", "claude_code_dontask"])
def test_a_refused_call_of_claude_is_denied_though_the_turn_succeeds(name: str, older: bool):
    stream, facts = read(name)
    if older:  # versions before 2.1.300 have no event for it
        stream, facts = ClaudeStream(), []
        for line in lines_of(name):
            value = json.loads(line)
            value.pop("tool_result_meta", None)
            if value.get("subtype") != "permission_denied":
                facts += stream.take(value)
    denied = [f for f in of(facts, e.ToolReturned) if f.denied]
    assert len(denied) == 1 and not denied[0].ok and "permission" in denied[0].text.lower()
    assert stream.finished and not stream.is_error
    assert stream.denials == ["Edit" if "permission" in name else "Bash"]


@pytest.mark.parametrize(
    ("name", "reason", "status"),
    [
        ("claude_code_max_turns", "Reached maximum number of turns (2)", None),
        ("claude_code_max_budget", "Reached maximum budget ($0.003)", None),
        ("claude_code_sigint_stream", "interrupted", None),
        ("claude_code_sigint_tool", "interrupted", None),
        ("claude_code_bad_resume",
         "No conversation found with session ID: 99999999-2222-4333-8444-555555555555", None),
        ("codex_401", "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:18512/v1/responses", 401),
        ("codex_429", "exceeded retry limit, last status: 429 Too Many Requests", 429),
        ("gemini_max_turns", "Reached max session turns for this session. Increase the number of turns by specifying "
         "maxSessionTurns in settings.json.", None),
    ],
)  # fmt: skip
def test_a_turn_that_fails_says_why(name: str, reason: str, status: int | None):
    stream, _ = read(name)
    assert stream.finished and stream.is_error
    assert (stream.reason, stream.status) == (reason, status)


def test_a_session_that_could_not_be_resumed_is_not_told():
    _, facts = read("claude_code_bad_resume")
    assert facts == []


def test_retries_are_told_with_their_reason():
    _, facts = read("claude_code_401_retries")
    retries = of(facts, e.AgentRetried)
    assert [r.attempt for r in retries] == [1, 2, 3, 4, 5, 6, 7]
    assert retries[0] == e.AgentRetried("401 authentication failed", 0.545, 1)
    _, facts = read("codex_429")
    assert [r.attempt for r in of(facts, e.AgentRetried)] == [1, 2, 3, 4, 5]


def test_a_stream_without_an_end_is_not_finished():
    stream, _ = read("codex_sigint_stream")
    assert not stream.finished


def test_calls_of_kimi_over_acp_carry_the_arguments_it_typed():
    _, facts = read("acp_kimi")
    calls = of(facts, e.ToolCalled)
    assert calls[0].name == "execute"
    assert calls[0].arguments["command"] == "echo hello-from-agent && cat system/policy.py"
    typed = "".join(f.text for f in of(facts, e.AgentDelta) if f.channel == "tool")
    assert json.loads(typed[: typed.index("}") + 1]) == calls[0].arguments


def test_codex_commands_are_shown_without_their_shell():
    for name in ("codex_workspace_write", "codex_app_server"):
        _, facts = read(name)
        assert of(facts, e.ToolCalled)[0].arguments == {"command": "echo hello-from-agent && cat system/policy.py"}


def test_warnings_of_codex_are_kept_folded():
    _, facts = read("codex_workspace_write")
    assert [raw.what for raw in of(facts, e.AgentRaw)] == ["warning"]


def test_usage_that_a_resumed_codex_thread_repeats_is_not_told_again():
    lines = lines_of("codex_app_server")
    usage = [line for line in lines if "tokenUsage/updated" in line]
    stream = CodexServerStream()
    assert stream.feed(usage[-1]) == []  # of a turn that another process made
    told = [fact for line in lines for fact in stream.feed(line) if isinstance(fact, e.UsageReported)]
    assert tokens(told) == (330, 120, 0, 75)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("unexpected status 401 Unauthorized", 401), ("Internal error: invalid api key", 401), ("Not logged in.", 401),
        ("last status: 429 Too Many Requests", 429), ("HTTP 503", 503), ("error code: 404 - no such model", 404),
        ("no such model", 404), ("The model `x` does not exist", 404), ("I read 500 lines", None),
        ("it failed", None), ("", None),
    ],
)  # fmt: skip
def test_the_status_that_a_message_speaks_of(text: str, status: int | None):
    assert status_of(text) == status


@pytest.mark.parametrize(
    ("info", "status"),
    [("unauthorized", 401), ("modelNotFound", 404), ("internalServerError", 500), ("usageLimitExceeded", 429),
     ({"responseTooManyFailedAttempts": {"httpStatusCode": 503}}, 503), ("other", None), (3, None), (None, None)],
)  # fmt: skip
def test_codex_classifies_its_errors(info: object, status: int | None):
    stream = CodexServerStream()
    error = {"message": "it went wrong", "codexErrorInfo": info}
    stream.take({"method": "turn/completed", "params": {"turn": {"id": "t", "status": "failed", "error": error}}})
    assert (stream.is_error, stream.reason, stream.status) == (True, "it went wrong", status)
