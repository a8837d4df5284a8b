"""``evotui submit``, ``info`` and ``task``: the door of a run for an agent in its workspace, whatever it is written in.

Standard library only, and run before the rest of the command line is imported: an agent calls it many times. It waits
for a submission's result by itself, however long that takes: agents' shells are bad at waiting.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from evotui.cli.errors import FAILURE, INTERRUPTED, NOT_FOUND, OK, USAGE, Told
from evotui.protocol.words import counted

COMMANDS = ("submit", "info", "task")
_USAGE = "usage: evotui submit CASES [--json]   (CASES such as 0-3,7; order and repeats count, each costs one episode)"
_SHOWN = 12
"""Returns shown one by one."""


def main(arguments: list[str]) -> int:
    """One of :data:`COMMANDS` with its arguments; returns the exit code."""
    try:
        return _call(arguments[0], arguments[1:])
    except Told as told:
        print(f"evotui: {told.message}", file=sys.stderr)
        return told.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (http.client.HTTPException, ConnectionError) as error:
        print(f"evotui: the run went away while it answered: {error}", file=sys.stderr)
        return FAILURE


def _call(command: str, arguments: list[str]) -> int:
    as_json = "--json" in arguments
    rest = [argument for argument in arguments if argument != "--json"]
    if any(argument in ("-h", "--help") for argument in rest):
        print(_USAGE if command == "submit" else f"usage: evotui {command}{' [--json]' if command == 'info' else ''}")
        return OK
    if command == "submit":
        if not rest or any(argument.startswith("-") for argument in rest):
            raise Told(_USAGE, USAGE)
        return submit(",".join(rest), as_json)
    if rest:
        raise Told(f"evotui {command} takes no argument {rest[0]!r}", USAGE)
    if command == "task":
        print(_get("TASK"))
        return OK
    document = json.loads(_get("INFO"))
    print(json.dumps(document, indent=2, ensure_ascii=False) if as_json else info_text(document))
    return OK


def submit(cases: str, as_json: bool) -> int:
    """Submit, wait, print the outcome. 0 where the submission ended ok, 1 where it did not or was refused."""
    status, document = _ask("SUBMIT", json.dumps({"env_instances": cases}).encode())
    if as_json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    if status == 200:
        if not as_json:
            print(submission_text(document))
        return OK if document.get("status") == "ok" else FAILURE
    if not as_json:
        for note in document.get("notes", []):
            print(f"note from the operator: {note}")
    verdict, message = document.get("status", status), document.get("message", "")
    raise Told(
        f"not submitted ({verdict}): {message}" if status == 409 else f"refused ({verdict}), nothing spent: {message}",
        USAGE if verdict == "invalid_env_instance" else FAILURE,
    )


def submission_text(document: dict[str, Any]) -> str:
    """A submission's answer in a few lines: verdict, returns, what is left, where the feedback lies."""
    summary, name = document["summary"], document["submit_id"]
    lines = [f"{name}: {document['status']}"]
    if summary.get("mean_return") is not None:
        lines[0] += f", mean return {summary['mean_return']:.6g} (std {summary['std_return']:.4g})"
    returns = summary.get("returns") or []
    pairs = [f"{case}: {value:.6g}" for case, value in zip(summary["env_instances"], returns, strict=False)]
    if message := str(document.get("message") or "").strip():
        lines.append(f"why: {_clean(message.splitlines()[0])}")
    if left := [_clean(str(path)) for path in document.get("left_out") or ()]:
        more = f", … {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        named = ", ".join(left[:_SHOWN])
        lines.append(f"left out of the snapshot (links, special files, names of the host's): {named}{more}")
    if pairs:
        more = f", … {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        lines.append(f"returns by case: {', '.join(pairs[:_SHOWN])}{more}")
    for key, words in (("errors", "failed"), ("timeouts", "ran out of time")):
        if summary.get(key):
            lines.append(f"episodes that {words} (place in this submission): {', '.join(map(str, summary[key]))}")
    lines.append(f"remaining budget: {counted(summary['remaining_budget'], 'episode')}")
    lines.append(f"feedback: feedback/{name}/summary.json and feedback/{name}/episodes/")
    if document["status"] != "ok":
        lines.append(f"what went wrong: feedback/{name}/errors.txt")
    lines += [f"note from the operator: {note}" for note in document.get("notes", [])]
    return "\n".join(lines)


def _clean(text: str, most: int = 300) -> str:
    """Text of a policy's on one line."""
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: most + 1])
    return line if len(text) <= most else line[:most] + "…"


def info_text(document: dict[str, Any]) -> str:
    """What is left to spend and on what, in a few lines."""
    state, meta = document["state"], document["env_meta"]
    least, most = document["min_episodes_per_submit"], document["max_episodes_per_submit"]
    return "\n".join(
        [
            f"environment: {meta['env']} ({meta['env_version']}), "
            f"at most {counted(meta['max_episode_steps'], 'step')} an episode",
            f"budget: {state['remaining_budget']} of {document['episode_budget']} episodes remain, "
            f"{counted(state['n_submits'], 'submission')} so far",
            f"a submission takes {least} to {min(most, max(state['remaining_budget'], least))} of the train cases "
            f"0 to {meta['n_env_instances'] - 1}",
            f"observations: {json.dumps(meta['obs_space'])[:300]}",
            f"actions: {json.dumps(meta['action_space'])[:300]}",
            "all of it: evotui info --json; the task and the policy's contract: evotui task",
        ]
    )


def _get(which: str) -> str:
    with _open(urllib.request.Request(_url(which))) as answer:
        return str(answer.read().decode("utf-8"))


def _ask(which: str, body: bytes) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(_url(which), body, {"Content-Type": "application/json"})
    try:
        with _open(request) as answer:
            return int(answer.status), json.loads(answer.read())
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")
        try:
            document = json.loads(text)
        except ValueError:
            document = {"status": error.code, "message": text.strip() or error.reason}
        return error.code, document


def _open(request: urllib.request.Request) -> Any:
    # No proxy, whatever the environment says: the door is on this machine. No timeout: a submission may wait for days.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request)
    except urllib.error.HTTPError:
        raise
    except (urllib.error.URLError, OSError) as error:
        raise Told(f"the run does not answer any more: it is over, or was stopped ({_why(error)})", FAILURE) from None


def _why(error: BaseException) -> str:
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason)


def _url(which: str) -> str:
    url = os.environ.get(f"EVOPOLICYGYM_{which}_URL", "")
    if not url:
        raise Told(
            f"EVOPOLICYGYM_{which}_URL is not set: this command is for an agent inside a run, which finds it in its "
            "environment; `evotui run ENV --agent human --headless` prints it for your shell",
            NOT_FOUND,
        )
    if not url.startswith(("http://", "https://")):
        raise Told(f"EVOPOLICYGYM_{which}_URL is no address: {url!r}", USAGE)
    return url
