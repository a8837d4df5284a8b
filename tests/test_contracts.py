"""The import contracts: they hold, and each fails when a forbidden import is added."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contracts")
    shutil.copytree(REPO / "evotui", folder / "evotui", ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    shutil.copy(REPO / "pyproject.toml", folder)
    return folder


def test_they_hold(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0 and "0 broken" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("module", "forbidden", "contract"),
    [
        ("record/state.py", "import evotui.suite.catalog", "Imports point one way"),
        ("ui/select.py", "import evotui.kernel.session", "Whoever shows or analyses a run"),
        ("report/text.py", "import rich", "Only the interface draws"),
        ("protocol/budget.py", "import msgspec", "The protocol needs the standard library"),
        ("rollout/guest/serving.py", "import evotui.protocol.budget", "The policy process has the standard library"),
        ("kernel/session.py", "import gymnasium", "One Gymnasium adapter"),
        ("agents/base.py", "import evotui.kernel.session", "Imports point one way"),
        ("agents/llm/agent.py", "import litellm", "litellm lives in a process of its own"),
    ],
)
def test_they_fail_where_a_forbidden_import_is_added(copy: Path, module: str, forbidden: str, contract: str) -> None:
    path = copy / "evotui" / module
    before = path.read_text()
    path.write_text(
        before.replace("from __future__ import annotations\n", f"from __future__ import annotations\n{forbidden}\n", 1)
    )
    try:
        assert path.read_text() != before
        done = lint(copy)
        assert done.returncode != 0
        assert any(contract in line and "BROKEN" in line for line in done.stdout.splitlines()), done.stdout
    finally:
        path.write_text(before)
