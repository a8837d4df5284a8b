"""``evotui submit|info|task`` as an agent calls them: as a program, against a real door."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evotui.cli import door as command
from evotui.cli.main import run
from evotui.kernel.server import serve_door
from evotui.record.check import check
from evotui.record.events import FileEdited
from evotui.record.log import read
from tests.kernel.conftest import Opener, open_session
from tests.kernel.scripts import GOOD
from tests.kernel.test_server import Fake
from tests.patience import PATIENCE

__all__ = ["open_session"]


async def evotui(urls: Any, *arguments: str) -> tuple[int, str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVOPOLICYGYM_")}
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evotui", *arguments, env=clean | (urls.environment() if urls else {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await program.communicate()
    assert program.returncode is not None
    return program.returncode, out.decode(), err.decode()


async def test_a_submission_is_summed_up(open_session: Opener) -> None:
    session = await open_session(budget=6)
    async with serve_door(session) as urls:
        code, out, err = await evotui(urls, "submit", "0-1,3")
        assert (code, err) == (0, "")
        mean = session.state.submissions[0].mean
        assert out.startswith(f"submit_000: ok, mean return {mean:.6g}")
        assert "returns by case: 0: " in out and ", 3: " in out
        assert "remaining budget: 3 episodes" in out and "feedback/submit_000/summary.json" in out
        code, out, _ = await evotui(urls, "submit", "0", "1", "--json")
        document = json.loads(out)
        assert code == 0 and document["summary"]["env_instances"] == [0, 1]

        code, out, err = await evotui(urls, "submit", "0-3")
        assert code == 1 and out == "" and err.startswith("evotui: refused (budget_invalid), nothing spent: 4 cases")
        code, _, err = await evotui(urls, "submit", "frog")
        assert code == 2 and "cannot read 'frog'" in err
        (session.run_dir.system / "policy.py").write_text("import there_is_no_such_module\n")
        code, out, _ = await evotui(urls, "submit", "0")
        assert code == 1 and "import_error" in out and "feedback/submit_002/errors.txt" in out
        assert "\nwhy: " in out and "No module named 'there_is_no_such_module'" in out

        code, out, _ = await evotui(urls, "info")
        assert code == 0 and "budget: 0 of 6 episodes remain, 3 submissions so far" in out
        code, out, _ = await evotui(urls, "info", "--json")
        assert json.loads(out)["state"]["n_submits"] == 3
        code, out, _ = await evotui(urls, "task")
        assert code == 0 and "def act(self, obs)" in out
    code, _, err = await evotui(urls, "submit", "0")
    assert code == 1 and "does not answer any more" in err


async def test_why_a_submission_went_wrong_and_what_a_snapshot_does_not_take_are_said(open_session: Opener) -> None:
    session = await open_session(budget=6)
    system = session.run_dir.system
    async with serve_door(session) as urls:
        with (system / "weights.bin").open("wb") as file:
            file.truncate((64 << 20) + 1)
        code, out, _ = await evotui(urls, "submit", "0")
        assert code == 1 and out.startswith("submit_000: missing_policy\nwhy: system/ is larger than 64 MB; ")
        (system / "weights.bin").unlink()

        os.mkfifo(system / "pipe")
        (system / "lib").mkdir()
        (system / "lib" / "link.py").symlink_to("/etc/passwd")
        (system / "metrics.json").write_text("{}")
        code, out, _ = await evotui(urls, "submit", "0")
        assert code == 0 and "why:" not in out
        assert "left out of the snapshot (links, special files, names of the host's): " in out
        assert "host's): lib/link.py, metrics.json, pipe\n" in out

        source = (system / "policy.py").read_text()
        (system / "policy.py").write_text(source + "\nraise ValueError('no\\x1b[31m\\nsecond line')\n")
        code, out, _ = await evotui(urls, "submit", "0")
        assert code == 1 and "\nwhy: " in out and "second line" not in out and "\x1b" not in out
        for name in ("pipe", "lib/link.py", "metrics.json"):
            (system / name).unlink()
        (system / "policy.py").unlink()
        (system / "policy.py").symlink_to("/dev/null")
        code, out, _ = await evotui(urls, "submit", "0", "--json")
        document = json.loads(out)
        assert document["message"] == "system/policy.py does not exist" and document["left_out"] == ["policy.py"]
    assert check(session.run_dir.root) == []


async def test_a_finalized_run_and_an_operators_note() -> None:
    fake = Fake()
    async with serve_door(fake) as urls:
        fake.notes = ["try the angle first"]
        fake.submit = _refused  # type: ignore[method-assign]
        code, out, err = await evotui(urls, "submit", "0")
        assert code == 1 and "note from the operator: try the angle first" in out and "refused" in err
        fake = Fake()
    async with serve_door(fake) as urls:
        fake.closed = True
        code, out, err = await evotui(urls, "submit", "0")
        assert code == 1 and out == "" and "not submitted (finalized): the run is finalized" in err


async def _refused(cases: Any) -> Any:
    from evotui.protocol.budget import Rejected
    from evotui.protocol.verdict import Verdict

    raise Rejected(Verdict.REFUSED, "the operator refused this submission: no")


async def test_it_waits_as_long_as_it_takes_and_no_proxy_is_asked() -> None:
    fake = Fake()
    fake.go.clear()
    async with serve_door(fake) as urls:

        class Proxied:
            def environment(self) -> dict[str, str]:
                return urls.environment() | {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}

        waiting = asyncio.create_task(evotui(Proxied(), "submit", "--json", "0"))
        await asyncio.wait_for(fake.waiting.wait(), PATIENCE)
        assert not waiting.done()
        fake.go.set()
        code, out, _ = await waiting
        assert code == 0 and json.loads(out)["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["submit", "0"], 3, "EVOPOLICYGYM_SUBMIT_URL is not set"),
        (["info"], 3, "EVOPOLICYGYM_INFO_URL is not set"),
        (["task"], 3, "EVOPOLICYGYM_TASK_URL is not set"),
        (["submit"], 2, "usage: evotui submit CASES"),
        (["submit", "--frog", "0"], 2, "usage: evotui submit CASES"),
        (["info", "frog"], 2, "takes no argument 'frog'"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    arguments: Sequence[str], code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for which in ("INFO", "TASK", "SUBMIT"):
        monkeypatch.delenv(f"EVOPOLICYGYM_{which}_URL", raising=False)
    assert run(list(arguments)) == code
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err


def test_nothing_heavy_is_imported_for_agents() -> None:
    code = (
        "import sys; sys.argv = ['evotui', 'info']\n"
        "from evotui.__main__ import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('click', 'asyncio', 'numpy', 'msgspec', 'textual', 'gymnasium') if m in sys.modules])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVOPOLICYGYM_")}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean, check=True)
    assert out.stdout.strip() == "[]"


def test_help_names_them() -> None:
    out = subprocess.run([sys.executable, "-m", "evotui", "-h"], capture_output=True, text=True, check=True).stdout
    assert "submit" in out and "For agents" in out
    for name in command.COMMANDS:
        out = subprocess.run([sys.executable, "-m", "evotui", name, "-h"], capture_output=True, text=True, check=True)
        assert out.stdout.startswith(f"usage: evotui {name}")


async def test_a_person_without_a_screen(tmp_path: Path) -> None:
    """`--agent human --headless` prints what a shell needs, follows the edits, and ends when the budget is spent."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("EVO")}
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evotui", "run", "cartpole", "--agent", "human", "--headless", "--budget", "3",
        "--validation", "2", "--heldout", "2", "--workers", "1", "--name", "mine", cwd=tmp_path, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert host.stderr is not None
    try:
        workspace, urls = Path(), dict[str, str]()
        while "EVOPOLICYGYM_SUBMIT_URL" not in urls:
            line = (await asyncio.wait_for(host.stderr.readline(), PATIENCE)).decode().strip()
            assert host.returncode is None
            if line.startswith("The workspace is "):
                workspace = Path(line.removeprefix("The workspace is "))
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                urls[name] = value

        class Printed:
            def environment(self) -> dict[str, str]:
                return urls

        (workspace / "system" / "policy.py").write_text(GOOD)
        code, out, err = await evotui(Printed(), "submit", "0-2")
        assert code == 0 and out.startswith("submit_000: ok"), err
        _, said = await asyncio.wait_for(host.communicate(), PATIENCE)
        assert host.returncode == 0, said
    finally:
        if host.returncode is None:
            host.kill()
            await host.wait()
    run = workspace.parent
    assert check(run) == []
    edits = [r.event for r in read(run / "events.jsonl") if isinstance(r.event, FileEdited)]
    assert [edit.by for edit in edits] == ["start", "human"]
