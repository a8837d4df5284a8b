"""``python -m evotui`` and the ``evotui`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:2] and sys.argv[1] in ("submit", "info", "task"):
        from evotui.cli import door  # agents call these many times: nothing else is imported for them

        sys.exit(door.main(sys.argv[1:]))
    try:
        from evotui.cli.main import run

        code = run()
    except KeyboardInterrupt:  # while that was still imported
        from evotui.cli.early import interrupted

        code = interrupted()
    sys.exit(code)


if __name__ == "__main__":
    main()
