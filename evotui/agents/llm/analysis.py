"""The process of ``run_python``: the policy's sandbox around a model's own code, with the workspace to read.

Run by path as ``python -P -s -B analysis.py CONFIG``, CONFIG being JSON: ``workspace``, ``guest`` (the path of its
``start``, which has the walls), ``denied`` imports, ``limits``. The code comes on stdin. Standard library only until
the walls are up. Where neither a namespace nor Landlock holds, nothing is run: the host's own records would lie open.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from typing import Any

NO_WALLS = 97
NAME = "<analysis>"


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("_analysis_start", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    config: dict[str, Any] = json.loads(sys.argv[1])
    code = sys.stdin.buffer.read().decode("utf-8", "replace")
    part = _load(config["guest"]).part
    part("privileges").die_with_parent(config["parent"])
    walls = part("walls").Walls(
        {"use": ["namespaces", "landlock", "seccomp"], "system": config["workspace"], "limits": config["limits"]}
    )
    walls.before_libraries()
    imports, v03 = part("imports"), part("v03")  # and numpy with them
    v03.provide_names()
    workspace = walls.config["system"]
    os.chdir(workspace)
    walls.after_libraries()
    if walls.level == "D":
        sys.stderr.write("no sandbox holds on this machine\n")
        os._exit(NO_WALLS)
    walls.in_policy_process(os.getppid())
    sys.path.insert(0, os.path.join(workspace, "system"))
    sys.argv = ["analysis"]
    imports.guard_imports(tuple(config["denied"]))
    failed = 0
    try:
        exec(compile(code, NAME, "exec"), {"__name__": "__main__"})
    except SystemExit as leave:
        failed = leave.code if isinstance(leave.code, int) else 1 if leave.code else 0
    except BaseException as error:
        failed = 1
        told = traceback.TracebackException.from_exception(error, limit=-12)
        ours = (__file__, imports.__file__)  # nothing that the model wrote
        told.stack = traceback.StackSummary.from_list([f for f in told.stack if f.filename not in ours])
        sys.stderr.write("".join(told.format()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failed & 0xFF)


if __name__ == "__main__":
    main()
