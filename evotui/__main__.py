"""``python -m evotui`` and the ``evotui`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:2] and sys.argv[1] in ("submit", "info", "task"):
        from evotui.cli import door  # agents call these many times: nothing else is imported for them

        sys.exit(door.main(sys.argv[1:]))
    from evotui.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
