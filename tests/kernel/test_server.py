"""The door as HTTP: what each call answers, what a rude client can do, what a dying one changes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evotui.kernel.gate import Mode
from evotui.kernel.server import MAX_BODY, serve_door
from evotui.protocol.budget import DoorClosed, parse_cases
from evotui.protocol.door import DoorUrls
from evotui.record import events as e
from tests.kernel.conftest import Opener
from tests.patience import PATIENCE


class Fake:
    """A door that is held until ``go``; ``asked`` are the requests that came through."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.asked: list[Any] = []
        self.waiting = asyncio.Event()
        self.withdrawn = asyncio.Event()
        self.notes: list[str] = []
        self.closed = False

    async def task(self) -> str:
        return "# Task ü"

    async def info(self) -> dict[str, Any]:
        return {"state": {"remaining_budget": 3}}

    async def submit(self, cases: Any) -> dict[str, Any]:
        if self.closed:
            raise DoorClosed("the run is finalized: no more submissions")
        parse_cases(cases, 8)
        self.waiting.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        self.asked.append(cases)
        return {"submit_id": "submit_000", "status": "ok", "summary": {"mean_return": 1.0}}

    async def messages(self, how: str = "at the gate") -> list[str]:
        notes, self.notes = self.notes, []
        return notes


def _address(url: str) -> tuple[int, str]:
    port, _, path = url.removeprefix("http://127.0.0.1:").partition("/")
    return int(port), "/" + path


async def send(url: str, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", _address(url)[0])
    writer.write(data)
    await writer.drain()
    return reader, writer


def head(method: str, url: str, length: int = 0) -> bytes:
    return (
        f"{method} {_address(url)[1]} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


async def ask(method: str, url: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    reader, writer = await send(url, head(method, url, len(body)) + body)
    raw = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    top, _, content = raw.partition(b"\r\n\r\n")
    first, *rest = top.decode("latin-1").split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, _, v in (line.partition(": ") for line in rest)}, content


async def submit(urls: DoorUrls, document: Any) -> tuple[int, dict[str, Any]]:
    status, _, content = await ask("POST", urls.submit, json.dumps(document).encode())
    return status, json.loads(content)


async def test_three_calls_and_nothing_else() -> None:
    door = Fake()
    async with serve_door(door) as urls:
        status, headers, content = await ask("GET", urls.task)
        assert (status, content.decode()) == (200, "# Task ü")
        assert headers["content-type"] == "text/markdown; charset=utf-8"
        status, headers, content = await ask("GET", urls.info)
        assert (status, json.loads(content)) == (200, {"state": {"remaining_budget": 3}})
        assert headers["content-type"].startswith("application/json")
        assert await submit(urls, {"env_instances": "0-1"}) == (
            200,
            {"submit_id": "submit_000", "status": "ok", "summary": {"mean_return": 1.0}},
        )
        base = urls.info.removesuffix("/info")
        for method, url in (
            ("POST", f"{base}/finalize"), ("GET", f"{base}/finalize"), ("GET", f"{base}/submit"),
            ("POST", urls.info), ("PUT", urls.submit), ("DELETE", urls.task), ("HEAD", urls.info),
            ("GET", f"{base}/"), ("GET", base), ("GET", f"{base}/info/x"), ("OPTIONS", urls.submit),
            ("GET", urls.info.replace(base.rsplit("/", 1)[1], "guess")), ("GET", f"{base}x/info"),
            ("POST", f"{base.rsplit('/', 1)[0]}/submit"),
        ):  # fmt: skip
            status, _, _ = await ask(method, url, b"{}" if method == "POST" else b"")
            assert status in (404, 405), (method, url)
        assert door.asked == ["0-1"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"env_instances"}', b'{"other": 1}', b"\xff\xfe", b"[" * 5000,
     b'{"env_instances": 3}',
     b'{"env_instances": {"a": 1}}', b'{"env_instances": null}', b'{"env_instances": [0.5]}',
     b'{"env_instances": [true]}', b'{"env_instances": "7-"}', b'{"env_instances": [99]}'],
)  # fmt: skip
async def test_what_cannot_be_read_is_refused_in_words(body: bytes) -> None:
    door = Fake()
    async with serve_door(door) as urls:
        status, _, content = await ask("POST", urls.submit, body)
        document = json.loads(content)
        assert status == 400 and document["message"] and document["submit_id"] is None
        assert document["status"] in ("bad_request", "invalid_env_instance")
    assert door.asked == []


async def test_a_body_too_large_is_refused_and_the_door_stays_open() -> None:
    door = Fake()
    async with serve_door(door) as urls:
        status, _, _ = await ask("POST", urls.submit, b" " * (MAX_BODY + 1))
        assert status == 413
        assert (await submit(urls, {"env_instances": [0]}))[0] == 200


@settings(derandomize=True, max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200), st.sampled_from(["POST", "GET", "FOO"]), st.booleans())
def test_nothing_that_a_client_sends_is_accepted_by_accident(body: bytes, method: str, framed: bool) -> None:
    async def work() -> None:
        door = Fake()
        async with serve_door(door) as urls:
            data = head(method, urls.submit, len(body)) + body if framed else body
            reader, writer = await send(urls.submit, data)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
            assert door.asked == []
            assert (await submit(urls, {"env_instances": [0]}))[0] == 200

    asyncio.run(work())


async def test_a_client_that_dies_inside_its_request_changes_nothing() -> None:
    door = Fake()
    body = json.dumps({"env_instances": [0, 1]}).encode()
    async with serve_door(door) as urls:
        whole = head("POST", urls.submit, len(body)) + body
        for cut in (1, 20, len(whole) - len(body), len(whole) - 1):
            _, writer = await send(urls.submit, whole[:cut])
            writer.close()
        assert (await submit(urls, {"env_instances": "2"}))[0] == 200
    assert door.asked == ["2"]


async def test_a_client_that_dies_while_it_waits_withdraws() -> None:
    door = Fake()
    door.go.clear()
    body = b'{"env_instances": [0]}'
    async with serve_door(door) as urls:
        assert not urls.busy()
        _, writer = await send(urls.submit, head("POST", urls.submit, len(body)) + body)
        await door.waiting.wait()
        assert urls.busy()
        writer.close()
        await asyncio.wait_for(door.withdrawn.wait(), PATIENCE)
        assert door.asked == []


async def test_a_closed_door_answers_409_and_a_broken_one_500() -> None:
    door = Fake()
    async with serve_door(door) as urls:
        door.closed = True
        status, document = await submit(urls, {"env_instances": [0]})
        assert (status, document["status"]) == (409, "finalized")

        async def broken(cases: Any) -> dict[str, Any]:
            raise OSError(28, "No space left on device")

        door.submit = broken  # type: ignore[method-assign]
        status, document = await submit(urls, {"env_instances": [0]})
        assert status == 500 and "No space left" in document["message"]


async def test_notes_come_with_the_next_answer_refusals_included() -> None:
    door = Fake()
    async with serve_door(door) as urls:
        door.notes = ["try smaller gains"]
        assert (await submit(urls, {"env_instances": [99]}))[1]["notes"] == ["try smaller gains"]
        door.notes = ["and faster"]
        status, document = await submit(urls, {"env_instances": [0]})
        assert status == 200 and document["notes"] == ["and faster"]
        assert "notes" not in (await submit(urls, {"env_instances": [0]}))[1]


async def test_when_the_server_goes_a_waiting_request_goes_too() -> None:
    door = Fake()
    door.go.clear()
    body = b'{"env_instances": [0]}'
    async with serve_door(door) as urls:
        reader, writer = await send(urls.submit, head("POST", urls.submit, len(body)) + body)
        await door.waiting.wait()
    await asyncio.wait_for(door.withdrawn.wait(), PATIENCE)
    await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    with pytest.raises(OSError):
        await send(urls.submit, b"")


# ── on a real session ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_behind_http(open_session: Opener) -> None:
    session = await open_session(budget=8)
    async with serve_door(session) as urls:
        status, _, content = await ask("GET", urls.info)
        document = json.loads(content)
        assert document["state"] == {"remaining_budget": 8, "n_submits": 0, "is_finalized": False}
        assert "seed" not in content.decode() and "valid" not in content.decode()
        assert "def act(self, obs)" in (await ask("GET", urls.task))[2].decode()
        answers = await asyncio.gather(*(submit(urls, {"env_instances": [n, n + 1]}) for n in range(3)))
        assert [status for status, _ in answers] == [200] * 3
        assert sorted(document["submit_id"] for _, document in answers) == ["submit_000", "submit_001", "submit_002"]
        assert session.state.budget.remaining == 2
        status, document = await submit(urls, {"env_instances": "0-5"})
        assert (status, document["status"]) == (400, "budget_invalid")
        assert session.state.budget.remaining == 2
        await session.say("look at the pole")
        status, document = await submit(urls, {"env_instances": "0-1"})
        assert status == 200 and document["notes"] == ["look at the pole"]
        assert session.state.messages == ()
        status, document = await submit(urls, {"env_instances": "0"})
        assert (status, document["status"]) == (400, "budget_invalid")


async def test_held_at_the_gate_and_withdrawn_by_a_death(open_session: Opener) -> None:
    session = await open_session(budget=4)
    await session.gate.set(Mode.PAUSE)
    held = asyncio.Event()
    free = asyncio.Event()

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, e.GateHeld):
            (held if record.event.where else free).set()

    session.watchers.append(watch)
    body = b'{"env_instances": [0]}'
    async with serve_door(session) as urls:
        _, writer = await send(urls.submit, head("POST", urls.submit, len(body)) + body)
        await asyncio.wait_for(held.wait(), PATIENCE)
        writer.close()
        await asyncio.wait_for(free.wait(), PATIENCE)
        await session.gate.set(Mode.RUN)
        assert (await submit(urls, {"env_instances": [1]}))[0] == 200
    assert [s.cases for s in session.state.submissions] == [(1,)]
    assert session.state.budget.used == 1


async def test_a_death_after_acceptance_loses_nothing(open_session: Opener) -> None:
    session = await open_session(budget=4)
    accepted, finished = asyncio.Event(), asyncio.Event()

    def watch(state: Any, record: e.Record) -> None:
        if isinstance(record.event, e.SubmissionAccepted):
            accepted.set()
        if isinstance(record.event, e.SubmissionFinished):
            finished.set()

    session.watchers.append(watch)
    body = b'{"env_instances": [0, 1]}'
    async with serve_door(session) as urls:
        _, writer = await send(urls.submit, head("POST", urls.submit, len(body)) + body)
        await asyncio.wait_for(accepted.wait(), PATIENCE)
        writer.close()
        await asyncio.wait_for(finished.wait(), PATIENCE)
    assert session.state.budget.used == 2
    assert session.state.submissions[0].mean is not None
