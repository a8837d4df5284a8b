"""The folder of runs that a listing is of: a name that was typed must be a folder, the default one may not be yet."""

from __future__ import annotations

import os
from pathlib import Path

import click

from evotui.cli.errors import USAGE, Told


def to_list(context: click.Context, where: Path) -> Path:
    """``where``, which is there and can be listed, or is not yet and was asked for by no ``--runs``.

    Raises Told for a folder that was named on the command line and does not exist, OSError for one that cannot be read.
    """
    if where.is_dir():
        os.scandir(where).close()
        return where
    asked = click.core.ParameterSource.COMMANDLINE
    if any(c is not None and c.get_parameter_source("runs") == asked for c in (context, context.parent)):
        raise Told(f"--runs: there is no folder {where}", USAGE)
    return where
