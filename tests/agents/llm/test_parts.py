"""The parts of the native agent that need no model: keys, faults' words, usage, scores, the conversation, patience."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotui.agents.base import AgentFailed
from evotui.agents.llm.calls import Call
from evotui.agents.llm.client import Reply
from evotui.agents.llm.faults import ModelFault, classify, plain
from evotui.agents.llm.history import History
from evotui.agents.llm.keys import read_env_file, redact, secrets_of
from evotui.agents.llm.patience import Patience, key_of, sentence
from evotui.agents.llm.python_tool import Ends, ends
from evotui.agents.llm.scores import Scores
from evotui.agents.llm.usage import Usage, cost_at, cost_of, split
from evotui.agents.llm.wishes import full_name, ready


def test_an_env_file_is_read_as_people_write_it(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# c\nA=1\nexport B = 'two words'\nC=\"x#y\"\nD=z # comment\n#E=5\nnonsense\nF=\n")
    assert read_env_file(path) == {"A": "1", "B": "two words", "C": "x#y", "D": "z", "F": ""}


def test_secrets_are_told_by_their_names_and_by_their_looks() -> None:
    secrets = secrets_of({"OPENAI_API_KEY": "abcdef", "MY_TOKEN": "abcdefgh", "HOME": "/home/me", "EMPTY_KEY": ""})
    assert secrets == ["abcdefgh", "abcdef"]
    assert redact("abcdefgh abcdef /home/me sk-0123456789fedcba01", secrets) == "[key] [key] /home/me [key]"
    assert redact("a sketch of a key-note speech", []) == "a sketch of a key-note speech"


class RateLimitError(Exception):
    status_code = 429


class BadRequestError(Exception):
    status_code = 400


class Odd(Exception):
    pass


class Headers:
    def __init__(self) -> None:
        self.headers = {"retry-after": "Wed, 01 Jan 2200 00:00:00 GMT"}


def test_faults_are_classified_by_class_status_and_words() -> None:
    assert classify(RateLimitError("slow"), False).kind == "rate_limit"
    assert classify(RateLimitError("You exceeded your current quota"), False).kind == "quota"
    assert classify(BadRequestError("prompt is too long: 3 > 2"), False).kind == "context"
    assert classify(BadRequestError("no"), False).kind == "bad_request"
    assert classify(Odd("Missing credentials. Please pass an `api_key`"), False).kind == "auth"
    assert classify(Odd("whatever"), False).kind == "connection"
    assert classify(Odd("whatever"), True).kind == "cut"
    dated = RateLimitError("slow")
    dated.response = Headers()  # type: ignore[attr-defined]
    after = classify(dated, False).retry_after
    assert after is not None and after > 1e9


def test_an_errors_words_are_what_the_server_said() -> None:
    said = 'litellm.AuthenticationError: AnthropicException - b\'{"error": {"message": "invalid \\"x\\" key"}}\''
    assert plain(said) == 'invalid "x" key'
    assert plain("litellm.BadGatewayError: BadGatewayError: OpenAIException - <html><h1>Bad Gateway</h1></html>") == (
        "Bad Gateway"
    )
    assert plain("") == "" and len(plain("x" * 5000)) == 600


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_words_are_made_plain_without_an_error(text: str) -> None:
    assert "\n" not in plain(text)


SHAPES = {
    "openai": {"prompt_tokens": 140, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 40}},
    "anthropic": {"prompt_tokens": 140, "completion_tokens": 9, "cache_read_input_tokens": 40},
    "deepseek": {"prompt_tokens": 140, "completion_tokens": 9, "prompt_cache_hit_tokens": 40},
    "counted apart": {"input_tokens": 100, "output_tokens": 9, "cache_read_input_tokens": 40_000},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_usage_of_each_shape(shape: str) -> None:
    found = split(SHAPES[shape])
    assert (found.input, found.output) == (100, 9) and found.cached in (40, 40_000)


def test_usage_of_none_is_none() -> None:
    assert not split({}).told and not split(None).told


def test_cost_is_none_where_no_price_is_known() -> None:
    def unknown() -> tuple[float, float]:
        raise RuntimeError("This model isn't mapped yet")

    assert cost_of(Usage(1), unknown) is None
    assert cost_of(Usage(1), lambda: (0.25, 0.5)) == 0.75
    assert cost_at(Usage(1_000_000, 1_000_000, 0, 1_000_000), (3, 15)) == 21


def test_retries_wait_longer_and_longer_and_obey_the_server() -> None:
    patience = Patience(tries=3, base=1.0, longest=3.0, asked=100.0)
    server = ModelFault("server", "boom")
    waits = [patience.wait(server, attempt) for attempt in (1, 2, 3, 4)]
    assert waits[3] is None and all(w is not None for w in waits[:3])
    assert 1 <= waits[0] <= 1.25 and 2 <= waits[1] <= 2.5 and 3 <= waits[2] <= 3.75  # type: ignore[operator]
    assert patience.wait(ModelFault("rate_limit", "", 42.0), 1) == 42.0
    assert patience.wait(ModelFault("rate_limit", "", 4200.0), 1) is None
    for kind in ("auth", "not_found", "quota", "bad_request", "context"):
        assert patience.wait(ModelFault(kind, ""), 1) is None


def test_each_failure_says_what_would_help() -> None:
    assert "ANTHROPIC_API_KEY" in sentence(ModelFault("auth", "bad"), "anthropic/x", "", 1)
    assert "--model" in sentence(ModelFault("not_found", "no"), "openai/x", "", 1)
    assert "http://h" in sentence(ModelFault("connection", "refused"), "openai/x", "http://h", 4)
    assert key_of("claude-x") == "ANTHROPIC_API_KEY" and key_of("gpt-5") == "OPENAI_API_KEY" and key_of("x/y") == ""


def test_a_missing_key_is_noticed_before_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AgentFailed, match="OPENAI_API_KEY"):
        ready({"model": "gpt-5"})
    ready({"model": "gpt-5", "api_base": "http://127.0.0.1:1"})
    ready({"model": "ollama/x"})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    ready({"model": "gpt-5"})
    monkeypatch.delenv("OPENAI_BASE_URL")
    (tmp_path / "env").write_text("OPENAI_API_KEY=abc\n")
    ready({"model": "openai/gpt-5", "env_file": str(tmp_path / "env")})
    with pytest.raises(AgentFailed, match="cannot be read"):
        ready({"model": "openai/gpt-5", "env_file": str(tmp_path / "none")})
    assert full_name("qwen", "http://h") == "openai/qwen" and full_name("a/b", "http://h") == "a/b"


def test_output_is_kept_to_its_ends() -> None:
    kept = Ends(10)
    for _ in range(1000):
        kept.feed(b"0123456789abcdef")
    text = kept.text()
    assert text.startswith("0123456789\n") and text.endswith("\n6789abcdef") and "15,980 bytes left out" in text
    small = Ends(10)
    small.feed(b"0123456789abc")
    assert small.text() == "0123456789abc"
    assert ends("x" * 10_000) == "x" * 10_000 and len(ends("x" * 20_000)) < 10_100


def reply(text: str = "", blocks: tuple[dict[str, str], ...] = ()) -> Reply:
    return Reply(text, "", (), "stop", 0, 0, 0, 0, False, None, "m", blocks)


def grown(turns: int) -> History:
    history = History("system", "first")
    for n in range(turns):
        calls = [Call(f"c{n}", "read_file", '{"path": "a"}'), Call(f"d{n}", "submit", '{"oops')]
        history.reply(reply(f"turn {n}"), calls)
        for call in calls:
            history.result(call, "x" * 2000)
        history.user("go on")
    return history


def well_formed(history: History) -> None:
    owed: list[str] = []
    for message in history.messages():
        if message["role"] == "tool":
            owed.remove(message["tool_call_id"])
            continue
        assert not owed
        for call in message.get("tool_calls", ()):
            owed.append(call["id"])
            json.loads(call["function"]["arguments"])
    assert not owed


def test_malformed_arguments_are_empty_ones_in_the_history() -> None:
    history = grown(1)
    sent = history.messages()[2]["tool_calls"]
    assert [c["function"]["arguments"] for c in sent] == ['{"path": "a"}', "{}"]


def test_names_that_a_provider_would_refuse_are_mended_in_the_history() -> None:
    history = History("system", "first")
    history.reply(reply(), [Call("a", "read file!" * 20, ""), Call("b", "", "")])
    names = [c["function"]["name"] for c in history.messages()[2]["tool_calls"]]
    assert names == [("read_file_" * 20)[:64], "unknown"]


def test_trimming_shortens_until_nothing_is_left_and_stays_well_formed() -> None:
    history, sizes = grown(8), []
    well_formed(history)
    while history.trim():
        well_formed(history)
        sizes.append(len(json.dumps(history.messages())))
    assert sizes == sorted(sizes, reverse=True) and len(sizes) >= 2
    assert [m["content"] for m in history.messages()[:2]] == ["system", "first"]
    assert "turn 7" in json.dumps(history.messages())  # the latest stays


def test_a_word_before_the_first_turn_is_part_of_the_first_prompt() -> None:
    history = History("system", "first")
    history.user("hello")
    assert history.messages()[1]["content"] == "first\n\nhello" and len(history.messages()) == 2


def test_the_table_of_scores_marks_the_best_and_says_what_is_left() -> None:
    scores = Scores()
    assert scores.table() == ""
    for n, mean in enumerate((5.0, 9.0, None)):
        summary = {"env_instances": [0, 1, 2], "mean_return": mean, "std_return": 1.0, "remaining_budget": 9 - 3 * n}
        scores.add({"submit_id": f"submit_00{n}", "status": "ok" if mean else "error", "summary": summary}, "a | b\nc")
    lines = scores.table().splitlines()
    assert "mean 9 ± 1 (best)" in lines[3] and "0-2" in lines[2] and lines[-1] == "Episodes left: 3."
    assert "| error |" in lines[4] and all(line.count("|") == 5 for line in lines[:-1])
