"""Any program as an agent: prompted on stdin, heard on stdout, submitting through the door until it ends.

Two dialects. ``text``: one prompt, then the end of stdin; whatever it prints is a message. ``jsonl``: a prompt is a
line ``{"type": "prompt", "turn": N, "message": …}``, its answer ``{"turn": N, "text": …, "stop": …, "data": …}``; it
is prompted again until it says stop or the budget is spent.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evotui.agents.base import AgentFailed, Door, LimitReached, Place, Teller, Workspace
from evotui.agents.cli.prompts import first_prompt, next_prompt
from evotui.agents.cli.teller import PacedTeller
from evotui.agents.llm.keys import read_env_file, redact, secrets_of
from evotui.agents.pipes import plain
from evotui.agents.process import AgentProcess
from evotui.agents.station import Station
from evotui.protocol.words import counted
from evotui.record.events import AgentMessage, AgentRaw

BURST, RATE = 1 << 20, 16 << 10
"""Bytes of output that are shown at once, and a second from then on; what is beyond is counted."""
STREAM_BYTES = 64 << 20
_MESSAGE = 8 << 10
_EVERY, _PATIENCE = 0.2, 1.0
"""Seconds between two messages, and that a line may stay without its end."""
_FAREWELL = 10.0
"""Seconds that a program has to end by itself once nothing more is asked of it."""

_INTERPRETER = re.compile(r"(.*/)?(env|uv|npx|node|bash|sh|python[0-9.]*|-.*)\Z")
"""Words of a command that do not name it."""

_DOOR = """
# Submitting from a program

The variables EVOPOLICYGYM_INFO_URL, EVOPOLICYGYM_TASK_URL and EVOPOLICYGYM_SUBMIT_URL lead to the same over HTTP:
`GET` the first two, `POST {"env_instances": "0-3"}` to the third and wait for the answer.
"""


def located(program: Sequence[str], here: Path | None = None) -> list[str]:
    """A command with the paths of its program and of files that it names made absolute: it is started elsewhere."""
    folder = here or Path.cwd()
    words = list(program)
    for i, word in enumerate(words):
        names_program = i == 0 and "/" in word
        if names_program or (i > 0 and word and not word.startswith("-") and (folder / word).is_file()):
            words[i] = str((folder / word).absolute())
    return words


def ready(options: Mapping[str, Any]) -> None:
    """Raises AgentFailed where the program, or a file that it needs, is not there."""
    program = options.get("program") or []
    if not program:
        raise AgentFailed("no program is given: evotui run ENV --agent command -- PROGRAM ARGS…")
    if shutil.which(program[0]) is None:
        raise AgentFailed(f"{program[0]} is no program that can be run here: not found, or not executable")
    prompt = options.get("prompt", "stdin")
    if prompt not in ("stdin", "none") and not Path(prompt).is_file():
        raise AgentFailed(f"the prompt's file is not there: {prompt}")
    _variables(options)


def _variables(options: Mapping[str, Any]) -> dict[str, str]:
    if not options.get("env_file"):
        return {}
    path = Path(str(options["env_file"]))
    try:
        return read_env_file(path)
    except OSError as error:
        raise AgentFailed(f"{path} cannot be read: {error.strerror}") from None


class CommandAgent:
    """Any program. ``options``: program (list), prompt, dialect, env_file, max_turns, max_wall."""

    kind = "command"

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        self._options, self._place = options, place
        self._secrets: list[str] = []
        self._program = located([str(word) for word in options.get("program") or ()])
        self.name = next((Path(word).name for word in self._program if not _INTERPRETER.match(word)), "command")

    async def run(self, workspace: Workspace, door: Door, tell: Teller) -> str:
        await asyncio.to_thread(ready, {**self._options, "program": self._program})
        dialect = str(self._options.get("dialect", "text"))
        silent = self._options.get("prompt", "stdin") == "none"
        # It gets our whole environment: what of its keys it prints stays out of the record.
        self._secrets = secrets_of({**os.environ, **_variables(self._options)})
        tell = PacedTeller(tell, self._secrets)
        async with Station(workspace, door, tell, self._place) as station:
            before = (await door.info())["state"]["n_submits"]
            program = await station.program(
                self._program, env=_variables(self._options), stdin=dialect == "jsonl" or not silent,
                stream_bytes=STREAM_BYTES,
            )  # fmt: skip
            async with program:
                work = self._converse(program, station) if dialect == "jsonl" else self._listen(program, station)
                words = await self._within_limit(work, station)
                code = program.returncode
            for sentence in program.unkept():
                await tell(AgentRaw("process", sentence))
        return self._ending(await door.info(), before, code, program, words)

    async def _within_limit(self, work: Awaitable[str], station: Station) -> str:
        """The work's result. Raises LimitReached once ``max_wall`` is over and no submission is under way."""
        seconds = self._options.get("max_wall")
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=float(seconds) if seconds else None)
            while not done and station.urls.busy():
                done, _ = await asyncio.wait({task}, timeout=0.05)
            if not done:
                raise LimitReached(f"the limit of {float(seconds or 0):g} s is reached")
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _ending(self, info: Mapping[str, Any], before: int, code: int | None, program: AgentProcess, words: str) -> str:
        """The sentence for the transcript. Raises AgentFailed where a person should look."""
        how = words or _how(code)
        state = info["state"]
        said = redact(program.last_words(), self._secrets)
        if state["remaining_budget"] < info["min_episodes_per_submit"]:
            return f"{self.name} spent the budget and {how}"
        if state["n_submits"] == before:
            raise AgentFailed(f"{self.name} {how} without submitting anything" + (f"; it said: {said}" if said else ""))
        if code and not program.killed:
            raise AgentFailed(f"{self.name} {how} with budget left" + (f"; it said: {said}" if said else ""))
        return f"{self.name} {how}"

    async def _prompt(self, station: Station) -> str:
        chosen = self._options.get("prompt", "stdin")
        if chosen not in ("stdin", "none"):
            return await asyncio.to_thread(Path(chosen).read_text, "utf-8", "replace")
        door = station.door
        return first_prompt(await door.task(), await door.info(), self._place.past, await door.messages()) + _DOOR

    # ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, program: AgentProcess, station: Station) -> str:
        if self._options.get("prompt", "stdin") != "none":
            prompt = await self._prompt(station)

            async def send() -> None:
                await program.write(prompt)
                program.close_stdin()

            sending = asyncio.create_task(send())
        else:
            sending = asyncio.create_task(asyncio.sleep(0))
        voice = Voice(station.tell)
        ticking = asyncio.create_task(voice.tick())
        try:
            async for data in program.pieces():
                voice.hear(data)
                await voice.say_soon()
            await program.wait()
        finally:
            for task in (sending, ticking):
                task.cancel()
            await asyncio.wait({sending, ticking})
            await voice.end()
        return ""

    # ── jsonl ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _converse(self, program: AgentProcess, station: Station) -> str:
        most = int(self._options.get("max_turns") or 0)
        message, turn = await self._prompt(station), 0
        lines = program.lines()
        while True:
            before = (await station.door.info())["state"]["n_submits"]
            document = {"type": "prompt", "turn": turn, "message": message}
            sending = asyncio.create_task(program.write_line(json.dumps(document, ensure_ascii=False)))
            try:
                answer = await self._answer(lines, station.tell)
            finally:
                sending.cancel()
                await asyncio.wait({sending})
            if answer is None:
                await program.wait()
                return ""
            await self._tell_answer(answer, station.tell)
            turn += 1
            info = await station.door.info()
            spent = info["state"]["remaining_budget"] < info["min_episodes_per_submit"]
            if answer.get("stop") or spent:
                program.close_stdin()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._rest(program, station.tell), _FAREWELL)
                return (
                    f"said stop after {counted(turn, 'turn')}"
                    if answer.get("stop")
                    else f"ended after {counted(turn, 'turn')}"
                )
            if most and turn >= most:
                raise LimitReached(f"the limit of {counted(most, 'turn')} is reached")
            submitted = info["state"]["n_submits"] > before
            message = next_prompt(info, await station.door.messages(), submitted, ())

    async def _answer(self, lines: Any, tell: Teller) -> dict[str, Any] | None:
        """The next line that is an answer; None at the end of the stream. Other lines are kept as they are."""
        seen = 0
        async for line in lines:
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                document = None
            if isinstance(document, dict) and "turn" in document:
                return document
            seen += 1
            if line.strip() and seen <= 1000:
                await tell(AgentRaw("line", plain(line)[:_MESSAGE]))
            elif seen == 1001:
                await tell(AgentRaw("line", "lines that are no answer are not shown any more"))
        return None

    async def _tell_answer(self, answer: Mapping[str, Any], tell: Teller) -> None:
        text = answer.get("text")
        if text:
            shown = plain(text if isinstance(text, str) else json.dumps(text))
            await tell(AgentMessage(shown[:BURST] + ("…" if len(shown) > BURST else "")))
        if answer.get("data"):
            await tell(AgentRaw("data", plain(json.dumps(answer["data"], ensure_ascii=False))[:BURST]))

    async def _rest(self, program: AgentProcess, tell: Teller) -> None:
        await self._answer(program.lines(), tell)
        await program.wait()


class Voice:
    """A stream of text as messages of whole lines: a few a second, and of a flood the beginning."""

    def __init__(self, tell: Teller) -> None:
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._room, self._since = float(BURST), time.monotonic()
        self._passed_over = 0
        self._begun = self._said = 0.0
        self._telling = asyncio.Lock()
        self._heard = asyncio.Event()

    def hear(self, data: bytes) -> None:
        now = time.monotonic()
        self._room = min(self._room + (now - self._since) * RATE, BURST)
        self._since = now
        taken = data[: int(self._room)] if self._room >= 1 else b""
        self._room -= len(taken)
        self._passed_over += len(data) - len(taken)
        if not self._text:
            self._begun = now
        self._text += self._decoder.decode(taken)
        self._heard.set()

    async def tick(self) -> None:
        while True:
            await self._heard.wait()
            await asyncio.sleep(_EVERY)
            await self.say(time.monotonic() - self._begun > _PATIENCE)

    async def say_soon(self) -> None:
        """Tell what is there if nothing was told for a while: what is said once is seen at once."""
        if time.monotonic() - self._said > _EVERY:
            await self.say(False)

    async def say(self, whole: bool) -> None:
        """Tell the lines that are there; with ``whole`` also a last one without its end."""
        async with self._telling:
            cut = len(self._text) if whole or self._passed_over else self._text.rfind("\n") + 1
            text, self._text = self._text[:cut], self._text[cut:]
            self._begun = self._said = time.monotonic()
            passed_over, self._passed_over = self._passed_over, 0
            if not self._text:
                self._heard.clear()
            shown = plain(text).rstrip("\n")
            for start in range(0, len(shown), _MESSAGE):
                if piece := shown[start : start + _MESSAGE].strip("\n"):
                    await self._tell(AgentMessage(piece))
            if passed_over:
                words = f"{passed_over:,} bytes of output came too fast to be shown; logs/agent_stream.jsonl has more"
                await self._tell(AgentRaw("output", words))

    async def end(self) -> None:
        self._text += self._decoder.decode(b"", True)
        await self.say(True)


def _how(code: int | None) -> str:
    if code is None:
        return "was ended"
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return "ended" if code == 0 else f"ended with exit code {code}"
